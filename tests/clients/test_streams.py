"""Logs, exec and port-forward of a Pod that really runs: client-go over SPDY and WebSockets, kr8s, lightkube, Helm."""

import subprocess
import urllib.request
from pathlib import Path

import kr8s
import pytest
from kr8s.objects import Pod
from lightkube import ApiError, Client, KubeConfig

from tests.clients.closing import close
from tests.clients.helm import Helm
from tests.clients.programs import built
from tests.kubereef.node.machine.realnode import NodeReef, require_node
from tests.reef.kubectl import Kubectl

pytestmark = [
    pytest.mark.heavy,
    # kr8s warns of versions that are newer than it.
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported"),
    # It leaves watches without closing their connections.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

CHART = str(Path(__file__).parent / "chart")
PATIENCE = 60.0
SCRIPT = """
import http.server, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello from the Pod\\n")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Hello)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reef")
    require_node(directory)
    with NodeReef(directory, "--in-memory") as server:
        yield server
        server.stop()


@pytest.fixture(scope="module")
def web(cluster, kubectl_cache):
    """A Pod `web` in the default namespace that answers on port 8000."""
    kubectl = Kubectl(cluster.kubeconfig, kubectl_cache, "default")
    container = {"name": "app", "image": "python:3.11", "command": ["python3", "-c", SCRIPT]}
    helper = {"name": "helper", "image": "busybox", "command": ["sleep", "1000"]}
    spec = {"containers": [container, helper], "terminationGracePeriodSeconds": 1}
    given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    kubectl("create", "-f", "-", given=given)
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=25s")
    return "web"


@pytest.fixture(scope="module")
def programs():
    return built("go-clients")


@pytest.fixture(scope="module")
def helm_program():
    return built("helm")


@pytest.mark.parametrize("protocol", ["spdy", "websocket"])
def test_client_go_streams_to_and_from_a_pod(cluster, web, programs, protocol):
    run = subprocess.run(
        [str(programs / "streams"), "-kubeconfig", str(cluster.kubeconfig), web, protocol],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr


@pytest.fixture
def pod(cluster, web):
    """The Pod as kr8s has it."""
    api = kr8s.api(kubeconfig=str(cluster.kubeconfig))
    yield Pod.get(web, api=api, namespace="default")
    close(api)


def test_kr8s_reads_a_log_and_runs_commands(pod):
    assert next(iter(pod.logs(container="app"))) == "ready"
    done = pod.exec(["sh", "-c", "echo out; echo err >&2; exit 3"], container="helper", check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 3)


def test_kr8s_forwards_a_port(pod):
    with pod.portforward(remote_port=8000, local_port="auto") as port:
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
                assert answer.read() == b"hello from the Pod\n"


@pytest.fixture
def light(cluster):
    with Client(KubeConfig.from_file(str(cluster.kubeconfig)), namespace="default") as client:
        yield client


def test_lightkube_reads_a_log_and_follows_it(light, web):
    assert list(light.log(web, container="app")) == ["ready\n"]
    assert next(iter(light.log(web, container="app", follow=True, newlines=False))) == "ready"
    with pytest.raises(ApiError, match="nobody"):
        list(light.log(web, container="nobody"))


def test_lightkube_runs_commands(light, web):
    done = light.exec(
        web,
        container="helper",
        command=["sh", "-c", "echo err >&2; cat; exit 4"],
        stdin="in",
        stdout=True,
        stderr=True,
    )
    assert (done.stdout, done.stderr, done.exit_code) == ("in", "err\n", 4)


def test_helm_tests_a_chart_with_pods_that_really_run(cluster, kubectl_cache, helm_program, tmp_path):
    helm = Helm(helm_program, cluster.kubeconfig, tmp_path, "default")
    helm("install", "sea", CHART, "--wait", "--timeout=50s")
    assert "it says hello" in helm("test", "sea", "--logs", "--timeout=30s")
    kubectl = Kubectl(cluster.kubeconfig, kubectl_cache, "default")
    assert kubectl("logs", "deployment/sea").startswith("hello")
    helm("uninstall", "sea", "--wait", "--timeout=30s")
