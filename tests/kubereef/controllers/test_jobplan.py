"""What a Job needs next, as a function of its Pods."""

from datetime import UTC, datetime, timedelta

import pytest

from kubereef.controllers import jobplan
from kubereef.controllers.jobplan import COMPLETE, TOO_LONG, TOO_MANY_FAILURES, TRACKING, Backoff, Steps

NOW = datetime(2030, 1, 1, 1, tzinfo=UTC)


def job(status=None, **spec):
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    return {"metadata": {"name": "j", "uid": "uid-of-j"}, "spec": spec, "status": status or {}}


def pod(name, phase="Running", *, tracked=True, deleting=False, finished=0, ready=False, restarts=0):
    """Return a Pod; `finished` is how many seconds ago it ended."""
    metadata = {"name": name, "uid": name, "creationTimestamp": "2030-01-01T00:00:00Z"}
    if tracked:
        metadata["finalizers"] = [TRACKING]
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-01T01:00:00Z"
    end = (NOW - timedelta(seconds=finished)).isoformat().replace("+00:00", "Z")
    state = {"terminated": {"finishedAt": end}} if phase in ("Succeeded", "Failed") else {}
    status = {
        "phase": phase,
        "containerStatuses": [{"state": state, "restartCount": restarts}],
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    return {"metadata": metadata, "spec": {}, "status": status}


def many(count, phase="Running"):
    return [pod(f"p{number}", phase) for number in range(count)]


# --- counting


def test_pods_are_counted_by_how_they_are():
    of_job = [
        pod("waits", "Pending"),
        pod("ready", ready=True),
        pod("leaves", deleting=True),
        pod("good", "Succeeded"),
        pod("bad", "Failed"),
    ]
    counted = jobplan.tally(job(), of_job)
    assert [one["metadata"]["name"] for one in counted.active] == ["waits", "ready"]
    assert (counted.ready, counted.terminating) == (1, 1)
    assert (counted.succeeded, counted.failed) == (1, 2)
    assert (counted.uncounted_succeeded, counted.uncounted_failed) == (["good"], ["leaves", "bad"])
    assert (counted.summed_succeeded, counted.summed_failed) == (0, 0)


def test_a_listed_pod_is_summed_up_when_its_finalizer_is_gone_and_not_before():
    status = {
        "succeeded": 2,
        "failed": 1,
        "uncountedTerminatedPods": {"succeeded": ["a", "b"], "failed": ["c"]},
    }
    counted = jobplan.tally(
        job(status), [pod("a", "Succeeded"), pod("b", "Succeeded", tracked=False), pod("c", "Failed")]
    )
    assert (counted.summed_succeeded, counted.uncounted_succeeded) == (3, ["a"])
    assert (counted.summed_failed, counted.uncounted_failed) == (1, ["c"])
    assert (counted.succeeded, counted.failed) == (4, 2)


def test_a_listed_pod_that_is_gone_is_summed_up():
    counted = jobplan.tally(job({"uncountedTerminatedPods": {"failed": ["gone"]}}), [])
    assert (counted.summed_failed, counted.failed, counted.uncounted_failed) == (1, 1, [])


def test_a_pod_without_the_finalizer_was_counted_before():
    counted = jobplan.tally(job({"failed": 1}), [pod("old", "Failed", tracked=False)])
    assert counted.failed == 1


def test_pods_that_still_run_when_the_job_has_failed_count_as_failed():
    counted = jobplan.tally(job(), [pod("bad", "Failed"), pod("running")], TOO_MANY_FAILURES)
    assert counted.uncounted_failed == ["bad", "running"]
    assert jobplan.tally(job(), [pod("running")], COMPLETE).uncounted_failed == []


def test_a_status_lists_at_most_500_pods_at_once():
    counted = jobplan.tally(job(), many(700, "Succeeded"))
    assert len(counted.uncounted_succeeded) == 500
    assert counted.succeeded == 700


def test_a_deleted_pod_is_no_failure_where_only_failed_ones_are_replaced():
    only_failed = job(podReplacementPolicy="Failed")
    assert jobplan.tally(only_failed, [pod("leaves", deleting=True)]).failed == 0


# --- verdicts


def verdict(of_job, status=None, **spec):
    wanted = job(status, **spec)
    return jobplan.failure_or_earlier_verdict(wanted, jobplan.tally(wanted, of_job), of_job, NOW)


@pytest.mark.parametrize(("failures", "want"), [(2, None), (3, TOO_MANY_FAILURES)])
def test_a_job_fails_with_one_failure_more_than_its_limit(failures, want):
    assert verdict(many(failures, "Failed"), backoffLimit=2) == want


@pytest.mark.parametrize(
    ("limit", "restarts", "want"),
    [(0, 0, None), (0, 1, TOO_MANY_FAILURES), (3, 2, None), (3, 3, TOO_MANY_FAILURES)],
)
def test_restarts_count_as_failures_where_containers_are_restarted(limit, restarts, want):
    template = {"spec": {"restartPolicy": "OnFailure"}}
    assert verdict([pod("p", restarts=restarts)], backoffLimit=limit, template=template) == want
    assert (
        verdict([pod("p", restarts=9)], backoffLimit=limit, template={"spec": {"restartPolicy": "Never"}})
        is None
    )


@pytest.mark.parametrize(("limit", "want"), [(3600, TOO_LONG), (3601, None)])
def test_a_job_that_takes_too_long_fails(limit, want):
    status = {"startTime": "2030-01-01T00:00:00Z"}
    assert verdict([], status, activeDeadlineSeconds=limit) == want
    assert verdict([], status, activeDeadlineSeconds=limit, suspend=True) is None


def test_a_verdict_that_was_announced_stands():
    announced = {
        "conditions": [{"type": "FailureTarget", "status": "True", "reason": "Because", "message": "of this"}]
    }
    assert verdict([], announced) == (False, "Because", "of this")


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "complete"),
    [
        pytest.param(2, 1, 0, False, id="one of two"),
        pytest.param(2, 2, 0, True, id="two of two"),
        pytest.param(2, 2, 1, False, id="two of two, with one too many still running"),
        pytest.param(0, 0, 0, True, id="none wanted"),
        pytest.param(None, 0, 0, False, id="any number wanted, none yet"),
        pytest.param(None, 1, 0, True, id="any number wanted, one came"),
        pytest.param(None, 1, 1, False, id="any number wanted, one still running"),
    ],
)
def test_when_a_job_is_complete(completions, succeeded, active, complete):
    wanted = job({"succeeded": succeeded}, completions=completions)
    assert (jobplan.final_verdict(wanted, jobplan.tally(wanted, many(active))) == COMPLETE) == complete


