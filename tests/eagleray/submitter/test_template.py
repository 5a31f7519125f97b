"""A RayJob asks for the light-weight submitter by its template; what the operator puts there is what it needs."""

from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import RayJob
from eagleray.manifests.settings import Settings
from eagleray.manifests.submitter import Expected, submitter_job
from eagleray.submitter.order import Head, read_order
from eagleray.submitter.tokens import VARIABLE
from tests.eagleray.world import raycluster, rayjob

TEMPLATE = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "submitter",
                "image": "eagleray",
                "command": ["eagleray-submitter"],
                "args": ["--runtime-env-json", '{"pip": ["x"]}', "--", "python", "job.py"],
            }
        ],
    }
}


def submitter_of(cluster):
    job = rayjob(submitterPodTemplate=TEMPLATE)
    job["metadata"]["uid"] = "u"
    job["status"] = {"jobId": "j-1", "dashboardURL": "c-head-svc.default.svc:8265", "rayClusterName": "c"}
    made = submitter_job(
        RayJob(job), Cluster(cluster), Expected("session_x", "2030-01-01T00:00:00Z"), Settings()
    )
    (container,) = made["spec"]["template"]["spec"]["containers"]
    return container


def test_the_operator_keeps_the_command_and_gives_it_its_job():
    container = submitter_of(raycluster())
    assert container["command"] == ["eagleray-submitter"]
    variables = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    order = read_order(container["args"], variables)
    assert order.address.host == "c-head-svc.default.svc:8265"
    assert order.submission.submission_id == "j-1"
    assert order.submission.entrypoint == "python job.py"
    assert order.submission.runtime_env == {"pip": ["x"]}
    assert order.head == Head("session_x", 1893456000.0)


def test_the_operator_gives_it_the_token_of_a_cluster_that_asks_for_one():
    container = submitter_of(raycluster(authOptions={"mode": "token"}))
    (given,) = [entry for entry in container["env"] if entry["name"] == VARIABLE]
    assert given["valueFrom"]["secretKeyRef"]["key"] == "auth_token"
