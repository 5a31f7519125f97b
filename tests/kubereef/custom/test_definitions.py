"""Definitions come, change and go, and what they define with them."""

import asyncio

import pytest

from kubereef.cluster import Cluster
from kubereef.server.requests import User
from kubereef.store.journal import SqliteJournal
from kubereef.store.store import Store
from kubewire import errors
from kubewire.sources import ManualClock, SeededEntropy
from tests.kubereef.custom.examples import BOXES, DEFINITIONS, box, conditions, definition, version

BOX_DEFINITION = f"{DEFINITIONS}/boxes.example.com"
OPEN = {"type": "object", "properties": {"size": {"type": "integer"}}}


async def test_a_new_definition_is_filled_in_and_can_be_used_at_once(client):
    made = await client.create(DEFINITIONS, definition())
    assert made["spec"]["names"] == {
        "plural": "boxes",
        "singular": "box",
        "kind": "Box",
        "listKind": "BoxList",
    }
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    await client.create(BOXES, box())
    stored = await client.get(BOX_DEFINITION)
    assert conditions(stored) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert stored["status"]["acceptedNames"] == made["spec"]["names"]


async def test_names_that_another_definition_has_are_not_given_until_it_goes(client):
    await client.create(DEFINITIONS, definition(shortNames=["bx"]))
    rival = definition(plural="crates", kind="Crate", shortNames=["bx"])
    await client.create(DEFINITIONS, rival)
    refused = await client.get(f"{DEFINITIONS}/crates.example.com")
    assert conditions(refused) == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert refused["status"]["conditions"][0]["message"] == '"bx" is already in use'
    crates = "/apis/example.com/v1/namespaces/default/crates"
    with pytest.raises(errors.NotFound):
        await client.get(crates)
    await client.delete(BOX_DEFINITION)
    assert conditions(await client.get(f"{DEFINITIONS}/crates.example.com"))["Established"][0] == "True"
    assert (await client.get(crates))["items"] == []


async def test_the_same_names_in_another_group_are_no_conflict(client):
    await client.create(DEFINITIONS, definition())
    await client.create(DEFINITIONS, definition(group="example.org"))
    other = await client.get(f"{DEFINITIONS}/boxes.example.org")
    assert conditions(other)["NamesAccepted"] == ("True", "NoConflicts")


async def test_an_approved_definition_of_a_protected_group_says_so(client):
    wanted = definition(group="x.k8s.io")
    wanted["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/pull/1"}
    await client.create(DEFINITIONS, wanted)
    found = conditions(await client.get(f"{DEFINITIONS}/boxes.x.k8s.io"))
    assert found["KubernetesAPIApprovalPolicyConformant"] == ("True", "ApprovedAnnotation")


async def test_a_changed_schema_holds_at_once(boxes):
    await boxes.create(BOXES, box("small", spec={"size": 1}))
    replacement = [
        {"op": "replace", "path": "/spec/versions/0/schema", "value": version(spec=OPEN)["schema"]}
    ]
    await boxes.patch(BOX_DEFINITION, replacement, "json")
    made = await boxes.create(BOXES, box("new", spec={"color": "red"}))
    assert made["spec"] == {}
    with pytest.raises(errors.Invalid):
        await boxes.create(BOXES, box("bad", spec={"size": "big"}))


