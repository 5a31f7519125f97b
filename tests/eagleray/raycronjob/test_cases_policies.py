"""Runs that meet each other, runs that come too late, and how many are kept."""

import pytest

from kubewire import errors
from tests.eagleray.raycronjob.situations import (
    MOMENT,
    children,
    condition_of,
    cron_world,
    end,
    last,
    patch,
    ray_world,
    raycronjob,
    stamp,
    status_of,
    ticks,
    told,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("virtual_time")

RAY_JOBS = "rayjobs.ray.io"


async def active(world):
    return [one["name"] for one in (await status_of(world)).get("active", ())]


async def owners(world, job):
    return (await world.get("RayJob", job))["metadata"]["ownerReferences"]


# --- concurrency


@pytest.mark.case("CJ-31")
@pytest.mark.parametrize(
    ("ends", "run"),
    [
        pytest.param("00:12", "00:10", id="within the period the waiting tick"),
        pytest.param("00:16", "00:15", id="past the next tick only that one"),
    ],
)
async def test_under_forbid_a_tick_waits_for_the_run_that_goes_on(ends, run):
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Forbid"))
        await wait_until(world, "00:10:30")
        assert await ticks(world) == ["00:05"]
        waits = (
            f"the run of {stamp('00:10')} waits for test-cronjob-31557605 to end,"
            " because concurrencyPolicy is Forbid"
        )
        assert await told(world, "JobAlreadyActive") == [("Normal", "Create", waits)]
        assert await condition_of(world) == ("False", "JobAlreadyActive", waits)
        assert await last(world) == "00:05"
        await wait_until(world, ends)
        assert await ticks(world) == ["00:05"]
        await end(world, "00:05")
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:05", run]
        assert await last(world) == run
        assert (await condition_of(world))[0] == "True"


async def test_a_waiting_tick_is_told_once():
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Forbid"))
        await wait_until(world, "00:14:58")
        (event,) = await world.events("JobAlreadyActive")
        assert "series" not in event


@pytest.mark.case("CJ-31")
async def test_under_forbid_a_failed_run_holds_nothing_up():
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Forbid"))
        await wait_until(world, "00:06")
        await end(world, "00:05", "Failed")
        await wait_until(world, "00:10:00")
        assert await ticks(world) == ["00:05", "00:10"]


@pytest.mark.case("CJ-32")
async def test_under_replace_the_run_that_goes_on_gives_way():
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Replace"))
        await wait_until(world, "00:09")
        (old,) = await children(world)
        await wait_until(world, "00:11")
        assert await ticks(world) == ["00:10"]
        deleted = "Deleted RayJob default/test-cronjob-31557605: replaced by test-cronjob-31557610"
        assert await told(world, "DeletedRayJob") == [("Normal", "Delete", deleted)]
        assert await active(world) == ["test-cronjob-31557610"]
        order = [
            (verb, kind) for verb, kind in world.writes() if kind == RAY_JOBS and verb in ("create", "delete")
        ]
        assert order == [("create", RAY_JOBS), ("delete", RAY_JOBS), ("create", RAY_JOBS)]
        (options,) = world.bodies("delete", RAY_JOBS)
        assert options["propagationPolicy"] == "Background"
        assert options["preconditions"]["uid"] == old["metadata"]["uid"]


@pytest.mark.case("CJ-32")
@pytest.mark.parametrize("policy", [{}, {"concurrencyPolicy": "Allow"}], ids=["unset", "Allow"])
async def test_under_allow_both_run(policy):
    async with cron_world() as world:
        await world.create(raycronjob(**policy))
        await wait_until(world, "00:11")
        assert await ticks(world) == ["00:05", "00:10"]
        assert await active(world) == ["test-cronjob-31557605", "test-cronjob-31557610"]
        assert await told(world, "DeletedRayJob") == []


async def test_under_replace_nothing_is_run_beside_one_that_cannot_be_deleted():
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Replace"))
        await wait_until(world, "00:09")
        end_refusal = world.faults.refuse("delete", RAY_JOBS, errors.Forbidden("not yours"))
        await wait_until(world, "00:11")
        assert await ticks(world) == ["00:05"]
        note = "Failed to delete RayJob default/test-cronjob-31557605: not yours"
        assert ("Warning", "Delete", note) in await told(world, "FailedToDeleteRayJob")
        assert await condition_of(world) == ("False", "FailedToDeleteRayJob", "not yours")
        end_refusal()
        await wait_until(world, "00:13")
        assert await ticks(world) == ["00:10"]


# --- deadlines


@pytest.mark.case("CJ-33")
@pytest.mark.parametrize(
    ("back", "run", "message"),
    [
        pytest.param(
            "00:17",
            [],
            f"next run at {stamp('00:20')}; the run of {stamp('00:15')} was skipped,"
            " 60 s (startingDeadlineSeconds) after it had been due",
            id="past the deadline it is skipped",
        ),
        pytest.param(
            "00:15:30", ["00:15"], f"next run at {stamp('00:20')}", id="within the deadline it is run"
        ),
    ],
)
async def test_a_missed_tick_is_run_within_its_deadline(back, run, message):
    async with cron_world() as world:
        await world.create(raycronjob(startingDeadlineSeconds=60))
        await wait_until(world, "00:04")
        await world.stop_operator()
        await wait_until(world, back)
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert await ticks(world) == run
        assert await condition_of(world) == ("True", "Scheduled", message)
        skipped = await told(world, "SkippedRayJob")
        assert len(skipped) == (0 if run else 1)
        await wait_until(world, "00:20:00")
        assert await ticks(world) == [*run, "00:20"]


@pytest.mark.parametrize("deadline", [0, -5], ids=["none", "less than none"])
async def test_a_deadline_of_no_seconds_leaves_the_second_of_the_tick(deadline):
    async with cron_world() as world:
        await world.create(raycronjob(startingDeadlineSeconds=deadline))
        await wait_until(world, "00:05:00")
        assert await ticks(world) == ["00:05"]


async def test_a_tick_that_waits_under_forbid_becomes_too_late():
    async with cron_world() as world:
        await world.create(raycronjob(concurrencyPolicy="Forbid", startingDeadlineSeconds=60))
        await wait_until(world, "00:12")
        assert "was skipped" in (await condition_of(world))[2]
        await end(world, "00:05")
        await wait_until(world, "00:14")
        assert await ticks(world) == ["00:05"]


# --- history


@pytest.mark.case("CJ-34")
@pytest.mark.parametrize(
    ("limits", "state", "kept"),
    [
        pytest.param({"successfulJobsHistoryLimit": 2}, "Complete", 2, id="the newest two that succeeded"),
        pytest.param({"successfulJobsHistoryLimit": 9}, "Complete", 5, id="fewer than the limit"),
        pytest.param({"failedJobsHistoryLimit": 0}, "Failed", 0, id="none that failed"),
        pytest.param({"successfulJobsHistoryLimit": -1}, "Complete", 0, id="a limit below zero is zero"),
        pytest.param(
            {"failedJobsHistoryLimit": 0}, "Complete", 5, id="those that succeeded have their own limit"
        ),
        pytest.param(
            {"successfulJobsHistoryLimit": 0}, "Failed", 5, id="those that failed have their own limit"
        ),
        pytest.param({}, "Complete", 5, id="no limit"),
        pytest.param({}, "Failed", 5, id="no limit of failures"),
    ],
)
async def test_ended_runs_are_kept_up_to_their_limit(limits, state, kept):
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *", **limits))
        await wait_until(world, "00:05:01")
        made = await ticks(world)
        assert len(made) == 5
        await patch(world, suspend=True)
        for tick in made:
            await end(world, tick, state)
        await world.pass_time(MOMENT)
        assert await ticks(world) == made[5 - kept :]
        assert await last(world) == "00:05"


async def test_refused_runs_count_as_failed_ones():
    async with cron_world() as world:
        # Names of RayJobs must not begin with a digit, so each one of this is refused.
        await world.create(raycronjob("1abc", schedule="* * * * *", failedJobsHistoryLimit=1))
        await wait_until(world, "00:03:30")
        (child,) = await children(world)
        assert child["status"]["jobDeploymentStatus"] == "ValidationFailed"
        assert child["metadata"]["name"] == "1abc-31557603"
        assert "active" not in await status_of(world, "1abc")


async def test_a_run_is_cleared_away_only_after_it_was_written_down():
    """Else an operator that ends in between would leave no trace of it, and the next one would run it again."""
    async with cron_world() as world:
        await world.create(raycronjob(successfulJobsHistoryLimit=0))
        await wait_until(world, "00:04")
        end_refusal = world.faults.refuse("patch", "raycronjobs.ray.io", errors.InternalError("no leader"))
        await wait_until(world, "00:05:10")
        await end(world, "00:05")
        await world.pass_time(30)
        assert await ticks(world) == ["00:05"]
        await world.kill_operator()
        end_refusal()
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert await ticks(world) == []
        assert await last(world) == "00:05"
        await wait_until(world, "00:09")
        assert len(world.bodies("create", RAY_JOBS)) == 1


async def test_limits_hold_for_a_rejected_one_too():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *"))
        await wait_until(world, "00:03:01")
        await patch(world, schedule="nonsense", successfulJobsHistoryLimit=1)
        for tick in ("00:01", "00:02", "00:03"):
            await end(world, tick)
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:03"]


# --- those that go on


@pytest.mark.case("CJ-35")
async def test_active_are_those_that_have_not_ended():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *"))
        await wait_until(world, "00:04:01")
        await patch(world, suspend=True)
        names = [job["metadata"]["name"] for job in await children(world)]
        assert await active(world) == names
        for tick, state in (("00:01", "Complete"), ("00:02", "Failed"), ("00:03", "Complete")):
            await end(world, tick, state)
        await world.pass_time(MOMENT)
        assert await active(world) == names[3:]
        (reference,) = (await status_of(world))["active"]
        child = await world.get("RayJob", names[3])
        assert reference == {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "namespace": "default",
            "name": names[3],
            "uid": child["metadata"]["uid"],
        }
        await world.delete("RayJob", names[3])
        await world.pass_time(MOMENT)
        assert "active" not in await status_of(world)


async def test_a_job_that_ray_runs_is_active_until_it_has_ended():
    async with ray_world(lasts=60) as (world, _):
        template = {"suspend": False, "entrypoint": "python job.py"}
        await world.create(
            raycronjob(template=template, concurrencyPolicy="Forbid", successfulJobsHistoryLimit=1)
        )
        await wait_until(world, "00:05:40")
        (child,) = await children(world)
        assert child["status"]["jobDeploymentStatus"] == "Running"
        assert await active(world) == ["test-cronjob-31557605"]
        await wait_until(world, "00:08")
        (child,) = await children(world)
        assert child["status"]["jobDeploymentStatus"] == "Complete"
        assert await active(world) == []
        await wait_until(world, "00:13")
        assert await ticks(world) == ["00:10"]


async def test_jobs_of_others_are_not_counted():
    async with cron_world() as world:
        cron = await world.create(raycronjob(concurrencyPolicy="Forbid", successfulJobsHistoryLimit=0))
        await world.create(raycronjob("other"))
        await wait_until(world, "00:06")
        # An owner that is not the controller has no say.
        owner = {
            "apiVersion": "ray.io/v1",
            "kind": "RayCronJob",
            "name": "test-cronjob",
            "uid": cron["metadata"]["uid"],
        }
        change = {"metadata": {"ownerReferences": [*(await owners(world, "other-31557605")), owner]}}
        await world.patch("RayJob", "other-31557605", change)
        await end(world, "00:05")
        await end(world, "00:05", name="other")
        await world.pass_time(MOMENT)
        assert [job["metadata"]["name"] for job in await children(world)] == ["other-31557605"]
        assert await active(world) == []
