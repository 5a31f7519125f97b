"""The states of a RayJob as data: what each waits for, what ends it, and which deadlines apply.

The controller executes this table and the documentation draws it. In a state the exits are tried in order; the first
that applies is taken. While none does, its work is done, which may be nothing but to wait, with a cause.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from eagleray.dashboard.words import FAILED, is_terminal
from eagleray.kube.resources import RAY_JOBS, Ref
from eagleray.manifests.rayjob import INTERACTIVE, K8S_JOB, SIDECAR
from eagleray.manifests.submitter import CONTAINER
from eagleray.raycluster.views import ContainerStatus
from eagleray.rayjob import submitting, timers
from eagleray.rayjob.cleanup import clean_up
from eagleray.rayjob.clusters import (
    delete_cluster,
    delete_submitter,
    ensure_cluster,
    ensure_head_service,
    hold_submitter,
    is_ready,
    is_torn_down,
    pods_left,
    why_not_ready,
)
from eagleray.rayjob.look import Cause, Decision, Look
from eagleray.rayjob.scheduling import give_back, reserve
from eagleray.rayjob.timers import Timer
from eagleray.runtime.actions import Patch, Stage
from kubewire.times import format_time

Object = dict[str, Any]

FINALIZER: Final = "ray.io/rayjob-finalizer"
NEW: Final = ""
_SUFFIX: Final = 5
# How often a sidecar submitter may be started again.
_SIDECAR_RESTARTS: Final = 2
# A submitter has ended, and Ray is asked how the job is by now; so soon the answer is looked for.
_ASK_AGAIN: Final = 0.5
# So often it is seen whether Pods on a node that tells nothing have been waited for long enough.
_LOOK_FOR_PODS: Final = 30.0
_MOST_NAMES: Final = 3

Check = Callable[[Look], Decision | None]


class Exit(NamedTuple):
    """A way out of a state: where it may lead to, in which case (in words), and how that is told."""

    to: tuple[str, ...]
    when: str
    check: Check


class State(NamedTuple):
    """A state. `waits_for` is what it waits for in words; a state without deadlines says why it needs none."""

    name: str
    waits_for: str
    exits: tuple[Exit, ...]
    work: Callable[[Look], Decision]
    deadlines: tuple[Timer, ...] = ()
    without_deadline: str = ""


# --- ways out


def _ended_by(timer: Timer) -> Check:
    def check(look: Look) -> Decision | None:
        ending = timer.expired(look)
        if ending is None:
            return None
        fields = {"reason": ending.reason, "message": ending.message}
        if ending.job_status:
            fields["jobStatus"] = ending.job_status
        return Decision(ending.to, fields)

    return check


def _suspended(look: Look) -> Decision | None:
    return Decision("Suspending") if look.job.is_suspended else None


def _failed(reason: str, message: str) -> Decision:
    return Decision("Failed", {"reason": reason, "message": message})


def _cluster_is_up(look: Look) -> bool:
    return bool(look.cluster is not None and look.job.dashboard_url)


def _waits_for_id(look: Look) -> Decision | None:
    if look.job.mode != INTERACTIVE or not _cluster_is_up(look):
        return None
    return _wait_for_id(look)._replace(to="Waiting")


def _submitted(look: Look) -> Decision | None:
    if not _cluster_is_up(look) or look.job.mode == INTERACTIVE:
        return None
    if look.job.mode == K8S_JOB and (not look.job.submission or look.submitter is None):
        return None
    return Decision("Running")


def _head_lost_early(look: Look) -> Decision | None:
    """A sidecar submitter may have submitted before its cluster was ready: its head must not be replaced."""
    if look.job.mode != SIDECAR or look.cluster is None or look.heads:
        return None
    had_head = ((look.cluster.get("status") or {}).get("head") or {}).get("podName")
    return _failed("AppFailed", "Ray head pod not found.") if had_head else None


def _submitter_ended_early(look: Look) -> Decision | None:
    """A sidecar submitter that has ended keeps its head from being ready for good: the cluster is not waited for."""
    cluster = look.ray_cluster
    if look.job.mode != SIDECAR or cluster is None or look.finished_at is None:
        return None
    return Decision("Running", {"dashboardURL": submitting.found_address(look, cluster)})


def _has_id(look: Look) -> Decision | None:
    wanted = look.job.spec.get("jobId")
    return Decision("Running", {"jobId": wanted}) if wanted else None


def _submitter_failed(look: Look) -> Decision | None:
    if not look.is_news_of_the_end:
        return None
    if look.job.mode == K8S_JOB:
        return _job_failed(look)
    return _sidecar_failed(look) if look.job.mode == SIDECAR else None


def _job_failed(look: Look) -> Decision | None:
    ended = look.submitter.ending if look.submitter is not None else None
    if ended is None or ended.type == "Complete":
        return None
    if _ray_status(look) == FAILED:
        return _failed("AppFailed", _ray_message(look))
    if submitting.is_other_head(look) or submitting.is_younger_head(look):
        return _failed("JobLost", submitting.lost_message(look))
    text = f"Job submission has failed. Reason: {ended.reason}. Message: {ended.message}"
    return _failed("SubmissionFailed", text)


def _sidecar_failed(look: Look) -> Decision | None:
    if look.cluster is not None and not look.heads:
        return _failed("AppFailed", "Ray head pod not found.")
    for head in look.heads:
        for status in head.status.container_statuses:
            if status.name == CONTAINER and (text := _sidecar_trouble(look, status)):
                if _ray_status(look) == FAILED:
                    return _failed("AppFailed", _ray_message(look))
                return _failed("SubmissionFailed", text)
    return None


def _sidecar_trouble(look: Look, status: ContainerStatus) -> str:
    """Return how a sidecar submitter failed for good; empty if it did not."""
    ended = status.state.terminated
    if look.config.gate("SidecarSubmitterRestart"):
        last = status.last_state.terminated
        if (
            last is None
            or (ended is not None and ended.exit_code == 0)
            or status.restart_count < _SIDECAR_RESTARTS
        ):
            return ""
        ended = ended or last
    elif ended is None or ended.exit_code == 0:
        return ""
    return f"Ray head pod container {status.name} terminated with exit code {ended.exit_code}: {ended.reason}"


def _lost(look: Look) -> Decision | None:
    if not submitting.is_lost(look):
        return None
    return _failed("JobLost", submitting.lost_message(look))._replace(stages=hold_submitter(look))


def _never_submitted(look: Look) -> Decision | None:
    if look.finished_at is None or not look.is_news_of_the_end or not submitting.is_missing(look):
        return None
    return _failed("AppFailed", "Submitter completed but Ray job not found in RayCluster.")


def _finished(look: Look) -> Decision | None:
    """The job has ended, and whoever submitted it is done."""
    if not is_terminal(_ray_status(look)):
        return None
    # A submitter that is gone with its head has nothing more to say about a job whose end is known.
    is_gone = look.job.mode == SIDECAR and look.cluster is not None and not look.heads
    if look.has_submitter and look.finished_at is None and not is_gone:
        return None
    failed = _ray_status(look) == FAILED
    return Decision(
        "Failed" if failed else "Complete", {**_news(look), "reason": "AppFailed" if failed else None}
    )


def _ray_status(look: Look) -> str:
    info = look.info.job if look.info is not None else None
    return info.status if info is not None else look.job.job_status


def _ray_message(look: Look) -> str:
    info = look.info.job if look.info is not None else None
    return info.message if info is not None else str(look.job.status.get("message") or "")


def _gone(to: str) -> Check:
    def check(look: Look) -> Decision | None:
        # Whoever suspends a job gives its room to others, so the last Pod is waited for, too.
        if not is_torn_down(look) or (look.job.is_suspended and pods_left(look)):
            return None
        return Decision(to, RESET, give_back(look))

    return check


def _resumed(look: Look) -> Decision | None:
    return None if look.job.is_suspended else Decision(NEW, {"jobStatus": None})


def _mended(look: Look) -> Decision | None:  # noqa: ARG001 - others look at it
    """Only a valid generation comes here; the one that was refused is not looked at again."""
    return Decision(NEW, {"reason": None, "message": None})


# What an attempt leaves in the status; the next one begins without it.
RESET: Final[Mapping[str, Any]] = dict.fromkeys(
    (
        "rayClusterStatus",
        "rayClusterName",
        "dashboardURL",
        "jobId",
        "message",
        "reason",
        "rayJobInfo",
        "jobStatusCheckFailureStartTime",
        "submission",
        "jobStatus",
    )
)

# --- work


def _begin(look: Look) -> Decision:
    """Choose the names of an attempt: they are stored before anything is made under them."""
    job = look.job
    fields: Object = {"startTime": format_time(look.now)}
    if job.mode != INTERACTIVE and not job.job_id:
        fields["jobId"] = job.spec.get("jobId") or f"{job.name}-{look.entropy.suffix(_SUFFIX)}"
    if not job.cluster_name:
        fields["rayClusterName"] = job.selected_cluster or f"{job.name}-{look.entropy.suffix(_SUFFIX)}"
    finalizers = job.metadata.get("finalizers") or []
    if FINALIZER in finalizers:
        return Decision("Initializing", fields)
    change = {"metadata": {"finalizers": [*finalizers, FINALIZER]}}
    stage = Stage("finalizer", (Patch(RAY_JOBS, Ref.of(job.obj), change),))
    return Decision("Initializing", fields, (stage,))


def _initialize(look: Look) -> Decision:
    """Have a cluster, wait until it is ready, and hand the job over."""
    wanted = reserve(look)
    if wanted is not None:
        return wanted
    if look.job.mode == SIDECAR and not look.job.submission:
        return submitting.record(look)  # the submitter comes with the head: there is no later moment for it
    missing = ensure_cluster(look)
    if missing is not None:
        return missing
    cluster = look.ray_cluster
    if cluster is None or not (is_ready(look) or look.job.dashboard_url):
        return Decision(cause=why_not_ready(look))
    if not look.job.dashboard_url:
        return Decision(fields={"dashboardURL": submitting.found_address(look, cluster)})
    if look.job.mode == K8S_JOB:
        return _submit_by_job(look)
    return Decision()


def _submit_by_job(look: Look) -> Decision:
    cluster = look.ray_cluster
    if not look.job.submission:
        return submitting.record(look)
    if look.submitter is None and cluster is not None:
        return submitting.submit_by_job(look, cluster)
    return Decision()


def _wait_for_id(look: Look) -> Decision:
    place = f"{look.job.namespace}/{look.job.cluster_name}"
    text = f"submit a job to RayCluster {place} and write its id into spec.jobId"
    return Decision(cause=Cause("WaitingForJobId", text))


def _run(look: Look) -> Decision:
    """Keep the attempt's cluster and Service, have the job submitted, and note what Ray says of it."""
    missing = reserve(look) or ensure_cluster(look)
    if missing is not None:
        return missing
    service = ensure_head_service(look)
    if service:
        return Decision(stages=service)
    if look.job.mode == K8S_JOB and look.submitter is None:
        return _submit_by_job(look)
    news = _news(look)
    if submitting.needs_submission(look):
        if submitting.needs_record(look):
            return submitting.record(look)
        return submitting.submit_by_http(look)._replace(fields=news)
    if not look.is_news_of_the_end:
        return Decision(fields=news, cause=_why_running(look), again=_ASK_AGAIN, hurries=True)
    return Decision(fields=news, cause=_why_running(look))


