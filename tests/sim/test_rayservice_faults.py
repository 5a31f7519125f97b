"""Whatever single thing goes wrong, a RayService ends as it would have otherwise, and its traffic is never misled.

Handing Serve a configuration is a write like those to the API server: it meets the same faults.
"""

import copy
from contextlib import asynccontextmanager

import pytest

from kubereef.node.scripts import Running, Script
from tests.eagleray.gateways import GATEWAY_KINDS, ScriptedGateways
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.rayservice.situations import OTHER_CONFIG, incremental
from tests.eagleray.world import rayservice, world_of
from tests.sim.faults import End, Laboratory, Scenario, is_write, whole_minute
from tests.sim.traffic import Traffic

KINDS = ("RayService", "RayCluster")
# Pods that start and end as slowly as to be seen in between.
SLOW = Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=1),), stops_after=1)
DELAY = 3
OLD, NEW = "2.52.0", "2.53.0"
PLAIN = {"rayClusterDeletionDelaySeconds": DELAY, "cluster": {"workers": []}}
STEPS = {"step": 50, "surge": 50, "interval": 4}


class ServiceLaboratory(Laboratory):
    """A laboratory that follows the traffic, and counts clusters.

    Whether dashboards are asked a little sooner or later decides who writes first.
    """

    seed = "the same"

    def watch(self, wire, namespace):
        self.traffic = Traffic(self.world, namespace)
        wire.after_write = self.traffic.look

    async def _end(self, namespace, pods):
        end = await super()._end(namespace, pods)
        return End(end.state, (*end.pods, len(self.traffic.clusters)), [*end.wrong, *self.traffic.wrong])


@asynccontextmanager
async def laboratory(scenario):
    """Give a laboratory with Ray and Gateways in it that has run the scenario undisturbed."""
    async with (
        world_of(operator=False, scripts=(SLOW,), kinds=(*KINDS, *GATEWAY_KINDS)) as world,
        RayOnPods(world, deploys=1.0),
        ScriptedGateways(world),
    ):
        lab = ServiceLaboratory(world, scenario)
        await lab.record()
        yield lab


# --- what is asked


async def status_of(world, namespace):
    return (await world.get("RayService", "s", namespace) or {}).get("status") or {}


async def cluster_on(world, namespace, side="active"):
    """Return the RayCluster of a side; None if there is none."""
    name = ((await status_of(world, namespace)).get(f"{side}ServiceStatus") or {}).get("rayClusterName")
    return await world.get("RayCluster", name, namespace) if name else None


def image_of(cluster):
    spec = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    return spec["containers"][0]["image"].rpartition(":")[2]


async def condition(world, namespace, kind):
    found = (await status_of(world, namespace)).get("conditions") or ()
    return next((one["status"] for one in found if one["type"] == kind), "")


def serves(tag, config=""):
    """Tell whether the service is ready on one cluster with an image, and a text is part of what Serve runs."""

    async def holds(world, namespace):
        if await condition(world, namespace, "Ready") != "True":
            return False
        active = await cluster_on(world, namespace)
        if active is None or image_of(active) != tag or await cluster_on(world, namespace, "pending"):
            return False
        head = world.dashboards.heads.get(host_of(active["metadata"]["name"], namespace))
        is_configured = head is not None and config in str(head.serve_configurations)
        return is_configured and len(await world.list("RayCluster", namespace=namespace)) == 1

    return holds


async def gone(world, namespace):
    return not any([await world.list(kind, namespace=namespace) for kind in (*KINDS, "Pod", "Service")])


# --- what happens


def create(service):
    async def step(world, namespace):
        await whole_minute(world)
        obj = copy.deepcopy(service)
        obj["metadata"]["namespace"] = namespace
        await world.create(obj)

    return step


def running(service):
    async def step(world, namespace):
        await create(service)(world, namespace)
        await world.until(lambda: serves(OLD)(world, namespace), step=2)
        await world.pass_time(5)

    return step


