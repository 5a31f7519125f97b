"""Situations that the cases of a RayCronJob start from, and the questions that they ask.

A world begins at 2030-01-01T00:00:00Z, a Tuesday, and is ready a second later.
"""

import copy
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from kubewire.times import format_time, parse_time
from tests.eagleray.ray import RayOnPods
from tests.eagleray.world import NAMESPACE, rayjob, world_of

KINDS = ("RayCluster", "RayJob", "RayCronJob")
DAY = datetime(2030, 1, 1, tzinfo=UTC)
# Whatever happens at once in a world where nothing is slow has happened by then.
MOMENT = 1
# A run that costs nothing: it waits for Kueue or somebody like it, and so never ends by itself.
WAITING = {"suspend": True, "shutdownAfterJobFinishes": True}


def raycronjob(name="test-cronjob", schedule="*/5 * * * *", *, template=None, metadata=None, **spec):
    """Return a RayCronJob as a user writes it; `template` is laid over the spec of a plain, waiting RayJob."""
    job = rayjob(**{**WAITING, **(template or {})})["spec"]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": name, "namespace": NAMESPACE, **(metadata or {})},
        "spec": {"schedule": schedule, "timeZone": "UTC", "jobTemplate": job, **copy.deepcopy(spec)},
    }


@asynccontextmanager
async def cron_world(**options):
    """Give a world that knows RayCronJobs."""
    async with world_of(kinds=KINDS, **options) as world:
        yield world


@asynccontextmanager
async def ray_world(**ray):
    """Give a world that knows RayCronJobs and in which Ray runs jobs."""
    async with cron_world() as world, RayOnPods(world, **ray) as lives:
        yield world, lives


def time(text):
    """Return the moment of the world's first day that a text such as `00:05` or `00:05:30` names."""
    hours, minutes, *seconds = map(int, text.split(":"))
    return DAY + timedelta(hours=hours, minutes=minutes, seconds=sum(seconds))


def stamp(text):
    return format_time(time(text))


async def wait_until(world, text):
    """Let time pass until the clock on the world's wall shows this, and whatever is due then has happened."""
    left = (time(text) - world.place.clock.now()).total_seconds()
    assert left >= 0, f"it is later than {text}"
    await world.pass_time(left)


async def children(world):
    """Return the RayJobs by tick."""
    return sorted(await world.list("RayJob"), key=lambda job: job["metadata"]["name"])


async def ticks(world):
    """Return the ticks of the RayJobs that there are, as `00:05`."""
    found = [
        job["metadata"]["annotations"]["ray.io/cronjob-scheduled-timestamp"] for job in await children(world)
    ]
    return [f"{parse_time(one):%H:%M}" for one in found]


async def status_of(world, name="test-cronjob"):
    return await world.status(name, "RayCronJob")


async def last(world, name="test-cronjob"):
    """Return the tick of the latest run, as `00:05`; None if there was none."""
    found = (await status_of(world, name)).get("lastScheduleTime")
    return f"{parse_time(found):%H:%M}" if found else None


async def condition_of(world, kind="Scheduled", name="test-cronjob"):
    """Return a condition as (status, reason, message); None if it is not told."""
    found = {one["type"]: one for one in (await status_of(world, name)).get("conditions") or ()}
    one = found.get(kind)
    return (one["status"], one["reason"], one["message"]) if one else None


async def told(world, reason, name="test-cronjob"):
    """Return the events of a reason as (type, action, note)."""
    return [(one["type"], one["action"], one["note"]) for one in await world.events(reason, name)]


async def patch(world, name="test-cronjob", **spec):
    return await world.patch("RayCronJob", name, {"spec": spec})


async def end(world, tick, state="Complete", name="test-cronjob"):
    """Have the RayJob of a tick end."""
    minute = int(time(tick).timestamp()) // 60
    status = {"jobDeploymentStatus": state, "endTime": format_time(world.clock.now())}
    await world.patch("RayJob", f"{name}-{minute}", {"status": status}, part="/status")


class SettableClock:
    """A clock whose time of day can be set, while what it measures goes on evenly."""

    def __init__(self, inner):
        self._inner = inner
        self._ahead = timedelta()

    def set(self, **by):
        self._ahead += timedelta(**by)

    def now(self):
        return self._inner.now() + self._ahead

    def monotonic(self):
        return self._inner.monotonic()

    async def sleep(self, seconds):
        await self._inner.sleep(seconds)