def _news(look: Look) -> Object:
    """Return what Ray's latest answer changes in the status."""
    job, seen = look.job, look.info
    if seen is None:
        return {}
    fields: Object = {}
    is_missing = submitting.is_missing(look)
    failing = (seen.error is not None and not is_missing) or (
        is_missing and submitting.refusal(look) is not None
    )
    if failing and not job.status.get("jobStatusCheckFailureStartTime"):
        fields["jobStatusCheckFailureStartTime"] = format_time(seen.failing_since or look.now)
    if not failing and job.status.get("jobStatusCheckFailureStartTime"):
        fields["jobStatusCheckFailureStartTime"] = None
    info = seen.job if seen.error is None else None
    if info is None:
        return fields
    times = {"startTime": info.started_at, "endTime": info.ended_at}
    told: Object = {
        "jobStatus": info.status,
        "message": info.message or None,
        "rayJobInfo": {name: format_time(moment) for name, moment in times.items() if moment is not None},
    }
    return fields | {
        name: value for name, value in told.items() if (job.status.get(name) or None) != (value or None)
    }


def _why_running(look: Look) -> Cause | None:
    """Return what a running job waits for; None until Ray was asked, so that what was told of it stays."""
    job_id = look.job.job_id
    if is_terminal(status := _ray_status(look)):
        text = f"Ray job {job_id} is {status}; its submitter has not ended yet"
        return Cause("WaitingForSubmitter", text)
    if look.info is None:
        return None
    if submitting.is_missing(look):
        if look.job.mode == INTERACTIVE:
            return Cause("JobNotFound", f"RayCluster {look.job.cluster_name} knows no job {job_id} yet")
        return Cause("WaitingForSubmitter", f"job {job_id} has not reached Ray yet")
    if look.info.error is not None:
        return Cause(
            "DashboardUnreachable", f"Ray's dashboard at {look.job.dashboard_url}: {look.info.error}"
        )
    return Cause("JobRunning", f"Ray job {job_id} is {status}")