# --- Pods to create and delete


@pytest.mark.parametrize(
    ("spec", "status", "active", "create", "withdraw"),
    [
        pytest.param({"completions": 1}, {}, 0, 1, 0, id="a new job"),
        pytest.param({"completions": 5, "parallelism": 2}, {}, 0, 2, 0, id="as many as may run at once"),
        pytest.param(
            {"completions": 5, "parallelism": 3}, {"succeeded": 4}, 0, 1, 0, id="as many as are missing"
        ),
        pytest.param({"completions": 5, "parallelism": 2}, {}, 2, 0, 0, id="enough run"),
        pytest.param({"completions": 5, "parallelism": 1}, {}, 3, 0, 2, id="more run than may"),
        pytest.param(
            {"completions": 3, "parallelism": 3}, {"succeeded": 2}, 2, 0, 1, id="more run than are missing"
        ),
        pytest.param({"parallelism": 3}, {}, 1, 2, 0, id="any number wanted"),
        pytest.param(
            {"parallelism": 3}, {"succeeded": 1}, 1, 0, 0, id="any number wanted, one has succeeded"
        ),
        pytest.param({"completions": 3, "parallelism": 3, "suspend": True}, {}, 2, 0, 2, id="suspended"),
        pytest.param(
            {"completions": 9000, "parallelism": 9000}, {}, 0, 500, 0, id="very many, one step at a time"
        ),
    ],
)
def test_pods_to_create_and_to_withdraw(spec, status, active, create, withdraw):
    wanted = job(status, **spec)
    found = jobplan.steps(wanted, jobplan.tally(wanted, many(active)), None, 0.0, NOW)
    assert (found.create, len(found.withdraw), found.end) == (create, withdraw, ())


def test_failures_hold_up_new_pods_but_not_deletions():
    wanted = job(completions=2, parallelism=2)
    assert jobplan.steps(wanted, jobplan.tally(wanted, []), None, 7.5, NOW) == Steps(wait=7.5)
    suspended = job(suspend=True)
    assert len(jobplan.steps(suspended, jobplan.tally(suspended, many(1)), None, 7.5, NOW).withdraw) == 1


