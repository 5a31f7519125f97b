"""Whatever single thing goes wrong, a RayCluster ends as it would have otherwise."""

import pytest

from kubereef.node.scripts import Running, Script, Succeeds
from tests.eagleray.world import PATHS, raycluster
from tests.sim.faults import Scenario, laboratory

CLEANUP_ENDS = Script({"ray.io/node-type": "redis-cleanup"}, steps=(Running(), Succeeds(after=2)))
# Pods that start and end as slowly as to be seen in between.
SLOW = Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=1),), stops_after=2)


def create(workers=2, **spec):
    async def step(world, namespace):
        await world.create(raycluster(namespace=namespace, workers=[{"replicas": workers}], **spec))

    return step


def running(workers=2, **spec):
    is_ready = ready(workers)

    async def step(world, namespace):
        await create(workers, **spec)(world, namespace)
        await world.until(lambda: is_ready(world, namespace), step=2)
        await world.pass_time(5)

    return step


def suspended(workers=2):
    async def step(world, namespace):
        await running(workers)(world, namespace)
        await set_spec(suspend=True)(world, namespace)
        await world.until(lambda: in_state("suspended")(world, namespace), step=2)
        await world.pass_time(5)

    return step


def set_spec(**fields):
    async def step(world, namespace):
        await world.patch_spec("c", fields, namespace)

    return step


def scale_to(workers):
    async def step(world, namespace):
        cluster = await world.get("RayCluster", "c", namespace)
        cluster["spec"]["workerGroupSpecs"][0]["replicas"] = workers
        await world.api.replace(f"{PATHS['RayCluster'].format(namespace)}/c", cluster)

    return step


def change_image(image):
    async def step(world, namespace):
        cluster = await world.get("RayCluster", "c", namespace)
        spec = cluster["spec"]["headGroupSpec"]["template"]["spec"]
        spec["containers"][0]["image"] = image
        await world.api.replace(f"{PATHS['RayCluster'].format(namespace)}/c", cluster)

    return step


async def delete(world, namespace):
    await world.delete("RayCluster", "c", namespace)


async def nothing_happens(world, namespace):
    """Only the operator starts."""


def in_state(state):
    async def holds(world, namespace):
        cluster = await world.get("RayCluster", "c", namespace) or {}
        status = cluster.get("status") or {}
        current = status.get("observedGeneration") == cluster.get("metadata", {}).get("generation")
        return cluster if current and status.get("state") == state else None

    return holds


def ready(workers, image=None):
    async def holds(world, namespace):
        cluster = await in_state("ready")(world, namespace)
        if not cluster or cluster["status"].get("readyWorkerReplicas", 0) != workers:
            return False
        pods = await world.list("Pod", namespace=namespace)
        images = {pod["spec"]["containers"][0]["image"] for pod in pods}
        return len(pods) == workers + 1 and (image is None or image in images)

    return holds


async def gone(world, namespace):
    return not await world.get("RayCluster", "c", namespace) and not await world.list(
        "Pod", namespace=namespace
    )


SCENARIOS = [
    Scenario("create", create(), ready(2)),
    Scenario("scale up", scale_to(4), ready(4), begin=running(2)),
    Scenario("scale down", scale_to(1), ready(1), begin=running(3)),
    Scenario("suspend", set_spec(suspend=True), in_state("suspended"), begin=running()),
    Scenario("resume", set_spec(suspend=False), ready(2), begin=suspended()),
    Scenario(
        "delete with Redis cleanup",
        delete,
        gone,
        begin=running(gcsFaultToleranceOptions={"redisAddress": "redis:6379"}),
        scripts=(CLEANUP_ENDS,),
    ),
    Scenario(
        "Recreate",
        change_image("rayproject/ray:2.53.0"),
        ready(2, "rayproject/ray:2.53.0"),
        begin=running(upgradeStrategy={"type": "Recreate"}),
    ),
    Scenario(
        "start over a running cluster", nothing_happens, ready(2), begin=running(), operator_first=False
    ),
]


@pytest.mark.parametrize("family", ["writes", "requests", "news"])
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each._replace(scripts=(*each.scripts, SLOW)), id=each.name) for each in SCENARIOS],
)
async def test_each_single_fault_leads_to_the_same_end(scenario, family, tell_faults):
    async with laboratory(scenario) as lab:
        points = lab.points(family)
        tell_faults(f"{scenario.name}, {family}: {len(points)} points")
        if scenario.operator_first or family != "writes":
            assert points
        troubles = await lab.disturb(points)
    assert not troubles, "\n".join(troubles)
