"""Server-side apply to custom resources: their schemas say what is shared, in every version."""

import pytest

from tests.kubewire.apply.kinds import SPEC

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
T = f"{THINGS}/t"
STATUS = {"type": "object", "properties": {"phase": {"type": "string"}}}


def thing(version="v1", **spec):
    return {"apiVersion": f"example.com/{version}", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def definition(**schemas):
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": STATUS}}},
        }
        for name, spec in schemas.items()
    ]
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


@pytest.fixture
async def things(reef):
    await reef.client.create(DEFINITIONS, definition(v1=SPEC, v2=SPEC))
    return reef


async def test_lists_are_shared_as_the_schema_says(things):
    await things.apply(T, thing(parts=[{"name": "a", "size": 1}], tags=["x"]))
    obj = await things.apply(T, thing(parts=[{"name": "b"}], tags=["y"]), "bob")
    assert obj["spec"] == {"parts": [{"name": "a", "size": 1}, {"name": "b"}], "tags": ["x", "y"]}
    obj = await things.apply(T, thing(tags=["x"]))
    assert obj["spec"] == {"parts": [{"name": "b"}], "tags": ["x", "y"]}


async def test_what_has_lost_its_last_item_is_gone_from_the_object(things):
    await things.client.create(THINGS, thing(tags=["x"]))
    await things.apply(T, thing(tags=["y"]))
    await things.client.patch(T, {"spec": {"tags": ["y"]}})
    obj = await things.apply(T, thing(color="red"))
    assert obj["spec"] == {"color": "red"}


async def test_an_applier_may_change_versions(things):
    await things.apply(T, thing(color="red", count=1))
    obj = await things.apply(T.replace("v1", "v2"), thing("v2", count=1))
    assert obj["spec"] == {"count": 1}
    (entry,) = obj["metadata"]["managedFields"]
    assert entry["apiVersion"] == "example.com/v2"


async def test_a_conflict_is_found_across_versions(things):
    await things.client.create(THINGS, thing(color="red"))
    answer = await things.answer(T.replace("v1", "v2"), thing("v2", color="blue"))
    assert answer.status == 409
    assert b'conflict with \\"kubereef\\" using example.com/v1: .spec.color' in answer.body


async def test_without_a_schema_objects_are_deduced_and_lists_are_whole(reef):
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await reef.client.create(DEFINITIONS, definition(v1=free))
    await reef.apply(T, thing(a={"b": 1}, items=[{"name": "x"}]))
    obj = await reef.apply(T, thing(a={"c": 2}), "bob")
    assert obj["spec"] == {"a": {"b": 1, "c": 2}, "items": [{"name": "x"}]}
    assert (await reef.answer(T, thing(items=[]), "bob")).status == 409


async def test_a_status_has_owners_of_its_own(things):
    body = {**thing(color="blue"), "status": {"phase": "Up"}}
    await things.apply(T, thing(color="red"))
    obj = await things.apply(f"{T}/status", body, "ctl")
    assert obj["spec"] == {"color": "red"}
    assert await things.owners(T) == {
        "alice": {"f:spec": {"f:color": {}}},
        "ctl": {"f:status": {"f:phase": {}}},
    }
