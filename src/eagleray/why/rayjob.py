"""What a RayJob waits for, stage by stage: a pure function of what was seen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from eagleray.kube.resources import RAY_CLUSTERS
from eagleray.manifests.submitter import OTHER_HEAD_EXIT_CODE
from eagleray.raycluster.status import condition_of
from eagleray.raycluster.troubles import trouble_of
from eagleray.raycluster.views import JobView, PodView
from eagleray.rayjob.controller import MANAGER
from eagleray.rayjob.deletion import STOP_SECONDS
from eagleray.rayjob.look import Look
from eagleray.rayjob.stages import stages_of
from eagleray.rayjob.states import FINALIZER, STATES, decide
from eagleray.rayjob.status import TERMINAL
from eagleray.runtime.actions import Tell, described
from eagleray.schedulers.made import FAILED as SCHEDULER_FAILED
from eagleray.why import raycluster
from eagleray.why.eventing import open_failures
from eagleray.why.operators import absence_of, nobody_leads
from eagleray.why.reading import SeenJob
from eagleray.why.report import Report
from kubewire.owners import controller_of
from kubewire.sources import SeededEntropy
from kubewire.times import format_time, parse_time

Object = dict[str, Any]

_KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"

# What a job is told to wait for while it runs, if that is more than its own end.
_NO_DASHBOARD: Final = "DashboardUnreachable"
_RUNNING_WELL: Final = "JobRunning"


def diagnose(seen: SeenJob) -> Report:
    """Return what is to be said of a job; what holds it back the most comes first."""
    report = _diagnose(seen, f"RayJob {seen.job.place}")
    absent = nobody_leads(seen.leases, seen.now)
    return report._replace(notes=[*report.notes, *absent, *seen.unseen.values()])


def _diagnose(seen: SeenJob, place: str) -> Report:
    job = seen.job
    manager = job.spec.get("managedBy")
    if manager not in (None, MANAGER):
        cause = f"spec.managedBy is {manager}: its cluster and its status are up to that controller alone"
        return Report(f"{place} is managed by {manager}.", causes=[cause])
    if job.metadata.get("deletionTimestamp"):
        return _deletion(seen, place)
    if seen.rejected and job.state not in TERMINAL:
        return Report(f"{place} is invalid: nothing is done for it.", causes=[seen.rejected])
    if absence := absence_of(job.obj, seen.leases, seen.now):
        return Report(f"{place} waits for an operator.", causes=[absence])
    told = _OF_STATES.get(job.state)
    if told is None:
        return Report(f"{place} is in a state that nobody knows: {job.state!r}.")
    report = told(seen, place)
    notes = [*report.notes, *_deadlines(seen)]
    return report._replace(stages=list(_stages(seen)), notes=notes, steps=_steps(seen))


# --- a job on its way


def _initializing(seen: SeenJob, place: str) -> Report:
    job = seen.job
    if seen.cluster is None and RAY_CLUSTERS in seen.unseen:
        return Report(f"{place} waits for its cluster.", causes=[_progress(seen)])
    if seen.cluster is None and job.has_selector:
        cause = (
            f"spec.clusterSelector names RayCluster {job.namespace}/{job.cluster_name}, which does not exist;"
            " create it, or name another one in a new RayJob"
        )
        return Report(f"{place} waits for a cluster that is not there.", causes=[cause])
    if seen.cluster is None:
        return Report(f"{place} waits for its cluster to be made.", causes=_failed_steps(seen))
    if not job.dashboard_url:
        return Report(f"{place} waits for its cluster.", causes=[*_failed_steps(seen), *_of_cluster(seen)])
    causes = [*_conflict(seen), *_failed_steps(seen)]
    return Report(f"{place} waits to be submitted.", causes=causes or [_progress(seen)])


def _waiting(seen: SeenJob, place: str) -> Report:
    job = seen.job
    command = (
        f'kubectl patch rayjob {job.name} -n {job.namespace} --type merge -p \'{{"spec":{{"jobId":"ID"}}}}\''
    )
    cause = f"submit a job to RayCluster {job.namespace}/{job.cluster_name} and write its id into spec.jobId: {command}"
    return Report(f"{place} waits for a job to be submitted by hand.", causes=[cause])


def _running(seen: SeenJob, place: str) -> Report:
    reason = (condition_of(seen.job.status, "Progressing") or {}).get("reason", "")
    about_cluster = [] if _is_cluster_ready(seen) else _of_cluster(seen)
    causes = [*about_cluster, *_of_submitter(seen), *_failed_steps(seen)]
    if reason == _NO_DASHBOARD:
        return Report(f"{place} waits for Ray's dashboard.", causes=[_progress(seen), *causes])
    if reason == _RUNNING_WELL and not causes:
        return Report(f"{place} is running.", is_ready=True, notes=[_progress(seen)])
    if reason == _RUNNING_WELL:
        return Report(f"{place} is running, but something is wrong.", causes=causes, notes=[_progress(seen)])
    return Report(f"{place} waits for Ray to have the job.", causes=[_progress(seen), *causes])


def _is_cluster_ready(seen: SeenJob) -> bool:
    cluster = seen.cluster.cluster.obj if seen.cluster is not None else {}
    return (cluster.get("status") or {}).get("state") == "ready"


def _progress(seen: SeenJob) -> str:
    """Return what the operator itself says of a job that has not ended."""
    condition = condition_of(seen.job.status, "Progressing") or {}
    return str(condition.get("message") or "").partition("; took: ")[0] or "nothing is known to be wrong"


def _of_cluster(seen: SeenJob) -> list[str]:
    """Return what the job's cluster waits for, in its own words."""
    if seen.cluster is None:
        return []
    report = raycluster.diagnose(seen.cluster)
    return [] if report.is_ready else [report.verdict, *report.causes]


