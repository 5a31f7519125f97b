"""`eagleray run` as a user types it: real Ray, real output, real exit codes, and nothing left behind."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.kubereef.node.machine.realnode import (
    cgroups_of,
    family,
    host_traces,
    is_alive,
    left_since,
    require_node,
)

pytestmark = pytest.mark.heavy

REPOSITORY = Path(__file__).parents[2]
HELLO = REPOSITORY / "examples" / "hello.yaml"
PATIENCE = 600.0
COMMAND = [sys.executable, "-m", "eagleray.cli.main", "run"]
# On a busy machine a head may need longer for the modules of its dashboard than the 30 s that Ray grants them.
SLOW_START = [{"name": "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "value": "180"}]


@pytest.fixture(autouse=True)
def machine(tmp_path):
    require_node(tmp_path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where runs put their directories, so that what they leave can be seen."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def written(tmp_path, *, entrypoint=None, mode="", name="job.yaml", **spec):
    """Write the example with some changes; returns the file."""
    objects = list(yaml.safe_load_all(HELLO.read_text()))
    job = objects[-1]
    job["spec"] |= spec
    if entrypoint is not None:
        job["spec"]["entrypoint"] = entrypoint
        job["spec"]["rayClusterSpec"]["workerGroupSpecs"] = []
    if mode:
        job["spec"]["submissionMode"] = mode
    cluster = job["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = SLOW_START
    file = tmp_path / name
    file.write_text(yaml.safe_dump_all(objects))
    return file


def run(folder, *arguments):
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )


@pytest.mark.case("OP-181")
def test_the_example_computes_on_three_nodes_and_prints_its_result(tmp_path, folder):
    before = host_traces()
    ended = run(folder, written(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "3 nodes with 3 CPUs\n" in ended.stdout
    assert len(re.findall(r"^  hello-\S+: 4 tasks$", ended.stdout, re.MULTILINE)) == 3
    assert re.search(r"^pi is about 3\.1[34]\d$", ended.stdout, re.MULTILINE)
    told = [line.partition("s  ")[2] for line in ended.stderr.splitlines()]
    assert told[:3] == [
        "a Kubernetes with Ray's operator is up, for this run",
        "configmap/hello created",
        "rayjob.ray.io/hello created",
    ]
    assert any(re.fullmatch(r"RayCluster hello-\w+ is ready: 1 head, 2 workers", line) for line in told)
    assert told[-2].startswith("RayJob hello SUCCEEDED (cluster ")
    assert told[-1] == "the RayJob succeeded"
    assert list(folder.iterdir()) == []
    assert not left_since(before)


@pytest.mark.case("OP-181")
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
def test_a_job_that_fails_is_a_failure_with_its_reason(tmp_path, folder, mode):
    entrypoint = "python -c \"print('before', flush=True); raise SystemExit(3)\""
    ended = run(folder, written(tmp_path, entrypoint=entrypoint, mode=mode))
    assert ended.returncode == 1, ended.stderr
    assert "before\n" in ended.stdout
    assert "RayJob hello: failed: AppFailed: " in ended.stderr
    (logs,) = folder.iterdir()
    assert f"logs of the operator and the node: {logs}" in ended.stderr
    assert {log.name for log in logs.iterdir()} == {"operator.log", "node.log"}


def test_what_does_not_fit_the_machine_is_told(tmp_path, folder):
    file = written(tmp_path, entrypoint="python -c 1")
    objects = list(yaml.safe_load_all(file.read_text()))
    head = objects[-1]["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    head["resources"]["limits"]["memory"] = "100Ti"
    file.write_text(yaml.safe_dump_all(objects))
    ended = run(folder, "--timeout", "20", file)
    assert ended.returncode == 1
    assert "Insufficient memory" in ended.stderr
    assert "not done within 20 s (--timeout)" in ended.stderr


class AtTerminal:
    """A run with a terminal, at which keys can be pressed."""

    def __init__(self, folder, *arguments):
        environment = {**os.environ, "TMPDIR": str(folder), "TERM": "xterm"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:  # the child, which only becomes the command
            os.execve(sys.executable, [*COMMAND, *map(str, arguments)], environment)
        self.seen = ""

    def until(self, text):
        self.until_matched(re.escape(text))

    def until_matched(self, pattern):
        """Read on until a pattern was shown; returns the match."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.seen)) is None:
            assert time.monotonic() < deadline, self.seen
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        return found

    def press(self, key):
        os.write(self.terminal, key)

    def end(self):
        """Return the exit code, and how long it took to come."""
        began = time.monotonic()
        try:
            while part := os.read(self.terminal, 65536):
                self.seen += part.decode(errors="replace")
        except OSError:  # the other end is closed
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status), time.monotonic() - began


@pytest.mark.parametrize("presses", [1, 2], ids=["once", "twice"])
def test_ctrl_c_ends_everything(tmp_path, folder, presses):
    before = host_traces()
    at = AtTerminal(folder, written(tmp_path, entrypoint="sleep 1000"))
    at.until("has started")
    below = family(at.pid)
    for _ in range(presses):
        at.press(b"\x03")
        if presses == 1:
            at.until("ending; once more to end at once")
    code, seconds = at.end()
    assert code == 130, at.seen
    assert seconds < 30
    deadline = time.monotonic() + 10
    while any(is_alive(process) for process in below) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [process for process in below if is_alive(process)]
    assert not left_since(before)
    if presses == 1:
        assert list(folder.iterdir()) == []
        assert cgroups_of(at.pid) == []


def test_a_service_is_reached_at_the_address_that_is_told_until_ctrl_c(tmp_path, folder):
    before = host_traces()
    at = AtTerminal(folder, REPOSITORY / "examples" / "service.yaml")
    url = at.until_matched(r"RayService fruit: (http://127\.0\.0\.1:\d+)\D")[1]
    with urllib.request.urlopen(f"{url}/?fruit=mango&count=3", timeout=PATIENCE) as answer:
        assert json.load(answer) == {"mango": 15}
    at.press(b"\x03")
    code, _ = at.end()
    assert code == 130, at.seen
    assert list(folder.iterdir()) == []
    assert not left_since(before)


def test_a_termination_signal_ends_everything_too(tmp_path, folder):
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(
        [*COMMAND, str(written(tmp_path, entrypoint="sleep 1000"))],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as going:
        assert going.stderr is not None
        while "has started" not in going.stderr.readline():
            assert going.poll() is None
        going.send_signal(signal.SIGTERM)
        assert "ending" in going.stderr.read()
        assert going.wait(PATIENCE) == 143
    assert list(folder.iterdir()) == []


def test_another_user_is_told_the_command_that_works():
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed, which makes a command run as another user")
    # The right to read everything, since this checkout and its Python may be root's own.
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    nobody += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    ended = subprocess.run(
        [*nobody, *COMMAND, "examples/hello.yaml"], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert ended.returncode == 1
    told = f"needs root; run it as: sudo {sys.executable} -m eagleray.cli.main run examples/hello.yaml"
    assert told in ended.stderr
