"""Ticks become RayJobs: when, under which name, once each, and what a user is told."""

from datetime import timedelta

import pytest

from eagleray.manifests.raycronjob import RayCronJob, child_job, child_name
from kubewire import errors
from kubewire.times import parse_time
from tests.eagleray.raycronjob.situations import (
    MOMENT,
    children,
    condition_of,
    cron_world,
    last,
    patch,
    raycronjob,
    stamp,
    status_of,
    ticks,
    told,
    wait_until,
)
from tests.eagleray.world import rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

RAY_JOBS = "rayjobs.ray.io"
RAY_CRON_JOBS = "raycronjobs.ray.io"


async def met(world, now, cron, last_tick=None):
    """Have an operator meet a RayCronJob, which may have run before, when it starts at a time."""
    await world.create(cron)
    if last_tick:
        await world.patch(
            "RayCronJob",
            cron["metadata"]["name"],
            {"status": {"lastScheduleTime": last_tick}},
            part="/status",
        )
    await wait_until(world, now)
    await world.start_operator()
    await world.pass_time(MOMENT)


@pytest.mark.parametrize(
    ("now", "last_tick", "made", "following"),
    [
        pytest.param(
            "00:05:30",
            None,
            ["00:05"],
            "00:10",
            id="the first tick after the creation",
            marks=pytest.mark.case("CJ-8"),
        ),
        pytest.param(
            "00:05:30",
            "00:00",
            ["00:05"],
            "00:10",
            id="the first tick after the last run",
            marks=pytest.mark.case("CJ-9"),
        ),
        pytest.param(
            "00:07", "00:05", [], "00:10", id="no tick since the last run", marks=pytest.mark.case("CJ-10")
        ),
        pytest.param(
            "00:17",
            "00:00",
            ["00:15"],
            "00:20",
            id="of three ticks the latest",
            marks=pytest.mark.case("CJ-23"),
        ),
    ],
)
async def test_the_latest_tick_since_the_last_run_is_run(now, last_tick, made, following):
    async with cron_world(operator=False) as world:
        await met(world, now, raycronjob(), stamp(last_tick) if last_tick else None)
        assert await ticks(world) == made
        assert await last(world) == (made[0] if made else last_tick)
        assert await condition_of(world) == ("True", "Scheduled", f"next run at {stamp(following)}")
        await wait_until(world, f"{following}:01")
        assert await ticks(world) == [*made, following]