async def test_a_changed_definition_ends_the_watches_that_show_the_old_one(boxes):
    async def follow():
        return [event async for event in boxes.watch(BOXES)]

    watching = asyncio.create_task(follow())
    await asyncio.sleep(0.001)
    await boxes.patch(BOX_DEFINITION, {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(0.001)
    assert not watching.done(), "labels change nothing that a watch shows"
    await boxes.patch(BOX_DEFINITION, {"spec": {"names": {"categories": ["all"]}}})
    assert await asyncio.wait_for(watching, 1) == []


async def test_a_schema_that_was_accepted_once_is_not_judged_anew(boxes, simulated_cluster):
    store = simulated_cluster.store
    record = next(store.records("customresourcedefinitions.apiextensions.k8s.io"))
    older = record.object()
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["extra"] = {}
    await store.put(record.key, older, record).done()
    labelled = await boxes.patch(BOX_DEFINITION, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["labels"] == {"a": "b"}
    added = {"spec": {"versions": [version(spec={"type": "object", "properties": {"a": {}}})]}}
    with pytest.raises(errors.Invalid, match="must not be empty for specified object fields"):
        await boxes.patch(BOX_DEFINITION, added)


async def test_objects_from_before_a_default_have_it_when_they_are_read(client):
    await client.create(DEFINITIONS, definition(version(spec=OPEN, subresources={"status": {}})))
    await client.create(BOXES, box("old", spec={}))
    kept = await client.create(BOXES, box("sized", spec={"size": 1}))
    default = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/default",
            "value": 7,
        }
    ]
    await client.patch(BOX_DEFINITION, default, "json")
    old = await client.get(f"{BOXES}/old")
    assert old["spec"] == {"size": 7}
    assert await client.get(f"{BOXES}/sized") == kept
    assert [item["spec"]["size"] for item in (await client.get(BOXES))["items"]] == [7, 1]
    # A write that changes something else makes the default stay, and it counts as no change of the spec.
    labelled = await client.patch(f"{BOXES}/old", {"metadata": {"labels": {"a": "b"}}})
    assert (labelled["spec"], labelled["metadata"]["generation"]) == ({"size": 7}, 1)
    assert (await client.get(f"{BOXES}/old"))["spec"] == {"size": 7}


async def test_a_deletion_that_waits_keeps_the_defaults_of_old_objects(client):
    await client.create(DEFINITIONS, definition(version(spec=OPEN)))
    held = box("held", spec={})
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(BOXES, held)
    default = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/default",
            "value": 7,
        }
    ]
    await client.patch(BOX_DEFINITION, default, "json")
    await client.delete(f"{BOXES}/held")
    assert (await client.get(f"{BOXES}/held"))["spec"] == {"size": 7}


async def test_several_versions_show_one_object_each_in_its_own_form(client):
    old = version(
        "v1beta1",
        storage=False,
        deprecated=True,
        spec={"type": "object", "properties": {"old": {"type": "string"}}},
    )
    await client.create(DEFINITIONS, definition(version(), old))
    await client.create(BOXES, box(spec={"color": "red"}))
    response = await client.send("GET", f"{BOXES.replace('/v1/', '/v1beta1/')}/b")
    assert dict(response.headers)["Warning"] == (
        '299 - "example.com/v1beta1 Box is deprecated; use example.com/v1 Box"'
    )
    shown = await client.get(f"{BOXES.replace('/v1/', '/v1beta1/')}/b")
    assert (shown["apiVersion"], shown["spec"]) == ("example.com/v1beta1", {})
    with pytest.raises(errors.BadRequest, match="does not match the expected API version"):
        await client.create(BOXES, box("x", "example.com/v1beta1"))
    made = await client.create(
        BOXES.replace("/v1/", "/v1beta1/"), box("n", "example.com/v1beta1", spec={"old": "o"})
    )
    assert made["spec"] == {}, "the stored version does not know the field"
    assert (await client.get(f"{BOXES}/n"))["spec"] == {"size": 5}


async def test_a_bookmark_of_another_version_is_only_a_bookmark(client):
    old = version("v1beta1", storage=False)
    root = version()["schema"]["openAPIV3Schema"]
    root["properties"]["spec"]["default"] = {}
    new = {**version(), "schema": {"openAPIV3Schema": root}}
    await client.create(DEFINITIONS, definition(new, old))
    url = f"{BOXES.replace('/v1/', '/v1beta1/')}?allowWatchBookmarks=true&timeoutSeconds=100"
    bookmarks = [event["object"] async for event in client.watch(url) if event["type"] == "BOOKMARK"]
    assert bookmarks
    assert all(set(one) == {"apiVersion", "kind", "metadata"} for one in bookmarks)


async def test_who_may_not_see_a_deprecated_version_is_not_warned_of_it(simulated_cluster):
    client = simulated_cluster.client
    deprecated = version("v1beta1", storage=False, deprecated=True, spec=OPEN)
    await client.create(DEFINITIONS, definition(version(), deprecated))
    stranger = simulated_cluster.cluster.client(User("stranger"))
    response = await stranger.send("GET", BOXES.replace("/v1/", "/v1beta1/"))
    assert (response.status, response.headers) == (403, ())


async def test_a_version_that_was_stored_cannot_be_removed_and_one_that_is_not_served_is_gone(client):
    second = version("v2", storage=False, spec=OPEN)
    await client.create(DEFINITIONS, definition(version(), second))
    with pytest.raises(
        errors.Invalid, match=r"missing from spec\.versions; v1 was previously a storage version"
    ):
        await client.patch(BOX_DEFINITION, {"spec": {"versions": [{**second, "storage": True}]}})
    await client.patch(BOX_DEFINITION, {"spec": {"versions": [version(), {**second, "served": False}]}})
    with pytest.raises(errors.NotFound):
        await client.get(BOXES.replace("/v1/", "/v2/"))
    assert (await client.get(BOXES))["items"] == []


