"""What a Job needs next, worked out from its Pods. Nothing here touches the cluster.

A Pod that ended is counted exactly once, whatever is interrupted when. It carries a finalizer until it has been
counted: first its uid is written into `uncountedTerminatedPods`, then the finalizer is taken off, then the uid
becomes part of the sum.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from kubereef.controllers import pods
from kubereef.controllers.conditions import condition, is_true
from kubereef.kinds.resource import Object
from kubewire.times import format_time, parse_time

TRACKING = "batch.kubernetes.io/job-tracking"

# How long after failures the next Pod waits: this long after the first, doubling, but never longer than the second.
_FIRST_PAUSE = 10.0
_LONGEST_PAUSE = 600.0

# How many Pods one pass creates or deletes, and how many a status lists as not yet counted.
_MOST_AT_ONCE = 500


class Verdict(NamedTuple):
    """That a Job is going to end, and why; it has ended once all its Pods have been counted."""

    succeeded: bool
    reason: str
    message: str

    @property
    def announced_as(self) -> str:
        return "SuccessCriteriaMet" if self.succeeded else "FailureTarget"

    @property
    def ends_as(self) -> str:
        return "Complete" if self.succeeded else "Failed"


COMPLETE = Verdict(True, "CompletionsReached", "Reached expected number of succeeded pods")
TOO_MANY_FAILURES = Verdict(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
TOO_LONG = Verdict(False, "DeadlineExceeded", "Job was active longer than specified deadline")


class Tally(NamedTuple):
    """The Pods of a Job, counted."""

    active: list[Object]
    ready: int
    terminating: int
    # All that ever ended well or badly, whether the status has counted them or not.
    succeeded: int
    failed: int
    # What the status is to say: the sums, and who is not part of them yet.
    summed_succeeded: int
    summed_failed: int
    uncounted_succeeded: list[str]
    uncounted_failed: list[str]


class Steps(NamedTuple):
    """What to do to the Pods of a Job now."""

    create: int = 0
    # Pods that are not wanted any more. Their end is not a failure.
    withdraw: tuple[Object, ...] = ()
    # Pods that go because the Job has failed, and count as failed themselves.
    end: tuple[Object, ...] = ()
    # After how many seconds the Pods that are missing may be created.
    wait: float | None = None


def is_tracked(pod: Object) -> bool:
    """Tell whether a Pod has not been counted for good yet."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def is_finished(job: Object) -> bool:
    conditions = _conditions(job)
    return is_true(conditions, "Complete") or is_true(conditions, "Failed")


def is_suspended(job: Object) -> bool:
    return (job.get("spec") or {}).get("suspend") is True


def unsupported(job: Object) -> str:
    """Return what a Job asks for that this controller cannot do."""
    spec = job.get("spec") or {}
    if spec.get("completionMode") == "Indexed":
        return "completionMode Indexed"
    return next((field for field in ("podFailurePolicy", "successPolicy") if spec.get(field)), "")


def tally(job: Object, of_job: list[Object], verdict: Verdict | None = None) -> Tally:
    """Count the Pods of a Job; once it has failed, those that still run count as failed too."""
    status = job.get("status") or {}
    listed = status.get("uncountedTerminatedPods") or {}
    tracked = {pod["metadata"]["uid"]: pod for pod in of_job if is_tracked(pod)}
    well = [uid for uid in listed.get("succeeded") or () if uid in tracked]
    badly = [uid for uid in listed.get("failed") or () if uid in tracked]
    summed_well = status.get("succeeded", 0) + len(listed.get("succeeded") or ()) - len(well)
    summed_badly = status.get("failed", 0) + len(listed.get("failed") or ()) - len(badly)
    known = {*well, *badly}
    has_failed = verdict is not None and not verdict.succeeded
    for uid, pod in tracked.items():
        if uid in known:
            continue
        if pods.phase(pod) == "Succeeded":
            well.append(uid)
        elif counts_as_failed(job, pod) or has_failed:
            badly.append(uid)
    active = [pod for pod in of_job if pods.is_active(pod)]
    return Tally(
        active=active,
        ready=sum(map(pods.is_ready, active)),
        terminating=sum(map(pods.is_terminating, of_job)),
        succeeded=summed_well + len(well),
        failed=summed_badly + len(badly),
        summed_succeeded=summed_well,
        summed_failed=summed_badly,
        uncounted_succeeded=well[:_MOST_AT_ONCE],
        uncounted_failed=badly[: _MOST_AT_ONCE - len(well[:_MOST_AT_ONCE])],
    )


