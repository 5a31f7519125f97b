"""RayClusters that Kueue suspends and resumes."""

import pytest

from tests.eagleray.kueue.quota import kueue_world, nodes_of
from tests.eagleray.world import raycluster


async def is_empty(world):
    return not await world.list("Pod")


async def test_a_cluster_in_a_queue_has_no_pods_until_it_is_admitted():
    async with kueue_world() as (world, kueue, _):
        await kueue.create(raycluster())
        await world.pass_time(30)
        assert await is_empty(world)
        await kueue.admit("RayCluster", "c", "a")
        await world.ready()
        assert await nodes_of(world, "c") == {"node-a"}


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(0, id="at once"),
        pytest.param(0.2, id="while Pods come"),
        pytest.param(30, id="when it runs"),
    ],
)
async def test_an_evicted_cluster_ends_without_pods_and_comes_back_where_it_is_told_to(seconds):
    async with kueue_world() as (world, kueue, _):
        await kueue.create(raycluster(workers=[{"replicas": 3}]))
        for flavor in ("a", "b", "a"):
            await kueue.admit("RayCluster", "c", flavor)
            await world.pass_time(seconds)
            await kueue.evict("RayCluster", "c")
            await world.until(lambda: is_empty(world), seconds=60)
            await world.pass_time(10)
            assert await is_empty(world)
        await kueue.admit("RayCluster", "c", "b")
        await world.ready()
        assert await nodes_of(world, "c") == {"node-b"}
        assert len(await world.pods()) == 4


@pytest.mark.case("OP-165")
async def test_what_is_injected_into_a_running_cluster_recreates_nothing():
    async with kueue_world() as (world, _, _):
        await world.create(raycluster(workers=[{"replicas": 2}], upgradeStrategy={"type": "Recreate"}))
        cluster = await world.ready()
        before = {pod["metadata"]["uid"] for pod in await world.pods()}
        victim = (await world.workers())[0]["metadata"]["name"]
        for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
            group["template"]["spec"]["tolerations"] = [{"key": "flavor", "operator": "Exists"}]
            group["template"]["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
        cluster["spec"]["workerGroupSpecs"][0]["replicas"] = 1
        cluster["spec"]["workerGroupSpecs"][0]["scaleStrategy"] = {"workersToDelete": [victim]}
        await world.patch_spec("c", cluster["spec"])
        await world.pass_time(30)
        left = {pod["metadata"]["uid"] for pod in await world.pods()}
        assert left < before
        assert len(left) == 2