def _of_submitter(seen: SeenJob) -> Iterator[str]:
    """Yield what keeps the Pods that should submit the job; of those that failed the last one speaks for all."""
    failed = [pod for pod in seen.submitter_pods if pod.status.phase == "Failed"]
    for pod in seen.submitter_pods:
        if pod not in failed and (trouble := trouble_of(pod)):
            yield f"submitter Pod {pod.name}: {trouble.text or trouble.kind}; {trouble.help}"
    if failed:
        count = f" ({len(failed)} have failed)" if len(failed) > 1 else ""
        yield f"submitter Pod {failed[-1].name}{count}: {_ending(failed[-1])}; see eagleray job logs {_named(seen)}"


def _ending(pod: PodView) -> str:
    ends = (one.state.terminated for one in pod.status.container_statuses)
    if any(end is not None and end.exit_code == OTHER_HEAD_EXIT_CODE for end in ends):
        return "it found another head than the one that the job was meant for, and submitted nothing"
    trouble = trouble_of(pod)
    return trouble.text if trouble is not None else "it failed"


def _conflict(seen: SeenJob) -> Iterator[str]:
    """Yield that somebody else's Job has the name of the submitter."""
    found = seen.submitter
    owner = (controller_of(found) or {}) if found is not None else {}
    if found is None or owner.get("uid") == seen.job.uid:
        return
    whose = f"{owner['kind']} {owner['name']}" if owner else "nobody"
    yield (
        f"Job {seen.job.place} has the name that the submitter needs and belongs to {whose};"
        " delete or rename it, or give the RayJob another name"
    )


# Steps that were refused, by the event that tells so, and the event that tells that one was done.
_FAILURES: Final[Mapping[str, str]] = {
    SCHEDULER_FAILED: "CreatedRayCluster",
    "FailedToCreateRayCluster": "CreatedRayCluster",
    "FailedToCreateRayJobSubmitter": "CreatedRayJobSubmitter",
    "FailedToCreateService": "CreatedService",
    "FailedToDeleteRayCluster": "DeletedRayCluster",
    "FailedToDeleteRayJobSubmitter": "DeletedRayJobSubmitter",
    "FailedToCleanupBatchScheduler": "BatchSchedulerCleanedUp",
}


