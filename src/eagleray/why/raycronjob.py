"""When a RayCronJob runs next, why it did not run, and what its jobs wait for: a pure function of what was seen."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from eagleray.raycronjob.look import FAILED, SUCCEEDED, Look, look_at
from eagleray.raycronjob.planning import (
    CREATE_FAILED,
    DELETE_FAILED,
    SCHEDULED,
    condition,
    plan,
    ticks_of,
)
from eagleray.runtime.actions import Tell, described
from eagleray.why import rayjob
from eagleray.why.operators import absence_of, nobody_leads
from eagleray.why.reading import SeenCronJob
from eagleray.why.report import Report
from kubewire.times import format_time

Object = dict[str, Any]

# A run comes within seconds of its time; one that is later than this is not on its way.
_LATE: Final = timedelta(minutes=2)


def diagnose(seen: SeenCronJob) -> Report:
    """Return what is to be said of a schedule; what holds it back the most comes first."""
    report = _diagnose(seen, f"RayCronJob {seen.cron.place}")
    absent = nobody_leads(seen.leases, seen.now)
    return report._replace(notes=[*report.notes, *absent, *seen.unseen.values()])


def _diagnose(seen: SeenCronJob, place: str) -> Report:
    cron = seen.cron
    if cron.metadata.get("deletionTimestamp"):
        held = ", ".join(cron.metadata.get("finalizers") or ())
        causes = [f"finalizers that others have to remove: {held}"] if held else []
        return Report(f"{place} is being deleted.", causes=causes)
    if seen.rejected:
        return Report(f"{place} is invalid: nothing is run for it.", causes=[seen.rejected])
    if absence := absence_of(_observed(seen), seen.leases, seen.now):
        return Report(f"{place} waits for an operator.", causes=[absence])
    report = _scheduled(seen, place)
    return report._replace(notes=[*report.notes, *_last_run(seen), *_of_jobs(seen)], steps=_steps(seen))


def _observed(seen: SeenCronJob) -> Object:
    """Return the object with the generation that was looked at where other kinds have it; here a condition says so."""
    known = condition(seen.cron, SCHEDULED) or {}
    return {**seen.cron.obj, "status": {"observedGeneration": known.get("observedGeneration")}}


def _scheduled(seen: SeenCronJob, place: str) -> Report:
    """Return how the schedule stands, in the operator's own words: where no zone is named, only it knows the hour."""
    known = condition(seen.cron, SCHEDULED) or {}
    reason, message = known.get("reason", ""), known.get("message", "")
    if seen.cron.is_suspended:
        return Report(f"{place} is suspended: nothing is run.", causes=[message])
    if reason in (CREATE_FAILED, DELETE_FAILED):
        return Report(f"{place} cannot make its RayJob.", causes=[f"{reason}: {message}"])
    if known.get("status") == "False" and reason == "JobAlreadyActive":
        return Report(f"{place} waits for an earlier run.", causes=[message, *_what_active_wait_for(seen)])
    if known.get("status") == "False":
        return Report(f"{place} runs nothing.", causes=[message])
    if (due := _overdue(seen)) is not None:
        late = (seen.now - due).total_seconds()
        cause = (
            f"the run of {format_time(due)} has been due for {late:.0f} s, and no operator has made its RayJob:"
            " see whether one runs, and its log"
        )
        return Report(f"{place} is late.", causes=[cause])
    first, _, more = message.partition("; ")
    return Report(
        f"{place} is scheduled: {first}{_in_seconds(seen)}.", is_ready=True, notes=[more] if more else []
    )


def _overdue(seen: SeenCronJob) -> datetime | None:
    """Return the run that somebody should have made by now; without a zone of its own nobody here can tell."""
    if seen.cron.zone is None:
        return None
    due = ticks_of(seen.cron, seen.now).due
    return due if due is not None and seen.now - due > _LATE and plan(_look(seen)).tick == due else None


def _in_seconds(seen: SeenCronJob) -> str:
    if seen.cron.zone is None:
        return ", by the operator's clock"
    following = ticks_of(seen.cron, seen.now).next
    return f", in {(following - seen.now).total_seconds():.0f} s" if following is not None else ""


def _look(seen: SeenCronJob) -> Look:
    return look_at(seen.cron, seen.jobs, seen.now)


def _last_run(seen: SeenCronJob) -> Iterator[str]:
    """Yield what became of the latest run."""
    if seen.cron.last_tick is None:
        yield "it has not run yet"
        return
    children = _look(seen).children
    when = format_time(seen.cron.last_tick)
    if not children:
        yield f"the last run was that of {when}; its RayJob is gone"
        return
    last = children[-1]
    state = last.state or "New"
    told = f"the last run was that of {format_time(last.tick)}: RayJob {last.name} is {state}"
    yield f"{told}; see eagleray why rayjob/{last.name}" if last.state in FAILED else told


def _of_jobs(seen: SeenCronJob) -> Iterator[str]:
    """Yield what the jobs that go on wait for."""
    held_back = (condition(seen.cron, SCHEDULED) or {}).get("reason") == "JobAlreadyActive"
    return iter(()) if held_back else iter(_what_active_wait_for(seen))


def _what_active_wait_for(seen: SeenCronJob) -> list[str]:
    """Return what is said of each job that has not ended, with the first of its causes."""
    told = []
    for job in seen.active:
        report = rayjob.diagnose(job)
        told.append(" ".join([report.verdict, *report.causes[:1]]))
    return told


def _steps(seen: SeenCronJob) -> list[str]:
    """Return what the operator does next."""
    if seen.cron.zone is None:
        return []
    made = plan(_look(seen))
    steps = [
        line.partition(": ")[2]
        for stage in made.stages
        for line in described(
            [stage._replace(actions=[one for one in stage.actions if not isinstance(one, Tell)])]
        )
    ]
    ended = sum(child.state in SUCCEEDED + FAILED for child in _look(seen).children)
    kept = f"; {ended} RayJobs that have ended are kept" if ended else ""
    if not steps and made.next is not None and not seen.cron.is_suspended:
        return [f"look at the clock again for the run of {format_time(made.next)}{kept}"]
    return steps
