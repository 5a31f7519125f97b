"""The life of a RayCluster that is real: one head, two workers, and what they leave behind, which is nothing."""

import subprocess
from pathlib import Path

import pytest

from tests.kubereef.node.machine.realnode import family
from tests.ray.reef import IMAGE, PATIENCE, cluster
from tests.ray.traces import Traces

pytestmark = pytest.mark.heavy

PROGRAMS = "/home/ray/anaconda3/bin"  # of the image
# Three tasks that wait for each other while each of them has all of a node's CPUs: they meet only across the nodes.
MEET = """
import time, ray
ray.init()

@ray.remote(num_cpus=0)
class Meeting:
    there = 0
    def arrive(self): self.there += 1
    def is_complete(self): return self.there == 3

@ray.remote(num_cpus=1)
def attend(meeting):
    ray.get(meeting.arrive.remote())
    while not ray.get(meeting.is_complete.remote()): time.sleep(0.05)
    return ray.get_runtime_context().get_node_id()

meeting = Meeting.remote()
print("met on", len(set(ray.get([attend.remote(meeting) for _ in range(3)]))), "nodes")
"""


@pytest.fixture(scope="module")
def untouched(reef):
    """What is on the machine before there is a RayCluster."""
    return reef.traces()


@pytest.fixture
def ready(reef, untouched):
    """The RayCluster that the tests share, ready with two workers: whoever finds it missing makes it."""
    wanted = cluster(workers=2, suspend=False)
    if reef.get("RayCluster", "c") is None:
        reef.create(wanted)
    else:  # as it was, in case that a failed test left it otherwise
        reef.patch("RayCluster", "c", {"spec": wanted["spec"]})
    reef.ready(workers=2)
    reef.until(lambda: len(reef.ray_nodes()) == 3, "Ray has three nodes")


def condition(reef, kind):
    conditions = reef.status("RayCluster", "c").get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == kind), None)


@pytest.mark.usefixtures("ready")
def test_a_cluster_becomes_ready_with_as_many_cpus_as_its_limits_say(reef):
    status = reef.status("RayCluster", "c")
    assert status["availableWorkerReplicas"] == status["desiredWorkerReplicas"] == 2
    assert status["desiredCPU"] == "3"
    assert condition(reef, "HeadPodReady") == condition(reef, "RayClusterProvisioned") == "True"
    said = reef.run(
        reef.head(), "python", "-c", "import ray; ray.init(); print(ray.cluster_resources()['CPU'])"
    )
    assert said.split()[-1] == "3.0"


@pytest.mark.usefixtures("ready")
def test_a_job_submitted_from_a_pod_runs_across_the_workers(reef):
    container = {"name": "submits", "image": IMAGE, "command": submit("http://c-head-svc:8265")}
    spec = {"restartPolicy": "Never", "containers": [container]}
    reef.create({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "submits"}, "spec": spec})
    phase, said = reef.ended("submits")
    reef.delete("Pod", "submits")
    assert phase == "Succeeded", said
    assert "met on 3 nodes" in said


@pytest.mark.usefixtures("ready")
def test_a_job_submitted_from_outside_runs_across_the_workers(reef):
    # The image's own Ray, but in the network of this machine, as for somebody who has installed it.
    outside = ("nsenter", "--mount", "--pid", "--target", str(_process_of_the_head(reef)))
    with reef.forwarded("svc/c-head-svc", 8265) as port:
        command = [*outside, *submit(f"http://127.0.0.1:{port}")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended
    assert "met on 3 nodes" in ended.stdout


def submit(address):
    """Return the command that has Ray run a program, and follows it to its end."""
    return [f"{PROGRAMS}/ray", "job", "submit", "--address", address, "--", "python", "-c", MEET]


def _process_of_the_head(reef):
    numbers = (number for number, _ in family(reef.kubereef.pid))
    return next(one for one in numbers if b"gcs_server\0" in Path(f"/proc/{one}/cmdline").read_bytes())


@pytest.mark.usefixtures("ready")
def test_a_worker_whose_raylet_is_killed_comes_back(reef):
    before = reef.ray_nodes()
    victim, other = (pod["metadata"]["name"] for pod in reef.pods(node_type="worker"))
    reef.kill_inside(victim, "raylet")
    reef.until(lambda: len(before & reef.ray_nodes()) == 2, "Ray has lost the node")
    reef.until(lambda: len(reef.ray_nodes()) == 3, "Ray has three nodes again")
    reef.ready(workers=2)
    (status,) = reef.status("Pod", victim)["containerStatuses"]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] != 0
    assert {pod["metadata"]["name"] for pod in reef.pods(node_type="worker")} == {victim, other}


@pytest.mark.usefixtures("ready")
def test_a_cluster_is_scaled_to_nothing_and_back(reef):
    head = reef.get("Pod", reef.head())
    reef.scale(0)
    reef.until(lambda: not reef.pods(node_type="worker"), "the workers are gone")
    reef.until(lambda: len(reef.ray_nodes()) == 1, "Ray has its head alone")
    assert reef.ready(workers=0).get("desiredWorkerReplicas", 0) == 0
    reef.scale(2)
    reef.ready(workers=2)
    reef.until(lambda: len(reef.ray_nodes()) == 3, "Ray has three nodes again")
    assert reef.get("Pod", reef.head())["metadata"]["uid"] == head["metadata"]["uid"]


@pytest.mark.case("RC-28", "RC-29")
@pytest.mark.usefixtures("ready")
def test_a_suspended_cluster_has_no_pods_until_it_is_resumed(reef):
    reef.patch("RayCluster", "c", {"spec": {"suspend": True}})
    reef.until(lambda: condition(reef, "RayClusterSuspended") == "True", "RayCluster c is suspended")
    assert reef.pods() == []
    status = reef.status("RayCluster", "c")
    assert (status["state"], status["head"].get("podName", "")) == ("suspended", "")
    assert condition(reef, "RayClusterProvisioned") != "True"
    reef.patch("RayCluster", "c", {"spec": {"suspend": False}})
    reef.ready(workers=2)
    assert condition(reef, "RayClusterSuspended") == "False"
    assert condition(reef, "RayClusterProvisioned") == "True"
    reef.until(lambda: len(reef.ray_nodes()) == 3, "Ray has three nodes again")


@pytest.mark.usefixtures("ready")
def test_a_deleted_cluster_leaves_nothing_on_the_machine(reef, untouched):
    left = reef.traces().beyond(untouched)
    assert set(left) == set(Traces._fields), "it has been there"
    reef.delete("RayCluster", "c")
    reef.gone("RayCluster", "c")
    reef.until(
        lambda: not reef.list("Pod") and not reef.list("Service", "ray.io/cluster=c"), "its objects are gone"
    )
    reef.until(lambda: not reef.traces().beyond(untouched), f"nothing is left of {left}", 30)
