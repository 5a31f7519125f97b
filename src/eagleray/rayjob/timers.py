"""Deadlines: each says when it is due, and what a job has come to when it is. Whose they are is in each one's words."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from eagleray.dashboard.words import FAILED, is_terminal
from eagleray.rayjob.look import Look
from kubewire.times import parse_time

# How long Ray may take to say that a job has ended, once its submitter has.
SUBMITTER_GRACE = 30.0


class Ending(NamedTuple):
    """What a deadline does to a job."""

    to: str
    reason: str
    message: str
    job_status: str = ""


class Timer(NamedTuple):
    """A deadline: `due` is when it ends the job, None while it does not apply; `ending` what the job ends in then."""

    name: str
    due: Callable[[Look], datetime | None]
    ending: Callable[[Look], Ending]

    def expired(self, look: Look) -> Ending | None:
        due = self.due(look)
        return self.ending(look) if due is not None and look.now >= due else None


def _after(stamp: str | None, seconds: float | None) -> datetime | None:
    if not stamp or seconds is None:
        return None
    return parse_time(stamp) + timedelta(seconds=seconds)


def _from_start(field: str) -> Callable[[Look], datetime | None]:
    return lambda look: _after(look.job.status.get("startTime"), look.job.spec.get(field))


def _passed(field: str, reason: str) -> Callable[[Look], Ending]:
    """Return the ending of a deadline that counts from the start of the attempt."""
    title = f"{field[0].upper()}{field[1:]}"

    def ending(look: Look) -> Ending:
        began = parse_time(look.job.status["startTime"])
        message = (
            f"The RayJob has passed the {field}. StartTime: {began:%Y-%m-%d %H:%M:%S} +0000 UTC."
            f" {title}: {look.job.spec[field]}"
        )
        return Ending("Failed", reason, message)

    return ending


ACTIVE = Timer(
    "activeDeadlineSeconds",
    _from_start("activeDeadlineSeconds"),
    _passed("activeDeadlineSeconds", "DeadlineExceeded"),
)
PRE_RUNNING = Timer(
    "preRunningDeadlineSeconds",
    _from_start("preRunningDeadlineSeconds"),
    _passed("preRunningDeadlineSeconds", "PreRunningDeadlineExceeded"),
)


def _transition_due(look: Look) -> datetime | None:
    if not is_terminal(look.job.job_status):
        return None
    ended = (look.job.status.get("rayJobInfo") or {}).get("endTime")
    return _after(ended, look.config.transition_grace_seconds)


def _transition_ending(look: Look) -> Ending:
    return Ending(
        "Failed" if look.job.job_status == FAILED else "Complete",
        "JobDeploymentStatusTransitionGracePeriodExceeded",
        "JobDeploymentStatus did not reach Complete or Failed within the grace period after the Ray job had ended",
    )


TRANSITION = Timer("transition grace period", _transition_due, _transition_ending)


def _status_check_due(look: Look) -> datetime | None:
    return _after(look.job.status.get("jobStatusCheckFailureStartTime"), look.config.status_check_seconds)


def _status_check_ending(look: Look) -> Ending:
    since = parse_time(look.job.status["jobStatusCheckFailureStartTime"])
    message = (
        f"Job status checks have been failing since {since:%Y-%m-%d %H:%M:%S};"
        f" exceeded timeout of {look.config.status_check_seconds:g}s"
    )
    return Ending("Failed", "JobStatusCheckTimeoutExceeded", message)


STATUS_CHECK = Timer("status-check timeout", _status_check_due, _status_check_ending)


def _submitter_due(look: Look) -> datetime | None:
    """Nobody may have looked for longer than that: Ray is asked first."""
    finished = look.finished_at
    if finished is None or not look.is_news_of_the_end:
        return None
    return finished + timedelta(seconds=SUBMITTER_GRACE)


def _submitter_ending(look: Look) -> Ending:
    message = (
        f"The RayJob submitter finished at {look.finished_at:%Y-%m-%d %H:%M:%S} but the ray job"
        f" did not reach terminal state within {SUBMITTER_GRACE:g}s"
    )
    return Ending("Failed", "JobDeploymentStatusTransitionGracePeriodExceeded", message, FAILED)


SUBMITTER = Timer("submitter finished", _submitter_due, _submitter_ending)
