"""Suspended clusters: their Pods go, and come back when they are wanted again."""

import pytest

from tests.eagleray.raycluster.situations import MOMENT, count, names, running, told, uids
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")


async def conditions(world):
    return {one["type"]: one["status"] for one in (await world.status())["conditions"]}


@pytest.mark.case("RC-28")
@pytest.mark.case("RC-29")
@pytest.mark.parametrize("resumed", [False, None], ids=["set to false", "removed"])
async def test_a_suspended_cluster_has_no_pods_and_a_resumed_one_gets_them_back(resumed):
    async with running() as world:
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(MOMENT)
        status = await world.status()
        assert await world.pods() == []
        assert status["state"] == "suspended"
        assert status["head"].get("podName", "") == ""
        assert "suspended" in status["stateTransitionTimes"]
        turned = await conditions(world)
        assert turned["RayClusterSuspended"] == "True"
        assert turned["RayClusterSuspending"] == "False"
        assert turned["RayClusterProvisioned"] == "False"
        note = "Deleted Pods for RayCluster default/c due to suspension"
        assert await told(world, "DeletedPod") == ("Normal", "Delete", note)
        await world.patch_spec("c", {"suspend": resumed})
        await world.pass_time(MOMENT)
        assert len(await world.pods()) == 4
        assert (await world.status())["state"] == "ready"
        turned = await conditions(world)
        assert turned["RayClusterProvisioned"] == "True"
        assert turned["RayClusterSuspended"] == "False"


async def test_a_cluster_that_is_made_suspended_has_no_pods_until_it_is_resumed():
    async with world_of() as world:
        await world.create(raycluster(suspend=True))
        await world.pass_time(MOMENT)
        assert await world.pods() == []
        assert (await world.status())["state"] == "suspended"
        await world.patch_spec("c", {"suspend": False})
        await world.pass_time(MOMENT)
        assert (await world.status())["state"] == "ready"


@pytest.mark.case("RC-30")
async def test_a_suspension_is_finished_before_the_cluster_is_resumed():
    async with running() as world:
        before = uids(await world.pods())
        for name in names(await world.pods()):
            await world.patch("Pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(MOMENT)
        assert (await conditions(world))["RayClusterSuspending"] == "True"
        await world.patch_spec("c", {"suspend": False})
        await world.pass_time(60)
        turned = await conditions(world)
        assert (turned["RayClusterSuspending"], turned["RayClusterSuspended"]) == ("True", "False")
        assert uids(await world.pods()) == before
        for name in names(await world.pods()):
            await world.patch("Pod", name, {"metadata": {"finalizers": None}})
        await world.pass_time(MOMENT)
        turned = await conditions(world)
        assert (turned["RayClusterSuspending"], turned["RayClusterSuspended"]) == ("False", "False")
        after = await world.pods()
        assert len(after) == 4
        assert not uids(after) & before


@pytest.mark.case("RC-21")
async def test_all_pods_are_deleted_by_one_request_and_only_those_of_the_cluster():
    async with running() as world:
        await world.create(raycluster("d"))
        await world.ready("d")
        others = uids(await world.pods("d"))
        first, *_ = names(await world.workers())
        for name in names(await world.pods()):
            await world.patch("Pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.delete("Pod", first)  # it is on its way out already
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(1)
        assert count(world, "deletecollection", "pods") == 1
        # Everything that could start another pass: time, a restart, a change.
        await world.pass_time(700)
        await world.stop_operator()
        await world.start_operator()
        await world.patch("RayCluster", "c", {"metadata": {"labels": {"a": "b"}}})
        await world.pass_time(MOMENT)
        assert count(world, "deletecollection", "pods") == 1
        assert count(world, "delete", "pods") == 0
        assert uids(await world.pods("d")) == others


async def test_without_conditions_a_suspended_cluster_loses_its_pods_too():
    async with running(flags=("--feature-gates=RayClusterStatusConditions=false",)) as world:
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(MOMENT)
        assert await world.pods() == []
        assert (await world.status())["state"] == "suspended"
        await world.patch_spec("c", {"suspend": False})
        await world.pass_time(MOMENT)
        assert (await world.status())["state"] == "ready"


async def test_a_suspension_that_the_server_refuses_is_told_and_tried_again():
    async with running() as world:
        allow = world.faults.refuse("deletecollection", "pods")
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(MOMENT)
        assert len(await world.pods()) == 4
        kind, action, note = await told(world, "FailedToDeletePodCollection")
        assert (kind, action) == ("Warning", "Delete")
        assert note.endswith(", the quota is used up")
        assert (await world.condition("ReplicaFailure"))["reason"] == "FailedDeleteAllPods"
        allow()
        await world.pass_time(120)
        assert await world.pods() == []
        assert await world.condition("ReplicaFailure") is None