@pytest.mark.case("CJ-9")
@pytest.mark.case("CJ-18")
@pytest.mark.parametrize(
    "suspend", [{}, {"suspend": False}, {"suspend": None}], ids=["unset", "false", "null"]
)
async def test_a_tick_makes_one_child_of_the_template(suspend):
    async with cron_world() as world:
        cron = await world.create(raycronjob(template={"entrypoint": "python nightly.py"}, **suspend))
        await wait_until(world, "00:05:30")
        (child,) = await children(world)
        metadata = child["metadata"]
        assert metadata["labels"] == {"ray.io/cronjob-name": "test-cronjob"}
        assert metadata["annotations"] == {"ray.io/cronjob-scheduled-timestamp": stamp("00:05")}
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayCronJob",
                "name": "test-cronjob",
                "uid": cron["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert child["spec"] == cron["spec"]["jobTemplate"]
        assert child["spec"]["entrypoint"] == "python nightly.py"
        name = metadata["name"]
        note = f"Created RayJob default/{name} for the run of {stamp('00:05')}"
        assert await told(world, "CreatedRayJob") == [("Normal", "Create", note)]
        (event,) = await world.events("CreatedRayJob")
        assert event["reportingController"] == "raycronjob-controller"


@pytest.mark.case("CJ-11")
async def test_a_tick_is_run_at_its_very_instant():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:04:59")
        assert await children(world) == []
        await wait_until(world, "00:05:00")
        (child,) = await children(world)
        assert child["metadata"]["creationTimestamp"] == stamp("00:05")


@pytest.mark.case("CJ-12")
@pytest.mark.parametrize(
    ("tick", "name"),
    [
        ("2024-01-01T00:05:00Z", "test-cronjob-28401125"),
        ("2024-01-01T00:10:00Z", "test-cronjob-28401130"),
        ("2024-01-01T00:10:59Z", "test-cronjob-28401130"),
    ],
)
async def test_the_name_of_a_child_is_the_minute_of_its_tick(tick, name):
    cron = RayCronJob(raycronjob())
    assert child_name(cron, parse_time(tick)) == name


@pytest.mark.case("CJ-13")
@pytest.mark.parametrize("zone", ["UTC", "Asia/Taipei", "America/New_York"])
async def test_the_tick_of_a_child_is_told_in_utc(zone):
    cron = raycronjob(timeZone=zone)
    cron["metadata"]["uid"] = "u"
    job = child_job(RayCronJob(cron), parse_time("2024-01-01T08:05:00+08:00"))
    assert job["metadata"]["annotations"] == {"ray.io/cronjob-scheduled-timestamp": "2024-01-01T00:05:00Z"}


@pytest.mark.case("CJ-14")
async def test_a_tick_that_could_not_be_written_down_is_not_run_again():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:04")
        end_refusal = world.faults.refuse("patch", RAY_CRON_JOBS, errors.InternalError("no leader"))
        await wait_until(world, "00:05:30")
        (before,) = await children(world)
        assert await last(world) is None
        await world.kill_operator()
        end_refusal()
        await world.start_operator()
        await world.pass_time(MOMENT)
        (after,) = await children(world)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert await last(world) == "00:05"
        assert await told(world, "FailedToCreateRayJob") == []


@pytest.mark.case("CJ-14")
async def test_two_operators_at_once_make_one_child_per_tick():
    async with cron_world() as first:
        other = first.operator
        running = first._running
        await first.start_operator()
        assert first.operator is not other
        await first.create(raycronjob(schedule="* * * * *"))
        await wait_until(first, "00:10:30")
        assert await ticks(first) == [f"00:{minute:02d}" for minute in range(1, 11)]
        assert await last(first) == "00:10"
        assert await told(first, "FailedToCreateRayJob") == []
        await first.kill_operator()
        first._running = running


@pytest.mark.case("CJ-15")
async def test_a_child_that_exists_already_is_as_good_as_a_new_one():
    async with cron_world(operator=False) as world:
        cron = RayCronJob(await world.create(raycronjob()))
        await world.create(child_job(cron, parse_time(stamp("00:05"))))
        await wait_until(world, "00:05:30")
        world.faults.hold(RAY_JOBS)  # so that only the answer to the creation tells of it
        await world.start_operator()
        world.faults.release(RAY_JOBS)
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:05"]
        assert await last(world) == "00:05"
        assert await told(world, "FailedToCreateRayJob") == []


@pytest.mark.case("CJ-15")
async def test_a_name_that_somebody_else_has_is_told_and_the_next_tick_is_run():
    async with cron_world() as world:
        await world.create(raycronjob())
        taken = rayjob("test-cronjob-31557605", suspend=True, shutdownAfterJobFinishes=True)
        await world.create(taken)
        await wait_until(world, "00:05:30")
        assert await last(world) is None
        ((kind, action, note), *_) = await told(world, "FailedToCreateRayJob")
        assert (kind, action) == ("Warning", "Create")
        assert "default/test-cronjob-31557605" in note
        assert "which nobody controls" in note
        status, reason, message = await condition_of(world)
        assert (status, reason) == ("False", "FailedToCreateRayJob")
        assert "which nobody controls" in message
        await wait_until(world, "00:10:00")
        assert await last(world) == "00:10"
        assert (await condition_of(world))[0] == "True"


@pytest.mark.case("CJ-16")
async def test_a_refused_child_is_tried_again_under_the_same_name():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:04")
        end_refusal = world.faults.refuse("create", RAY_JOBS, errors.Forbidden("the quota is used up"))
        await wait_until(world, "00:05:30")
        assert await last(world) is None
        assert await condition_of(world) == ("False", "FailedToCreateRayJob", "the quota is used up")
        note = "Failed to create RayJob default/test-cronjob-31557605: the quota is used up"
        assert ("Warning", "Create", note) in await told(world, "FailedToCreateRayJob")
        end_refusal()
        await wait_until(world, "00:07")
        assert {body["metadata"]["name"] for body in world.bodies("create", RAY_JOBS)} == {
            "test-cronjob-31557605"
        }
        assert await ticks(world) == ["00:05"]
        assert await last(world) == "00:05"


async def test_however_long_creations_were_refused_the_next_tick_is_tried_on_time():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="*/20 * * * *"))
        end_refusal = world.faults.refuse("create", RAY_JOBS)
        await wait_until(world, "00:59:59")
        end_refusal()
        tries = len(world.bodies("create", RAY_JOBS))
        assert 15 < tries < 30, "the pause between tries grows"
        await wait_until(world, "01:00:00")
        assert await ticks(world) == ["01:00"]


