"""RayServices that Kueue suspends and resumes: as a whole, or by the clusters that they make."""

import pytest

from tests.eagleray.kueue.quota import QUEUE, kueue_world, nodes_of
from tests.eagleray.rayservice.situations import ROUND, active, condition, is_ready, pending
from tests.eagleray.world import rayservice

KINDS = ("RayCluster", "RayService")


async def is_suspended(world):
    return await condition(world, "Suspended") == ("True", "SuspendComplete")


async def test_a_service_in_a_queue_has_no_pods_until_it_is_admitted():
    async with kueue_world(kinds=KINDS) as (world, kueue, _):
        await kueue.create(rayservice())
        await world.until(lambda: is_suspended(world))
        await world.pass_time(30)
        assert not await world.list("Pod")
        await kueue.admit("RayService", "s", "a")
        await is_ready(world)
        assert await nodes_of(world, await active(world)) == {"node-a"}


@pytest.mark.parametrize(
    "seconds", [pytest.param(1, id="while it begins"), pytest.param(60, id="while it serves")]
)
async def test_an_evicted_service_ends_without_pods_and_comes_back_where_it_is_told_to(seconds):
    async with kueue_world(kinds=KINDS) as (world, kueue, _):
        await kueue.create(rayservice())
        await world.until(lambda: is_suspended(world))
        await kueue.admit("RayService", "s", "a")
        await world.pass_time(seconds)
        before = await active(world)
        await kueue.evict("RayService", "s")
        await world.until(lambda: is_suspended(world))
        await world.pass_time(10)
        assert not await world.list("Pod")
        assert not await world.list("RayCluster")
        await kueue.admit("RayService", "s", "b")
        await is_ready(world)
        name = await active(world)
        assert name != before
        assert await nodes_of(world, name) == {"node-b"}


@pytest.mark.case("OP-135")
async def test_the_queue_of_a_service_reaches_its_cluster():
    async with kueue_world(kinds=KINDS) as (world, kueue, _):
        await kueue.create(rayservice(), queue="serving")
        await world.until(lambda: is_suspended(world))
        await kueue.admit("RayService", "s", "a")
        await is_ready(world)
        cluster = await world.get("RayCluster", await active(world))
        assert cluster["metadata"]["labels"][QUEUE] == "serving"


@pytest.mark.case("OP-165")
async def test_what_is_injected_into_a_running_service_starts_no_upgrade():
    async with kueue_world(kinds=KINDS) as (world, _, _):
        await world.create(rayservice())
        await is_ready(world)
        await world.pass_time(ROUND)
        before = await active(world)
        pods = {pod["metadata"]["uid"] for pod in await world.pods(before)}
        described = (await world.get("RayService", "s"))["spec"]["rayClusterConfig"]
        for group in (described["headGroupSpec"], *described["workerGroupSpecs"]):
            group["template"]["spec"]["tolerations"] = [{"key": "flavor", "operator": "Exists"}]
            group["template"]["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
        described["workerGroupSpecs"][0] |= {"replicas": 4, "scaleStrategy": {"workersToDelete": ["w"]}}
        await world.patch("RayService", "s", {"spec": {"rayClusterConfig": described}})
        await world.pass_time(60)
        assert (await active(world), await pending(world)) == (before, "")
        assert {pod["metadata"]["uid"] for pod in await world.pods(before)} == pods


@pytest.mark.case("OP-166")
async def test_suspend_of_a_described_cluster_is_copied_once_and_then_kueue_s():
    async with kueue_world(kinds=KINDS) as (world, _, _):
        await world.create(rayservice(cluster={"suspend": True}))
        await world.pass_time(ROUND)
        (cluster,) = await world.list("RayCluster")
        name = cluster["metadata"]["name"]
        assert cluster["spec"]["suspend"] is True
        assert not await world.list("Pod")
        await world.patch_spec(name, {"suspend": False})
        await is_ready(world)
        assert (await world.get("RayService", "s"))["spec"]["rayClusterConfig"]["suspend"] is True
        await world.pass_time(60)
        assert (await world.get("RayCluster", name))["spec"]["suspend"] is False
        await world.patch_spec(name, {"suspend": True})
        await world.pass_time(60)
        cluster = await world.get("RayCluster", name)
        assert (cluster["spec"]["suspend"], cluster["status"]["state"]) == (True, "suspended")
        assert [one["metadata"]["name"] for one in await world.list("RayCluster")] == [name]
