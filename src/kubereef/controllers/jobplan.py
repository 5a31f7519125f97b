"""What a Job needs next, worked out from its Pods. Nothing here touches the cluster.

A Pod that ended is counted exactly once, whatever is interrupted when. It carries a finalizer until it has been
counted: first its uid is written into `uncountedTerminatedPods`, then the finalizer is taken off, then the uid
becomes part of the sum.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from kubereef.controllers import jobindexes, jobpolicies, pods
from kubereef.controllers.conditions import condition, is_true
from kubereef.controllers.jobindexes import Indexes, New, Retry
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
TOO_MANY_INDEXES = Verdict(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
FAILED_INDEXES = Verdict(False, "FailedIndexes", "Job has failed indexes")


class Tally(NamedTuple):
    """The Pods of a Job, counted."""

    active: list[Object]
    # Those that were asked to end and have not yet.
    leaving: list[Object]
    ready: int
    # All that ever ended well or badly, whether the status has counted them or not.
    succeeded: int
    failed: int
    # What the status is to say: the sums, and who is not part of them yet.
    summed_succeeded: int
    summed_failed: int
    uncounted_succeeded: list[str]
    uncounted_failed: list[str]
    # Who need not be listed to be let go: an index is not counted twice, and what is ignored not at all.
    settled: list[str]
    # The indexes that are done and that have failed for good, and the last tries at those that are to be tried again.
    completed: Indexes
    failed_indexes: Indexes
    retries: dict[int, Retry]

    @property
    def terminating(self) -> int:
        return len(self.leaving)


class Steps(NamedTuple):
    """What to do to the Pods of a Job now."""

    create: int = 0
    # The indexes of the Pods to create, where they have some: as many as are to be created.
    indexes: tuple[New, ...] = ()
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


def tally(job: Object, of_job: list[Object], verdict: Verdict | None = None) -> Tally:
    """Count the Pods of a Job; once it has failed, those that still run count as failed too."""
    status = job.get("status") or {}
    listed = status.get("uncountedTerminatedPods") or {}
    tracked = {pod["metadata"]["uid"]: pod for pod in of_job if is_tracked(pod)}
    active = [pod for pod in of_job if pods.is_active(pod)]
    well = [uid for uid in listed.get("succeeded") or () if uid in tracked]
    badly = [uid for uid in listed.get("failed") or () if uid in tracked]
    summed_well = status.get("succeeded", 0) + len(listed.get("succeeded") or ()) - len(well)
    summed_badly = status.get("failed", 0) + len(listed.get("failed") or ()) - len(badly)
    ended = _ended(job, {uid: pod for uid, pod in tracked.items() if uid not in {*well, *badly}}, verdict)
    completed, failed_indexes, retries = _by_index(job, ended, active, verdict)
    # A failed Pod that is to be tried again is let go when its successor, which knows of it, is there.
    kept = {retry.pod["metadata"]["uid"] for retry in retries.values()} if verdict is None else set()
    badly += [uid for uid in ended.failed if uid not in kept]
    if jobindexes.is_indexed(job):
        summed_well = completed.total()
    else:
        well += ended.succeeded
    return Tally(
        active=active,
        leaving=[pod for pod in of_job if pods.is_terminating(pod)],
        ready=sum(map(pods.is_ready, active)),
        succeeded=summed_well + len(well),
        failed=summed_badly + len(badly) + sum(uid in kept for uid in ended.failed),
        summed_succeeded=summed_well,
        summed_failed=summed_badly,
        uncounted_succeeded=well[:_MOST_AT_ONCE],
        uncounted_failed=badly[: _MOST_AT_ONCE - len(well[:_MOST_AT_ONCE])],
        settled=[uid for uid in ended.settled if uid not in kept],
        completed=completed,
        failed_indexes=failed_indexes,
        retries=retries,
    )


class _Ended(NamedTuple):
    """The Pods that have ended and were not listed yet, by uid: to be counted, or let go without."""

    succeeded: dict[str, Object]
    failed: dict[str, Object]
    settled: dict[str, Object]

    @property
    def bad(self) -> list[Object]:
        """All that have failed, whether that counts or not."""
        return [*self.failed.values(), *(pod for pod in self.settled.values() if not _has_succeeded(pod))]


def _has_succeeded(pod: Object) -> bool:
    return pods.phase(pod) == "Succeeded"


def _ended(job: Object, unlisted: dict[str, Object], verdict: Verdict | None) -> _Ended:
    is_indexed = jobindexes.is_indexed(job)
    has_failed = verdict is not None and not verdict.succeeded
    found = _Ended({}, {}, {})
    for uid, pod in unlisted.items():
        if _has_succeeded(pod):
            (found.settled if is_indexed else found.succeeded)[uid] = pod
        elif counts_as_failed(job, pod) or has_failed:
            is_lost = is_indexed and jobindexes.index_of(job, pod) is None
            is_counted = not is_lost and jobpolicies.judge(job, pod).counts
            (found.failed if is_counted else found.settled)[uid] = pod
    return found


def _by_index(
    job: Object, ended: _Ended, active: list[Object], verdict: Verdict | None
) -> tuple[Indexes, Indexes, dict[int, Retry]]:
    """Return which indexes are done, which have failed for good, and which wait for another try."""
    if not jobindexes.is_indexed(job):
        return Indexes(), Indexes(), {}
    status, end = job.get("status") or {}, jobindexes.completions(job)

    def indexes(of: Iterable[Object]) -> set[int]:
        return {index for pod in of if (index := jobindexes.index_of(job, pod)) is not None}

    done = Indexes.parse(status.get("completedIndexes"), end)
    done = done.adding(indexes(filter(_has_succeeded, ended.settled.values())))
    if jobindexes.limit_per_index(job) is None:
        return done, Indexes(), {}
    given_up = Indexes.parse(status.get("failedIndexes"), end)
    # Pods that go because the Job has an end are no failures of their indexes.
    judged = [
        pod
        for pod in ended.bad
        if verdict is None or (pods.phase(pod) == "Failed" and not pods.is_deleting(pod))
    ]
    last_tries = [pod for pod in judged if jobindexes.has_failed_for_good(job, pod)]
    given_up = given_up.adding(indexes(last_tries))
    return done, given_up, jobindexes.retries(job, ended.bad, done.joining(given_up), indexes(active))


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
    spec = job.get("spec") or {}
    for pod in of_job if spec.get("podFailurePolicy") else ():
        judged = jobpolicies.judge(job, pod)
        if judged.action == "FailJob" and counts_as_failed(job, pod):
            return Verdict(False, "PodFailurePolicy", judged.why)
    limit = spec.get("backoffLimit", 6)
    if counted.failed > limit or _restarted_too_often(job, of_job, limit):
        return TOO_MANY_FAILURES
    left = seconds_to_deadline(job, now)
    if left is not None and left <= 0:
        return TOO_LONG
    most = spec.get("maxFailedIndexes")
    if most is not None and counted.failed_indexes.total() > most:
        return TOO_MANY_INDEXES
    return _enough(job, counted)


def _enough(job: Object, counted: Tally) -> Verdict | None:
    """Return that the Job has succeeded because the successes there are meet its policy."""
    policy = (job.get("spec") or {}).get("successPolicy") or {}
    for number, rule in enumerate(policy.get("rules") or () if counted.completed.ranges else ()):
        needed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if needed is None:
            is_met = count is not None and counted.completed.total() >= count
        else:
            required = Indexes.parse(needed, jobindexes.completions(job))
            is_met = counted.completed.common(required) >= (required.total() if count is None else count)
        if is_met:
            return Verdict(True, "SuccessPolicy", f"Matched rules at index {number}")
    return None


def final_verdict(job: Object, counted: Tally) -> Verdict | None:
    """Return how a Job ends of which nothing is left to do: well, if enough Pods have succeeded."""
    if counted.active:
        return None
    completions = (job.get("spec") or {}).get("completions")
    if completions is None:
        return COMPLETE if counted.succeeded > 0 else None
    if counted.succeeded >= completions:
        return COMPLETE
    given_up = counted.failed_indexes.total()
    return FAILED_INDEXES if given_up and given_up + counted.succeeded >= completions else None


def seconds_to_deadline(job: Object, now: datetime) -> float | None:
    """Return how long the Job may still run, if its time is limited and running."""
    limit = (job.get("spec") or {}).get("activeDeadlineSeconds")
    started = (job.get("status") or {}).get("startTime")
    if limit is None or not started or is_suspended(job):
        return None
    return (parse_time(started) + timedelta(seconds=limit) - now).total_seconds()


def steps(job: Object, counted: Tally, verdict: Verdict | None, pause: float, now: datetime) -> Steps:
    """Return what to do to the Pods; `pause` is how long failures still hold up new ones."""
    if verdict is not None:
        left = tuple(counted.active)
        return Steps(withdraw=left) if verdict.succeeded else Steps(end=left)
    wanted = _wanted_active(job, counted)
    unwanted = _unwanted(job, counted, len(counted.active) - wanted)
    if unwanted:
        return Steps(withdraw=tuple(unwanted[:_MOST_AT_ONCE]))
    missing = wanted - len(counted.active) - (counted.terminating if _replaces_only_failed(job) else 0)
    if missing <= 0:
        return Steps()
    missing = min(missing, _MOST_AT_ONCE)
    if jobindexes.limit_per_index(job) is not None:
        return _single_steps(job, counted, missing, now)
    if pause > 0:
        return Steps(wait=pause)
    if not jobindexes.is_indexed(job):
        return Steps(create=missing)
    new = tuple(map(New, _pending(job, counted).first_missing(missing, jobindexes.completions(job))))
    return Steps(create=len(new), indexes=new)


def _unwanted(job: Object, counted: Tally, surplus: int) -> list[Object]:
    """Return the Pods that are too many; those with a wrong or taken index are so in any case."""
    found = jobindexes.surplus(job, counted.active) if jobindexes.is_indexed(job) else []
    if surplus > len(found):
        chosen = {pod["metadata"]["uid"] for pod in found}
        left = [pod for pod in counted.active if pod["metadata"]["uid"] not in chosen]
        found += sorted(left, key=pods.least_missed_first)[: surplus - len(found)]
    return found


def _pending(job: Object, counted: Tally) -> Indexes:
    """Return the indexes that need no new Pod: done, given up, or being worked at."""
    busy = [*counted.active, *(counted.leaving if _replaces_only_failed(job) else ())]
    taken = {index for pod in busy if (index := jobindexes.index_of(job, pod)) is not None}
    return counted.completed.joining(counted.failed_indexes).adding(sorted(taken))


def _single_steps(job: Object, counted: Tally, missing: int, now: datetime) -> Steps:
    """Return which indexes to try where each waits after its own failures."""
    new: list[New] = []
    waits: list[float] = []
    for index in _pending(job, counted).first_missing(missing, jobindexes.completions(job)):
        retry = counted.retries.get(index)
        wait = 0.0 if retry is None else _pause_after(retry.attempts, retry.failed_at, now)
        if wait > 0:
            waits.append(wait)
        else:
            new.append(New(index, 0) if retry is None else retry.new)
    return Steps(create=len(new), indexes=tuple(new), wait=min(waits, default=None))


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
    if counted.completed.ranges:
        status["completedIndexes"] = str(counted.completed)
    else:
        status.pop("completedIndexes", None)
    if jobindexes.limit_per_index(job) is not None:
        status["failedIndexes"] = str(counted.failed_indexes)
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
        return _pause_after(self.failures, self._last_failure, now)


def _pause_after(failures: int, last: datetime, now: datetime) -> float:
    whole = min(_FIRST_PAUSE * 2.0 ** min(failures - 1, 30), _LONGEST_PAUSE)
    return max(0.0, whole - (now - last).total_seconds())


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