def _failed_steps(seen: SeenJob) -> list[str]:
    """Return which step of the present attempt was refused, as events tell; one that was done since is none."""
    return list(open_failures(seen.events, _FAILURES, str(seen.job.status.get("startTime") or "")))


# --- a job between attempts, or without one


def _retrying(seen: SeenJob, place: str) -> Report:
    status, spec = seen.job.status, seen.job.spec
    most = int(spec.get("backoffLimit") or 0) + 1
    failed = int(status.get("failed") or 0)
    report = _leaving(seen, f"{place} is retried")
    why = f"attempt {failed} of {most} failed: {status.get('reason', '')}: {status.get('message', '')}"
    return report._replace(causes=[why.rstrip(": "), *report.causes])


def _suspending(seen: SeenJob, place: str) -> Report:
    return _leaving(seen, f"{place} is suspended")


def _leaving(seen: SeenJob, verdict: str) -> Report:
    """Return what is left of an attempt that has to go, and what holds it."""
    causes = [*_failed_steps(seen), *_of_cluster(seen)]
    submitter = seen.submitter
    if submitter is not None:
        held = ", ".join(submitter["metadata"].get("finalizers") or ())
        causes.append(f"Job {seen.job.place} is not gone yet{f', held by {held}' if held else ''}")
    return Report(f"{verdict} once its cluster and its submitter are gone.", causes=causes)


def _suspended(seen: SeenJob, place: str) -> Report:
    queue = seen.job.labels.get(_KUEUE_QUEUE)
    if queue:
        cause = (
            f"Kueue holds it in queue {queue} until there is room: see its Workload"
            f" (kubectl get workloads -n {seen.job.namespace}); do not set spec.suspend by hand"
        )
    else:
        cause = "spec.suspend is true; set it to false to have it run"
    return Report(f"{place} is suspended.", causes=[cause])


# --- a job at its end


def _complete(seen: SeenJob, place: str) -> Report:
    status = seen.job.job_status
    is_stopped = status != "SUCCEEDED"
    return Report(
        f"{place} is complete: Ray says {status}.", is_ready=not is_stopped, notes=_last_words(seen)
    )


_WAYS_OUT: Final[Mapping[str, str]] = {
    "AppFailed": "see what it printed: eagleray job logs {job}",
    "SubmissionFailed": "see what the submitter printed: eagleray job logs {job}",
    "JobLost": (
        "let heads keep their jobs (gcsFaultToleranceOptions), or let a lost job run again on another cluster"
        " (spec.backoffLimit)"
    ),
    "DeadlineExceeded": (
        "raise spec.activeDeadlineSeconds, which counts from the start of the attempt, its cluster included"
    ),
    "PreRunningDeadlineExceeded": "raise spec.preRunningDeadlineSeconds, or mend what kept its cluster",
    "JobStatusCheckTimeoutExceeded": (
        "see whether the head runs and its dashboard can be reached from the operator; how long it is asked in vain"
        " is RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS of the operator"
    ),
    "JobDeploymentStatusTransitionGracePeriodExceeded": "see what kept the submitter: eagleray job logs {job}",
}


def _failed(seen: SeenJob, place: str) -> Report:
    status = seen.job.status
    reason = str(status.get("reason") or "")
    way_out = _WAYS_OUT.get(reason, "").replace("{job}", _named(seen))
    message = str(status.get("message") or "")
    causes = ["; ".join(part for part in (message.strip().rstrip("."), way_out) if part)]
    if reason in ("SubmissionFailed", "JobLost"):
        causes += _of_submitter(seen)
    if reason in ("PreRunningDeadlineExceeded", "DeadlineExceeded", "JobStatusCheckTimeoutExceeded"):
        causes += [] if _is_cluster_ready(seen) else _of_cluster(seen)
    notes = ["a RayJob that has ended does not start again: delete it and create it anew"]
    return Report(f"{place} has failed: {reason}.", causes=[cause for cause in causes if cause], notes=notes)


