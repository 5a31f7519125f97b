"""What is sent, and what makes sending it twice safe."""

import msgspec
import pytest

from eagleray.kube import requests
from eagleray.kube.requests import Selection
from eagleray.kube.resources import NODES, PODS, RAY_CLUSTERS, Ref

SEEN = Ref("team", "a", uid="u-1", version="41")
NAMED = Ref("team", "a")


def body(request):
    return msgspec.json.decode(request.body)


@pytest.mark.parametrize(
    ("request_", "method", "target"),
    [
        pytest.param(
            requests.get(PODS, "team", "a"),
            "GET",
            "/api/v1/namespaces/team/pods/a",
            id="an object of the core",
        ),
        pytest.param(
            requests.get(RAY_CLUSTERS, "team", "a", part="status"),
            "GET",
            "/apis/ray.io/v1/namespaces/team/rayclusters/a/status",
            id="a part of an object of a group",
        ),
        pytest.param(
            requests.get(NODES, "team", "n"), "GET", "/api/v1/nodes/n", id="a node belongs to no namespace"
        ),
        pytest.param(
            requests.get(PODS, "team", "a/../b?x"),
            "GET",
            "/api/v1/namespaces/team/pods/a%2F..%2Fb%3Fx",
            id="a name stays one step of the path",
        ),
        pytest.param(
            requests.list_page(PODS, Selection("", "app=x", "status.phase=Failed"), limit=2, proceed="t/k+="),
            "GET",
            "/api/v1/pods?labelSelector=app%3Dx&fieldSelector=status.phase%3DFailed&limit=2&continue=t%2Fk%2B%3D",
            id="a page of a selection",
        ),
        pytest.param(
            requests.watch(PODS, Selection("team"), version="7", seconds=300),
            "GET",
            "/api/v1/namespaces/team/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300",
            id="a watch from a version on",
        ),
        pytest.param(
            requests.watch(PODS, Selection(), with_present=True),
            "GET",
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
            "&resourceVersionMatch=NotOlderThan",
            id="a watch that begins with what there is",
        ),
        pytest.param(
            requests.create(
                PODS, {"metadata": {"namespace": "team", "name": "a"}}, manager="m", dry_run=True
            ),
            "POST",
            "/api/v1/namespaces/team/pods?fieldManager=m&dryRun=All",
            id="a rehearsed creation",
        ),
        pytest.param(
            requests.patch(PODS, SEEN, {}, "apply", manager="m", force=True),
            "PATCH",
            "/api/v1/namespaces/team/pods/a?fieldManager=m&force=true",
            id="a forced apply",
        ),
        pytest.param(
            requests.delete_collection(PODS, Selection("team", "app=x")),
            "DELETE",
            "/api/v1/namespaces/team/pods?labelSelector=app%3Dx",
            id="a deletion of a selection",
        ),
    ],
)
def test_where_a_request_goes(request_, method, target):
    assert (request_.method, request_.target) == (method, target)


def test_a_name_that_leads_elsewhere_is_refused():
    with pytest.raises(ValueError, match="no name"):
        requests.get(PODS, "team", "..")


POD = {"metadata": {"namespace": "team", "name": "a"}}
GENERATED = {"metadata": {"namespace": "team", "generateName": "a-"}}
VERSIONED = {"metadata": {"namespace": "team", "name": "a", "resourceVersion": "41"}}


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        pytest.param(requests.get(PODS, "team", "a"), "read", id="reading"),
        pytest.param(requests.create(PODS, POD), "name", id="creating under a chosen name"),
        pytest.param(requests.create(PODS, GENERATED), "", id="creating under a generated name is not"),
        pytest.param(requests.create(PODS, GENERATED, dry_run=True), "read", id="rehearsing"),
        pytest.param(requests.replace(PODS, VERSIONED), "precondition", id="replacing a version"),
        pytest.param(requests.replace(PODS, POD), "", id="replacing whatever there is is not"),
        pytest.param(requests.patch(PODS, SEEN, {}), "precondition", id="patching a version"),
        pytest.param(requests.patch(PODS, NAMED, {}), "", id="patching whatever there is is not"),
        pytest.param(requests.patch(PODS, NAMED, {}, "apply"), "apply", id="applying"),
        pytest.param(requests.delete(PODS, Ref("team", "a", "u-1")), "precondition", id="deleting a uid"),
        pytest.param(requests.delete(PODS, NAMED), "", id="deleting a name is not"),
        pytest.param(requests.delete_collection(PODS, Selection("team")), "", id="deleting many is not"),
    ],
)
def test_what_makes_a_repeat_safe(request_, why):
    assert request_.repeatable == why


@pytest.mark.parametrize(
    ("kind", "change", "want", "content"),
    [
        pytest.param(
            "merge",
            {"metadata": {"labels": {"x": "1"}}},
            {"metadata": {"labels": {"x": "1"}, "resourceVersion": "41"}},
            "application/merge-patch+json",
            id="merge",
        ),
        pytest.param(
            "strategic",
            {"spec": {}},
            {"spec": {}, "metadata": {"resourceVersion": "41"}},
            "application/strategic-merge-patch+json",
            id="strategic",
        ),
        pytest.param(
            "json",
            [{"op": "add", "path": "/data/x", "value": "1"}],
            [
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "41"},
                {"op": "add", "path": "/data/x", "value": "1"},
            ],
            "application/json-patch+json",
            id="json",
        ),
        pytest.param(
            "apply",
            {"spec": {}},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "spec": {},
                "metadata": {"name": "a", "resourceVersion": "41"},
            },
            "application/apply-patch+yaml",
            id="apply",
        ),
    ],
)
def test_a_patch_carries_the_observed_version(kind, change, want, content):
    request = requests.patch(PODS, SEEN, change, kind)
    assert body(request) == want
    assert dict(request.headers)["content-type"] == content


@pytest.mark.parametrize(("kind", "change"), [("json", {}), ("merge", []), ("apply", [])])
def test_a_patch_of_the_wrong_form_is_refused(kind, change):
    with pytest.raises(TypeError):
        requests.patch(PODS, SEEN, change, kind)


def test_a_patch_leaves_the_callers_change_alone():
    change: dict[str, dict[str, dict[str, str]]] = {"metadata": {"labels": {}}}
    requests.patch(PODS, SEEN, change)
    assert change == {"metadata": {"labels": {}}}


def test_a_deletion_is_of_what_was_observed():
    request = requests.delete(PODS, SEEN, propagation="Foreground", grace_seconds=0)
    assert body(request) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u-1", "resourceVersion": "41"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }
