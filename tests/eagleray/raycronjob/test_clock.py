"""Clocks that are set, machines that sleep, and operators that are away."""

import pytest

from tests.eagleray.raycronjob.situations import (
    MOMENT,
    SettableClock,
    condition_of,
    cron_world,
    last,
    raycronjob,
    stamp,
    ticks,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("virtual_time")

RAY_JOBS = "rayjobs.ray.io"


@pytest.fixture
def settable():
    """Give a world whose operator has a clock that can be set."""

    async def begin(world):
        clock = world.clock = SettableClock(world.place.clock)
        await world.start_operator()
        return clock

    return begin


async def test_a_clock_that_is_set_forward_is_noticed_and_only_the_latest_tick_is_run(settable):
    async with cron_world(operator=False) as world:
        clock = await settable(world)
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        clock.set(minutes=31)  # to 00:37
        await wait_until(world, "00:07:01")  # a minute later, 00:38:01
        assert await ticks(world) == ["00:05", "00:35"]
        await wait_until(world, "00:09:01")  # 00:40:01
        assert await ticks(world) == ["00:05", "00:35", "00:40"]


async def test_a_clock_that_is_set_forward_to_a_tick_runs_it_within_a_minute(settable):
    async with cron_world(operator=False) as world:
        clock = await settable(world)
        await world.create(raycronjob(schedule="0 12 * * *"))
        await wait_until(world, "00:06")
        clock.set(hours=11, minutes=54)
        await wait_until(world, "00:07")
        assert await ticks(world) == ["12:00"]


async def test_a_clock_that_is_set_back_runs_no_tick_again(settable):
    async with cron_world(operator=False) as world:
        clock = await settable(world)
        await world.create(raycronjob(successfulJobsHistoryLimit=0))
        await wait_until(world, "00:10:30")
        clock.set(minutes=-8)  # to 00:02:30
        await wait_until(world, "00:12")
        note = f"the clock was set back behind the run of {stamp('00:10')}, and no run is repeated"
        assert await condition_of(world) == ("True", "Scheduled", f"next run at {stamp('00:15')}; {note}")
        for name in ("test-cronjob-31557605", "test-cronjob-31557610"):
            await world.delete("RayJob", name)
        await wait_until(world, "00:22")  # 00:14
        assert await ticks(world) == []
        await wait_until(world, "00:23:01")  # 00:15:01
        assert await ticks(world) == ["00:15"]
        assert await last(world) == "00:15"


async def test_a_clock_that_wavers_around_a_tick_runs_it_once(settable):
    async with cron_world(operator=False) as world:
        clock = await settable(world)
        await world.create(raycronjob())
        for step in (2, -3, 1, 2, -4, 2) * 5:
            await world.pass_time(10)
            clock.set(seconds=step)
        await wait_until(world, "00:20:30")
        made = [body["metadata"]["name"] for body in world.bodies("create", RAY_JOBS)]
        assert len(made) == len(set(made))
        assert await ticks(world) == ["00:05", "00:10", "00:15", "00:20"]


@pytest.mark.parametrize(
    "leave", ["stop_operator", "kill_operator"], ids=["stopped in order", "killed without a word"]
)
async def test_an_operator_that_was_away_for_several_ticks_runs_the_latest(leave):
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        await getattr(world, leave)()
        await wait_until(world, "00:27")
        assert await ticks(world) == ["00:05"]
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:05", "00:25"]
        await wait_until(world, "00:30:00")
        assert await ticks(world) == ["00:05", "00:25", "00:30"]


async def test_an_operator_that_was_away_between_ticks_misses_none():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *"))
        for minute in range(1, 8):
            await wait_until(world, f"00:0{minute}:10")
            await world.kill_operator()
            await wait_until(world, f"00:0{minute}:50")
            await world.start_operator()
        assert await ticks(world) == [f"00:0{minute}" for minute in range(1, 8)]


async def test_a_schedule_of_ten_years_ago_costs_no_more_than_a_new_one():
    async with cron_world(operator=False) as world:
        await world.create(raycronjob(schedule="* * * * *"))
        old = {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}
        await world.patch("RayCronJob", "test-cronjob", old, part="/status")
        await wait_until(world, "00:02:30")
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:02"]
        assert await last(world) == "00:02"
