"""Kubereef's node, joined to a real control plane under the credentials of a node, with real Ray on it."""

import os
import shutil
import subprocess
import urllib.request

import pytest

from tests.kubereef.node.machine.realnode import require_node
from tests.kubernetes.joined import NODE, JoinedReef
from tests.kubernetes.plane import NotHere, programs
from tests.ray.conftest import turn  # noqa: F401 - a fixture: only one real Ray at a time
from tests.ray.jobs import RESOURCES, Told, ended, job
from tests.ray.reef import HEAD, PATIENCE, cluster
from tests.ray.test_autoscaler import ASK_API, replicas

pytestmark = pytest.mark.heavy

SAY = """
from http.server import SimpleHTTPRequestHandler, test
print("here I am", flush=True)
test(SimpleHTTPRequestHandler, port=8000)
"""
# One task that needs a whole worker, which is not there yet.
ASK = """
import ray
ray.init()
print("worked on", ray.get(ray.remote(num_cpus=1)(lambda: ray.get_runtime_context().get_node_id()).remote()))
"""
WORKER = {"container": {"resources": RESOURCES}, "rayStartParams": {"num-cpus": "1"}, "minReplicas": 1}


@pytest.fixture(scope="module")
def reef(turn, tmp_path_factory):  # noqa: F811 - the fixture above
    """A control plane with the node, and the operator; skipped, with the reason, where the machine cannot run them."""
    directory = tmp_path_factory.mktemp("joined")
    require_node(directory)
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "kubectl is not on the PATH, and CI has to have it"
        pytest.skip("kubectl is not on the PATH")
    try:
        binaries = programs()
    except NotHere as missing:
        pytest.skip(str(missing))
    with JoinedReef(directory, binaries) as reef:
        yield reef


@pytest.fixture(scope="module")
def pod(reef):
    """A Pod that serves its files, and a Service that leads to it."""
    labels = {"app": "files"}
    container = {
        "name": "app",
        "image": "python:3.11",
        "command": ["python", "-c", SAY],
        "workingDir": "/tmp",
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    reef.create({"kind": "Pod", "metadata": {"name": "server", "labels": labels}, "spec": spec})
    ports = [{"port": 80, "targetPort": 8000}]
    reef.create(
        {"kind": "Service", "metadata": {"name": "files"}, "spec": {"selector": labels, "ports": ports}}
    )
    reef.until(lambda: reef.status("Pod", "server").get("phase") == "Running", "the Pod runs")
    reef.until(lambda: "here I am" in reef.log("server"), "the Pod serves")
    yield "server"
    reef.delete("Service", "files")
    reef.delete("Pod", "server")
    reef.gone("Pod", "server")


def kubectl(reef, *words, given=None):
    """Return how a kubectl command ended."""
    return subprocess.run(
        [*reef.kubectl, *words], input=given, capture_output=True, text=True, timeout=PATIENCE
    )


# --- the node and what kubectl does with its Pods


def test_the_node_is_ready_under_the_name_of_its_certificate(reef):
    def conditions():
        status = reef.send("GET", f"/api/v1/nodes/{NODE}")["status"]
        return {one["type"]: one["status"] for one in status["conditions"]}

    reef.until(lambda: conditions().get("Ready") == "True", "the node is ready")
    taints = reef.until(
        lambda: "taints" not in (spec := reef.send("GET", f"/api/v1/nodes/{NODE}")["spec"]) and spec,
        "the node takes Pods",
    )
    assert taints["podCIDR"] == "10.244.0.0/16"
    assert reef.send("GET", f"/api/v1/nodes/{NODE}/proxy/healthz") == "ok"


def test_kubectl_reads_logs(reef, pod):
    assert kubectl(reef, "logs", pod).stdout.startswith("here I am\n")


def test_kubectl_runs_commands_with_input_and_their_exit_codes(reef, pod):
    ended = kubectl(reef, "exec", "-i", pod, "--", "sh", "-c", "tr a-z A-Z; exit 7", given="words")
    assert (ended.stdout, ended.returncode) == ("WORDS", 7), ended.stderr


def test_kubectl_copies_there_and_back(reef, pod, tmp_path):
    (tmp_path / "there").write_text("some words\n")
    assert kubectl(reef, "cp", str(tmp_path / "there"), f"{pod}:/tmp/words").returncode == 0
    assert kubectl(reef, "cp", f"{pod}:/tmp/words", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back").read_text() == "some words\n"


def test_kubectl_forwards_ports(reef, pod):
    with (
        reef.forwarded(f"pod/{pod}", 8000) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as answer,
    ):
        assert answer.status == 200


def test_the_api_server_leads_to_services(reef, pod):
    page = reef.until(
        lambda: reef.send("GET", "/api/v1/namespaces/default/services/files:80/proxy/"), "the proxy answers"
    )
    assert "Directory listing" in page


def test_a_pod_reaches_services_by_name_and_the_api_server_with_a_token_of_its_own(reef, pod):
    read = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).status)"
    assert reef.run(pod, "python", "-c", read, "http://files.default.svc.cluster.local/") == "200\n"
    assert reef.run(pod, "python", "-c", ASK_API, "/api") == "200\n"
    assert reef.run(pod, "python", "-c", ASK_API, "/api/v1/namespaces/default/secrets") == "403\n"


