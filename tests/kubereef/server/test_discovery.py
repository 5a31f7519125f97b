"""Clients find out what is served, in one request or many."""

import pytest

from kubereef.cluster import Cluster
from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.server.admission import Admission
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.discovery import Discovery
from kubereef.server.inprocess import LocalClient
from kubereef.server.open import OpenGate
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SeededEntropy
from tests.kubereef.custom.examples import DEFINITIONS, definition, version

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


@pytest.fixture
async def client():
    cluster = Cluster(Store(), clock=ManualClock(), entropy=SeededEntropy(1))
    yield cluster.client()
    await cluster.stop()


@pytest.fixture
async def boxes(client):
    """A client of a server with a custom kind in three versions, one of which is not served."""
    parts = {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    versions = (
        version("v1beta1", storage=False, spec={"type": "object"}),
        version("v2", subresources=parts),
        {**version("v3", storage=False, spec={"type": "object"}), "served": False},
    )
    await client.create(DEFINITIONS, definition(*versions, shortNames=["bx"], categories=["all"]))
    return client


async def test_core_resources_stand_under_api(client):
    assert (await client.get("/api"))["versions"] == ["v1"]
    listed = await client.get("/api/v1")
    assert "apiVersion" not in listed
    pods = next(one for one in listed["resources"] if one["name"] == "pods")
    assert (pods["singularName"], pods["kind"], pods["shortNames"]) == ("pod", "Pod", ["po"])


async def test_the_preferred_version_is_the_stable_one(boxes):
    group = await boxes.get("/apis/example.com")
    assert [one["version"] for one in group["versions"]] == ["v2", "v1beta1"]
    assert group["preferredVersion"] == {"groupVersion": "example.com/v2", "version": "v2"}
    assert group in [
        {"kind": "APIGroup", "apiVersion": "v1", **one} for one in (await boxes.get("/apis"))["groups"]
    ]


async def test_a_custom_resource_is_listed_with_its_parts(boxes):
    listed = (await boxes.get("/apis/example.com/v2"))["resources"]
    assert [one["name"] for one in listed] == ["boxes", "boxes/status", "boxes/scale"]
    assert listed[0] == {
        "name": "boxes",
        "singularName": "box",
        "namespaced": True,
        "kind": "Box",
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        "shortNames": ["bx"],
        "categories": ["all"],
        "storageVersionHash": listed[0]["storageVersionHash"],
    }
    assert (listed[2]["group"], listed[2]["version"], listed[2]["kind"]) == ("autoscaling", "v1", "Scale")
    assert "group" not in listed[1]


@pytest.mark.parametrize("form", ["v2", "v2beta1"])
async def test_everything_comes_in_one_answer(boxes, form):
    response = await boxes.send("GET", "/apis", None, {"accept": AGGREGATED.format(form)})
    assert response.content_type == AGGREGATED.format(form)
    found = await boxes.call("GET", "/apis", None, {"accept": AGGREGATED.format(form)})
    assert found["apiVersion"] == f"apidiscovery.k8s.io/{form}"
    group = next(one for one in found["items"] if one["metadata"]["name"] == "example.com")
    resource = group["versions"][0]["resources"][0]
    assert resource["responseKind"] == {"group": "example.com", "version": "v2", "kind": "Box"}
    assert [one["subresource"] for one in resource["subresources"]] == ["status", "scale"]


async def test_a_client_that_knows_the_answer_is_told_that_nothing_changed(boxes):
    headers = {"accept": AGGREGATED.format("v2")}
    tag = dict((await boxes.send("GET", "/apis", None, headers)).headers)["ETag"]
    known = {**headers, "if-none-match": tag}
    again = await boxes.send("GET", "/apis", None, known)
    assert (again.status, again.body, again.content_type) == (304, b"", AGGREGATED.format("v2"))
    await boxes.delete(f"{DEFINITIONS}/boxes.example.com")
    assert (await boxes.send("GET", "/apis", None, known)).status == 200


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        pytest.param("/api/v2", "application/json", id="a version of the core"),
        pytest.param("/apis/apps/v9", "application/json", id="a version of a group"),
        pytest.param("/apis/nothing.example.com", "text/plain; charset=utf-8", id="a group"),
        pytest.param("/apis/nothing.example.com/v1", "text/plain; charset=utf-8", id="a version of no group"),
    ],
)
async def test_what_does_not_exist_is_not_found(client, path, content_type):
    response = await client.send("GET", path)
    assert (response.status, response.content_type) == (404, content_type)


async def test_an_unknown_form_is_refused_unless_a_known_one_is_taken_too(client):
    unknown = AGGREGATED.format("v9")
    assert (await client.send("GET", "/apis", None, {"accept": unknown})).status == 406
    response = await client.send("GET", "/apis", None, {"accept": f"{unknown},application/json"})
    assert (response.status, response.content_type) == (200, "application/json")
    yaml = await client.send("GET", "/apis/apps", None, {"accept": "application/yaml"})
    assert yaml.body.startswith(b"apiVersion: v1")


async def test_every_part_that_is_shown_is_answered(client):
    names = {one["name"] for one in (await client.get("/api/v1"))["resources"]}
    assert {"pods/log", "pods/status", "serviceaccounts/token"} <= names
    for name in sorted(name for name in names if "/" in name):
        plural, _, part = name.partition("/")
        place = "" if plural in ("namespaces", "nodes", "persistentvolumes") else "/namespaces/default"
        response = await client.send("GET", f"/api/v1{place}/{plural}/x/{part}")
        assert b"could not find the requested resource" not in response.body, name


async def test_the_version_in_which_objects_are_kept_has_a_hash_as_in_kubernetes(boxes):
    listed = {one["name"]: one for one in (await boxes.get("/api/v1"))["resources"]}
    assert listed["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    assert "storageVersionHash" not in listed["bindings"]
    events = (await boxes.get("/apis/events.k8s.io/v1"))["resources"][0]
    assert events["storageVersionHash"] == listed["events"]["storageVersionHash"] == "r2yiGXH7wu8="
    of_versions = [
        (await boxes.get(f"/apis/example.com/{version}"))["resources"][0]["storageVersionHash"]
        for version in ("v2", "v1beta1")
    ]
    assert of_versions[0] == of_versions[1]


async def test_what_is_about_to_go_says_that_it_can_only_be_read_and_deleted(boxes):
    held = {
        "apiVersion": "example.com/v2",
        "kind": "Box",
        "metadata": {"name": "b", "finalizers": ["example.com/hold"]},
    }
    await boxes.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    await boxes.create("/apis/example.com/v2/namespaces/default/boxes", held)
    await boxes.delete(f"{DEFINITIONS}/boxes.example.com")
    listed = (await boxes.get("/apis/example.com/v2"))["resources"]
    assert listed[0]["verbs"] == ["delete", "deletecollection", "get", "list", "watch"]


async def test_a_part_without_an_answer_is_not_shown():
    around = Surroundings(Store(), Registry(builtin_types()), ManualClock(), SeededEntropy(1), Admission())
    bare = Server(around, OpenGate())
    bare.pages.append(Discovery(bare).page)
    names = {one["name"] for one in (await LocalClient(bare).get("/api/v1"))["resources"]}
    assert "pods/status" in names
    assert "pods/log" not in names


async def test_only_reading_is_allowed(client):
    assert (await client.send("POST", "/apis/apps/v1", {})).status == 405
    assert (await client.send("HEAD", "/api/v1/namespaces")).status == 405
