"""Whatever single thing goes wrong around a tick, it is run, and run once."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from kubereef.controllers.following import follow
from kubewire.times import format_time
from tests.eagleray.raycronjob.situations import KINDS, raycronjob
from tests.eagleray.world import PATHS
from tests.sim.faults import Scenario, laboratory

# So far apart that no fault delays a tick up to the next one, and two of them sooner than a watch ends by itself.
EVERY = "@every 90s"
PERIOD = 90


def scheduled(*, ticks=0, ended=False, **spec):
    """Begin with a schedule that has run so often, ten seconds before it is due again."""

    async def step(world, namespace):
        await world.create(raycronjob("c", EVERY, metadata={"namespace": namespace}, **spec))
        await world.pass_time(PERIOD * (ticks + 1) - 10)
        if ended:
            await end_all(world, namespace)
            await world.pass_time(1)

    return step


async def a_tick(world, namespace):
    await world.pass_time(15)


async def missed_ticks(world, namespace):
    """Let three ticks pass, the last of them ten seconds ago."""
    await world.pass_time(2 * PERIOD + 20)


async def a_run(world, namespace):
    """Begin with a run that has just started."""
    cron = raycronjob("c", EVERY, metadata={"namespace": namespace}, successfulJobsHistoryLimit=0)
    await world.create(cron)
    await world.pass_time(PERIOD + 5)


async def end_all(world, namespace):
    status = {"jobDeploymentStatus": "Complete", "endTime": format_time(world.clock.now())}
    for job in await world.list("RayJob", namespace=namespace):
        await world.patch(
            "RayJob", job["metadata"]["name"], {"status": status}, namespace=namespace, part="/status"
        )


def waiting_tick(**spec):
    """Begin with a tick that waits for the run before it."""

    async def step(world, namespace):
        await scheduled(ticks=1, **spec)(world, namespace)
        await world.pass_time(20)

    return step


def there_are(jobs, *, active):
    """Look whether there are so many RayJobs, of which so many go on, and whether that is known."""

    async def holds(world, namespace):
        cron = await world.get("RayCronJob", "c", namespace)
        status = cron.get("status") or {}
        found = await world.list("RayJob", namespace=namespace)
        settled = all((job.get("status") or {}).get("jobDeploymentStatus") for job in found)
        is_scheduled = any(
            (one["type"], one["status"]) == ("Scheduled", "True") for one in status.get("conditions", ())
        )
        return (
            settled
            and is_scheduled
            and (len(found), len(status.get("active", ()))) == (jobs, active)
            and bool(status.get("lastScheduleTime"))
        )

    return holds


CONCERNED = ("rayjobs", "raycronjobs", "events")

# Each with how many RayJobs are ever made.
SCENARIOS = [
    (Scenario("a first tick", a_tick, there_are(1, active=1), begin=scheduled()), 1),
    (Scenario("a tick beside a run", a_tick, there_are(2, active=2), begin=scheduled(ticks=1)), 2),
    (
        Scenario(
            "a tick that replaces a run",
            a_tick,
            there_are(1, active=1),
            begin=scheduled(ticks=1, concurrencyPolicy="Replace"),
        ),
        2,
    ),
    (
        Scenario(
            "the end of a run for which a tick waits",
            end_all,
            there_are(2, active=1),
            begin=waiting_tick(concurrencyPolicy="Forbid"),
        ),
        2,
    ),
    (
        Scenario(
            "the end of a run that is not kept",
            end_all,
            there_are(0, active=0),
            begin=a_run,
        ),
        1,
    ),
    (
        Scenario(
            "a tick after one that is not kept",
            a_tick,
            there_are(1, active=1),
            begin=scheduled(ticks=1, ended=True, successfulJobsHistoryLimit=0),
        ),
        2,
    ),
    (
        Scenario(
            "an operator that was away for several ticks",
            missed_ticks,
            there_are(2, active=2),
            begin=scheduled(ticks=1),
            operator_first=False,
        ),
        2,
    ),
]


class Made:
    """Notes the uids of all RayJobs that there ever were, by namespace."""

    def __init__(self):
        self.by_namespace = {}

    def replace(self, objects, revision):
        for obj in objects:
            self.apply("ADDED", obj, revision)

    def apply(self, kind, obj, revision):
        metadata = obj["metadata"]
        self.by_namespace.setdefault(metadata["namespace"], {})[metadata["uid"]] = metadata["name"]


@asynccontextmanager
async def counted_jobs(world):
    made = Made()
    path = PATHS["RayJob"].replace("/namespaces/{}", "")
    following = asyncio.create_task(follow(world.api, path, made), name="counting RayJobs")
    try:
        yield made.by_namespace
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@pytest.mark.parametrize("family", ["writes", "requests", "news"])
@pytest.mark.parametrize(("scenario", "ever"), [pytest.param(*each, id=each[0].name) for each in SCENARIOS])
async def test_each_single_fault_leads_to_the_same_end(scenario, ever, family, tell_faults):
    async with laboratory(scenario._replace(kinds=KINDS)) as lab, counted_jobs(lab.world) as made:
        # What else an operator asks for when it starts is the other kinds' concern.
        points = [point for point in lab.points(family) if any(kind in point.what for kind in CONCERNED)]
        tell_faults(f"RayCronJob, {scenario.name}, {family}: {len(points)} points")
        troubles = await lab.disturb(points)
        twice = {namespace: sorted(jobs.values()) for namespace, jobs in made.items() if len(jobs) != ever}
    assert not troubles, "\n".join(troubles)
    assert not twice, f"RayJobs were made again, or not at all: {twice}"
    assert len(made) == len(points)
