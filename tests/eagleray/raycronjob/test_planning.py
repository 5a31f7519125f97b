"""Plans of single passes: what is done, in which order, and what is told."""

import pytest

from eagleray.manifests.raycronjob import RayCronJob, child_job, tick_of, triggered_job
from eagleray.rayapi.problems import Problem
from eagleray.raycronjob.history import surplus
from eagleray.raycronjob.look import look_at
from eagleray.raycronjob.planning import plan, ticks_of
from eagleray.raycronjob.status import next_status
from eagleray.runtime.actions import Create, Delete, Tell
from kubewire.times import parse_time
from tests.eagleray.raycronjob.situations import raycronjob, stamp, time


def cron_of(*, status=None, **options):
    obj = raycronjob(**options)
    obj["metadata"] |= {"uid": "u", "generation": 3, "creationTimestamp": stamp("00:00")}
    return RayCronJob({**obj, "status": status or {}})


def job(cron, tick, state="Running", **metadata):
    made = child_job(cron, time(tick))
    made["metadata"] |= {"uid": tick, "creationTimestamp": stamp(tick), **metadata}
    return {**made, "status": {"jobDeploymentStatus": state}}


def done(planned):
    """Return the actions of a plan, each as a word and what it is about."""
    words = []
    for stage in planned.stages:
        for action in stage.actions:
            match action:
                case Create(_, obj):
                    words.append(f"create {tick_of(obj):%H:%M}")
                case Delete(_, ref):
                    words.append(f"delete {ref.uid}")
                case Tell(say):
                    words.append(say.reason)
    return words


@pytest.mark.parametrize(
    ("spec", "jobs", "now", "want"),
    [
        pytest.param({}, [], "00:04:59", [], id="nothing is due"),
        pytest.param({}, [], "00:05:00", ["create 00:05"], id="a tick is due at its instant"),
        pytest.param(
            {}, [("00:05", "Running")], "00:05:01", [], id="a tick that has its child is not run again"
        ),
        pytest.param({}, [("00:05", "Complete")], "00:09:59", [], id="nor one whose child has ended"),
        pytest.param({}, [("00:05", "Running")], "00:10", ["create 00:10"], id="runs may overlap"),
        pytest.param(
            {"concurrencyPolicy": "Forbid"},
            [("00:05", "Running")],
            "00:10",
            ["JobAlreadyActive"],
            id="or not",
        ),
        pytest.param(
            {"concurrencyPolicy": "Forbid"},
            [("00:05", "Failed")],
            "00:10",
            ["create 00:10"],
            id="what has ended is no run",
        ),
        pytest.param(
            {"concurrencyPolicy": "Replace"},
            [("00:00", "Complete"), ("00:05", "Running"), ("00:07", "")],
            "00:10",
            ["delete 00:05", "delete 00:07", "create 00:10"],
            id="all runs that go on give way before the new one comes",
        ),
        pytest.param(
            {"suspend": True}, [], "00:30", ["SuspendedRayCronJob"], id="a suspended one does nothing"
        ),
        pytest.param({"startingDeadlineSeconds": 10}, [], "00:05:10", ["create 00:05"], id="just in time"),
        pytest.param({"startingDeadlineSeconds": 10}, [], "00:05:11", ["SkippedRayJob"], id="just too late"),
        pytest.param({"schedule": "0 0 30 2 *"}, [], "23:00", [], id="a schedule that never matches"),
    ],
)
def test_what_a_pass_does(spec, jobs, now, want):
    cron = cron_of(**spec)
    assert done(plan(look_at(cron, [job(cron, *one) for one in jobs], time(now)))) == want


def test_an_invalid_one_does_nothing():
    problem = Problem("raycronjob-c3", ("spec", "schedule"), "is wrong", "mend it")
    planned = plan(look_at(cron_of(schedule="?"), [], time("00:10"), problem))
    assert (done(planned), planned.next) == ([], None)
    assert planned.standing == (False, "ValidationFailed", "spec.schedule: is wrong; mend it")


def test_what_is_being_deleted_is_not_deleted_again_but_holds_a_tick_back_until_it_is_gone():
    for policy, want in (("Replace", ["create 00:10"]), ("Forbid", ["JobAlreadyActive"])):
        cron = cron_of(concurrencyPolicy=policy)
        going = job(cron, "00:05", deletionTimestamp=stamp("00:09"))
        assert done(plan(look_at(cron, [going], time("00:10")))) == want


