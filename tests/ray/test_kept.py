"""A kept cluster for real: up, down, killed and up again, with kubectl as its user; and a job submitted to it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml

from tests.kubereef.node.machine.realnode import (
    cgroups_of,
    family,
    host_traces,
    is_alive,
    left_since,
    require_node,
    until,
)

pytestmark = pytest.mark.heavy

# Much longer than anything takes, since the machine may be busy with other tests.
PATIENCE = 240.0
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "keeper"},
    "spec": {
        "containers": [
            {"name": "app", "image": "busybox", "command": ["sh", "-c", "echo began; sleep 1000"]}
        ],
        "terminationGracePeriodSeconds": 1,
    },
}
# On a busy machine a head may need longer for the modules of its dashboard than the 30 s that Ray grants them.
SLOW_START = "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT=180"
MAIN = """
import ray, sibling

ray.init(log_to_driver=False)

@ray.remote(num_cpus=0)
def doubled(number):
    return sibling.double(number)

print("the sum is", sum(ray.get([doubled.remote(number) for number in range(5)])))
"""


class Machine:
    """Commands of a user whose data and kubeconfig are in a directory of their own."""

    def __init__(self, directory):
        self.directory = directory
        self.kubeconfig = directory / "config"
        self.data = directory / "data"
        self.environ = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        self.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def command(self, *words):
        place = ("--data-dir", str(self.data)) if words[0] in ("up", "down", "status") else ()
        return [sys.executable, "-m", "eagleray.cli.main", *words, *place]

    def eagleray(self, *words, code=0):
        """Run a command; returns what it said. `code` is how it should exit, if that matters."""
        ended = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=PATIENCE, env=self.environ
        )
        assert code in (None, ended.returncode), f"{words}: {ended.returncode}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    def up(self):
        return self.eagleray("up", "-d", "--outbound", "off")

    def status(self, code=0):
        return json.loads(self.eagleray("status", "-o", "json", code=code))

    def kubectl(self, *words, given=None):
        command = ["kubectl", "--cache-dir", str(self.directory / "kubectl"), *words]
        text = None if given is None else json.dumps(given)
        ended = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=PATIENCE, env=self.environ
        )
        assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    def pod_runs(self, restarts=0):
        """Wait until the Pod runs that was made, after so many restarts at least."""

        def runs():
            pod = json.loads(self.kubectl("get", "pod", "keeper", "-o", "json"))
            state = (pod["status"].get("containerStatuses") or [{}])[0]
            return "running" in state.get("state", {}) and state["restartCount"] >= restarts and pod

        return until(runs, PATIENCE)


@pytest.fixture
def machine(tmp_path):
    require_node(tmp_path)
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "kubectl is not on the PATH, and CI has to have it"
        pytest.skip("kubectl is not on the PATH")
    machine = Machine(tmp_path)
    try:
        yield machine
    finally:
        machine.eagleray("down", "--purge")


@pytest.mark.case("OP-182")
def test_a_cluster_is_kept_over_down_and_up_and_purged_without_a_trace(machine):
    before = host_traces()
    assert "ready at https://127.0.0.1:" in machine.up()
    assert yaml.safe_load(machine.kubeconfig.read_text())["current-context"] == "eagleray"
    machine.kubectl("apply", "-f", "-", given=POD)
    first = machine.pod_runs()
    status = machine.status()
    assert status["state"] == "running"
    assert [pod["name"] for pod in status["pods"]] == ["keeper"]
    assert status["node"]["cpuFactor"] == 4.0
    assert "is up already" in machine.up()
    assert machine.status()["pid"] == status["pid"]
    everything = family(status["pid"])

    assert "has ended: stopped" in machine.eagleray("down")
    assert not machine.kubeconfig.exists()
    assert not any(is_alive(process) for process in everything)
    assert machine.status(code=3)["state"] == "stopped"
    assert "does not run" in machine.eagleray("down")

    machine.up()
    assert machine.status()["url"] == status["url"]
    again = machine.pod_runs(restarts=1)
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    pid = machine.status()["pid"]
    assert "removed" in machine.eagleray("down", "--purge")
    assert not machine.data.exists()
    assert not machine.kubeconfig.exists()
    assert cgroups_of(pid) == []
    assert not left_since(before)


def test_a_cluster_that_was_killed_is_told_started_again_and_cleared_up_after(machine):
    machine.up()
    machine.kubectl("apply", "-f", "-", given=POD)
    machine.pod_runs()
    pid = machine.status()["pid"]
    everything = family(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not any(is_alive(process) for process in everything), PATIENCE)
    assert machine.status(code=3)["state"] == "crashed"

    machine.up()
    machine.pod_runs(restarts=1)
    os.kill(machine.status()["pid"], signal.SIGKILL)
    assert machine.kubeconfig.exists()
    until(lambda: machine.status(code=None)["state"] == "crashed", PATIENCE)
    assert "it had crashed" in machine.eagleray("down")
    assert not machine.kubeconfig.exists()
    assert machine.status(code=3)["state"] == "stopped"


def test_in_the_foreground_it_ends_with_ctrl_c(machine):
    with subprocess.Popen(
        machine.command("up", "--outbound", "off", "--keep-context"),
        stdout=subprocess.PIPE,
        text=True,
        env=machine.environ,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        said = [running.stdout.readline()]
        while "Ctrl-C ends it" not in said[-1]:
            said.append(running.stdout.readline())
            assert said[-1], said
        assert any("ready at https://" in line for line in said)
        assert "kubereef" in machine.kubectl("--context", "eagleray", "get", "nodes")
        os.killpg(running.pid, signal.SIGINT)
        rest = running.stdout.read()
        assert running.wait(PATIENCE) == 0
    assert "its objects are kept for the next eagleray up" in rest
    assert not machine.kubeconfig.exists()


def test_a_directory_is_submitted_and_runs_on_real_ray(machine, tmp_path):
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "main.py").write_text(MAIN)
    (directory / "sibling.py").write_text("def double(number):\n    return 2 * number\n")
    machine.up()
    began = time.monotonic()
    words = ("--working-dir", str(directory), "--workers", "0", "--env", SLOW_START, "--name", "first")
    said = machine.eagleray("job", "submit", *words, "--", "python", "main.py")
    assert "the sum is 20" in said, f"after {time.monotonic() - began:.0f} s"
    state = machine.kubectl("get", "rayjob", "first", "-o", "jsonpath={.spec.jobId} {.status.jobId}")
    assert len(set(state.split())) == 1
