"""Whatever dashboards do, and whichever operator leads, requests go where somebody answers, and the upgrade ends."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from kubereef.node.scripts import Running, Script
from tests.eagleray.dashboard.scripted import (
    ANSWER_HANGS,
    ANSWER_LOST,
    CONNECT_HANGS,
    HANGS,
    NO_SUCH_PAGE,
    REFUSES,
    SERVER_ERROR,
    WRONG_JSON,
    WRONG_SHAPE,
    slow,
)
from tests.eagleray.gateways import GATEWAY_KINDS, ScriptedGateways
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.rayservice.situations import (
    KINDS,
    active,
    clusters,
    incremental,
    is_ready,
    new_pending,
    promoted,
    set_image,
)
from tests.eagleray.world import rayservice, world_of
from tests.sim.process import Process, Wire
from tests.sim.test_leaders import ELECTED, LEASE_WRITES, LOOK, TIMES, deeds, holder, until_held_by
from tests.sim.traffic import Traffic

SLOW = Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=1),), stops_after=1)
SMALL = {"rayClusterDeletionDelaySeconds": 3, "cluster": {"workers": []}}
MAKE = {
    "switched": lambda: rayservice(**SMALL),
    "in steps": lambda: incremental(step=50, surge=50, interval=4, **SMALL),
}
STRATEGIES = pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKE.items()])
TROUBLES = {
    "slow": slow(1.5),
    "hangs": HANGS,
    "connection hangs": CONNECT_HANGS,
    "refuses": REFUSES,
    "no such page": NO_SUCH_PAGE,
    "500": SERVER_ERROR,
    "wrong JSON": WRONG_JSON,
    "wrong shape": WRONG_SHAPE,
    "answers are lost": ANSWER_LOST,
    "answers hang": ANSWER_HANGS,
}
# How long a dashboard is in trouble, and how long after that the upgrade may take.
TROUBLE = 30
BOUND = 300


@asynccontextmanager
async def serving_world(processes=1, flags=()):
    """Give a world with operators whose writes are watched, and the traffic that is followed after each of them."""
    async with (
        world_of(operator=False, scripts=(SLOW,), kinds=(*KINDS, *GATEWAY_KINDS)) as world,
        RayOnPods(world, deploys=1.0),
        ScriptedGateways(world),
    ):
        traffic = Traffic(world)
        running = []
        try:
            for number in range(processes):
                wire = Wire(world.simulated.server)
                wire.after_write = traffic.look
                running.append((Process(world, wire, flags, name=f"operator-{number}"), wire))
                await running[-1][0].start()
                await world.pass_time(LOOK)
            yield world, running, traffic
        finally:
            for process, _ in running:
                await process.end()


@pytest.mark.parametrize("side", ["old", "new", "both"])
@pytest.mark.parametrize("name", TROUBLES)
@STRATEGIES
async def test_an_upgrade_waits_out_a_dashboard_in_trouble_and_misleads_no_traffic(make, name, side):
    async with serving_world() as (world, _, traffic):
        await world.create(make())
        await is_ready(world)
        await set_image(world, "2.53.0")
        old, new = await active(world), await new_pending(world)
        hosts = {"old": [host_of(old)], "new": [host_of(new)], "both": [host_of(old), host_of(new)]}[side]
        for host in hosts:
            world.dashboards.fault(host, TROUBLES[name])
        await world.pass_time(TROUBLE)
        for host in hosts:
            world.dashboards.heal(host)
        await promoted(world, new, seconds=BOUND)
        await world.pass_time(30)
        assert traffic.wrong == []
        assert (len(traffic.clusters), await clusters(world)) == (2, [new])


@pytest.mark.parametrize("name", ["hangs", "500", "wrong JSON"])
@STRATEGIES
async def test_an_upgrade_to_a_dashboard_that_is_never_well_leaves_the_old_cluster_serving(make, name):
    async with serving_world() as (world, _, traffic):
        await world.create(make())
        await is_ready(world)
        await set_image(world, "2.53.0")
        old, new = await active(world), await new_pending(world)
        world.dashboards.fault(host_of(new), TROUBLES[name])
        await world.pass_time(600)
        assert traffic.wrong == []
        assert (await active(world), sorted([old, new])) == (old, await clusters(world))
        service = await world.get("RayService", "s")
        told = {one["type"]: (one["status"], one["message"]) for one in service["status"]["conditions"]}
        assert told["Ready"][0] == "True"
        assert new in told["UpgradeInProgress"][1]


# --- two operators


async def writes_of_an_upgrade(make):
    """Return how many writes an upgrade takes of the leader."""
    async with serving_world(2, ELECTED) as (world, ((_, wire), _), _):
        before = await _until_upgrade(world, make, wire)
        await promoted(world, await new_pending(world), seconds=BOUND)
        await world.pass_time(10)
        return len(deeds(wire)) - before


async def _until_upgrade(world, make, wire):
    await world.create(make())
    await is_ready(world)
    await world.pass_time(5)
    before = len(deeds(wire))
    await set_image(world, "2.53.0")
    return before


@pytest.mark.heavy
@STRATEGIES
async def test_a_leader_that_was_paused_in_the_middle_of_an_upgrade_writes_nothing_more(make, tell_faults):
    writes = await writes_of_an_upgrade(make)
    assert writes
    tell_faults(f"leader of a RayService's upgrade paused, writes: {writes} points")
    for number in range(writes):
        await paused_after(make, number)


async def paused_after(make, number):
    """Pause the leader right after a write of an upgrade; it wakes up when the second one has finished it."""
    async with serving_world(2, ELECTED) as (world, ((first, wire), (_, other)), traffic):
        before = await _until_upgrade(world, make, wire)

        def pause_after(what):
            traffic.look(what)
            if len(deeds(wire)) == before + number + 1 and what not in LEASE_WRITES:
                first.pause()

        wire.after_write = pause_after
        await until_held_by(world, "operator-1", TIMES.lease + TIMES.retry + 2 * LOOK + BOUND)

        async def is_over():
            found = await clusters(world)
            return len(found) == 1 and found == [await active(world)] and len(traffic.clusters) == 2

        await world.until(is_over, BOUND, step=2)
        woken = asyncio.get_running_loop().time()
        wire.after_write = traffic.look
        first.resume()
        await world.pass_time(30)
        assert deeds(wire, since=woken) == [], f"after write {number}"
        assert await holder(world) == "operator-1"
        assert traffic.wrong == [], f"after write {number}"
        assert len(traffic.clusters) == 2
        assert deeds(other)
