"""`eagleray operator` as a process of its own, against Kubereef over HTTPS."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.eagleray.world import raycluster
from tests.reef.kubelet import make_ready

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 30.0
LEASE_SECONDS = 15.0
EAGLERAY = (sys.executable, "-m", "eagleray.cli.main")


class Operator:
    """A running operator; its log is in a file. As a context it is killed at the end."""

    def __init__(self, reef, kubectl, log, *flags):
        self.metrics, self.probes = _free_port(), _free_port()
        self._log = log
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [
                    *EAGLERAY,
                    *("operator", "--kubeconfig", str(reef.kubeconfig), "--enable-metrics"),
                    *(f"-metrics-addr=127.0.0.1:{self.metrics}", "-health-probe-bind-address"),
                    *(f"127.0.0.1:{self.probes}", f"--leader-election-namespace={kubectl.namespace}"),
                    *(f"--watch-namespace={kubectl.namespace}", *flags),
                ],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            )

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        self.kill()

    def lines(self):
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def page(self, path, port=None):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port or self.probes}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:
            return 0, ""

    def metric(self, series):
        """Return the value of a series of the page of metrics; None if it is not there."""
        found = re.search(
            rf"^{re.escape(series)} (\S+)$", self.page("/metrics", self.metrics)[1], re.MULTILINE
        )
        return float(found[1]) if found else None

    def leads(self):
        return self.metric('leader_election_master_status{name="ray-operator-leader"}') == 1

    def terminate(self):
        """End it in good order; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def kill(self):
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)

    def output_until(self, text):
        """Return what it prints, up to a line with a text."""
        assert self._process.stdout is not None
        shown = []
        for line in self._process.stdout:
            shown.append(line.rstrip("\n"))
            if text in line:
                return shown
        raise AssertionError(f"{text} was not printed: {shown} {self._log.read_text()}")


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(holds, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def served(reef, kubectl_cache):
    """A Kubereef that knows RayClusters."""
    file = REPOSITORY / "config" / "crd" / "ray.io_rayclusters.yaml"
    command = ("kubectl", "--kubeconfig", reef.kubeconfig, "--cache-dir", kubectl_cache, "create", "-f", file)
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return reef


@pytest.fixture
def start(served, kubectl, tmp_path):
    """Start operators that watch the namespace of the test, and end them with it."""
    running: list[Operator] = []

    def started(*flags):
        running.append(Operator(served, kubectl, tmp_path / f"{len(running)}.log", *flags))
        return running[-1]

    yield started
    for operator in running:
        operator.kill()


def why(served, kubectl, name):
    command = [*EAGLERAY, "why", f"raycluster/{name}", "-n", kubectl.namespace]
    command += ["--kubeconfig", str(served.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def create(kubectl, name="hello", **options):
    kubectl("create", "-f", "-", given=raycluster(name, namespace=kubectl.namespace, **options))


@pytest.mark.case("OP-183", "OP-34", "OP-77", "OP-80", "OP-189")
@pytest.mark.case("OP-4", "OP-5")
def test_an_operator_makes_a_cluster_and_ends_in_good_order(served, kubectl, start):
    operator = start()
    wait_until(lambda: operator.page("/readyz")[0] == 200)
    assert operator.page("/healthz")[0] == 200
    create(kubectl)
    make_ready(kubectl, "ray.io/cluster=hello", 2)
    wait_until(lambda: (kubectl.read("raycluster", "hello").get("status") or {}).get("state") == "ready")
    place = f'namespace="{kubectl.namespace}"'
    status, page = operator.page("/metrics", operator.metrics)
    assert status == 200
    assert f'kuberay_cluster_info{{name="hello",{place}' in page
    assert operator.metric('controller_runtime_reconcile_errors_total{controller="raycluster"}') == 0
    asked = why(served, kubectl, "hello")
    assert asked.returncode == 0, asked
    assert asked.stdout.splitlines()[0] == f"RayCluster {kubectl.namespace}/hello is ready."
    assert why(served, kubectl, "nobody").returncode == 2
    lease = kubectl.read("lease", "ray-operator-leader")
    assert lease["spec"]["holderIdentity"]
    assert operator.terminate() == 0
    assert not kubectl.read("lease", "ray-operator-leader")["spec"].get("holderIdentity")
    assert all({"ts", "level", "msg"} <= line.keys() for line in operator.lines()), operator.lines()[:1]


def test_a_line_about_a_pass_names_its_object_and_its_id(kubectl, start):
    operator = start("--zap-log-level=debug", "--enable-leader-election=false")
    create(kubectl, workers=[{"minReplicas": 5, "maxReplicas": 2}])
    place = {"namespace": kubectl.namespace, "name": "hello"}
    (line, *_) = wait_until(lambda: [line for line in operator.lines() if line.get("RayCluster") == place])
    assert line["reconcileID"]


@pytest.mark.case("OP-6", "OP-100")
def test_a_second_operator_takes_over_within_the_lease_time(kubectl, start):
    first = start()
    wait_until(first.leads)
    second = start()
    wait_until(lambda: second.page("/readyz")[0] == 200)
    assert not second.leads()
    first.kill()
    killed = time.monotonic()
    create(kubectl)
    # A candidate asks every 2 s and up to 1.2 times that later, and the last renewal is up to 2 s before the end.
    wait_until(second.leads, LEASE_SECONDS + 2 * 2.0 * 2.2)
    assert time.monotonic() - killed > 1, "a Lease that is held was taken"
    wait_until(lambda: len(kubectl.read("pods", "-l", "ray.io/cluster=hello")["items"]) == 2)
    assert second.terminate() == 0


def test_a_dry_run_prints_its_plan_and_changes_nothing(kubectl, start):
    create(kubectl)
    operator = start("--dry-run")
    shown = operator.output_until("worker-pods")
    place = f"RayCluster {kubectl.namespace}/hello"
    assert shown[0] == f"{place}: head-service: create Service {kubectl.namespace}/hello-head-svc"
    assert operator.terminate() == 0
    assert kubectl.read("pods")["items"] == []
    assert kubectl.read("leases")["items"] == []
    assert "status" not in kubectl.read("raycluster", "hello")


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        pytest.param("--metrics-adr=:1", "metrics-adr", id="an unknown flag"),
        pytest.param("--batch-scheduler=foo", "scheduler-plugins", id="a scheduler that nobody knows"),
        pytest.param(
            "--feature-gates=RayClusterMTLS=true", "RayClusterMTLS comes later", id="a gate that comes later"
        ),
        pytest.param("--kubeconfig=/nowhere", "/nowhere", id="a kubeconfig that does not exist"),
    ],
)
def test_what_cannot_be_followed_ends_with_1_and_one_sentence(flag, sentence):
    command = [*EAGLERAY, "operator", flag]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("eagleray operator: ")
    assert sentence in line
