"""What webhooks are told about each sort of request."""

from typing import Any

import pytest

from kubereef.server.requests import User
from tests.kubereef.webhooks.asked import CORE, MAPS, Api, Refused, a_map
from tests.kubereef.webhooks.outsider import Json, Outsider, patching

ALL: list[Json] = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
OPTIONS = "meta.k8s.io/v1"


@pytest.fixture
async def told(api: Api) -> Api:
    """An api with a map `m` and a Pod `p`, and a webhook that is asked about everything that follows."""
    await api.create(a_map())
    await api.create(POD, f"{CORE}/pods")
    await api.ask("validating", "/hook", rules=ALL)
    return api


def brief(request: Json) -> list[Any]:
    """Return operation, kind, resource with part, namespace and name of a request."""
    resource = request["resource"]["resource"]
    part = request.get("subResource")
    names = (request.get("namespace"), request.get("name"))
    return [request["operation"], request["kind"]["kind"], f"{resource}/{part}" if part else resource, *names]


@pytest.mark.parametrize(
    ("method", "url", "body", "expected"),
    [
        pytest.param(
            "POST", MAPS, a_map("n"), ["CREATE", "ConfigMap", "configmaps", "default", "n"], id="create"
        ),
        pytest.param(
            "PUT", f"{MAPS}/m", a_map(), ["UPDATE", "ConfigMap", "configmaps", "default", "m"], id="update"
        ),
        pytest.param(
            "DELETE", f"{MAPS}/m", None, ["DELETE", "ConfigMap", "configmaps", "default", "m"], id="delete"
        ),
        pytest.param(
            "DELETE",
            MAPS,
            None,
            ["DELETE", "ConfigMap", "configmaps", "default", None],
            id="deletecollection",
        ),
        pytest.param(
            "POST",
            "/api/v1/namespaces",
            {"metadata": {"name": "n"}},
            ["CREATE", "Namespace", "namespaces", "n", "n"],
            id="a namespace, which is in itself",
        ),
        pytest.param(
            "POST",
            "/api/v1/nodes",
            {"metadata": {"name": "n"}},
            ["CREATE", "Node", "nodes", None, "n"],
            id="what is in no namespace",
        ),
        pytest.param(
            "PUT",
            f"{CORE}/pods/p/status",
            {**POD, "status": {"phase": "Failed"}},
            ["UPDATE", "Pod", "pods/status", "default", "p"],
            id="a status",
        ),
        pytest.param(
            "POST",
            f"{CORE}/pods/p/binding",
            {"metadata": {"name": "p"}, "target": {"name": "n"}},
            ["CREATE", "Binding", "pods/binding", "default", "p"],
            id="a binding",
        ),
        pytest.param(
            "POST",
            f"{CORE}/pods/p/eviction",
            {"metadata": {"name": "p"}},
            ["CREATE", "Eviction", "pods/eviction", "default", "p"],
            id="an eviction, and not the deletion that follows",
        ),
        pytest.param(
            "POST",
            f"{CORE}/serviceaccounts/default/token",
            {"spec": {"expirationSeconds": 3600}},
            ["CREATE", "TokenRequest", "serviceaccounts/token", "default", "default"],
            id="a token",
        ),
        pytest.param(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}},
            ["CREATE", "SelfSubjectAccessReview", "selfsubjectaccessreviews", None, None],
            id="a review",
        ),
    ],
)
async def test_a_webhook_is_told_of(
    told: Api, outsider: Outsider, method: str, url: str, body: Json | None, expected: list[Any]
) -> None:
    await told.send(method, url, body)
    assert [brief(request) for _, request in outsider.asked] == [expected]
    obj = outsider.asked[0][1]["object"]
    is_namespaced = expected[3] == "default" and obj is not None
    assert not is_namespaced or obj["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("url", "kind", "options"),
    [
        pytest.param(
            f"{CORE}/pods/p/exec?command=ls&command=-l&stdin=true&container=c",
            "PodExecOptions",
            {"stdin": True, "container": "c", "command": ["ls", "-l"]},
            id="a command",
        ),
        pytest.param(
            f"{CORE}/pods/p/attach?tty=1&stdout=1",
            "PodAttachOptions",
            {"tty": True, "stdout": True},
            id="attaching",
        ),
        pytest.param(
            f"{CORE}/pods/p/portforward?ports=80", "PodPortForwardOptions", {"ports": [80]}, id="a port"
        ),
        pytest.param(f"{CORE}/pods/p:80/proxy/a/b?q=1", "PodProxyOptions", {"path": "/a/b"}, id="a proxy"),
    ],
)
async def test_a_connection_is_told_by_its_options(
    told: Api, outsider: Outsider, url: str, kind: str, options: Json
) -> None:
    with pytest.raises(Refused):  # there is no node; but they were asked before
        await told.send("GET", url)
    ((_, request),) = outsider.asked
    assert (request["operation"], request["name"], request["kind"]["kind"]) == ("CONNECT", "p", kind)
    assert request["object"] == {"apiVersion": "v1", "kind": kind, **options}
    assert (request["oldObject"], request["options"]) == (None, None)


