"""Writes that the caches know at once, while the watch is held back."""

import pytest

from eagleray.kube.resources import CONFIG_MAPS, PODS, Key, Ref
from eagleray.kube.views import whole
from kubereef.simulation import settle
from kubewire import errors
from tests.eagleray.kube.local import status

WHOLE = (CONFIG_MAPS, whole(CONFIG_MAPS), {"label_selector": "test"})
KEY = Key("default", "a")
OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "mine", "uid": "u-mine", "controller": True}


def config_map(name="a", owner=OWNER, **metadata):
    owners = {"ownerReferences": [owner]} if owner else {}
    labels = {"test": "yes"}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels, **owners, **metadata}}


@pytest.fixture
async def late(world):
    """A writer and a cache whose watch says nothing until it is let."""
    informers, maps = await world.informers(WHOLE)
    world.faults.hold_news()
    return world.writer(informers), maps


async def test_every_write_is_visible_at_once_and_stays_when_the_watch_catches_up(world, late):
    writer, maps = late
    made = await writer.create(CONFIG_MAPS, config_map())
    assert maps.get(KEY) == made
    replaced = await writer.replace(CONFIG_MAPS, {**made, "data": {"x": "1"}})
    assert maps.get(KEY) == replaced
    patched = await writer.patch(CONFIG_MAPS, maps.ref(KEY), {"data": {"y": "2"}})
    assert maps.get(KEY) == patched
    seen: list[object] = []
    maps.listen(seen.append)
    seen.clear()
    world.faults.release_news()
    await settle()
    assert maps.get(KEY) == patched
    assert seen == []
    await writer.delete(CONFIG_MAPS, maps.ref(KEY))
    assert maps.get(KEY) is None


async def test_a_deleted_object_does_not_come_back_with_old_news(world, late):
    writer, maps = late
    seen: list[object] = []
    maps.listen(seen.append)
    made = await writer.create(CONFIG_MAPS, config_map())
    await writer.delete(CONFIG_MAPS, Ref.of(made))
    world.faults.release_news()
    await settle()
    assert maps.get(KEY) is None
    assert len(seen) == 2


async def test_an_object_with_finalizers_is_seen_on_its_way_out(world, late):
    writer, maps = late
    made = await writer.create(CONFIG_MAPS, config_map(finalizers=["test.io/hold"]))
    await writer.delete(CONFIG_MAPS, Ref.of(made))
    assert maps.get(KEY)["metadata"]["deletionTimestamp"]
    freed = await writer.patch(CONFIG_MAPS, maps.ref(KEY), {"metadata": {"finalizers": None}})
    world.faults.release_news()
    await settle()
    assert freed["metadata"]["uid"] == made["metadata"]["uid"]
    assert maps.get(KEY) is None


async def test_a_pod_with_a_grace_period_is_seen_terminating(world):
    informers, pods = await world.informers((PODS, whole(PODS), {}))
    world.faults.hold_news()
    writer = world.writer(informers)
    account = {"metadata": {"name": "default", "namespace": "default"}}
    await world.server.create("/api/v1/namespaces/default/serviceaccounts", account)
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    pod = await writer.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    await writer.delete(PODS, Ref.of(pod))
    assert pods.get(("default", "p"))["metadata"]["deletionTimestamp"]
    await writer.delete(PODS, pods.ref(("default", "p"))._replace(version=""), grace_seconds=0)
    assert pods.get(("default", "p")) is None


async def test_what_is_gone_already_counts_as_deleted(world, late):
    writer, maps = late
    made = await writer.create(CONFIG_MAPS, config_map())
    await world.server.delete("/api/v1/namespaces/default/configmaps/a")
    await writer.delete(CONFIG_MAPS, Ref.of(made))
    assert maps.get(KEY) is None


async def test_a_deletion_whose_name_has_a_successor_is_done_and_spares_it(world, late):
    writer, maps = late
    made = await writer.create(CONFIG_MAPS, config_map())
    await world.server.delete("/api/v1/namespaces/default/configmaps/a")
    other = await world.server.create("/api/v1/namespaces/default/configmaps", config_map())
    await writer.delete(CONFIG_MAPS, Ref.of(made))
    assert maps.ref(KEY).uid == other["metadata"]["uid"]


async def test_a_deletion_of_an_older_version_is_a_conflict_that_brings_the_newer_one(world, late):
    writer, maps = late
    made = await writer.create(CONFIG_MAPS, config_map())
    await world.server.patch("/api/v1/namespaces/default/configmaps/a", {"data": {"x": "1"}})
    with pytest.raises(errors.Conflict):
        await writer.delete(CONFIG_MAPS, Ref.of(made))
    assert maps.get(KEY)["data"] == {"x": "1"}


async def test_only_an_object_that_is_known_is_deleted(late):
    writer, _ = late
    with pytest.raises(ValueError, match="uid"):
        await writer.delete(CONFIG_MAPS, Ref("default", "a"))


async def test_a_child_whose_creation_was_answered_by_nobody_is_there_once(world, late):
    writer, maps = late
    world.faults.next = ["answer lost"]
    made = await writer.create_child(CONFIG_MAPS, config_map())
    assert world.faults.verbs()[-3:] == ["create", "create", "get"]
    assert maps.get(KEY) == {"apiVersion": "v1", "kind": "ConfigMap", **made}


@pytest.mark.parametrize(
    ("there", "message"),
    [
        pytest.param(
            config_map(owner={**OWNER, "name": "theirs", "uid": "u-theirs"}),
            "belongs to RayCluster theirs",
            id="another owner's",
        ),
        pytest.param(config_map(owner=None), "nobody controls", id="nobody's"),
    ],
)
async def test_a_childs_name_that_someone_else_has_is_a_conflict(world, late, there, message):
    writer, _ = late
    await world.server.create("/api/v1/namespaces/default/configmaps", there)
    with pytest.raises(errors.Conflict, match=message):
        await writer.create_child(CONFIG_MAPS, config_map())


async def test_a_childs_name_that_was_freed_in_between_is_told_as_taken_for_now(world, late):
    writer, _ = late
    taken, gone = errors.already_exists("configmaps", "a"), errors.not_found("configmaps", "a")
    world.faults.next = [status(taken), status(gone)]
    with pytest.raises(errors.AlreadyExists):
        await writer.create_child(CONFIG_MAPS, config_map())


async def test_a_child_on_its_way_out_is_no_child(world, late):
    writer, _ = late
    made = await writer.create_child(CONFIG_MAPS, config_map(finalizers=["test.io/hold"]))
    await writer.delete(CONFIG_MAPS, Ref.of(made))
    with pytest.raises(errors.Conflict, match="being deleted"):
        await writer.create_child(CONFIG_MAPS, config_map())


async def test_an_object_without_an_owner_that_exists_already_exists(world, late):
    writer, _ = late
    await writer.create(CONFIG_MAPS, config_map(owner=None))
    with pytest.raises(errors.AlreadyExists):
        await writer.create_child(CONFIG_MAPS, config_map(owner=None))


async def test_a_status_is_written_if_it_is_of_what_was_observed(world):
    informers, pods = await world.informers((PODS, whole(PODS), {}))
    account = {"metadata": {"name": "default", "namespace": "default"}}
    await world.server.create("/api/v1/namespaces/default/serviceaccounts", account)
    writer = world.writer(informers)
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = await writer.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    await writer.patch_status(PODS, Ref.of(pod), {"phase": "Running"})
    assert pods.get(("default", "p"))["status"]["phase"] == "Running"
    with pytest.raises(errors.Conflict):
        await writer.patch_status(PODS, Ref.of(pod), {"phase": "Failed"})
