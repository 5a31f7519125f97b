"""Ray's own autoscaler, as a real process beside the head: it asks for workers and lets idle ones go."""

import pytest

from tests.ray.reef import HEAD, cluster

pytestmark = pytest.mark.heavy

# Two tasks that need a whole worker each, and stay long enough for the second one to be worth it.
ASK = """
import time, ray
ray.init()

@ray.remote(num_cpus=1)
def work():
    time.sleep(10)
    return ray.get_runtime_context().get_node_id()

print("worked on", len(set(ray.get([work.remote() for _ in range(2)]))), "nodes")
"""
ASK_API = """
import ssl, sys, urllib.error, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount"
trust = ssl.create_default_context(cafile=f"{place}/ca.crt")
headers = {"Authorization": "Bearer " + open(f"{place}/token").read()}
request = urllib.request.Request("https://kubernetes.default.svc" + sys.argv[1], headers=headers)
try:
    print(urllib.request.urlopen(request, context=trust).status)
except urllib.error.HTTPError as refusal:
    print(refusal.code)
"""


@pytest.fixture(scope="module", params=["v1", "v2"])
def autoscaled(reef, request):
    """A RayCluster without workers whose head has no CPUs for tasks; the group may grow to two."""
    name = f"auto-{request.param}"
    reef.create(
        cluster(
            name,
            workers=0,
            head={"container": HEAD, "rayStartParams": {"num-cpus": "0"}, "pod": {"restartPolicy": "Never"}},
            group={"minReplicas": 0, "maxReplicas": 2, "pod": {"restartPolicy": "Never"}},
            enableInTreeAutoscaling=True,
            autoscalerOptions={"version": request.param, "idleTimeoutSeconds": 5},
        )
    )
    reef.ready(name, workers=0)
    yield name
    reef.delete("RayCluster", name)
    reef.until(lambda: not reef.pods(name), f"the Pods of {name} are gone")


def replicas(reef, name):
    (group,) = reef.get("RayCluster", name)["spec"]["workerGroupSpecs"]
    return group["replicas"]


def test_workers_come_for_tasks_and_go_when_idle(reef, autoscaled):
    job = reef.dashboard("POST", "/api/jobs/", {"entrypoint": f"python -c '{ASK}'"}, name=autoscaled)
    page = f"/api/jobs/{job['submission_id']}"
    reef.until(lambda: replicas(reef, autoscaled) == 2, "the autoscaler has asked for two workers")
    reef.until(lambda: len(reef.pods(autoscaled, "worker")) == 2, "two workers are made")
    ended = reef.until(
        lambda: (
            (found := reef.dashboard("GET", page, name=autoscaled))["status"] in ("SUCCEEDED", "FAILED")
            and found
        ),
        "the job has ended",
    )
    said = reef.dashboard("GET", f"{page}/logs", name=autoscaled)["logs"]
    assert ended["status"] == "SUCCEEDED", said
    assert "worked on 2 nodes" in said
    reef.until(lambda: not reef.pods(autoscaled, "worker"), "the idle workers are gone")
    assert replicas(reef, autoscaled) == 0


def test_the_autoscaler_has_a_name_of_its_own_and_may_change_only_what_it_needs(reef, autoscaled):
    pod = reef.get("Pod", reef.head(autoscaled))
    account = pod["spec"]["serviceAccountName"]
    assert account != "default"
    assert [one["name"] for one in pod["spec"]["containers"]] == ["ray", "autoscaler"]
    assert all(one["ready"] for one in pod["status"]["containerStatuses"])
    assert (
        asked_as_head(reef, autoscaled, "/apis/ray.io/v1/namespaces/default/rayclusters/" + autoscaled)
        == "200"
    )
    assert asked_as_head(reef, autoscaled, "/api/v1/namespaces/default/secrets") == "403"


def asked_as_head(reef, name, path):
    """Return what the API server answers when the autoscaler's container asks with the token that it has."""
    return reef.run(reef.head(name), "python", "-c", ASK_API, path, container="autoscaler").strip()
