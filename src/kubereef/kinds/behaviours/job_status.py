"""What the status of a Job may say: whoever runs Jobs is held to an order of events that others can rely on."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems
from kubereef.kinds.resource import Object
from kubewire import fielderrors
from kubewire.fielderrors import OMITTED
from kubewire.times import parse_time

_NUMBERS = ("active", "succeeded", "failed", "ready", "terminating")
_FINAL = ("Complete", "Failed")
_CONDITIONS = ("status", "conditions")


def status_problems(new: Object, old: Object) -> Problems:
    """Yield what is wrong with a new status. What was wrong before and stays so is let through."""
    status, before = new.get("status") or {}, old.get("status") or {}
    yield from checks.numbers_not_negative(("status",), status, *_NUMBERS)
    yield from _uncounted(status)
    if status.get("completedIndexes") and new["spec"].get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield fielderrors.invalid(("status", "completedIndexes"), status["completedIndexes"], detail)
    for problem in _consistency(status):
        if problem not in list(_consistency(before)):
            yield problem
    yield from _progress(new, status, before)


def _true(status: Object) -> frozenset[str]:
    conditions = status.get("conditions") or ()
    return frozenset(one["type"] for one in conditions if one.get("status") == "True")


def _consistency(status: Object) -> Problems:
    true = _true(status)
    for one in ("Complete", "SuccessCriteriaMet"):
        for other in ("Failed", "FailureTarget"):
            if {one, other} <= true:
                detail = f"cannot set {one}=True and {other}=true conditions"
                yield fielderrors.invalid(_CONDITIONS, OMITTED, detail)
    for final, first in (("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")):
        if final in true and first not in true:
            detail = f"cannot set {final}=True condition without the {first}=true condition"
            yield fielderrors.invalid(_CONDITIONS, OMITTED, detail)
    completed = status.get("completionTime")
    if completed and "Complete" not in true:
        detail = "cannot set completionTime when there is no Complete=True condition"
        yield fielderrors.invalid(("status", "completionTime"), completed, detail)
    if not completed and "Complete" in true:
        yield fielderrors.required(
            ("status", "completionTime"), "completionTime is required for Complete jobs"
        )
    started = status.get("startTime")
    if completed and started and parse_time(completed) < parse_time(started):
        detail = "must be equal to or after `startTime`"
        yield fielderrors.invalid(("status", "completionTime"), completed, detail)
    if true & set(_FINAL):
        yield from _finished(status)
    ready, active = status.get("ready"), status.get("active", 0)
    if ready is not None and ready > active:
        yield fielderrors.invalid(("status", "ready"), ready, "cannot set more ready pods than active")


def _finished(status: Object) -> Problems:
    for field in ("active", "terminating"):
        if (status.get(field) or 0) > 0:
            yield fielderrors.invalid(
                ("status", field), status[field], f"{field}>0 is invalid for finished job"
            )
    if not status.get("startTime"):
        yield fielderrors.required(("status", "startTime"), "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if uncounted.get("succeeded") or uncounted.get("failed"):
        shown = checks.go_struct(
            ("Succeeded", uncounted.get("succeeded")), ("Failed", uncounted.get("failed"))
        )
        here = ("status", "uncountedTerminatedPods")
        yield fielderrors.invalid(here, shown, "must be empty for finished job")


def _progress(job: Object, status: Object, before: Object) -> Problems:
    """Yield what went backwards."""
    for field in ("succeeded", "failed"):
        if (status.get(field) or 0) < (before.get(field) or 0):
            detail = f"cannot decrease the {field} counter"
            yield fielderrors.invalid(("status", field), status.get(field, 0), detail)
    for lasting in (*_FINAL, "FailureTarget", "SuccessCriteriaMet"):
        if lasting in _true(before) and lasting not in _true(status):
            what = f"terminal {lasting}" if lasting in _FINAL else lasting
            detail = f"cannot disable the {what}=True condition"
            yield fielderrors.invalid(_CONDITIONS, OMITTED, detail)
    completed, now_completed = before.get("completionTime"), status.get("completionTime")
    if completed and now_completed and now_completed != completed:
        yield fielderrors.invalid(("status", "completionTime"), now_completed, checks.IMMUTABLE)
    started, now_started = before.get("startTime"), status.get("startTime")
    resumed = "Suspended" in _true(before) and "Suspended" not in _true(status)
    if started and now_started != started and not job["spec"].get("suspend") and not resumed:
        detail = "field is immutable for unsuspended job once set"
        yield fielderrors.invalid(("status", "startTime"), now_started, detail)


def _uncounted(status: Object) -> Problems:
    """Yield the Pods that are listed as not yet counted twice, or that are none."""
    seen: set[str] = set()
    uncounted = status.get("uncountedTerminatedPods") or {}
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(field) or ()):
            here = ("status", "uncountedTerminatedPods", field, index)
            if not uid:
                yield fielderrors.invalid(here, uid, "must not be empty")
            elif uid in seen:
                yield fielderrors.duplicate(here, uid)
            seen.add(uid)
