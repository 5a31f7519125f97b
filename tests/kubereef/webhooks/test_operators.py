"""Configurations as operators bring them: a queue that holds jobs back, and an issuer that leaves the system alone."""

import pytest

from tests.kubereef.webhooks.asked import CORE, MAPS, Api, a_map, rules, webhook
from tests.kubereef.webhooks.outsider import Json, Outsider, deny, patching

TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
QUEUE = "kueue.x-k8s.io/queue-name"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def job(name: str, queue: str = "") -> Json:
    labels = {QUEUE: queue} if queue else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"template": TEMPLATE}}


def hold(request: Json) -> Json:
    """Suspend a job that is to be queued, as a queue does on its creation."""
    queued = request["object"]["metadata"].get("labels", {}).get(QUEUE)
    if not queued or request["object"]["spec"].get("suspend"):
        return {"allowed": True}
    answer = patching({"op": "add", "path": "/spec/suspend", "value": True})(request)
    assert isinstance(answer, dict)
    return answer


def keep_queue(request: Json) -> Json:
    """Refuse another queue for a job that has been let go."""
    queues = [
        one["metadata"].get("labels", {}).get(QUEUE) for one in (request["object"], request["oldObject"])
    ]
    if queues[0] == queues[1] or request["oldObject"]["spec"].get("suspend"):
        return {"allowed": True}
    cause = {"reason": "FieldValueInvalid", "field": "metadata.labels", "message": "field is immutable"}
    details = {"name": request["name"], "kind": "Job", "causes": [cause]}
    return {
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "wrong", "details": details},
    }


@pytest.fixture
async def queue(api: Api, outsider: Outsider) -> Api:
    """A queue for jobs, everywhere but in the namespaces of the system and its own."""
    outsider.answers |= {"/mutate-batch-v1-job": hold, "/validate-batch-v1-job": keep_queue}
    names = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "kueue-system"],
    }
    common = {"namespaceSelector": {"matchExpressions": [names]}, "failurePolicy": "Fail"}
    await api.configure(
        "mutating",
        webhook(
            "mjob.kb.io",
            outsider.client("/mutate-batch-v1-job"),
            rules=rules("jobs", group="batch", operations="CREATE"),
            reinvocationPolicy="IfNeeded",
            **common,
        ),
    )
    await api.configure(
        "validating",
        webhook(
            "vjob.kb.io",
            outsider.client("/validate-batch-v1-job"),
            rules=rules("jobs", "jobs/status", group="batch", operations="UPDATE"),
            **common,
        ),
    )
    return api


async def test_a_queue_holds_jobs_back_from_the_first_moment(queue: Api) -> None:
    assert (await queue.create(job("queued", "main"), JOBS))["spec"]["suspend"] is True
    assert (await queue.create(job("plain"), JOBS))["spec"]["suspend"] is False


async def test_a_queue_lets_jobs_of_the_system_be(queue: Api, outsider: Outsider) -> None:
    made = await queue.create(job("own", "main"), JOBS.replace("default", "kube-system"))
    assert made["spec"]["suspend"] is False
    assert not outsider.asked


async def test_a_job_that_has_been_let_go_keeps_its_queue(queue: Api, outsider: Outsider) -> None:
    await queue.create(job("j", "main"), JOBS)
    other = {"metadata": {"labels": {QUEUE: "other"}}}
    await queue.merge(f"{JOBS}/j", other)
    await queue.merge(f"{JOBS}/j", {"spec": {"suspend": False}})
    refused = await queue.refusal(
        "PATCH", f"{JOBS}/j", {"metadata": {"labels": {QUEUE: "main"}}}, "application/merge-patch+json"
    )
    assert refused.message == 'admission webhook "vjob.kb.io.example.com" denied the request: wrong'
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, "metadata.labels")
    asked = [request.get("subResource") for request in outsider.requests("/validate-batch-v1-job")]
    await queue.merge(f"{JOBS}/j/status", {"status": {"active": 1}})
    told = [request.get("subResource") for request in outsider.requests("/validate-batch-v1-job")]
    assert told == [*asked, "status"]


async def test_an_issuer_s_webhook_is_asked_about_what_is_not_marked_to_be_left_alone(
    api: Api, outsider: Outsider
) -> None:
    outsider.answers["/validate"] = deny(message="spec.secretName: Required value")
    marked = {
        "matchExpressions": [{"key": "issuer/disable-validation", "operator": "NotIn", "values": ["true"]}]
    }
    await api.configure(
        "validating",
        webhook(
            "webhook.issuer",
            outsider.client("/validate"),
            namespaceSelector=marked,
            objectSelector={"matchLabels": {"issued": "yes"}},
            rules=rules("*", operations="CREATE UPDATE"),
            matchConditions=[
                {"name": "not-nodes", "expression": "!('system:nodes' in request.userInfo.groups)"},
                {"name": "not-leases", "expression": "request.resource.group != 'coordination.k8s.io'"},
            ],
        ),
    )
    await api.send(
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "quiet", "labels": {"issuer/disable-validation": "true"}}},
    )
    issued = a_map(labels={"issued": "yes"})
    await api.create(a_map("other"))
    await api.create(issued, "/api/v1/namespaces/quiet/configmaps")
    refused = await api.refusal("POST", MAPS, issued)
    assert refused.message.endswith("denied the request: spec.secretName: Required value")
    assert (await api.refusal("POST", f"{CORE}/secrets", {"metadata": issued["metadata"]})).status == 400