def test_what_a_condition_says_already_is_not_told_again():
    for spec, jobs in (
        ({"suspend": True}, []),
        ({"concurrencyPolicy": "Forbid"}, ["00:05"]),
        ({"startingDeadlineSeconds": 10}, []),
    ):
        cron = cron_of(**spec)
        look = look_at(cron, [job(cron, tick) for tick in jobs], time("00:11"))
        first = plan(look)
        assert len(done(first)) == 1
        status = next_status(cron, look.active, first.standing, first.tick, look.now)
        again = cron_of(**spec, status=status)
        assert done(plan(look._replace(cron=again))) == []


def test_the_state_of_a_schedule_changes_when_its_status_does():
    cron = cron_of()
    planned = plan(look_at(cron, [], time("00:01")))
    first = next_status(cron, (), planned.standing, None, time("00:01"))
    later = next_status(cron_of(status=first), (), planned.standing, None, time("00:03"))
    assert later == first
    halted = cron_of(status=first, suspend=True)
    planned = plan(look_at(halted, [], time("00:04")))
    status = next_status(halted, (), planned.standing, None, time("00:04"))
    assert [(one["type"], one["status"], one["lastTransitionTime"]) for one in status["conditions"]] == [
        ("Scheduled", "False", stamp("00:04")),
        ("Suspended", "True", stamp("00:04")),
    ]


def test_fields_and_conditions_of_others_stay_in_the_status():
    foreign = {
        "type": "Mine",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": stamp("00:00"),
    }
    cron = cron_of(status={"conditions": [foreign], "more": 1})
    status = next_status(cron, (), plan(look_at(cron, [], time("00:01"))).standing, None, time("00:01"))
    assert foreign in status["conditions"]
    assert status["more"] == 1


@pytest.mark.parametrize(
    ("schedule", "now", "due", "following"),
    [
        ("*/5 * * * *", "00:12", "00:10", "00:15"),
        ("*/5 * * * *", "00:03", None, "00:05"),
        ("@hourly", "00:59:59", None, "01:00"),
        ("@every 90s", "00:01:29", None, "00:01:30"),
        ("@every 90s", "00:04:40", "00:04:30", "00:06:00"),
    ],
)
def test_the_ticks_around_now(schedule, now, due, following):
    found = ticks_of(cron_of(schedule=schedule), time(now))
    assert found.due == (time(due) if due else None)
    assert found.next == time(following)


def test_history_goes_by_ticks_and_not_by_names_or_creation():
    cron = cron_of(successfulJobsHistoryLimit=1)
    jobs = [
        job(cron, tick, "Complete", creationTimestamp=stamp("12:00")) for tick in ("00:10", "00:20", "00:15")
    ]
    deletions = surplus(look_at(cron, jobs, time("13:00"))).actions
    assert [one.ref.uid for one in deletions if isinstance(one, Delete)] == ["00:10", "00:15"]


def test_history_places_runs_by_hand_by_their_creation():
    cron = cron_of(successfulJobsHistoryLimit=1)
    by_hand = {**triggered_job(cron, "x7k2p", time("00:12")), "status": {"jobDeploymentStatus": "Complete"}}
    by_hand["metadata"] |= {"uid": "by hand", "creationTimestamp": stamp("00:12")}
    deletions = surplus(look_at(cron, [by_hand, job(cron, "00:15", "Complete")], time("00:16"))).actions
    assert [one.ref.uid for one in deletions if isinstance(one, Delete)] == ["by hand"]


def test_history_leaves_alone_what_is_being_deleted():
    cron = cron_of(successfulJobsHistoryLimit=0)
    going = job(cron, "00:05", "Complete", deletionTimestamp=stamp("00:09"))
    assert surplus(look_at(cron, [going], time("00:10"))).actions == ()


def test_a_run_by_hand_counts_as_of_its_creation():
    cron = cron_of()
    made = triggered_job(cron, "x7k2p", time("00:12"))
    assert made["metadata"]["name"] == "test-cronjob-now-x7k2p"
    made["metadata"]["creationTimestamp"] = stamp("00:12")
    assert tick_of(made) == time("00:12")
    assert len(triggered_job(cron_of(name="c" * 36), "x7k2p", time("00:12"))["metadata"]["name"]) == 46


def test_a_tick_that_somebody_has_edited_is_no_tick():
    made = job(cron_of(), "00:05", annotations={"ray.io/cronjob-scheduled-timestamp": "yesterday"})
    assert tick_of(made) == parse_time(stamp("00:05"))