async def test_a_status_that_cannot_be_written_holds_up_no_tick():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="*/20 * * * *"))
        world.faults.refuse("patch", RAY_CRON_JOBS, errors.Forbidden("no"))
        for tick in ("00:20", "00:40", "01:00"):
            await wait_until(world, tick)
            assert (await ticks(world))[-1] == tick


@pytest.mark.case("CJ-17")
async def test_a_suspended_one_makes_no_child_and_says_so_once():
    async with cron_world() as world:
        await world.create(raycronjob(suspend=True))
        await wait_until(world, "00:20")
        assert await children(world) == []
        note = "RayCronJob suspended, no new RayJobs will be created"
        assert await told(world, "SuspendedRayCronJob") == [("Normal", "Suspend", note)]
        (event,) = await world.events("SuspendedRayCronJob")
        assert "series" not in event, "it is not repeated"
        assert (await condition_of(world, "Suspended"))[0] == "True"
        assert (await condition_of(world))[:2] == ("False", "Suspended")
        await world.stop_operator()
        await world.start_operator()
        await wait_until(world, "00:30")
        assert len(await told(world, "SuspendedRayCronJob")) == 1, "a new operator does not repeat it"


@pytest.mark.case("CJ-19")
async def test_a_resumed_one_runs_the_latest_tick_at_once():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="*/1 * * * *", suspend=True))
        await wait_until(world, "00:02:14")
        assert await children(world) == []
        await patch(world, suspend=False)
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:02"]
        assert (await condition_of(world, "Suspended"))[0] == "False"
        ((_, _, note),) = await told(world, "CreatedRayJob")
        assert note.endswith(f"; those since {stamp('00:01')} were missed, and only the latest is made up")


async def test_suspending_leaves_running_children_alone():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        await patch(world, suspend=True)
        await wait_until(world, "00:16")
        assert await ticks(world) == ["00:05"]
        assert [one["name"] for one in (await status_of(world))["active"]] == ["test-cronjob-31557605"]


@pytest.mark.case("CJ-20")
async def test_a_status_is_written_for_a_tick_and_not_between_ticks():
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:04")
        before = len(world.bodies("patch", RAY_CRON_JOBS))
        await wait_until(world, "00:05:10")
        (written,) = world.bodies("patch", RAY_CRON_JOBS)[before:]
        assert written["status"]["lastScheduleTime"] == stamp("00:05")
        await wait_until(world, "00:09:59")
        assert len(world.bodies("patch", RAY_CRON_JOBS)) == before + 1


@pytest.mark.case("CJ-24")
async def test_one_that_runs_every_minute_makes_one_child_a_minute():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="*/1 * * * *"))
        for minute in range(1, 16):
            await wait_until(world, f"00:{minute:02d}:59")
            assert len(await children(world)) == minute
        assert await ticks(world) == [f"00:{minute:02d}" for minute in range(1, 16)]


async def test_an_interval_below_a_minute_makes_one_child_a_minute():
    async with cron_world() as world:
        cron = await world.create(raycronjob(schedule="@every 20s", concurrencyPolicy="Replace"))
        await wait_until(world, "00:03:59")
        made = [body["metadata"]["name"] for body in world.bodies("create", RAY_JOBS)]
        assert made == [f"test-cronjob-{31557600 + minute}" for minute in range(4)]
        created = parse_time(cron["metadata"]["creationTimestamp"])
        latest = parse_time((await status_of(world))["lastScheduleTime"])
        assert latest - created == timedelta(seconds=220)
        assert await told(world, "FailedToCreateRayJob") == []


@pytest.mark.case("CJ-25")
async def test_children_go_with_it():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="* * * * *"))
        await wait_until(world, "00:03:30")
        assert len(await children(world)) == 3
        await world.delete("RayCronJob", "test-cronjob")
        await wait_until(world, "00:06")
        assert await children(world) == []


@pytest.mark.case("CJ-26")
@pytest.mark.case("OP-45")
async def test_without_the_gate_nothing_happens():
    async with cron_world(flags=("--feature-gates=RayCronJob=false",)) as world:
        await world.create(raycronjob())
        await world.create(raycronjob("broken", schedule="no schedule"))
        await wait_until(world, "00:12")
        assert await children(world) == []
        assert await world.events() == []
        assert await status_of(world) == {}