def _last_words(seen: SeenJob) -> list[str]:
    message = str(seen.job.status.get("message") or "")
    return [message] if message else []


def _deletion(seen: SeenJob, place: str) -> Report:
    job = seen.job
    finalizers = job.metadata.get("finalizers") or ()
    causes = []
    if FINALIZER in finalizers:
        since = (seen.now - parse_time(job.metadata["deletionTimestamp"])).total_seconds()
        left = STOP_SECONDS - since
        when = f"at the latest in {left:.0f} s" if left > 0 else "as soon as an operator looks at it"
        causes.append(f"Ray is asked to stop job {job.job_id}; whatever comes of it, it is let go {when}")
    if others := [name for name in finalizers if name != FINALIZER]:
        causes.append(f"finalizers that others have to remove: {', '.join(others)}")
    return Report(f"{place} is being deleted.", causes=causes)


_OF_STATES: Final[Mapping[str, Callable[[SeenJob, str], Report]]] = {
    "": _initializing,
    "Initializing": _initializing,
    "Waiting": _waiting,
    "Running": _running,
    "Retrying": _retrying,
    "Suspending": _suspending,
    "Suspended": _suspended,
    "Complete": _complete,
    "Failed": _failed,
    # The generation that was refused is not there any more, or it would have been named before.
    "ValidationFailed": _initializing,
}


# --- times, and what comes next


def _stages(seen: SeenJob) -> Iterator[str]:
    if seen.job.state in ("Suspended", "Suspending", "Retrying"):
        return
    has_ended = seen.job.state in TERMINAL
    for name, seconds, is_over in stages_of(seen.job.status, seen.now):
        if is_over:
            yield f"{name} took {seconds} s"
        elif has_ended:
            yield f"{name} was given up after {seconds} s"
        else:
            yield f"{name} has taken {seconds} s so far"


def _look(seen: SeenJob) -> Look:
    """Return what an operator with default settings would see, without what Ray says."""
    submitter = seen.submitter
    is_own = submitter is not None and (controller_of(submitter) or {}).get("uid") == seen.job.uid
    return Look(
        seen.job,
        seen.now,
        SeededEntropy("why"),
        cluster=seen.cluster.cluster.obj if seen.cluster is not None else None,
        submitter=msgspec.convert(submitter, JobView) if is_own else None,
        service=seen.service,
        heads=[pod for pod in seen.cluster.snapshot.pods if pod.is_head] if seen.cluster is not None else (),
    )


def _deadlines(seen: SeenJob) -> Iterator[str]:
    """Yield when the present state ends by itself."""
    look = _look(seen)
    for timer in STATES[seen.job.state].deadlines:
        due = timer.due(look)
        if due is not None and due > seen.now:
            left = (due - seen.now).total_seconds()
            yield f"it is ended by the {timer.name} at {format_time(due)}, in {left:.0f} s"


def _steps(seen: SeenJob) -> Sequence[str]:
    """Return what the operator does next."""
    if seen.cluster is None and RAY_CLUSTERS in seen.unseen:
        return ()  # without a look at the cluster nobody knows
    decision = decide(_look(seen))
    actions = [
        line.partition(": ")[2]
        for stage in decision.stages
        for line in described(
            [stage._replace(actions=[one for one in stage.actions if not isinstance(one, Tell)])]
        )
    ]
    if actions:
        return actions
    if decision.to is not None and decision.to != seen.job.state:
        return [f"go on to {decision.to or 'New'}"]
    if seen.job.state in TERMINAL and decision.again:
        return [f"clean up in {decision.again:.0f} s"]
    return ["nothing until something changes"]


def _named(seen: SeenJob) -> str:
    return f"{seen.job.name} -n {seen.job.namespace}"
