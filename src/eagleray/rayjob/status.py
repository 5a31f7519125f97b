"""The status of a RayJob: what a decision makes of it, with retries counted and conditions that tell why it waits."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from eagleray.dashboard.words import SUCCEEDED
from eagleray.manifests.rayjob import RayJob
from eagleray.raycluster.status import condition_of
from eagleray.rayjob.look import Cause, Decision, Look
from eagleray.rayjob.stages import durations
from kubewire.times import format_time

Object = dict[str, Any]

TERMINAL: Final = ("Complete", "Failed")
# A retry cannot help where the user's time is up, or where Ray could not be asked.
NOT_RETRIED: Final = ("DeadlineExceeded", "JobStatusCheckTimeoutExceeded")
# There from the first write on, even when there is nothing to say.
_ALWAYS: Final[Mapping[str, Any]] = {"rayJobInfo": {}, "succeeded": 0, "failed": 0}
_NO_CLUSTER: Final[Mapping[str, Any]] = {
    "desiredCPU": "0",
    "desiredGPU": "0",
    "desiredMemory": "0",
    "desiredTPU": "0",
    "head": {},
}


def next_status(look: Look, decision: Decision) -> Object:
    """Return the status that a job should have after a decision."""
    job = look.job
    status: Object = {**job.status, **decision.fields}
    state = job.state if decision.to is None else decision.to
    status |= _cluster_status(look, state, decision)
    for field, value in _ALWAYS.items():
        status[field] = status.get(field) or value
    if decision.to in TERMINAL:
        state = _counted(job, status, decision.to)
        if state in TERMINAL:
            status["endTime"] = format_time(look.now)
    status["jobDeploymentStatus"] = state
    status["observedGeneration"] = job.generation
    status["conditions"] = conditions(look, state, status, decision.cause)
    return {field: value for field, value in status.items() if value not in (None, "") or field in _ALWAYS}


def rejected_status(job: RayJob, message: str, now: datetime) -> Object:
    """Return the status of a job that a rule refuses. One that has ended stays as it is."""
    status: Object = {**job.status, "observedGeneration": job.generation}
    if job.state not in TERMINAL:
        status |= {
            "jobDeploymentStatus": "ValidationFailed",
            "reason": "ValidationFailed",
            "message": message,
        }
        for field, value in (*_ALWAYS.items(), ("rayClusterStatus", dict(_NO_CLUSTER))):
            status[field] = status.get(field) or value
        status["conditions"] = _set(job, _only("Failed", "ValidationFailed"), message, now)
    return status


def _cluster_status(look: Look, state: str, decision: Decision) -> Object:
    """Return the copy of the cluster's status: kept up to date as long as the job has a use for the cluster."""
    if "rayClusterStatus" in decision.fields:
        return {"rayClusterStatus": dict(_NO_CLUSTER)}
    known = look.job.status.get("rayClusterStatus") or dict(_NO_CLUSTER)
    if state not in ("Initializing", "Waiting", "Running") or look.cluster is None:
        return {"rayClusterStatus": known}
    return {"rayClusterStatus": {**_NO_CLUSTER, **(look.cluster.get("status") or known)}}


def _counted(job: RayJob, status: Object, state: str) -> str:
    """Count an ending, and return what it leads to: a failure that may be retried is none yet."""
    if state == "Complete":
        status["succeeded"] += status.get("jobStatus") == SUCCEEDED
        return state
    status["failed"] += 1
    limit = job.spec.get("backoffLimit")
    if limit is None or status["failed"] > limit or status.get("reason") in NOT_RETRIED:
        return state
    return "Retrying"


def conditions(look: Look, state: str, status: Object, cause: Cause | None) -> list[Object]:
    """Return the conditions of a job, as batch Jobs have them, and what it waits for.

    Without a cause, in a state that the job was in already, what was told stays: an operator that was just started
    knows nothing better yet.
    """
    job = look.job
    reason = str(status.get("reason") or state or "New")
    message = str(status.get("message") or "")
    told = durations(status, look.heads)
    ended = "; ".join(part for part in (message, told) if part)
    if state == "Complete":
        reason = str(status.get("reason") or status.get("jobStatus") or state)
        return _set(job, _only("Complete", reason), ended, look.now)
    if state in ("Failed", "ValidationFailed"):
        return _set(job, _only("Failed", reason), ended, look.now)
    if state == "Suspended":
        return _set(job, _only("Suspended", state), "suspend is set", look.now)
    progressing = condition_of(job.status, "Progressing")
    if cause is None and state == job.state and progressing is not None:
        return _set(job, _only("Progressing", progressing["reason"]), progressing["message"], look.now)
    cause = cause or _GENERAL_CAUSES.get(state, Cause(state or "New", ""))
    text = "; ".join(part for part in (cause.message, told) if part)
    return _set(job, _only("Progressing", cause.reason), text, look.now)


def _only(kind: str, reason: str) -> dict[str, tuple[str, str]]:
    """Return the states of all conditions: one of them is true, and all for the same reason."""
    return {one: ("True" if one == kind else "False", reason) for one in _CONDITIONS}


_CONDITIONS: Final = ("Complete", "Failed", "Suspended", "Progressing")


_GENERAL_CAUSES: Final[Mapping[str, Cause]] = {
    "Initializing": Cause("ClusterNotReady", "the cluster is being made"),
    "Running": Cause("JobRunning", "the job is being watched"),
    "Suspending": Cause("WaitingForDeletion", "the cluster and the submitter are being deleted"),
    "Retrying": Cause("WaitingForDeletion", "the cluster and the submitter are being deleted"),
}


def _set(job: RayJob, states: Mapping[str, tuple[str, str]], message: str, now: datetime) -> list[Object]:
    """Return the known conditions with these set. What was never true is not told as false."""
    known = {entry["type"]: entry for entry in job.status.get("conditions") or ()}
    entries = dict(known)
    for kind, (status, reason) in states.items():
        old = known.get(kind)
        if old is None and status == "False":
            continue
        moved = old is None or old["status"] != status
        entries[kind] = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message if status == "True" or kind == "Progressing" else "",
            "observedGeneration": job.generation,
            "lastTransitionTime": format_time(now) if moved or old is None else old["lastTransitionTime"],
        }
    return list(entries.values())
