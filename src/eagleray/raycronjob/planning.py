"""The plan of a pass over a RayCronJob: which tick is run, or why none is. A pure function of what was seen.

Ticks are the times of the schedule. Only the latest one that has come is ever run: it is due until it was run, was
replaced by a later one, or has become too old.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from eagleray import cron as language
from eagleray.kube.resources import RAY_JOBS
from eagleray.manifests.raycronjob import FORBID, REPLACE, RayCronJob, child_job, child_name
from eagleray.raycronjob.look import Child, Look
from eagleray.runtime.actions import Action, Create, Delete, Said, Say, Stage, Tell
from kubewire.times import format_time

SCHEDULED: Final = "Scheduled"
SUSPENDED: Final = "Suspended"

# What failed, for whoever computes the status.
CREATE_FAILED: Final = "FailedToCreateRayJob"
DELETE_FAILED: Final = "FailedToDeleteRayJob"

# So many names are told in a sentence; of more, their number.
_MOST_NAMED = 3


class Standing(NamedTuple):
    """How a schedule stands: whether RayJobs are made by it, a word for that, and a sentence."""

    is_scheduled: bool
    reason: str
    message: str


class Plan(NamedTuple):
    """What to do now, how the schedule stands if that succeeds, and when to look again.

    `tick` is the one that has been run once the stages are done; None if none is.
    """

    standing: Standing
    stages: Sequence[Stage] = ()
    tick: datetime | None = None
    next: datetime | None = None


class Ticks(NamedTuple):
    """The latest tick that has come and was not run, if any, the first such one, and the next one to come."""

    due: datetime | None
    next: datetime | None
    first: datetime | None = None


def ticks_of(cron: RayCronJob, now: datetime, local: tzinfo | None = None) -> Ticks:
    """Return the ticks around now. Where no zone is named, `local` counts, by default that of this process.

    Raises InvalidSchedule or UnknownZone; what the rules accept raises nothing.
    """
    schedule = language.parse(cron.schedule, cron.zone, local=local)
    first = schedule.next(cron.base)
    if first is None or first > now:
        return Ticks(None, first)
    due = schedule.last(first, now) or first
    return Ticks(due, schedule.next(due), first)


def plan(look: Look) -> Plan:
    """Return what a pass does about ticks."""
    cron = look.cron
    if look.problem is not None:
        return Plan(Standing(False, "ValidationFailed", str(look.problem)))
    if cron.is_suspended:
        return _suspended(look)
    due, following, first = ticks_of(cron, look.now)
    if due is None:
        return Plan(_waiting(look, following), next=following)
    name = child_name(cron, due)
    if any(child.name == name for child in look.children):
        # Made by a pass that could not write it down, or for an earlier tick of the same minute.
        return Plan(_waiting(look, following), tick=due, next=following)
    if why := _too_late(look, due):
        said = _once(look, why, Say("SkippedRayJob", "Create", why))
        return Plan(_waiting(look, following, why), said, next=following)
    if look.active and cron.policy == FORBID:
        return _held_back(look, due, following)
    return Plan(_waiting(look, following), _run(look, due, first), tick=due, next=following)


# --- ways not to run


def _suspended(look: Look) -> Plan:
    note = "RayCronJob suspended, no new RayJobs will be created"
    known = condition(look.cron, SUSPENDED)
    is_known = known is not None and known["status"] == "True"
    stages = () if is_known else (_telling(Say("SuspendedRayCronJob", "Suspend", note)),)
    return Plan(Standing(False, SUSPENDED, "spec.suspend is true; set it to false to go on"), stages)


def _waiting(look: Look, following: datetime | None, skipped: str = "") -> Standing:
    if following is None:
        message = f"{look.cron.schedule!r} names no time within five years; correct spec.schedule"
        return Standing(False, "NeverMatches", message)
    parts = [f"next run at {format_time(following)}", skipped]
    last = look.cron.last_tick
    if last is not None and last > look.now:
        parts.append(f"the clock was set back behind the run of {format_time(last)}, and no run is repeated")
    return Standing(True, SCHEDULED, "; ".join(part for part in parts if part))


def _too_late(look: Look, due: datetime) -> str:
    """Say why a tick is too old to be run; empty if it is not."""
    deadline = look.cron.deadline
    # Whole seconds, as ticks are: a deadline of 0 leaves the second of the tick.
    late = (look.now - due) // timedelta(seconds=1)
    if deadline is None or late <= max(deadline, 0):
        return ""
    return f"the run of {format_time(due)} was skipped, {deadline} s (startingDeadlineSeconds) after it had been due"


def _held_back(look: Look, due: datetime, following: datetime | None) -> Plan:
    message = (
        f"the run of {format_time(due)} waits for {_names(look.active)} to end,"
        " because concurrencyPolicy is Forbid"
    )
    said = _once(look, f"the run of {format_time(due)} waits", Say("JobAlreadyActive", "Create", message))
    return Plan(Standing(False, "JobAlreadyActive", message), said, next=following)


# --- running


def _run(look: Look, due: datetime, first: datetime | None) -> Sequence[Stage]:
    cron = look.cron
    job = child_job(cron, due)
    place = f"{cron.namespace}/{job['metadata']['name']}"
    note = f"Created RayJob {place} for the run of {format_time(due)}"
    if first is not None and first < due:
        note += f"; those since {format_time(first)} were missed, and only the latest is made up"
    said = Said(
        Say("CreatedRayJob", "Create", note),
        Say(CREATE_FAILED, "Create", f"Failed to create RayJob {place}:", "Warning"),
        CREATE_FAILED,
    )
    create = Stage("create-rayjob", (Create(RAY_JOBS, job, said),))
    if cron.policy != REPLACE:
        return (create,)
    replaced = [
        delete_child(cron, child, f"replaced by {job['metadata']['name']}")
        for child in look.active
        if not child.is_going
    ]
    return Stage("replace-rayjobs", replaced), create


def delete_child(cron: RayCronJob, child: Child, why: str) -> Action:
    """Return the deletion of a child, with the reason why."""
    place = f"{cron.namespace}/{child.name}"
    said = Said(
        Say("DeletedRayJob", "Delete", f"Deleted RayJob {place}: {why}"),
        Say(DELETE_FAILED, "Delete", f"Failed to delete RayJob {place}:", "Warning"),
        DELETE_FAILED,
    )
    return Delete(RAY_JOBS, child.ref, said)


# --- telling


def condition(cron: RayCronJob, kind: str) -> dict[str, str] | None:
    """Return a condition as it was written last."""
    return next((one for one in cron.status.get("conditions") or () if one["type"] == kind), None)


def _once(look: Look, sentence: str, say: Say) -> Sequence[Stage]:
    """Tell something unless the condition, which is written afterwards, says so already."""
    known = condition(look.cron, SCHEDULED)
    return () if known is not None and sentence in known["message"] else (_telling(say),)


def _telling(say: Say) -> Stage:
    return Stage("tell", (Tell(say),))


def _names(children: Sequence[Child]) -> str:
    if len(children) > _MOST_NAMED:
        return f"{len(children)} RayJobs"
    return ", ".join(child.name for child in children)