def test_a_failed_job_ends_what_still_runs_and_a_complete_one_withdraws_it():
    counted = jobplan.tally(job(), many(2))
    assert len(jobplan.steps(job(), counted, TOO_MANY_FAILURES, 0.0, NOW).end) == 2
    assert len(jobplan.steps(job(), counted, COMPLETE, 0.0, NOW).withdraw) == 2


def test_where_only_failed_pods_are_replaced_a_leaving_one_keeps_its_place():
    leaving = [pod("leaves", deleting=True)]
    for policy, create in (("Failed", 0), ("TerminatingOrFailed", 1)):
        wanted = job(completions=1, podReplacementPolicy=policy)
        assert jobplan.steps(wanted, jobplan.tally(wanted, leaving), None, 0.0, NOW).create == create


# --- backing off


def backoff_after(*of_job, wanted=None):
    backoff = Backoff()
    backoff.learn(wanted or job(), of_job)
    return backoff


@pytest.mark.parametrize(
    ("failures", "pause"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (50, 600)]
)
def test_the_pause_doubles_with_every_failure_up_to_ten_minutes(failures, pause):
    assert backoff_after(*many(failures, "Failed")).pause(NOW) == pause


def test_the_pause_is_counted_from_the_last_failure():
    backoff = backoff_after(pod("a", "Failed", finished=100), pod("b", "Failed", finished=5))
    assert backoff.pause(NOW) == 15
    assert backoff.pause(NOW + timedelta(seconds=60)) == 0


def test_a_success_makes_earlier_failures_forgotten():
    backoff = backoff_after(
        pod("a", "Failed", finished=30), pod("b", "Succeeded", finished=20), pod("c", "Failed", finished=4)
    )
    assert backoff.failures == 1
    assert backoff.pause(NOW) == 6


def test_each_pod_is_learned_once():
    backoff = Backoff()
    for _ in range(3):
        backoff.learn(job(), [pod("a", "Failed"), pod("b", "Failed", tracked=False)])
    assert backoff.failures == 2


def test_a_deleted_pod_is_a_failure_but_a_withdrawn_one_is_not():
    assert backoff_after(pod("deleted", deleting=True)).failures == 1
    assert backoff_after(pod("withdrawn", deleting=True, tracked=False)).failures == 0


# --- the status


def next_status(of_job, verdict=None, status=None, **spec):
    wanted = job(status, **spec)
    return jobplan.next_status(wanted, jobplan.tally(wanted, of_job, verdict), of_job, verdict, NOW)


def test_a_job_that_runs():
    assert next_status([pod("p", ready=True)]) == {
        "active": 1,
        "ready": 1,
        "terminating": 0,
        "startTime": "2030-01-01T01:00:00Z",
        "uncountedTerminatedPods": {},
    }


def types(status):
    return [condition["type"] for condition in status.get("conditions", [])]


@pytest.mark.parametrize(
    ("verdict", "kinds"),
    [(COMPLETE, ("SuccessCriteriaMet", "Complete")), (TOO_LONG, ("FailureTarget", "Failed"))],
)
def test_a_verdict_is_announced_first_and_final_once_every_pod_is_counted(verdict, kinds):
    phase = "Succeeded" if verdict.succeeded else "Failed"
    announced = next_status([pod("p", phase)], verdict)
    assert types(announced) == [kinds[0]]
    assert announced["uncountedTerminatedPods"] == {phase.lower(): ["p"]}
    final = next_status([pod("p", phase, tracked=False)], verdict, announced)
    assert types(final) == list(kinds)
    assert final[phase.lower()] == 1
    assert final["uncountedTerminatedPods"] == {}
    assert ("completionTime" in final) == verdict.succeeded
    assert {condition["reason"] for condition in final["conditions"]} == {verdict.reason}


def test_a_job_has_not_ended_while_a_pod_is_still_leaving():
    leaving = [pod("p", deleting=True, tracked=False)]
    assert types(next_status(leaving, TOO_MANY_FAILURES)) == ["FailureTarget"]


def test_suspending_and_resuming_are_told_and_reset_the_start():
    suspended = next_status([], status={"startTime": "2030-01-01T00:00:00Z"}, suspend=True)
    assert types(suspended) == ["Suspended"]
    assert "startTime" not in suspended
    resumed = next_status([], status=suspended)
    assert resumed["conditions"][0]["status"] == "False"
    assert resumed["conditions"][0]["reason"] == "JobResumed"
    assert resumed["startTime"] == "2030-01-01T01:00:00Z"


def test_a_status_that_says_all_stays_as_it_is():
    status = next_status([pod("p")])
    assert next_status([pod("p")], status=status) == status