def edit(*, tag=None, **spec):
    """Describe a cluster with another image, or change other fields."""

    async def step(world, namespace):
        found = await world.get("RayService", "s", namespace)
        if tag is not None:
            described = found["spec"]["rayClusterConfig"]
            described["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = f"rayproject/ray:{tag}"
            spec["rayClusterConfig"] = described
        await world.patch("RayService", "s", {"spec": spec}, namespace=namespace)

    return step


def in_turn(*steps):
    async def step(world, namespace):
        for each in steps:
            await each(world, namespace)

    return step


def until(holds):
    async def step(world, namespace):
        await world.until(lambda: holds(world, namespace), 150, step=1)

    return step


async def is_half_way(world, namespace):
    """Tell whether the new cluster gets requests, and the old one still does."""
    pending = (await status_of(world, namespace)).get("pendingServiceStatus") or {}
    return pending.get("trafficRoutedPercent", 0) > 0


async def has_new_head(world, namespace):
    """Tell whether the head of the pending cluster runs."""
    pending = await cluster_on(world, namespace, "pending")
    return pending is not None and host_of(pending["metadata"]["name"], namespace) in world.dashboards.heads


async def is_suspended(world, namespace):
    return await condition(world, namespace, "Suspended") == "True"


async def delete(world, namespace):
    await world.delete("RayService", "s", namespace)


def scenario(name, service, change=None, settled=None):
    """Return a scenario that begins with the service, or with what is changed about it while it runs."""
    if change is None:
        return Scenario(name, create(service), serves(OLD), kinds=KINDS, also=GATEWAY_KINDS)
    return Scenario(name, change, settled, running(service), kinds=KINDS, also=GATEWAY_KINDS)


PLAIN_SERVICE = rayservice(**PLAIN)
FIXED_SERVICE = rayservice(**PLAIN, upgradeStrategy={"type": "None"})
STEPWISE_SERVICE = incremental(**STEPS, **PLAIN)

SCENARIOS = [
    scenario("first start", PLAIN_SERVICE),
    scenario("first start with steps", STEPWISE_SERVICE),
    scenario("NewCluster", PLAIN_SERVICE, edit(tag=NEW), serves(NEW)),
    scenario(
        "None", FIXED_SERVICE, edit(tag=NEW, serveConfigV2=OTHER_CONFIG), serves(OLD, config="app.other")
    ),
    scenario("in place", PLAIN_SERVICE, edit(serveConfigV2=OTHER_CONFIG), serves(OLD, config="app.other")),
    scenario("in steps", STEPWISE_SERVICE, edit(tag=NEW), serves(NEW)),
    scenario(
        "rollback",
        STEPWISE_SERVICE,
        in_turn(edit(tag=NEW), until(is_half_way), edit(tag=OLD)),
        serves(OLD),
    ),
    scenario(
        "suspend in the middle",
        STEPWISE_SERVICE,
        in_turn(
            edit(tag=NEW), until(has_new_head), edit(suspend=True), until(is_suspended), edit(suspend=False)
        ),
        serves(NEW),
    ),
    scenario(
        "delete in the middle", STEPWISE_SERVICE, in_turn(edit(tag=NEW), until(has_new_head), delete), gone
    ),
]


@pytest.mark.heavy
@pytest.mark.parametrize("family", ["writes", "requests", "news"])
@pytest.mark.parametrize("which", [pytest.param(each, id=each.name) for each in SCENARIOS])
async def test_each_single_fault_leads_to_the_same_end_and_misleads_no_traffic(which, family, tell_faults):
    async with laboratory(which) as lab:
        points = lab.points(family)
        if family == "requests":
            points = [point for point in points if is_write(point.what)]  # what is only read is read again
        tell_faults(f"RayService, {which.name}, {family}: {len(points)} points")
        assert points
        troubles = await lab.disturb(points)
    assert not troubles, "\n".join(troubles)
