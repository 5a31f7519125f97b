"""Groups whose replicas have several hosts: they come and go as a whole."""

import pytest

from tests.eagleray.raycluster.situations import (
    MOMENT,
    SCALED,
    label,
    names,
    replicas,
    running,
    uids,
    worker_to_delete,
)

pytestmark = pytest.mark.usefixtures("virtual_time")


def group(count, hosts=4):
    return {"replicas": count, "numOfHosts": hosts}


def places(pods):
    """Return (replica index, host index) of each Pod, in order."""
    return sorted(
        (int(label(pod, "worker-group-replica-index")), int(label(pod, "replica-host-index"))) for pod in pods
    )


@pytest.mark.case("RC-12")
async def test_three_replicas_of_four_hosts_have_names_and_indices():
    async with running(workers=[group(3)]) as world:
        made = await replicas(world)
        assert len(made) == 3
        assert all(name.startswith("small-group-") for name in made)
        assert all(len(pods) == 4 for pods in made.values())
        assert places(await world.workers()) == [(replica, host) for replica in range(3) for host in range(4)]
        assert all(len({one for one, _ in places(pods)}) == 1 for pods in made.values())
        headless = await world.get("Service", "c-headless")
        assert headless["spec"]["clusterIP"] == "None"
        assert headless["spec"]["selector"] == {"ray.io/cluster": "c", "ray.io/node-type": "worker"}


@pytest.mark.case("RC-13")
async def test_a_replica_goes_whole_when_asked_for_and_the_group_grows_by_whole_replicas():
    async with running(workers=[group(3)], **SCALED) as world:
        made = await replicas(world)
        doomed = sorted(made)[1]
        await world.set_group("c", replicas=2, scaleStrategy=worker_to_delete(*names(made[doomed])[:1]))
        await world.pass_time(MOMENT)
        left = await replicas(world)
        assert set(left) == set(made) - {doomed}
        assert len(await world.workers()) == 8
        await world.set_group("c", replicas=4, scaleStrategy={})
        await world.pass_time(MOMENT)
        assert places(await world.workers()) == [(replica, host) for replica in range(4) for host in range(4)]


@pytest.mark.case("RC-14")
async def test_a_replica_that_lost_a_host_is_replaced_whole():
    async with running(workers=[group(4)]) as world:
        made = await replicas(world)
        hurt = sorted(made)[2]
        others = uids([pod for name, pods in made.items() if name != hurt for pod in pods])
        await world.delete("Pod", made[hurt][1]["metadata"]["name"])
        await world.pass_time(MOMENT)
        after = await replicas(world)
        assert hurt not in after
        assert len(await world.workers()) == 16
        assert others < uids(await world.workers())
        assert places(await world.workers()) == [(replica, host) for replica in range(4) for host in range(4)]
        (event, *_) = await world.events("DeletedWorkerPod")
        assert event["note"].endswith(" for group small-group: cleanup of incomplete multi-host group")


async def test_fewer_replicas_are_reached_by_whole_replicas():
    async with running(workers=[group(3, 2)]) as world:
        await world.set_group("c", replicas=1)
        await world.pass_time(MOMENT)
        assert [len(pods) for pods in (await replicas(world)).values()] == [2]
        (event, *_) = await world.events("DeletedWorkerPod")
        assert event["note"].endswith(" for group small-group: scaling down")


async def test_replicas_from_before_they_had_names_stay_when_the_gate_goes_on():
    async with running(workers=[group(2, 2)], flags=("--feature-gates=RayMultiHostIndexing=false",)) as world:
        before = uids(await world.workers())
        await world.stop_operator()
        world.flags = tuple(flag for flag in world.flags if "feature-gates" not in flag)
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert uids(await world.workers()) == before