def _tear_down(look: Look) -> Decision:
    """Take away what an attempt has made."""
    stages = (*delete_cluster(look), *delete_submitter(look))
    left = [
        name
        for name, is_there in (
            (f"RayCluster {look.job.cluster_name}", look.cluster is not None and look.is_own_cluster),
            (f"Job {look.job.name}", look.submitter is not None),
        )
        if is_there
    ]
    left += [f"Pod {pod.name}" for pod in pods_left(look)][:_MOST_NAMES]
    cause = Cause("WaitingForDeletion", f"still there: {', '.join(left)}")
    return Decision(stages=stages, cause=cause, again=_LOOK_FOR_PODS)


def _after_the_end(look: Look) -> Decision:
    """Take away what the user wants to go; a scheduler that cannot take its own back is only told of."""
    decision = clean_up(look)
    return decision._replace(stages=(*decision.stages, *give_back(look, may_fail=True)))


def _rest(look: Look) -> Decision:  # noqa: ARG001 - others look at it
    return Decision()


# --- the table

_SUSPEND = Exit(("Suspending",), "suspend is set", _suspended)
_ACTIVE = Exit(("Failed",), "activeDeadlineSeconds have passed", _ended_by(timers.ACTIVE))
_PRE_RUNNING = Exit(("Failed",), "preRunningDeadlineSeconds have passed", _ended_by(timers.PRE_RUNNING))

