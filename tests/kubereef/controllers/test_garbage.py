"""What becomes of objects when their owners go."""

import asyncio

import pytest

from kubereef.controllers.garbage import GarbageCollector
from kubereef.kinds.resource import ResourceType
from kubewire import errors

CM = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
ALL_VERBS = frozenset(("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(GarbageCollector)
    return simulated_cluster.client


def owned_by(owner, *, kind="ConfigMap", api_version="v1", **fields):
    meta = owner["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"], **fields}


async def make(client, name, *owners, url=CM, **metadata):
    return await client.create(url, {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}})


async def names(client, url=CM):
    return sorted(obj["metadata"]["name"] for obj in (await client.get(url))["items"])


async def delete(client, name, policy="Background"):
    await client.delete(f"{CM}/{name}?propagationPolicy={policy}")
    await asyncio.sleep(1)


# --- in the background


async def test_what_an_owner_owns_goes_with_it_down_to_the_grandchildren(client):
    owner = await make(client, "owner")
    child = await make(client, "child", owned_by(owner))
    await make(client, "grandchild", owned_by(child))
    await make(client, "other")
    await delete(client, "owner")
    assert await names(client) == ["other"]


async def test_dependents_of_other_kinds_go_too(client):
    owner = await make(client, "owner")
    await make(client, "dependent", owned_by(owner), url=SECRETS)
    await delete(client, "owner")
    assert await names(client, SECRETS) == []


async def test_a_dependent_with_another_owner_stays_and_forgets_the_one_that_is_gone(client):
    first, second = await make(client, "first"), await make(client, "second")
    await make(client, "shared", owned_by(first), owned_by(second))
    await delete(client, "first")
    shared = await client.get(f"{CM}/shared")
    assert shared["metadata"]["ownerReferences"] == [owned_by(second)]
    await delete(client, "second")
    assert await names(client) == []


async def test_a_dependent_of_an_owner_that_never_existed_goes(client):
    await make(client, "lost", owned_by({"metadata": {"name": "nobody", "uid": "no-such-uid"}}))
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_an_owner_of_the_same_name_but_another_uid_is_another_one(client):
    owner = await make(client, "owner")
    await make(client, "dependent", {**owned_by(owner), "uid": "an-older-uid"})
    await asyncio.sleep(1)
    assert await names(client) == ["owner"]


async def test_a_held_dependent_waits_for_its_finalizer_and_then_goes(client):
    owner = await make(client, "owner")
    await make(client, "held", owned_by(owner), finalizers=["example.com/hold"])
    await delete(client, "owner")
    assert (await client.get(f"{CM}/held"))["metadata"]["deletionTimestamp"]
    await client.patch(f"{CM}/held", {"metadata": {"finalizers": None}})
    assert await names(client) == []


async def test_a_reference_that_is_added_later_counts(client):
    owner = await make(client, "owner")
    await make(client, "dependent")
    await client.patch(f"{CM}/dependent", {"metadata": {"ownerReferences": [owned_by(owner)]}})
    await delete(client, "owner")
    assert await names(client) == []


async def test_two_that_own_each_other_stay_until_one_is_deleted(client):
    first = await make(client, "first")
    second = await make(client, "second", owned_by(first))
    await client.patch(f"{CM}/first", {"metadata": {"ownerReferences": [owned_by(second)]}})
    await asyncio.sleep(60)
    assert await names(client) == ["first", "second"]
    await delete(client, "first")
    assert await names(client) == []


# --- in the foreground


