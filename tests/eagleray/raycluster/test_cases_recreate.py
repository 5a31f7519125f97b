"""A cluster whose spec changes: its Pods are made anew only where that was asked for."""

import pytest

from tests.eagleray.raycluster.situations import MOMENT, running, told, uids
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

RECREATE = {"type": "Recreate"}
HASH = "ray.io/upgrade-strategy-recreate-hash"
VERSION = "ray.io/kuberay-version"


@pytest.mark.case("RC-23")
@pytest.mark.parametrize(
    "strategy", [None, {}, {"type": "None"}], ids=["no strategy", "no type", "type None"]
)
async def test_without_the_strategy_a_changed_spec_leaves_the_pods(strategy):
    async with running(rayVersion="2.52.0", upgradeStrategy=strategy) as world:
        before = uids(await world.pods())
        await world.patch_spec("c", {"rayVersion": "2.53.0"})
        await world.pass_time(MOMENT)
        assert uids(await world.pods()) == before


@pytest.mark.case("RC-24")
async def test_a_cluster_without_pods_is_not_recreated():
    async with world_of() as world:
        allow = world.faults.refuse("create", "pods")
        await world.create(raycluster(rayVersion="2.52.0", upgradeStrategy=RECREATE))
        await world.pass_time(MOMENT)
        await world.patch_spec("c", {"rayVersion": "2.53.0"})
        await world.pass_time(MOMENT)
        allow()
        await world.ready()
        assert ("deletecollection", "pods") not in world.writes()
        assert await world.events("DeletedPod") == []


@pytest.mark.case("RC-25")
async def test_a_changed_spec_recreates_all_pods():
    async with running(rayVersion="2.52.0", upgradeStrategy=RECREATE) as world:
        before = await world.pods()
        await world.patch_spec("c", {"rayVersion": "2.53.0"})
        await world.pass_time(MOMENT)
        after = await world.pods()
        assert len(after) == len(before)
        assert not uids(after) & uids(before)
        note = "Deleted all Pods for RayCluster default/c due to spec change with Recreate upgradeStrategy"
        assert await told(world, "DeletedPod") == ("Normal", "Delete", note)


@pytest.mark.case("RC-26")
async def test_a_head_that_another_version_made_gets_a_new_stamp_and_stays():
    async with running(rayVersion="2.52.0", upgradeStrategy=RECREATE) as world:
        await world.stop_operator()
        before = uids(await world.pods())
        head = await world.head()
        ours = head["metadata"]["annotations"]
        stamp = {HASH: "OLDHASH", VERSION: "v1.4.0"}
        await world.patch("Pod", head["metadata"]["name"], {"metadata": {"annotations": stamp}})
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert uids(await world.pods()) == before
        after = (await world.head())["metadata"]["annotations"]
        assert {key: after[key] for key in stamp} == {key: ours[key] for key in stamp}
        assert after[VERSION].startswith("eagleray-")


def without_tolerance(spec):
    spec["headGroupSpec"]["template"]["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]


def gated(spec):
    spec["workerGroupSpecs"][0]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/later"}]


def smaller(spec):
    spec["workerGroupSpecs"][0]["replicas"] = 2


def not_suspended(spec):
    spec["suspend"] = False


@pytest.mark.case("RC-27")
@pytest.mark.parametrize("change", [without_tolerance, gated, smaller, not_suspended])
async def test_what_the_hash_leaves_out_recreates_nothing(change):
    async with running(workers=[{"replicas": 3}], upgradeStrategy=RECREATE) as world:
        before = uids(await world.pods())
        cluster = await world.get("RayCluster", "c")
        change(cluster["spec"])
        await world.patch_spec("c", cluster["spec"])
        await world.pass_time(MOMENT)
        after = uids(await world.pods())
        assert after <= before
        assert len(after) == (3 if change is smaller else 4)
        assert await world.events("DeletedPod") == []