async def test_a_connection_goes_as_webhooks_leave_it(api: Api, outsider: Outsider) -> None:
    await api.create(POD, f"{CORE}/pods")
    outsider.answers["/hook"] = patching({"op": "replace", "path": "/container", "value": "other"})
    await api.ask("mutating", "/hook", rules=ALL)
    refused = await api.refusal("GET", f"{CORE}/pods/p/exec?command=ls&container=c")
    assert refused.message == "container other is not valid for pod p"


async def test_reading_is_nobody_s_concern(told: Api, outsider: Outsider) -> None:
    await told.send("GET", f"{MAPS}/m")
    await told.send("GET", MAPS)
    await told.send("GET", f"{CORE}/pods/p/log")
    assert not outsider.asked


async def test_a_request_is_told_in_full(told: Api, outsider: Outsider) -> None:
    user = User("ann", ("system:masters", "dev"), "u1", {"scope": ("a", "b")})
    client = told.cluster.client(user)
    url = f"{MAPS}/m?fieldManager=me&fieldValidation=Strict"
    await client.call("PATCH", url, {"data": {"x": "y"}}, {"content-type": "application/merge-patch+json"})
    ((_, request),) = outsider.asked
    version = {"group": "", "version": "v1"}
    expected = {
        "kind": {**version, "kind": "ConfigMap"},
        "requestKind": {**version, "kind": "ConfigMap"},
        "resource": {**version, "resource": "configmaps"},
        "requestResource": {**version, "resource": "configmaps"},
        "userInfo": {
            "username": "ann",
            "uid": "u1",
            "groups": ["system:masters", "dev"],
            "extra": {"scope": ["a", "b"]},
        },
        "dryRun": False,
        "options": {
            "kind": "UpdateOptions",
            "apiVersion": OPTIONS,
            "fieldManager": "me",
            "fieldValidation": "Strict",
        },
    }
    assert {field: request[field] for field in expected} == expected
    assert request["object"]["data"] == {"a": "b", "x": "y"}
    assert request["object"]["metadata"]["managedFields"]
    assert (request["oldObject"]["kind"], request["oldObject"]["data"]) == ("ConfigMap", {"a": "b"})


@pytest.mark.parametrize(
    ("url", "body", "options"),
    [
        pytest.param(
            f"{MAPS}/m?gracePeriodSeconds=3&propagationPolicy=Orphan",
            None,
            {"gracePeriodSeconds": 3, "propagationPolicy": "Orphan"},
            id="of the address",
        ),
        pytest.param(
            f"{MAPS}/m",
            {"propagationPolicy": "Background", "dryRun": ["All"]},
            {"propagationPolicy": "Background", "dryRun": ["All"]},
            id="of the body",
        ),
    ],
)
async def test_a_deletion_is_told_with_the_options(
    told: Api, outsider: Outsider, url: str, body: Json | None, options: Json
) -> None:
    await told.send("DELETE", url, body)
    ((_, request),) = outsider.asked
    assert request["options"] == {"kind": "DeleteOptions", "apiVersion": OPTIONS, **options}
    assert (request["object"], request["oldObject"]["metadata"]["name"]) == (None, "m")


async def test_a_service_that_is_judged_has_its_address(told: Api, outsider: Outsider) -> None:
    made = await told.create(
        {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, f"{CORE}/services"
    )
    ((_, request),) = outsider.asked
    assert request["object"]["spec"]["clusterIP"] == made["spec"]["clusterIP"]


async def test_a_generated_name_is_known_to_those_who_judge(told: Api, outsider: Outsider) -> None:
    made = await told.create({"metadata": {"generateName": "made-"}})
    ((_, request),) = outsider.asked
    assert request["name"] == request["object"]["metadata"]["name"] == made["metadata"]["name"]


async def test_a_scale_is_told_once_and_as_a_scale(api: Api, outsider: Outsider) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    url = "/apis/apps/v1/namespaces/default/deployments"
    await api.create({"metadata": {"name": "d"}, "spec": spec}, url)
    await api.ask("validating", "/hook", rules=ALL)
    await api.merge(f"{url}/d/scale", {"spec": {"replicas": 3}})
    ((_, request),) = outsider.asked
    assert brief(request) == ["UPDATE", "Scale", "deployments/scale", "default", "d"]
    assert [request[field]["spec"]["replicas"] for field in ("oldObject", "object")] == [1, 3]


async def test_an_apply_that_creates_is_a_creation(told: Api, outsider: Outsider) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"z": "1"}}
    await told.send("PATCH", f"{MAPS}/new?fieldManager=me", body, "application/apply-patch+yaml")
    ((_, request),) = outsider.asked
    assert (request["operation"], request["options"]["kind"]) == ("CREATE", "CreateOptions")
