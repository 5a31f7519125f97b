"""Wherever between two writes the operator is killed, objects under a batch scheduler end as they otherwise would."""

import pytest

from kubereef.node.scripts import Running, Script
from tests.eagleray.schedulers.standins import SCHEDULERS, GangWorld, asking, flags_of, gang_world
from tests.eagleray.world import PATHS, raycluster, rayjob
from tests.sim.faults import Laboratory, Scenario

GANG = {"labels": {"ray.io/gang-scheduling-enabled": "true"}}
SLOW = Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=1),), stops_after=2)


async def create_cluster(world, namespace):
    workers = [{"replicas": 1, **asking(cpu="1")}]
    await world.create(raycluster(namespace=namespace, workers=workers, metadata=GANG))


async def running_cluster(world, namespace):
    await create_cluster(world, namespace)
    await world.until(lambda: has_workers(1)(world, namespace), step=2)
    await world.pass_time(5)


async def scale_up(world, namespace):
    cluster = await world.get("RayCluster", "c", namespace)
    cluster["spec"]["workerGroupSpecs"][0]["replicas"] = 2
    await world.api.replace(f"{PATHS['RayCluster'].format(namespace)}/c", cluster)


def has_workers(number):
    async def holds(world, namespace):
        status = (await world.get("RayCluster", "c", namespace) or {}).get("status") or {}
        return status.get("state") == "ready" and status.get("readyWorkerReplicas") == number

    return holds


async def create_job(world, namespace):
    await world.create(rayjob(namespace=namespace, cluster={"workers": []}, metadata=GANG))


async def ended_job(world, namespace):
    status = (await world.get("RayJob", "j", namespace) or {}).get("status") or {}
    return status.get("jobDeploymentStatus") == "Complete"


def scenario(scheduler, name, change, settled, **more):
    also = GangWorld(scheduler).extra_kinds
    return Scenario(name, change, settled, flags=flags_of(scheduler), also=also, **more)


async def troubles_of(scheduler, described, tell_faults):
    async with gang_world(scheduler, operator=False, scripts=(SLOW,), lasts=4) as (world, ray):
        lab = Laboratory(world, described)
        await lab.record()
        points = [
            one for one in lab.points("writes") if one.fault == "then killed" and "events" not in one.what
        ]
        assert points
        tell_faults(f"{described.name} under {scheduler}: {len(points)} points")
        return await lab.disturb(points), ray.ledger, len(points)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
async def test_a_cluster_that_grows_ends_the_same(scheduler, tell_faults):
    grows = scenario(scheduler, "RayCluster grows", scale_up, has_workers(2), begin=running_cluster)
    troubles, _, _ = await troubles_of(scheduler, grows, tell_faults)
    assert not troubles, "\n".join(troubles)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
async def test_a_job_ends_the_same_and_runs_once(scheduler, tell_faults):
    runs = scenario(scheduler, "RayJob", create_job, ended_job, kinds=("RayCluster", "RayJob"))
    troubles, ledger, points = await troubles_of(scheduler, runs, tell_faults)
    assert not troubles, "\n".join(troubles)
    assert ledger.repeated == []
    assert len(ledger.started) == points + 1