@pytest.mark.case("CJ-26")
@pytest.mark.case("OP-45")
@pytest.mark.parametrize("flags", [(), ("--feature-gates=RayCronJob=true",)], ids=["not named", "on"])
async def test_with_the_gate_or_without_a_word_about_it_ticks_are_run(flags):
    async with cron_world(flags=flags) as world:
        await world.create(raycronjob())
        await wait_until(world, "00:12")
        assert await ticks(world) == ["00:05", "00:10"]


@pytest.mark.case("CJ-30")
async def test_a_changed_template_counts_for_later_children():
    async with cron_world() as world:
        await world.create(raycronjob(template={"entrypoint": "python old.py"}))
        await wait_until(world, "00:06")
        await patch(world, jobTemplate={"entrypoint": "python new.py"})
        await wait_until(world, "00:11")
        assert [job["spec"]["entrypoint"] for job in await children(world)] == [
            "python old.py",
            "python new.py",
        ]


@pytest.mark.case("CJ-36")
async def test_a_schedule_that_never_matches_makes_nothing_and_says_so():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="0 0 30 2 *"))
        await wait_until(world, "00:30")
        assert await children(world) == []
        status, reason, message = await condition_of(world)
        assert (status, reason) == ("False", "NeverMatches")
        assert "'0 0 30 2 *' names no time" in message


@pytest.mark.case("CJ-37")
async def test_one_that_is_being_deleted_makes_nothing():
    async with cron_world() as world:
        await world.create(raycronjob(metadata={"finalizers": ["example.com/hold"]}))
        await wait_until(world, "00:04")
        await world.delete("RayCronJob", "test-cronjob")
        await wait_until(world, "00:11")
        assert (await world.get("RayCronJob", "test-cronjob"))["metadata"]["deletionTimestamp"]
        assert await children(world) == []


@pytest.mark.case("CJ-1")
@pytest.mark.case("CJ-38")
@pytest.mark.case("CJ-39")
async def test_a_rejected_one_makes_nothing_until_it_is_repaired():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="invalid cron string"))
        await wait_until(world, "00:12")
        assert await children(world) == []
        ((kind, action, note),) = await told(world, "InvalidRayCronJobSpec")
        assert (kind, action) == ("Warning", "Validate")
        assert note.startswith("default/test-cronjob: spec.schedule: invalid cron schedule")
        status, reason, message = await condition_of(world)
        assert (status, reason) == ("False", "ValidationFailed")
        assert f"default/test-cronjob: {message}" == note
        (event,) = await world.events("InvalidRayCronJobSpec")
        assert "series" not in event, "it is told once, not on every look"
        await patch(world, schedule="*/5 * * * *")
        await world.pass_time(MOMENT)
        assert await condition_of(world) == ("True", "Scheduled", f"next run at {stamp('00:15')}")
        assert await ticks(world) == ["00:10"]


@pytest.mark.case("CJ-38")
async def test_a_new_one_says_when_it_runs_next():
    async with cron_world() as world:
        await world.create(raycronjob(schedule="0 9 * * *", timeZone="Asia/Taipei"))
        await world.pass_time(MOMENT)
        assert await condition_of(world) == ("True", "Scheduled", f"next run at {stamp('01:00')}")
        conditions = (await status_of(world))["conditions"]
        assert [one["observedGeneration"] for one in conditions] == [1, 1]
        await patch(world, schedule="0 10 * * *")
        await world.pass_time(MOMENT)
        conditions = (await status_of(world))["conditions"]
        assert [one["observedGeneration"] for one in conditions] == [2, 2]
        assert (await condition_of(world))[2] == f"next run at {stamp('02:00')}"


@pytest.mark.case("CJ-4")
@pytest.mark.case("CJ-7")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            {"suspend": True, "shutdownAfterJobFinishes": False},
            "invalid RayJob template",
            id="never shut down",
        ),
        pytest.param(
            {"rayClusterSpec": None}, "one of RayClusterSpec or ClusterSelector must be set", id="empty"
        ),
    ],
)
async def test_an_invalid_template_is_told(change, words):
    async with cron_world() as world:
        cron = raycronjob()
        cron["spec"]["jobTemplate"] |= change
        await world.create(cron)
        await wait_until(world, "00:06")
        assert await children(world) == []
        ((_, _, note),) = await told(world, "InvalidRayCronJobSpec")
        assert words in note
