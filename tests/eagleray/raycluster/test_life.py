"""A cluster from its creation to its end."""

from tests.eagleray.world import raycluster


async def test_a_cluster_becomes_ready_and_goes(world):
    await world.create(raycluster(workers=[{"replicas": 3}]))
    cluster = await world.ready()
    assert cluster["status"]["availableWorkerReplicas"] == 3
    assert len(await world.pods()) == 4
    await world.pass_time(10)
    await world.delete("RayCluster", "c")
    await world.pass_time(60)
    assert await world.pods() == []
