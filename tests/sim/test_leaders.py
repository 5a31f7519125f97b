"""Two operators, of which one leads: whatever happens to it, the other one goes on, and only one of them acts."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eagleray.runtime.leases import Times
from tests.eagleray.world import raycluster, world_of
from tests.sim.process import Process, Wire
from tests.sim.states import counted_pods

ELECTED = ("--enable-leader-election=true", "--leader-election-namespace=default")
TIMES = Times()
# A candidate looks at the Lease so often, at the latest.
LOOK = TIMES.retry * 1.2
LEASE_WRITES = ("create leases.coordination.k8s.io", "update leases.coordination.k8s.io")


@asynccontextmanager
async def two_operators():
    async with world_of(operator=False) as world:
        wires = [Wire(world.simulated.server) for _ in range(2)]
        processes = [
            Process(world, wire, ELECTED, name=name)
            for name, wire in zip(("first", "second"), wires, strict=True)
        ]
        try:
            for process in processes:
                await process.start()
                await world.pass_time(LOOK)
            yield world, processes, wires
        finally:
            for process in processes:
                await process.end()


def deeds(wire, since=0.0):
    """Return what an operator wrote besides its Lease."""
    return [what for time, what in wire.writes if time >= since and what not in LEASE_WRITES]


async def holder(world):
    lease = await world.get("Lease", "ray-operator-leader")
    return lease["spec"]["holderIdentity"].partition("_")[0]


async def until_held_by(world, name, seconds):
    async def is_held():
        return await holder(world) == name

    await world.until(is_held, seconds, step=0.1)


@pytest.mark.case("OP-6")
async def test_only_the_leader_acts():
    async with two_operators() as (world, _, (first, second)):
        await world.create(raycluster())
        await world.ready()
        assert "create pods" in deeds(first)
        assert deeds(second) == []


async def test_the_second_takes_over_within_the_lease_time_when_the_first_is_killed():
    async with two_operators() as (world, (first, _), (_, wire)):
        await world.create(raycluster(workers=[{"replicas": 2}]))
        await world.ready()
        first.kill()
        await world.set_group("c", replicas=3)
        await until_held_by(world, "second", TIMES.lease + LOOK)
        await world.pass_time(5)
        assert len(await world.workers()) == 3
        assert deeds(wire).count("create pods") == 1


@pytest.mark.case("OP-6")
async def test_a_clean_stop_hands_over_at_once():
    async with two_operators() as (world, (first, _), _):
        await world.create(raycluster())
        await world.ready()
        assert await first.stop() == 0
        assert await holder(world) == ""
        await until_held_by(world, "second", LOOK)


async def writes_of_a_creation():
    async with two_operators() as (world, _, (wire, _)):
        await world.create(raycluster(workers=[{"replicas": 2}]))
        await world.ready()
        await world.pass_time(10)
        return len(deeds(wire))


async def test_a_leader_that_was_paused_past_its_lease_writes_nothing_more(tell_faults):
    writes = await writes_of_a_creation()
    assert writes
    tell_faults(f"leader paused, writes: {writes} points")
    for number in range(writes):
        await paused_after(number)


async def paused_after(number):
    """Pause the leader right after a write; it wakes up long after the second one has taken over."""
    async with two_operators() as (world, (first, _), (wire, other)), counted_pods(world, "default") as pods:

        def pause_after(what):
            if len(deeds(wire)) == number + 1 and what not in LEASE_WRITES:
                first.pause()

        wire.after_write = pause_after
        await world.create(raycluster(workers=[{"replicas": 2}]))
        await until_held_by(world, "second", TIMES.lease + TIMES.retry + 2 * LOOK)
        await world.ready()
        await world.set_group("c", replicas=1)
        await world.pass_time(30)
        woken = asyncio.get_running_loop().time()
        wire.after_write = None
        first.resume()
        await world.pass_time(30)
        assert deeds(wire, since=woken) == [], f"after write {number}"
        assert await first.running == 1
        assert await holder(world) == "second"
        assert (pods.numbers, pods.wrong) == ((3, 1), [])
        assert deeds(other)
