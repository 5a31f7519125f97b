"""Exhaustive fault runs: a scenario runs undisturbed once, and then once for each single thing that can go wrong.

    scenario = Scenario("scale up", begin=a_running_cluster, change=three_more_workers, settled=has_five_workers)
    async with laboratory(scenario) as lab:
        troubles = await lab.disturb(lab.points("writes"))

The points are taken from the undisturbed run: its requests, and its news on watches. A disturbed run has to end in
the state of the undisturbed one, with as many Pods created and deleted, and within a bounded time.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import NamedTuple

from kubereef.node.scripts import Script
from tests.eagleray.world import World, world_of
from tests.sim.process import NEWS_FAULTS, READS, REQUEST_FAULTS, WRITE_FAULTS, Point, Process, Wire
from tests.sim.states import KINDS, counted_pods, differences, state_of

# What a fault may delay, in virtual seconds: less than a resync, so that nothing waits for one.
BOUND = 150.0
# How long an end has to last to be one.
AFTERMATH = 10.0

Step = Callable[[World, str], Awaitable[object]]


async def nothing(world, namespace):
    """Begin with an empty namespace."""


class Scenario(NamedTuple):
    """What happens to objects of a namespace, and how to see cheaply that it is probably over.

    `operator_first` is whether the operator runs before the change, or starts with it. The `kinds` are those that the
    scenario creates; of the objects of `also` kinds, which come and go with them, the end is compared, too.
    """

    name: str
    change: Step
    settled: Step
    begin: Step = nothing
    scripts: Sequence[Script] = ()
    kinds: Sequence[str] = ("RayCluster",)
    operator_first: bool = True
    flags: Sequence[str] = ()
    also: Sequence[str] = ()


class End(NamedTuple):
    """What a run has come to."""

    state: list[str]
    pods: tuple[int, int]
    wrong: list[object]


class Laboratory:
    """Runs a scenario again and again, each time in a namespace of its own.

    With a `seed` the operators of all runs draw the same, where the order of requests depends on that.
    """

    seed = ""

    def __init__(self, world, scenario):
        self.world = world
        self.scenario = scenario
        self.requests = []
        self.news = []
        self._numbers = count(1)
        self._expected = End([], (0, 0), [])

    async def record(self):
        """Run undisturbed, and take the points from it."""
        async with self._run(None) as (namespace, wire, pods):
            await self._until_settled(namespace)
            await self.world.pass_time(AFTERMATH)
            self._expected = await self._end(namespace, pods)
        self.requests, self.news = wire.requests, wire.news
        assert not self._expected.wrong
        return self._expected

    def watch(self, wire, namespace):
        """Watch a run that begins, besides its Pods; for those who have something to watch."""

    def points(self, family):
        """Return all points of a family: faults of `writes`, of `requests` of any kind, or of `news`."""
        if family == "news":
            return _points_at(self.news, NEWS_FAULTS)
        if family == "writes":
            return _points_at(filter(is_write, self.requests), WRITE_FAULTS)
        return _points_at(self.requests, REQUEST_FAULTS)

    async def disturb(self, points):
        """Run once for each point; return what went otherwise than undisturbed."""
        troubles = []
        for point in points:
            try:
                troubles += [f"{point}: {trouble}" for trouble in await self._disturbed(point)]
            except AssertionError as failed:
                troubles.append(f"{point}: {failed}")
        return troubles

    async def _disturbed(self, point):
        async with self._run(point) as (namespace, wire, pods):
            await self._until(lambda: _has_fired(wire), f"{point.what} never came")
            await self._until_settled(namespace)
            await self._until(lambda: self._is_at_end(namespace))
            await self.world.pass_time(AFTERMATH)
            end = await self._end(namespace, pods)
        counted = [f"{end.pods} Pods, not {self._expected.pods}"] if end.pods != self._expected.pods else []
        return [*differences(end.state, self._expected.state), *counted, *end.wrong]

    @asynccontextmanager
    async def _run(self, point):
        world, scenario = self.world, self.scenario
        await whole_minute(world)
        namespace = f"run-{next(self._numbers):04d}"
        await world.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        wire = Wire(world.simulated.server)
        self.watch(wire, namespace)
        flags = (f"--watch-namespace={namespace}", *scenario.flags)
        process = Process(world, wire, flags, seed=self.seed or namespace)
        await process.start()
        restarting = asyncio.create_task(process.restart_when_killed(), name="restarting")
        try:
            await scenario.begin(world, namespace)
            if not scenario.operator_first:
                process.kill()
            async with counted_pods(world, namespace) as pods:
                wire.arm(point)
                await scenario.change(world, namespace)
                if not scenario.operator_first:
                    await process.start()
                yield namespace, wire, pods
            wire.disarm()
            await self._clean(namespace)
        finally:
            restarting.cancel()
            await asyncio.gather(restarting, return_exceptions=True)
            await process.end()

    async def _clean(self, namespace):
        world = self.world
        for kind in self.scenario.kinds:
            for obj in await world.list(kind, namespace=namespace):
                await world.delete(kind, obj["metadata"]["name"], namespace)

        async def is_empty():
            return not any([await world.list(kind, namespace=namespace) for kind in self.scenario.kinds])

        # The namespace stays: it is empty, and to end it would take longer than the run.
        await self._until(is_empty, "the objects of the run do not go")

    async def _until_settled(self, namespace):
        await self._until(lambda: self.scenario.settled(self.world, namespace), "never settled")

    async def _until(self, holds, otherwise=""):
        try:
            await self.world.until(holds, BOUND, step=2)
        except AssertionError:
            if otherwise:
                raise AssertionError(f"{otherwise} in {BOUND:g} s") from None

    async def _is_at_end(self, namespace):
        return await state_of(self.world, namespace, self._kinds) == self._expected.state

    async def _end(self, namespace, pods):
        return End(await state_of(self.world, namespace, self._kinds), pods.numbers, pods.wrong)

    @property
    def _kinds(self):
        return tuple(dict.fromkeys((*KINDS, *self.scenario.kinds, *self.scenario.also)))


async def whole_minute(world):
    """Wait for a minute to begin: what is on record in seconds is then rounded alike in all runs."""
    await world.pass_time(60 - world.clock.monotonic() % 60)


async def _has_fired(wire):
    return wire.has_fired


def is_write(request):
    """Tell whether a request of a run was to change something."""
    return request.split()[0] not in READS


def _points_at(passed, faults):
    counted: Counter[str] = Counter()
    points = []
    for what in passed:
        points += [Point(fault, counted[what], what) for fault in faults]
        counted[what] += 1
    return points


@asynccontextmanager
async def laboratory(scenario):
    """Give a laboratory that has run the scenario undisturbed."""
    async with world_of(operator=False, scripts=scenario.scripts, kinds=scenario.kinds) as world:
        lab = Laboratory(world, scenario)
        await lab.record()
        yield lab