def counts_as_failed(job: Object, pod: Object) -> bool:
    """Tell whether a Pod has failed; one that is deleted counts too, unless only those that have ended are replaced."""
    if pods.phase(pod) == "Failed":
        return True
    return not _replaces_only_failed(job) and pods.is_deleting(pod) and pods.phase(pod) != "Succeeded"


def failure_or_earlier_verdict(
    job: Object, counted: Tally, of_job: list[Object], now: datetime
) -> Verdict | None:
    """Return the verdict that has been announced, or that the Job has failed."""
    for kind, succeeded in (("FailureTarget", False), ("SuccessCriteriaMet", True)):
        announced = condition(_conditions(job), kind)
        if announced is not None and announced.get("status") == "True":
            return Verdict(succeeded, announced.get("reason", ""), announced.get("message", ""))
    limit = (job.get("spec") or {}).get("backoffLimit", 6)
    if counted.failed > limit or _restarted_too_often(job, of_job, limit):
        return TOO_MANY_FAILURES
    left = seconds_to_deadline(job, now)
    return TOO_LONG if left is not None and left <= 0 else None


def is_complete(job: Object, counted: Tally) -> bool:
    """Tell whether enough Pods have succeeded and none is left."""
    if counted.active:
        return False
    completions = (job.get("spec") or {}).get("completions")
    return counted.succeeded > 0 if completions is None else counted.succeeded >= completions


def seconds_to_deadline(job: Object, now: datetime) -> float | None:
    """Return how long the Job may still run, if its time is limited and running."""
    limit = (job.get("spec") or {}).get("activeDeadlineSeconds")
    started = (job.get("status") or {}).get("startTime")
    if limit is None or not started or is_suspended(job):
        return None
    return (parse_time(started) + timedelta(seconds=limit) - now).total_seconds()


def steps(job: Object, counted: Tally, verdict: Verdict | None, pause: float) -> Steps:
    """Return what to do to the Pods; `pause` is how long failures still hold up new ones."""
    if verdict is not None:
        return Steps() if verdict.succeeded else Steps(end=tuple(counted.active))
    wanted = _wanted_active(job, counted)
    surplus = len(counted.active) - wanted
    if surplus > 0:
        ranked = sorted(counted.active, key=pods.least_missed_first)
        return Steps(withdraw=tuple(ranked[: min(surplus, _MOST_AT_ONCE)]))
    missing = -surplus - (counted.terminating if _replaces_only_failed(job) else 0)
    if missing <= 0:
        return Steps()
    if pause > 0:
        return Steps(wait=pause)
    return Steps(create=min(missing, _MOST_AT_ONCE))


def _wanted_active(job: Object, counted: Tally) -> int:
    if is_suspended(job):
        return 0
    spec = job.get("spec") or {}
    parallelism: int = spec.get("parallelism", 1)
    completions: int | None = spec.get("completions")
    if completions is None:
        # One success is enough; the others are left to end by themselves.
        return len(counted.active) if counted.succeeded else parallelism
    return max(0, min(parallelism, completions - counted.succeeded))


