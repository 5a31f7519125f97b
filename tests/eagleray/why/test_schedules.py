"""Schedules that run, wait or are wrong, and what `eagleray why` says of each."""

import pytest

from eagleray.kube.client import Client
from eagleray.why.kinds import diagnosis_of
from eagleray.why.reading import Reader
from eagleray.why.report import lines
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.raycronjob.situations import cron_world, ray_world, raycronjob, wait_until
from tests.eagleray.why.asking import said
from tests.eagleray.world import NAMESPACE

pytestmark = pytest.mark.usefixtures("virtual_time")

NAME = "test-cronjob"
RUN = {"suspend": False}


async def why(world):
    client = Client(transport_to(world.simulated.server), world.clock, SeededEntropy("why"))
    reader = Reader(client, world.clock, SeededEntropy("why"))
    report = await diagnosis_of("raycronjob").diagnose(reader, NAMESPACE, NAME)
    return list(lines(report)), report.is_ready


async def test_a_schedule_says_when_it_runs_next():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:01")
        assert await why(world) == (
            said(
                """
            RayCronJob default/test-cronjob is scheduled: next run at 2030-01-01T00:05:00Z, in 240 s.
            note: it has not run yet
            next: look at the clock again for the run of 2030-01-01T00:05:00Z
            """
            ),
            True,
        )


async def test_a_schedule_without_a_zone_goes_by_the_operator_s_clock():
    async with cron_world() as world:
        await world.create(raycronjob(timeZone=None))
        await wait_until(world, "00:01")
        (first, *_), is_ready = await why(world)
        assert first.endswith(", by the operator's clock.")
        assert is_ready


async def test_a_schedule_tells_what_its_job_waits_for():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        shown, is_ready = await why(world)
        assert is_ready
        assert shown[1:3] == said(
            """
        note: the last run was that of 2030-01-01T00:05:00Z: RayJob test-cronjob-31557605 is Suspended
        note: RayJob default/test-cronjob-31557605 is suspended. spec.suspend is true; set it to false to have it run
        """
        )


async def test_a_run_that_waits_for_another_says_for_which_and_what_that_waits_for():
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Forbid"))
        await wait_until(world, "00:11")
        shown, is_ready = await why(world)
        assert not is_ready
        assert shown[:3] == said(
            """
        RayCronJob default/test-cronjob waits for an earlier run.
        - the run of 2030-01-01T00:10:00Z waits for test-cronjob-31557605 to end, because concurrencyPolicy is Forbid
        - RayJob default/test-cronjob-31557605 is suspended. spec.suspend is true; set it to false to have it run
        """
        )


async def test_a_run_that_was_skipped_says_why():
    async with cron_world() as world:
        await world.create(raycronjob(startingDeadlineSeconds=10))
        await wait_until(world, "00:04")
        await world.kill_operator()
        await wait_until(world, "00:06")
        await world.start_operator()
        await world.pass_time(2)
        shown, is_ready = await why(world)
        assert is_ready
        assert shown[1] == (
            "note: the run of 2030-01-01T00:05:00Z was skipped, 10 s (startingDeadlineSeconds) after it had been due"
        )


async def test_a_run_that_nobody_makes_is_late():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:04")
        await world.kill_operator()
        await wait_until(world, "00:09")
        assert await why(world) == (
            said(
                """
            RayCronJob default/test-cronjob is late.
            - the run of 2030-01-01T00:05:00Z has been due for 240 s, and no operator has made its RayJob: see whether
                one runs, and its log
            note: it has not run yet
            next: create RayJob default/test-cronjob-31557605
            """
            ),
            False,
        )


async def test_a_run_that_was_refused_says_by_whom():
    async with cron_world() as world:
        world.faults.refuse("create", "rayjobs.ray.io", errors.Forbidden("the quota is used up"))
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        shown, is_ready = await why(world)
        assert not is_ready
        assert shown[:2] == said(
            """
        RayCronJob default/test-cronjob cannot make its RayJob.
        - FailedToCreateRayJob: the quota is used up
        """
        )


async def test_a_suspended_schedule_says_how_to_go_on():
    async with cron_world() as world:
        await world.create(raycronjob(suspend=True))
        await wait_until(world, "00:06")
        shown, is_ready = await why(world)
        assert not is_ready
        assert shown[:2] == said(
            """
        RayCronJob default/test-cronjob is suspended: nothing is run.
        - spec.suspend is true; set it to false to go on
        """
        )


async def test_a_schedule_that_is_none_is_invalid():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="every tuesday"))
        await wait_until(world, "00:01")
        shown, is_ready = await why(world)
        assert not is_ready
        assert shown[0] == "RayCronJob default/test-cronjob is invalid: nothing is run for it."
        assert "every tuesday" in shown[1]


async def test_a_schedule_that_nobody_has_looked_at_waits_for_an_operator():
    async with cron_world(operator=False) as world:
        await world.create(raycronjob())
        shown, is_ready = await why(world)
        assert not is_ready
        assert shown[:2] == said(
            """
        RayCronJob default/test-cronjob waits for an operator.
        - generation 1 has not been looked at, and nobody holds a Lease ray-operator-leader: start the operator
            (eagleray operator)
        """
        )


async def test_a_run_that_failed_is_pointed_at():
    async with ray_world(lasts=5, ends="FAILED") as (world, _):
        await world.create(raycronjob(template=RUN))
        await wait_until(world, "00:07")
        shown, _ = await why(world)
        assert shown[1] == (
            "note: the last run was that of 2030-01-01T00:05:00Z: RayJob test-cronjob-31557605 is Failed;"
            " see eagleray why rayjob/test-cronjob-31557605"
        )


async def test_a_schedule_that_is_held_at_its_deletion_says_by_what():
    async with cron_world() as world:
        await world.create(raycronjob(metadata={"finalizers": ["example.com/mine"]}))
        await world.delete("RayCronJob", NAME)
        assert await why(world) == (
            said(
                """
            RayCronJob default/test-cronjob is being deleted.
            - finalizers that others have to remove: example.com/mine
            """
            ),
            False,
        )
