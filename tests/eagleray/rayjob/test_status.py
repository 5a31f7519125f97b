"""The status that a decision leads to: attempts counted, conditions set, stages timed."""

import pytest

from eagleray.rayjob.look import Cause, Config, Decision
from eagleray.rayjob.stages import durations
from eagleray.rayjob.status import next_status, rejected_status
from eagleray.rayjob.timers import ACTIVE, PRE_RUNNING, STATUS_CHECK, SUBMITTER, TRANSITION
from kubewire.times import format_time
from tests.eagleray.rayjob.looks import NOW, ago, cluster, look_at, says, submitter

FAILS = Decision("Failed", {"reason": "AppFailed"})


@pytest.mark.parametrize(
    ("limit", "failed", "reason", "state"),
    [
        (None, 0, "AppFailed", "Failed"),
        (0, 0, "AppFailed", "Failed"),
        (1, 0, "AppFailed", "Retrying"),
        (1, 1, "AppFailed", "Failed"),
        (2, 1, "JobLost", "Retrying"),
        (2, 0, "PreRunningDeadlineExceeded", "Retrying"),
        (2, 0, "DeadlineExceeded", "Failed"),
        (2, 0, "JobStatusCheckTimeoutExceeded", "Failed"),
    ],
)
def test_a_failure_is_counted_and_retried_as_often_as_allowed(limit, failed, reason, state):
    look = look_at("Running", status={"failed": failed}, backoffLimit=limit)
    status = next_status(look, Decision("Failed", {"reason": reason}))
    assert (status["jobDeploymentStatus"], status["failed"]) == (state, failed + 1)
    assert ("endTime" in status) == (state == "Failed")


@pytest.mark.parametrize(("word", "succeeded"), [("SUCCEEDED", 1), ("STOPPED", 0)])
def test_only_a_success_counts_as_one(word, succeeded):
    status = next_status(look_at("Running"), Decision("Complete", {"jobStatus": word}))
    assert (status["succeeded"], status["failed"]) == (succeeded, 0)


def test_an_end_stays_counted_once():
    look = look_at("Complete", status={"succeeded": 1, "jobStatus": "SUCCEEDED", "endTime": ago(5)})
    status = next_status(look, Decision())
    assert (status["succeeded"], status["endTime"]) == (1, ago(5))


def told(status):
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Decision(cause=Cause("Why", "because")), {"Progressing": ("True", "Why")}),
        (Decision("Suspended"), {"Suspended": ("True", "Suspended")}),
        (Decision("Complete", {"jobStatus": "STOPPED"}), {"Complete": ("True", "STOPPED")}),
        (FAILS, {"Failed": ("True", "AppFailed")}),
    ],
    ids=["waiting", "suspended", "complete", "failed"],
)
def test_one_condition_is_true_and_what_never_was_is_not_told(decision, expected):
    assert told(next_status(look_at("Running"), decision)) == expected


def test_what_was_true_becomes_false_with_the_time_of_the_change():
    before = next_status(look_at("Running"), Decision(cause=Cause("Why", "because")))
    before["conditions"][0]["lastTransitionTime"] = ago(100)
    waiting = next_status(look_at("Running", status=before), Decision(cause=Cause("Else", "other")))
    assert told(waiting) == {"Progressing": ("True", "Else")}
    assert waiting["conditions"][0]["lastTransitionTime"] == ago(100)
    failed = next_status(look_at("Running", status=waiting), FAILS)
    assert told(failed) == {"Progressing": ("False", "AppFailed"), "Failed": ("True", "AppFailed")}
    assert {one["lastTransitionTime"] for one in failed["conditions"]} == {format_time(NOW)}


def test_a_mended_job_has_not_failed():
    rejected = rejected_status(look_at("Running").job, "no", NOW)
    assert told(rejected) == {"Failed": ("True", "ValidationFailed")}
    mended = next_status(
        look_at("ValidationFailed", status=rejected), Decision("", {"reason": None, "message": None})
    )
    assert told(mended)["Failed"][0] == "False"
    assert "reason" not in mended


@pytest.mark.parametrize("state", ["Complete", "Failed"])
def test_a_rejected_edit_of_an_ended_job_changes_only_the_generation(state):
    job = look_at(state, status={"reason": "AppFailed"}).job
    assert rejected_status(job, "no", NOW) == {**job.status, "observedGeneration": 1}


def test_the_stages_of_an_attempt_are_timed():
    status = {
        "startTime": ago(100),
        "rayClusterStatus": {"stateTransitionTimes": {"ready": ago(60)}},
        "rayJobInfo": {"startTime": ago(50), "endTime": ago(20)},
    }
    assert durations(status) == "took: cluster 40 s, submission 10 s, run 30 s"
    assert durations({"startTime": ago(100)}) == ""


# --- deadlines


def done(seconds):
    """What is seen of a submitter that ended so long ago, while the job goes on."""
    return {"submitter": submitter("Complete", seconds=seconds), "info": says("RUNNING")}


GRACE = Config(transition_grace_seconds=10, status_check_seconds=20)


@pytest.mark.parametrize(
    ("timer", "look", "is_due"),
    [
        pytest.param(ACTIVE, look_at("Running", activeDeadlineSeconds=61), False, id="a second too early"),
        pytest.param(ACTIVE, look_at("Running", activeDeadlineSeconds=60), True, id="to the second"),
        pytest.param(ACTIVE, look_at("Running"), False, id="none"),
        pytest.param(
            PRE_RUNNING, look_at("Waiting", preRunningDeadlineSeconds=60), True, id="before running"
        ),
        pytest.param(
            TRANSITION,
            look_at(
                "Running", status={"jobStatus": "FAILED", "rayJobInfo": {"endTime": ago(10)}}, config=GRACE
            ),
            True,
            id="an end of ten seconds ago",
        ),
        pytest.param(
            TRANSITION,
            look_at(
                "Running", status={"jobStatus": "RUNNING", "rayJobInfo": {"endTime": ago(10)}}, config=GRACE
            ),
            False,
            id="a job that has not ended",
        ),
        pytest.param(
            TRANSITION, look_at("Running", status={"jobStatus": "FAILED"}, config=GRACE), False, id="no time"
        ),
        pytest.param(
            STATUS_CHECK,
            look_at("Running", status={"jobStatusCheckFailureStartTime": ago(20)}, config=GRACE),
            True,
            id="silence",
        ),
        pytest.param(
            SUBMITTER,
            look_at("Running", seen=done(29)),
            False,
            id="29 s",
        ),
        pytest.param(
            SUBMITTER,
            look_at("Running", seen=done(30)),
            True,
            id="30 s",
        ),
        pytest.param(SUBMITTER, look_at("Running", seen={"cluster": cluster()}), False, id="no submitter"),
    ],
)
def test_a_deadline_is_due_to_the_second(timer, look, is_due):
    assert (timer.expired(look) is not None) is is_due