def next_status(
    job: Object, counted: Tally, of_job: list[Object], verdict: Verdict | None, now: datetime
) -> Object:
    """Return what the status of the Job is to be."""
    status = dict(job.get("status") or {})
    counts = {
        "active": len(counted.active),
        "succeeded": counted.summed_succeeded,
        "failed": counted.summed_failed,
    }
    for field, count in counts.items():
        if count:
            status[field] = count
        else:
            status.pop(field, None)
    status["ready"], status["terminating"] = counted.ready, counted.terminating
    uncounted = {"succeeded": counted.uncounted_succeeded, "failed": counted.uncounted_failed}
    status["uncountedTerminatedPods"] = {field: uids for field, uids in uncounted.items() if uids}
    if verdict is None:
        _tell_suspension(status, is_suspended(job), now)
    else:
        _set_condition(status, verdict.announced_as, "True", verdict.reason, verdict.message, now)
        if not counted.active and not counted.terminating and not any(map(is_tracked, of_job)):
            _set_condition(status, verdict.ends_as, "True", verdict.reason, verdict.message, now)
            if verdict.succeeded:
                status["completionTime"] = format_time(now)
    if not status.get("startTime") and not is_suspended(job):
        status["startTime"] = format_time(now)
    return status


def _tell_suspension(status: Object, suspended: bool, now: datetime) -> None:
    was = is_true(status.get("conditions") or [], "Suspended")
    if suspended and not was:
        _set_condition(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
    elif was and not suspended:
        _set_condition(status, "Suspended", "False", "JobResumed", "Job resumed", now)
        status["startTime"] = format_time(now)
    if suspended:
        status.pop("startTime", None)


def _set_condition(status: Object, kind: str, state: str, reason: str, message: str, now: datetime) -> None:
    conditions = status.get("conditions") or []
    old = condition(conditions, kind)
    if old is not None and old.get("status") == state:
        return
    new = {
        "type": kind,
        "status": state,
        "lastProbeTime": format_time(now),
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    }
    status["conditions"] = (
        [*conditions, new] if old is None else [new if one is old else one for one in conditions]
    )


class Backoff:
    """How often Pods of a Job have failed since one succeeded, and when last.

    It is found anew in the Pods that are still there when the controllers are restarted.
    """

    def __init__(self) -> None:
        self.failures = 0
        self._last_failure: datetime | None = None
        self._seen: set[str] = set()

    def learn(self, job: Object, of_job: Iterable[Object]) -> None:
        """Take note of the Pods that have ended since."""
        ended = [
            pod
            for pod in of_job
            if pod["metadata"]["uid"] not in self._seen
            and (pods.phase(pod) == "Succeeded" or counts_as_failed(job, pod))
        ]
        for pod in sorted(ended, key=lambda pod: (pods.finish_time(pod), pod["metadata"]["name"])):
            self._seen.add(pod["metadata"]["uid"])
            if pods.phase(pod) == "Succeeded":
                self.failures = 0
            elif is_tracked(pod) or not pods.is_deleting(pod):  # one that was withdrawn has not failed
                self.failures += 1
                self._last_failure = pods.finish_time(pod)

    def pause(self, now: datetime) -> float:
        """Return how long a new Pod has to wait."""
        if not self.failures or self._last_failure is None:
            return 0.0
        whole = min(_FIRST_PAUSE * 2.0 ** min(self.failures - 1, 30), _LONGEST_PAUSE)
        return max(0.0, whole - (now - self._last_failure).total_seconds())


def _replaces_only_failed(job: Object) -> bool:
    return (job.get("spec") or {}).get("podReplacementPolicy") == "Failed"


def _restarted_too_often(job: Object, of_job: list[Object], limit: int) -> bool:
    """Where containers are restarted in their Pod, each restart is a failure."""
    template = ((job.get("spec") or {}).get("template") or {}).get("spec") or {}
    if template.get("restartPolicy") != "OnFailure":
        return False
    count = sum(pods.restarts(pod) for pod in of_job if pods.phase(pod) in ("Running", "Pending"))
    return count > 0 if limit == 0 else count >= limit


def _conditions(job: Object) -> list[Object]:
    found: list[Object] = (job.get("status") or {}).get("conditions") or []
    return found
