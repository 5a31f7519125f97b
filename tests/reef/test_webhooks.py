"""Webhooks as users of kubectl meet them: a queue that suspends jobs, a denial, a warning."""

import pytest

from tests.kubereef.webhooks.outsider import Json, Outsider, deny, in_a_thread, patching


@pytest.fixture
def outsider(tmp_path):
    with in_a_thread(Outsider(tmp_path, "127.0.0.1")) as outsider:
        yield outsider


def configuration(kind: str, kubectl, outsider: Outsider, path: str, resource: str, group: str) -> Json:
    """Return a configuration about one resource of the namespace that kubectl is in."""
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"{resource}-{kubectl.namespace}"},
        "webhooks": [
            {
                "name": f"{resource}.example.com",
                "clientConfig": outsider.client(path),
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}},
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def test_kubectl_sees_what_webhooks_do(kubectl, outsider):
    outsider.answers["/suspend"] = patching({"op": "add", "path": "/spec/suspend", "value": True})
    outsider.answers["/maps"] = lambda request: (
        {"allowed": True, "warnings": ["this one is old"]}
        if request["name"] == "fine"
        else deny(message="only fine ones")(request)
    )
    suspending = configuration("MutatingWebhookConfiguration", kubectl, outsider, "/suspend", "jobs", "batch")
    judging = configuration("ValidatingWebhookConfiguration", kubectl, outsider, "/maps", "configmaps", "")
    for made in (suspending, judging):
        kubectl("apply", "-f", "-", given=made)
    try:
        kubectl("create", "job", "held", "--image", "busybox", "--", "true")
        assert kubectl.read("job", "held")["spec"]["suspend"] is True
        refused = kubectl("create", "configmap", "bad", code=1)
        denied = 'admission webhook "configmaps.example.com" denied the request: only fine ones'
        assert denied in refused
        kubectl("create", "configmap", "fine")
        assert [request["userInfo"]["username"] for request in outsider.requests("/suspend")] == [
            "kubernetes-admin"
        ]
        listed = kubectl(
            "get", "validatingwebhookconfigurations", judging["metadata"]["name"], "--no-headers"
        )
        assert listed.split()[:2] == [judging["metadata"]["name"], "1"]
    finally:
        for made in (suspending, judging):
            kubectl("delete", made["kind"], made["metadata"]["name"])
    kubectl("create", "configmap", "bad")