async def test_a_new_storage_version_is_remembered_beside_the_old(client):
    await client.create(DEFINITIONS, definition(version(), version("v2", storage=False, spec=OPEN)))
    swapped = [version(storage=False), version("v2", spec=OPEN)]
    changed = await client.patch(BOX_DEFINITION, {"spec": {"versions": swapped}})
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    assert changed["metadata"]["generation"] == 2


async def test_a_definition_goes_with_its_objects_and_ends_their_watches(boxes):
    await boxes.create(BOXES, box())
    events = []

    async def follow():
        events.extend([event["type"] async for event in boxes.watch(BOXES)])

    watching = asyncio.create_task(follow())
    await asyncio.sleep(0.001)
    answer = await boxes.delete(BOX_DEFINITION)
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(answer)["Terminating"] == ("True", "InstanceDeletionPending")
    assert (answer["metadata"]["generation"], "deletionGracePeriodSeconds" in answer["metadata"]) == (
        1,
        False,
    )
    await asyncio.wait_for(watching, 1)
    assert events == ["ADDED", "DELETED"]
    for gone in (BOX_DEFINITION, BOXES):
        with pytest.raises(errors.NotFound):
            await boxes.get(gone)
    await boxes.create(DEFINITIONS, definition())
    assert (await boxes.get(BOXES))["items"] == []


async def test_a_definition_waits_for_objects_that_are_held_and_takes_no_new_ones(boxes):
    held = box()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await boxes.create(BOXES, held)
    await boxes.delete(BOX_DEFINITION)
    assert conditions(await boxes.get(BOX_DEFINITION))["Terminating"] == (
        "True",
        "InstanceDeletionInProgress",
    )
    with pytest.raises(errors.Forbidden, match="while custom resource definition is terminating"):
        await boxes.create(BOXES, box("late"))
    await boxes.patch(f"{BOXES}/b", {"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        await boxes.get(BOX_DEFINITION)


async def test_a_definition_cannot_take_the_place_of_what_is_built_in(client):
    rival = definition(version(), plural="leases", kind="Lease", group="coordination.k8s.io")
    rival["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await client.create(leases, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})

    async def follow():
        return [event async for event in client.watch(leases)]

    watching = asyncio.create_task(follow())
    await asyncio.sleep(0.001)
    await client.create(DEFINITIONS, rival)
    assert (await client.get(f"{leases}/l"))["spec"] == {"holderIdentity": "me"}
    await client.delete(f"{DEFINITIONS}/leases.coordination.k8s.io")
    assert (await client.get(f"{leases}/l"))["spec"] == {"holderIdentity": "me"}
    await asyncio.sleep(0.001)
    assert not watching.done()
    watching.cancel()


async def test_an_update_must_name_the_version_it_replaces(boxes):
    present = await boxes.get(BOX_DEFINITION)
    del present["metadata"]["resourceVersion"]
    with pytest.raises(errors.Invalid, match="must be specified for an update"):
        await boxes.replace(BOX_DEFINITION, present)


async def test_what_is_immutable_once_established(boxes):
    for patch, field in (
        ({"spec": {"scope": "Cluster"}}, "spec.scope"),
        ({"spec": {"names": {"kind": "Other"}}}, "spec.names.kind"),
    ):
        with pytest.raises(errors.Invalid) as refused:
            await boxes.patch(BOX_DEFINITION, patch)
        assert [cause.field for cause in refused.value.causes] == [field]


async def test_after_a_restart_objects_are_there_before_anything_is_written(tmp_path):
    def cluster():
        return Cluster(Store(SqliteJournal(tmp_path)), clock=ManualClock(), entropy=SeededEntropy(1))

    first = cluster()
    await first.start()
    await first.client().create(DEFINITIONS, definition())
    await first.client().create(BOXES, box())
    await first.stop()
    second = cluster()
    assert (await second.client().get(f"{BOXES}/b"))["metadata"]["name"] == "b"
    await second.stop()


async def test_what_an_earlier_process_did_not_get_to_is_done_at_the_start(simulated_cluster):
    store = simulated_cluster.store
    await simulated_cluster.client.create(DEFINITIONS, definition())
    record = next(store.records("customresourcedefinitions.apiextensions.k8s.io"))
    unfinished = record.object()
    unfinished["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    await store.put(record.key, unfinished, record).done()
    again = Cluster(store, clock=simulated_cluster.clock, entropy=simulated_cluster.entropy)
    with pytest.raises(errors.NotFound):
        await again.client().get(BOXES)
    await again.start()
    assert (await again.client().get(BOXES))["items"] == []
