"""The end of a RayJob: Ray's job is asked to stop, for a while, and then the object is let go whatever happened."""

from datetime import datetime, timedelta

from eagleray.dashboard.errors import NotThere
from eagleray.dashboard.orders import Order, Outcome, Stop
from eagleray.dashboard.words import is_terminal
from eagleray.kube.resources import RAY_JOBS, Ref
from eagleray.rayjob.look import Decision, Look
from eagleray.rayjob.states import FINALIZER
from eagleray.rayjob.submitting import address_of
from eagleray.runtime.actions import Action, Patch, Say, Stage, Tell
from kubewire.times import parse_time

STOP_SECONDS = 30


def stop_id(look: Look) -> str:
    """Return the name of the order to stop a job."""
    return f"stop {look.job.job_id}"


def plan_end(look: Look, outcome: Outcome | None) -> Decision:
    """Return the next step of a deletion: an order to stop, a wait for its outcome, or the end of the finalizer."""
    if FINALIZER not in (look.job.metadata.get("finalizers") or ()):
        return Decision()
    address = address_of(look)
    job_id = look.job.job_id
    if not _may_run(look) or address is None or _is_over(outcome):
        return _let_go(look)
    left = (_deadline(look) - look.now).total_seconds()
    if left <= 0:
        why = outcome.error if outcome is not None else "no answer"
        note = f"Could not stop Ray job {job_id} of RayJob {look.job.place} within {STOP_SECONDS}s: {why}"
        return _let_go(look, Tell(Say("FailedToStopRayJob", "Delete", note, "Warning")))
    return Decision(orders=(Order(stop_id(look), address, Stop(job_id)),), again=min(left, 5.0))


def _may_run(look: Look) -> bool:
    """Tell whether Ray may still run the job, whatever has become of the RayJob: without a cluster there is no Ray."""
    is_there = look.cluster is not None and not look.cluster["metadata"].get("deletionTimestamp")
    return is_there and bool(look.job.job_id) and not is_terminal(look.job.job_status)


def _is_over(outcome: Outcome | None) -> bool:
    """Tell whether Ray stops the job, or has none of this id."""
    return outcome is not None and (outcome.is_success or isinstance(outcome.error, NotThere))


def _deadline(look: Look) -> datetime:
    return parse_time(look.job.metadata["deletionTimestamp"]) + timedelta(seconds=STOP_SECONDS)


def _let_go(look: Look, *told: Action) -> Decision:
    left = [name for name in look.job.metadata["finalizers"] if name != FINALIZER]
    change = {"metadata": {"finalizers": left or None}}
    return Decision(
        stages=(Stage("stop", told), Stage("finalizer", (Patch(RAY_JOBS, Ref.of(look.job.obj), change),)))
    )