def test_the_node_goes_on_when_the_api_server_was_killed_and_has_come_back(reef, pod):
    plane = reef.kubereef.plane
    plane.kill("kube-apiserver")
    plane.start("kube-apiserver")
    container = {"name": "app", "image": "busybox", "command": ["echo", "still here"]}
    spec = {"containers": [container], "restartPolicy": "Never"}
    reef.create({"kind": "Pod", "metadata": {"name": "later"}, "spec": spec})
    assert reef.ended("later") == ("Succeeded", "still here\n")
    assert reef.status("Pod", pod)["containerStatuses"][0]["restartCount"] == 0
    reef.delete("Pod", "later")


# --- real Ray


def test_a_ray_job_succeeds_and_its_submitter_has_its_output(reef, tmp_path):
    told = Told(tmp_path / "told")
    reef.create(
        job("sum", told.entrypoint("compute", "sum"), told, workers=[WORKER], shutdownAfterJobFinishes=True)
    )
    status = ended(reef, "sum")
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED"), status
    (submitter,) = reef.list("Pod", "job-name=sum")
    assert "Ray says 42" in reef.log(submitter["metadata"]["name"])
    assert [line.attempt for line in told.lines("sum")] == [status["jobId"]]
    reef.delete("RayJob", "sum")
    reef.until(
        lambda: not reef.list("Pod", "app.kubernetes.io/created-by=kuberay-operator"), "its Pods are gone"
    )


def test_a_ray_cluster_grows_for_a_task_and_shrinks_and_leaves_no_process(reef, pod):
    before = reef.traces()
    reef.create(
        cluster(
            "auto",
            workers=0,
            head={"container": HEAD, "rayStartParams": {"num-cpus": "0"}},
            group={"minReplicas": 0, "maxReplicas": 1},
            enableInTreeAutoscaling=True,
            autoscalerOptions={"idleTimeoutSeconds": 5},
        )
    )
    reef.ready("auto", workers=0)
    submitted = reef.dashboard("POST", "/api/jobs/", {"entrypoint": f"python -c '{ASK}'"}, name="auto")
    page = f"/api/jobs/{submitted['submission_id']}"
    reef.until(lambda: replicas(reef, "auto") == 1, "the autoscaler has asked for a worker")
    done = reef.until(
        lambda: (
            (found := reef.dashboard("GET", page, name="auto"))["status"] in ("SUCCEEDED", "FAILED") and found
        ),
        "the task has ended",
    )
    assert done["status"] == "SUCCEEDED", reef.dashboard("GET", f"{page}/logs", name="auto")["logs"]
    reef.until(lambda: not reef.pods("auto", "worker"), "the idle worker is gone")
    assert replicas(reef, "auto") == 0
    reef.delete("RayCluster", "auto")
    reef.until(lambda: not reef.pods("auto"), "the Pods are gone")
    reef.until(lambda: not reef.traces().beyond(before), "nothing of the Pods is left on the machine")