async def test_a_foreground_deletion_waits_for_the_dependents_that_block_it(client):
    owner = await make(client, "owner")
    await make(client, "held", owned_by(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await delete(client, "owner", "Foreground")
    assert await names(client) == ["held", "owner"]
    await client.patch(f"{CM}/held", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_a_dependent_that_does_not_block_is_not_waited_for(client):
    owner = await make(client, "owner")
    await make(client, "held", owned_by(owner), finalizers=["example.com/hold"])
    await delete(client, "owner", "Foreground")
    assert await names(client) == ["held"]


async def test_dependents_that_do_not_block_are_deleted_while_the_owner_waits_for_others(client):
    owner = await make(client, "owner")
    await make(client, "held", owned_by(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await make(client, "free", owned_by(owner))
    await asyncio.sleep(1)
    await delete(client, "owner", "Foreground")
    assert await names(client) == ["held", "owner"]


async def test_a_dependent_that_stops_blocking_lets_its_owner_go(client):
    owner = await make(client, "owner")
    await make(client, "held", owned_by(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await delete(client, "owner", "Foreground")
    await client.patch(f"{CM}/held", {"metadata": {"ownerReferences": [owned_by(owner)]}})
    await asyncio.sleep(1)
    assert await names(client) == ["held"]


async def test_a_foreground_deletion_reaches_the_grandchildren_before_the_children(client):
    owner = await make(client, "owner")
    child = await make(client, "child", owned_by(owner, blockOwnerDeletion=True))
    held = owned_by(child, blockOwnerDeletion=True)
    await make(client, "grandchild", held, finalizers=["example.com/hold"])
    await delete(client, "owner", "Foreground")
    assert await names(client) == ["child", "grandchild", "owner"]
    await client.patch(f"{CM}/grandchild", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_a_cycle_does_not_hold_up_a_foreground_deletion(client):
    first = await make(client, "first")
    second = await make(client, "second", owned_by(first, blockOwnerDeletion=True))
    back = [owned_by(second, blockOwnerDeletion=True)]
    await client.patch(f"{CM}/first", {"metadata": {"ownerReferences": back}})
    await delete(client, "first", "Foreground")
    assert await names(client) == []


async def test_an_object_that_owns_itself_can_be_deleted_in_the_foreground(client):
    alone = await make(client, "alone")
    itself = [owned_by(alone, blockOwnerDeletion=True)]
    await client.patch(f"{CM}/alone", {"metadata": {"ownerReferences": itself}})
    await delete(client, "alone", "Foreground")
    assert await names(client) == []


async def test_a_dependent_with_another_owner_is_only_let_go_of_in_the_foreground(client):
    first, second = await make(client, "first"), await make(client, "second")
    await make(client, "shared", owned_by(first, blockOwnerDeletion=True), owned_by(second))
    await delete(client, "first", "Foreground")
    assert await names(client) == ["second", "shared"]
    assert (await client.get(f"{CM}/shared"))["metadata"]["ownerReferences"] == [owned_by(second)]


# --- leaving orphans


async def test_orphans_stay_without_a_reference_to_their_owner(client):
    owner, other = await make(client, "owner"), await make(client, "other")
    await make(client, "orphan", owned_by(owner))
    await make(client, "shared", owned_by(owner), owned_by(other))
    await delete(client, "owner", "Orphan")
    assert await names(client) == ["orphan", "other", "shared"]
    assert "ownerReferences" not in (await client.get(f"{CM}/orphan"))["metadata"]
    assert (await client.get(f"{CM}/shared"))["metadata"]["ownerReferences"] == [owned_by(other)]


async def test_an_orphan_that_is_made_just_before_the_deletion_stays(client):
    owner = await make(client, "owner")
    for number in range(20):
        await make(client, f"orphan-{number}", owned_by(owner), url=SECRETS)
    await delete(client, "owner", "Orphan")
    assert len(await names(client, SECRETS)) == 20


async def test_an_orphan_of_which_the_news_comes_late_stays(late_news, client):
    owner = await make(client, "owner")
    late_news["secrets"] = 0.01
    await make(client, "orphan", owned_by(owner), url=SECRETS)
    await delete(client, "owner", "Orphan")
    assert await names(client, SECRETS) == ["orphan"]


# --- namespaces and cluster-wide objects


async def test_an_owner_in_another_namespace_owns_nothing_and_an_event_says_so(client):
    await client.create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    owner = await make(client, "owner")
    await make(client, "dependent", owned_by(owner), url="/api/v1/namespaces/elsewhere/configmaps")
    await asyncio.sleep(1)
    assert await names(client, "/api/v1/namespaces/elsewhere/configmaps") == []
    assert await names(client) == ["owner"]
    (event,) = (await client.get("/api/v1/namespaces/elsewhere/events"))["items"]
    assert (event["reason"], event["type"]) == ("OwnerRefInvalidNamespace", "Warning")
    assert event["message"].endswith('does not exist in namespace "elsewhere"')


async def test_a_cluster_wide_owner_takes_its_dependents_in_namespaces_along(client):
    owner = await client.create("/api/v1/namespaces", {"metadata": {"name": "owner"}})
    await make(client, "dependent", owned_by(owner, kind="Namespace"))
    await asyncio.sleep(1)
    assert await names(client) == ["dependent"]
    await client.delete("/api/v1/namespaces/owner")
    finalized = {"metadata": {"name": "owner"}, "spec": {"finalizers": []}}
    await client.replace("/api/v1/namespaces/owner/finalize", finalized)
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_a_cluster_wide_object_cannot_be_owned_from_a_namespace_and_stays(client):
    owner = await make(client, "owner")
    await client.create(
        "/api/v1/namespaces", {"metadata": {"name": "n", "ownerReferences": [owned_by(owner)]}}
    )
    await delete(client, "owner")
    await asyncio.sleep(60)
    assert (await client.get("/api/v1/namespaces/n"))["metadata"].get("deletionTimestamp") is None


# --- custom kinds


def widgets(version="v1"):
    return ResourceType(
        group="example.com",
        version=version,
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        verbs=ALL_VERBS,
        custom=True,
    )


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


async def test_kinds_that_come_while_it_runs_own_and_are_owned(simulated_cluster, client):
    simulated_cluster.server.around.registry.add(widgets())
    widget = await make(client, "widget", url=WIDGETS)
    await make(client, "dependent", owned_by(widget, kind="Widget", api_version="example.com/v1"))
    owner = await make(client, "owner")
    await make(client, "owned-widget", owned_by(owner), url=WIDGETS)
    await client.delete(f"{WIDGETS}/widget")
    await delete(client, "owner")
    assert await names(client) == []
    assert await names(client, WIDGETS) == []


async def test_dependents_of_a_kind_that_went_go_if_their_owner_was_deleted(simulated_cluster, client):
    registry = simulated_cluster.server.around.registry
    registry.add(widgets())
    widget = await make(client, "widget", url=WIDGETS)
    await make(client, "dependent", owned_by(widget, kind="Widget", api_version="example.com/v1"))
    await asyncio.sleep(1)
    await client.delete(f"{WIDGETS}/widget")
    registry.remove("example.com", "v1", "widgets")
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_an_owner_of_an_unknown_kind_is_given_the_benefit_of_the_doubt(simulated_cluster, client):
    stranger = {"metadata": {"name": "stranger", "uid": "some-uid"}}
    reference = owned_by(stranger, kind="Widget", api_version="example.com/v1")
    await make(client, "dependent", reference)
    await asyncio.sleep(3600)
    assert await names(client) == ["dependent"]
    simulated_cluster.server.around.registry.add(widgets())
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_an_owner_is_found_under_another_version_than_the_reference_names(simulated_cluster, client):
    simulated_cluster.server.around.registry.add(widgets())
    widget = await make(client, "widget", url=WIDGETS)
    await make(client, "dependent", owned_by(widget, kind="Widget", api_version="example.com/v1alpha1"))
    await asyncio.sleep(60)
    assert await names(client) == ["dependent"]
    await client.delete(f"{WIDGETS}/widget")
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_a_foreground_deletion_finds_dependents_that_name_another_version(simulated_cluster, client):
    simulated_cluster.server.around.registry.add(widgets())
    widget = await make(client, "widget", url=WIDGETS)
    old_version = owned_by(widget, kind="Widget", api_version="example.com/v1alpha1", blockOwnerDeletion=True)
    await make(client, "dependent", old_version)
    await client.delete(f"{WIDGETS}/widget?propagationPolicy=Foreground")
    await asyncio.sleep(1)
    assert await names(client) == []
    assert await names(client, WIDGETS) == []


async def test_another_version_takes_over_when_the_one_that_was_watched_goes(simulated_cluster, client):
    registry = simulated_cluster.server.around.registry
    registry.add(widgets("v1"))
    registry.add(widgets("v2"))
    widget = await make(client, "widget", url=WIDGETS)
    await make(client, "dependent", owned_by(widget, kind="Widget", api_version="example.com/v2"))
    registry.remove("example.com", "v1", "widgets")
    await asyncio.sleep(2 * 3600)
    assert await names(client) == ["dependent"]
    later = await make(client, "later", url=WIDGETS.replace("v1", "v2"))
    await make(client, "another", owned_by(later, kind="Widget", api_version="example.com/v2"))
    await client.delete(f"{WIDGETS.replace('v1', 'v2')}/widget")
    await client.delete(f"{WIDGETS.replace('v1', 'v2')}/later")
    await asyncio.sleep(1)
    assert await names(client) == []


async def test_objects_of_a_kind_that_is_served_no_longer_are_not_taken_for_deleted(
    simulated_cluster, client
):
    registry = simulated_cluster.server.around.registry
    registry.add(widgets())
    widget = await make(client, "widget", url=WIDGETS)
    await make(client, "dependent", owned_by(widget, kind="Widget", api_version="example.com/v1"))
    await asyncio.sleep(1)
    registry.remove("example.com", "v1", "widgets")
    await asyncio.sleep(2 * 3600)
    assert await names(client) == ["dependent"]
    registry.add(widgets())
    await asyncio.sleep(2 * 3600)
    assert await names(client) == ["dependent"]
    await client.delete(f"{WIDGETS}/widget")
    await asyncio.sleep(1)
    assert await names(client) == []


# --- restarts, numbers


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_what_happens_while_it_is_stopped_is_made_up_for(simulated_cluster, client, policy):
    owner = await make(client, "owner")
    await make(client, "dependent", owned_by(owner, blockOwnerDeletion=True))
    await simulated_cluster.stop_controllers()
    await delete(client, "owner", policy)
    assert "dependent" in await names(client)
    await simulated_cluster.restart_controllers()
    await asyncio.sleep(1)
    assert await names(client) == (["dependent"] if policy == "Orphan" else [])


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_a_thousand_dependents_go_or_are_let_go_of(client, policy):
    owner = await make(client, "owner")
    for number in range(1000):
        await make(client, f"d{number}", owned_by(owner, blockOwnerDeletion=True))
    await client.delete(f"{CM}/owner?propagationPolicy={policy}")
    await asyncio.sleep(5)
    left = (await client.get(CM))["items"]
    assert len(left) == (1000 if policy == "Orphan" else 0)
    assert not any("ownerReferences" in obj["metadata"] for obj in left)


async def test_the_work_depends_on_what_changed_and_not_on_what_there_is(simulated_cluster, client):
    crowd = await make(client, "crowd")
    for number in range(300):
        await make(client, f"bystander-{number}", owned_by(crowd))
    owner = await make(client, "owner")
    await make(client, "dependent", owned_by(owner))
    await asyncio.sleep(1)
    answered = simulated_cluster.server.answered
    before = answered.total()
    await delete(client, "owner")
    with pytest.raises(errors.NotFound):
        await client.get(f"{CM}/dependent")
    assert answered.total() - before < 10


async def test_dependents_are_known_by_the_watch_and_owners_are_not_asked_for_needlessly(
    simulated_cluster, client
):
    owner = await make(client, "owner")
    before = simulated_cluster.server.answered[("get", 200)]
    for number in range(50):
        await make(client, f"d{number}", owned_by(owner))
    await asyncio.sleep(60)
    assert simulated_cluster.server.answered[("get", 200)] == before