STATES: Final[Mapping[str, State]] = {
    state.name: state
    for state in (
        State(
            NEW,
            "nothing: names are chosen and stored at once",
            (Exit(("Initializing",), "always, once the names of the attempt are chosen", _begin),),
            _rest,
            without_deadline="it is left in the pass that sees it",
        ),
        State(
            "Initializing",
            "its cluster to be ready, and its submission",
            (
                _SUSPEND,
                _ACTIVE,
                _PRE_RUNNING,
                Exit(("Failed",), "the head with the sidecar submitter is lost", _head_lost_early),
                Exit(("Waiting",), "the cluster is ready, in InteractiveMode", _waits_for_id),
                Exit(("Running",), "the cluster is ready and the job handed over", _submitted),
                Exit(("Running",), "the sidecar submitter has ended before that", _submitter_ended_early),
            ),
            _initialize,
            (timers.ACTIVE, timers.PRE_RUNNING),
        ),
        State(
            "Waiting",
            "a user to submit a job and to name it in spec.jobId",
            (_SUSPEND, _ACTIVE, _PRE_RUNNING, Exit(("Running",), "spec.jobId is set", _has_id)),
            _wait_for_id,
            (timers.ACTIVE, timers.PRE_RUNNING),
        ),
        State(
            "Running",
            "the end of the job, as Ray and the submitter tell it",
            (
                _SUSPEND,
                _ACTIVE,
                Exit(
                    ("Complete", "Failed"),
                    "Ray's job ended long ago and the submitter does not",
                    _ended_by(timers.TRANSITION),
                ),
                Exit(("Failed",), "Ray cannot be asked for too long", _ended_by(timers.STATUS_CHECK)),
                Exit(("Complete", "Failed"), "the job has ended and its submitter is done", _finished),
                Exit(("Failed",), "the job was lost", _lost),
                Exit(
                    ("Failed",),
                    "the submitter ended and the job did not for 30 s",
                    _ended_by(timers.SUBMITTER),
                ),
                Exit(("Failed",), "the submitter failed", _submitter_failed),
                Exit(("Failed",), "the submitter ended and Ray knows no such job", _never_submitted),
            ),
            _run,
            (timers.ACTIVE, timers.TRANSITION, timers.STATUS_CHECK, timers.SUBMITTER),
        ),
        State(
            "Suspending",
            "the cluster and the submitter to be gone",
            (Exit(("Suspended",), "nothing of the attempt is left", _gone("Suspended")),),
            _tear_down,
            without_deadline="deletions are watched; whatever holds one up is named",
        ),
        State(
            "Retrying",
            "the cluster and the submitter to be gone",
            (Exit((NEW,), "nothing of the attempt is left", _gone(NEW)),),
            _tear_down,
            without_deadline="deletions are watched; whatever holds one up is named",
        ),
        State(
            "Suspended",
            "suspend to be taken back",
            (Exit((NEW,), "suspend is false", _resumed),),
            _rest,
            without_deadline="the user, or Kueue, decides how long",
        ),
        State("Complete", "nothing", (), _after_the_end, without_deadline="it is an end"),
        State("Failed", "nothing", (), _after_the_end, without_deadline="it is an end"),
        State(
            "ValidationFailed",
            "a generation that is valid",
            (Exit((NEW,), "the spec was mended", _mended),),
            _rest,
            without_deadline="only the user can mend it",
        ),
    )
}


def decide(look: Look) -> Decision:
    """Return what to do about a valid RayJob that is there to stay."""
    state = STATES.get(look.job.state)
    if state is None:
        return Decision()
    for way_out in state.exits:
        decision = way_out.check(look)
        if decision is not None:
            return decision
    return state.work(look)


def next_deadline(look: Look) -> float | None:
    """Return in how many seconds the next deadline of the present state is due."""
    state = STATES.get(look.job.state)
    dues = [timer.due(look) for timer in state.deadlines] if state is not None else []
    left = [(due - look.now).total_seconds() for due in dues if due is not None]
    return min((seconds for seconds in left if seconds > 0), default=None)
