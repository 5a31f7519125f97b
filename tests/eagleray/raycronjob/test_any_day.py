"""Schedules on whatever day it is: in a world with a time of its own, and on a server with its machine's."""

import pytest

from kubewire.times import parse_time
from tests.eagleray.raycronjob.situations import (
    children,
    condition_of,
    cron_world,
    patch,
    raycronjob,
    status_of,
)

pytestmark = pytest.mark.usefixtures("virtual_time")

MINUTE = 60
TICK = "ray.io/cronjob-scheduled-timestamp"


def ticks_of(jobs):
    return [parse_time(job["metadata"]["annotations"][TICK]).timestamp() for job in jobs]


async def until_there_are(world, count):
    """Wait until there are so many runs; returns them."""

    async def are_there():
        found = await children(world)
        return found if len(found) >= count else None

    return await world.until(are_there, seconds=10 * MINUTE)


async def test_every_minute_brings_one_run():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *", concurrencyPolicy="Allow"))
        first, second, third = ticks_of(await until_there_are(world, 3))
        assert (second - first, third - second) == (MINUTE, MINUTE)
        assert first % MINUTE == 0
        last = parse_time((await status_of(world))["lastScheduleTime"]).timestamp()
        assert last >= third


async def test_a_run_that_goes_on_keeps_the_next_from_beginning():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *", concurrencyPolicy="Forbid"))
        await until_there_are(world, 1)
        await world.pass_time(3 * MINUTE)
        assert len(await children(world)) == 1


async def test_a_suspended_schedule_brings_none_until_it_is_resumed():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *", suspend=True))
        await world.pass_time(2 * MINUTE)
        assert await children(world) == []
        assert await condition_of(world) is not None
        await patch(world, suspend=False)
        assert len(await until_there_are(world, 1)) == 1


async def test_what_a_schedule_has_made_goes_with_it():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *"))
        await until_there_are(world, 1)
        await world.delete("RayCronJob", "test-cronjob")

        async def are_gone():
            return not await children(world)

        await world.until(are_gone)
