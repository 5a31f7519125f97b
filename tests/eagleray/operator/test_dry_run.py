"""A dry run tells what an operator would do, and does nothing."""

import pytest

from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
async def dry():
    async with world_of(flags=("--dry-run", "--enable-leader-election")) as world:
        yield world


def writes_of_any_kind(world):
    return [request for request in world.faults.sent if request.verb not in ("get", "list", "watch")]


async def test_a_new_cluster_is_planned_and_not_made(dry):
    await dry.create(raycluster(workers=[{"replicas": 2}]))
    await dry.pass_time(10)
    text = "\n".join(dry.printed)
    assert dry.printed[0] == "RayCluster default/c: head-service: create Service default/c-head-svc"
    assert "RayCluster default/c: head-pod: create Pod default/c-head-" in text
    assert text.count("RayCluster default/c: worker-pods: create Pod default/c-small-group-worker-") == 2
    assert "RayCluster default/c: status: " in text
    assert writes_of_any_kind(dry) == []


async def test_an_invalid_cluster_is_told_of_and_not_written_about(dry):
    await dry.create(raycluster(workers=[{"minReplicas": 5, "maxReplicas": 2}]))
    await dry.pass_time(10)
    (told,) = [line for line in dry.printed if "tell" in line]
    assert told.startswith("RayCluster default/c: tell Warning InvalidRayClusterSpec: ")
    assert writes_of_any_kind(dry) == []


async def test_a_deletion_is_planned_and_not_made():
    async with world_of() as world:
        await world.create(raycluster(gcsFaultToleranceOptions={"redisAddress": "redis:6379"}))
        await world.ready()
        await world.stop_operator()
        await world.delete("RayCluster", "c")
        world.flags = (*world.flags, "--dry-run")
        world.faults.sent.clear()
        await world.start_operator()
        await world.pass_time(10)
        assert "delete all pods in default with ray.io/cluster=c,ray.io/node-type=head" in "\n".join(
            world.printed
        )
        assert writes_of_any_kind(world) == []
        assert len(await world.pods()) == 2
