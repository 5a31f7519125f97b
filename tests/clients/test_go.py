"""Go programs on client-go and controller-runtime: what Kubernetes' own libraries expect of a server."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.clients.programs import built
from tests.clients.waiting import eventually
from tests.reef.kubectl import Kubectl
from tests.reef.process import Kubereef

pytestmark = pytest.mark.heavy

PATIENCE = 80.0
PROTOBUF = "application/vnd.kubernetes.protobuf"
BOATS = Path(__file__).parent / "chart" / "crds" / "boats.yaml"


@pytest.fixture(scope="module")
def programs():
    return built("go-clients")


def tour(programs, cluster, namespace, part, *options):
    command = [str(programs / "tour"), "-kubeconfig", str(cluster.kubeconfig), "-namespace", namespace]
    run = subprocess.run([*command, *options, part], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("options", [(), ("-content-type", PROTOBUF)], ids=["in JSON", "in protobuf"])
@pytest.mark.parametrize("part", ["apply", "election", "events", "informers", "reviews", "typed", "watches"])
def test_client_go_works_on_built_in_kinds(programs, cluster, namespace, part, options):
    tour(programs, cluster, namespace, part, *options)


@pytest.mark.parametrize("part", ["discovery", "dynamic", "metadata"])
def test_client_go_works_without_types(programs, cluster, namespace, part):
    tour(programs, cluster, namespace, part)


def test_a_reflector_takes_up_again_where_the_server_left_off(programs, tmp_path, kubectl_cache):
    """The server is killed and started again: its history is gone, so the reflector lists anew, and misses nothing."""
    if os.environ.get("EAGLERAY_TEST_KUBECONFIG"):
        pytest.skip("the server of somebody else is not killed")
    server = Kubereef(tmp_path, "--no-node")
    kubectl = Kubectl(server.kubeconfig, kubectl_cache, "default")
    kubectl("create", "configmap", "stays", "--from-literal=value=1")
    kubectl("create", "configmap", "goes", "--from-literal=value=1")
    command = [str(programs / "tour"), "-kubeconfig", str(server.kubeconfig), "follow"]
    with Followed(command) as followed:
        try:
            eventually(lambda: {"added stays 1", "added goes 1"} <= set(followed.lines))
            server.kill()
            server = Kubereef(tmp_path, "--no-node", port=server.port)
            kubectl("delete", "configmap", "goes")
            kubectl("patch", "configmap", "stays", "-p", '{"data":{"value":"2"}}')
            kubectl("create", "configmap", "comes", "--from-literal=value=1")
            want = {"deleted goes 1", "updated stays 2", "added comes 1"}
            eventually(lambda: want <= set(followed.lines), patience=40)
            assert len(followed.lines) == len(set(followed.lines)), "nothing is told twice"
        finally:
            server.kill()


class Followed:
    """A program that prints lines until it is ended."""

    def __init__(self, command):
        self._command = command
        self.lines: list[str] = []

    def __enter__(self):
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def _read(self):
        assert self._process.stdout is not None
        with self._process.stdout as printed:
            self.lines.extend(line.strip() for line in printed if "kube-root-ca" not in line)

    def __exit__(self, *_why):
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Operator:
    """The operator, running; what it logs is kept to be shown."""

    def __init__(self, programs, cluster, namespace, log):
        self.log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [
                    str(programs / "operator"),
                    *("--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace),
                ],
                stdout=file,
                stderr=file,
            )

    def stop(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()


@pytest.fixture
def operators(programs, cluster, namespace, kubectl, tmp_path):
    """Start operators of boats in the test's namespace."""
    kubectl("apply", "-f", str(BOATS))
    kubectl("wait", "crd/boats.harbour.example", "--for=condition=Established", "--timeout=20s")
    started: list[Operator] = []

    def start():
        started.append(Operator(programs, cluster, namespace, tmp_path / f"operator-{len(started)}.log"))
        return started[-1]

    yield start
    for operator in started:
        operator.process.kill()
        operator.process.wait()


def boat(name, **spec):
    return {
        "apiVersion": "harbour.example/v1",
        "kind": "Boat",
        "metadata": {"name": name},
        "spec": {"crew": 2, **spec},
    }


def sails(kubectl, name, crew):
    wanted = f"--for=jsonpath={{.status.aboard}}={crew}"
    kubectl("wait", f"boat/{name}", wanted, "--timeout=25s")
    kubectl("wait", f"boat/{name}", "--for=condition=Ready", "--timeout=25s")


def test_a_controller_runtime_operator_looks_after_its_kind(operators, kubectl):
    operator = operators()
    kubectl("create", "-f", "-", given=boat("first", cargo="tea"))
    sails(kubectl, "first", 2)
    found = kubectl.read("boat", "first")
    assert found["metadata"]["finalizers"] == ["harbour.example/farewell"]
    assert found["status"]["phase"] == "Sailing"
    owner = kubectl.read("deployment", "first")["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["controller"]) == (found["metadata"]["uid"], True)

    kubectl("scale", "boat/first", "--replicas=3")
    sails(kubectl, "first", 3)
    kubectl("create", "-f", "-", given=boat("second", cargo="tea"))
    sails(kubectl, "second", 2)
    assert kubectl.read("configmap", "second")["data"] == {"cargo": "tea", "alike": "2"}

    kubectl("delete", "configmap", "first")
    eventually(lambda: "configmap/first" in kubectl("get", "configmaps", "-o", "name"))
    eventually(lambda: {"ManifestWritten", "Sailing"} <= reasons(kubectl, "first"))

    kubectl("delete", "boat", "first", "--timeout=25s")
    assert kubectl.read("configmap", "farewell-first")
    eventually(lambda: "first" not in kubectl("get", "deployments", "-o", "name"))
    operator.stop()


def reasons(kubectl, name):
    return {
        one["reason"]
        for one in kubectl.read("events")["items"]
        if one["involvedObject"]["name"] == name and one["involvedObject"]["kind"] == "Boat"
    }


def test_one_operator_leads_and_another_takes_over(operators, kubectl):
    first = operators()
    eventually(lambda: holder(kubectl))
    leader = holder(kubectl)
    operators()
    time.sleep(1.5)  # the second one tries to lead, in vain
    assert holder(kubectl) == leader
    first.process.kill()
    kubectl("create", "-f", "-", given=boat("late", crew=1))
    sails(kubectl, "late", 1)
    assert holder(kubectl) not in ("", leader)


def holder(kubectl):
    """Return who leads; nothing if nobody does."""
    shown = kubectl("get", "leases", "-o", "json")
    found = [one for one in json.loads(shown)["items"] if one["metadata"]["name"] == "boats.harbour.example"]
    return found[0]["spec"].get("holderIdentity", "") if found else ""
