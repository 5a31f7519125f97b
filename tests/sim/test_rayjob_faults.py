"""Whatever single thing goes wrong between the operator and the API server, a RayJob ends as it would have otherwise.

And in all of these runs, whatever the operator forgets or repeats, Ray has executed the entrypoint exactly once.
"""

from contextlib import asynccontextmanager

import pytest

from kubereef.node.scripts import Running, Script
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.world import rayjob, world_of
from tests.sim.faults import Laboratory, Scenario

KINDS = ("RayCluster", "RayJob")
MODES = ("K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
# Pods that start and end as slowly as to be seen in between, and a job that lasts longer than that.
SLOW = (Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=1),), stops_after=2),)
LASTS = 4


def create(mode, **spec):
    async def step(world, namespace):
        job = rayjob(namespace=namespace, cluster={"workers": []}, submissionMode=mode, **spec)
        await world.create(job)
        if mode == "InteractiveMode":
            await submit_by_hand(world, namespace)

    return step


async def submit_by_hand(world, namespace):
    """Do as a user does who is waited for."""

    async def is_waited_for():
        status = await status_of(world, namespace)
        return status if status.get("jobDeploymentStatus") == "Waiting" else None

    status = await world.until(is_waited_for, step=2)
    name = f"by-hand-in-{namespace}"
    world.dashboards.heads[host_of(status["rayClusterName"], namespace)].submit(name)
    await world.patch("RayJob", "j", {"spec": {"jobId": name}}, namespace=namespace)


async def status_of(world, namespace):
    return (await world.get("RayJob", "j", namespace) or {}).get("status") or {}


def in_state(state):
    async def holds(world, namespace):
        return (await status_of(world, namespace)).get("jobDeploymentStatus") == state

    return holds


@asynccontextmanager
async def laboratory(scenario, **ray):
    """Give a laboratory with Ray in it that has run the scenario undisturbed."""
    async with (
        world_of(operator=False, scripts=SLOW, kinds=KINDS) as world,
        RayOnPods(world, lasts=LASTS, **ray) as lives,
    ):
        lab = Laboratory(world, scenario)
        await lab.record()
        yield lab, lives


@pytest.mark.case("RJ-92")
@pytest.mark.parametrize("family", ["writes", "requests", "news"])
@pytest.mark.parametrize("mode", MODES)
async def test_each_single_fault_leads_to_the_same_end_and_one_execution(mode, family, tell_faults):
    scenario = Scenario(mode, create(mode), in_state("Complete"), kinds=KINDS)
    async with laboratory(scenario) as (lab, ray):
        points = lab.points(family)
        tell_faults(f"RayJob in {mode}, {family}: {len(points)} points")
        assert points
        troubles = await lab.disturb(points)
        assert not troubles, "\n".join(troubles)
        assert ray.ledger.repeated == []
        assert len(ray.ledger.started) == len(points) + 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_calm_job_writes_its_status_at_most_six_times(mode):
    scenario = Scenario(mode, create(mode), in_state("Complete"), kinds=KINDS)
    async with laboratory(scenario) as (lab, _):
        patches = [what for what in lab.requests if what == "patch rayjobs.ray.io"]
        assert len(patches) <= 7, "one of them is about the finalizer"
