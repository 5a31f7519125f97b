"""How an attempt reaches Ray at most once: recorded first, then submitted to that head and to no other.

Ray refuses a second job of one submission id as long as the head lives, so repeating a submission to the same head is
safe. A new head has forgotten: what was submitted to its predecessor is lost, and is never submitted again silently.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from eagleray.dashboard.address import Address, AddressError, head_address, status_address
from eagleray.dashboard.errors import AlreadyThere, DashboardError, NotThere
from eagleray.dashboard.orders import Order, Submit
from eagleray.dashboard.questions import JobOf, Question, SessionOf
from eagleray.dashboard.requests import Submission
from eagleray.dashboard.words import Version, is_terminal
from eagleray.kube.resources import JOBS
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import HTTP, K8S_JOB, SIDECAR
from eagleray.manifests.services import head_service
from eagleray.manifests.submitter import Expected, NotSubmittable, runtime_env, submitter_job
from eagleray.rayjob.clusters import is_ready
from eagleray.rayjob.look import Cause, Decision, Look
from eagleray.runtime.actions import Action, Create, Refuse, Said, Say, Stage
from eagleray.schedulers.interface import SUBMITTER_GROUP
from kubewire.times import format_time, parse_time

Object = dict[str, Any]

RESUBMIT_LOST = "eagleray.io/resubmit-lost-job"
# So long a submitter waits for the head to tell its session; afterwards the time of the request has to do.
SESSION_PATIENCE = 10.0
# A head that is well answers much sooner; a wait is told only after that. Clusters tell whole seconds.
_FIRST_ANSWER = 2.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SESSION_TIME = re.compile(r"session_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6})", re.ASCII)


def address_of(look: Look) -> Address | None:
    """Return where to ask Ray, be it written down already or not; None as long as the cluster is not ready."""
    url = look.job.dashboard_url or _url_to_be(look)
    if not url:
        return None
    try:
        return status_address(look.job.namespace, url, secret=token_secret(look.ray_cluster))
    except AddressError:
        return None


def found_address(look: Look, cluster: Cluster) -> str:
    """Return the dashboard's name and port, as it goes into the status."""
    service = head_service(cluster, look.config.settings)
    return head_address(service, domain=look.config.settings.cluster_domain).host


def _url_to_be(look: Look) -> str:
    cluster = look.ray_cluster
    return found_address(look, cluster) if cluster is not None and is_ready(look) else ""


def questions(look: Look) -> Iterator[Question]:
    """Yield what is to be asked of Ray in this state; nothing once the job is known to have ended."""
    address = address_of(look)
    is_asked = look.job.state in ("Initializing", "Running") and not is_terminal(look.job.job_status)
    if address is None or not is_asked:
        return
    yield SessionOf(address)
    if look.job.state == "Running" and look.job.job_id:
        yield JobOf(address, look.job.job_id)


def is_missing(look: Look) -> bool:
    """Tell whether Ray says that it has no such job."""
    return look.info is not None and isinstance(look.info.error, NotThere)


def was_seen(look: Look) -> bool:
    """Tell whether Ray has ever told of the job of this attempt."""
    return bool(look.job.job_status)


def is_other_head(look: Look) -> bool:
    """Tell whether another head answers than the one that the attempt was recorded for."""
    recorded = look.job.submission.get("headSession") or ""
    answering = look.session.session if look.session is not None else ""
    return bool(recorded and answering and recorded != answering)


def is_younger_head(look: Look) -> bool:
    """Tell whether the head that answers began after the attempt was recorded for one that did not tell its session.

    The name of a session has the head's own time, so this only explains a submitter's refusal and decides nothing.
    """
    recorded = look.job.submission
    begun = _SESSION_TIME.match(look.session.session if look.session is not None else "")
    if not recorded or recorded.get("headSession") or begun is None:
        return False
    moment = datetime.strptime(f"{begun[1]} +0000", "%Y-%m-%d_%H-%M-%S_%f %z")
    return moment > parse_time(recorded["requestedAt"])


def is_lost(look: Look) -> bool:
    """Tell whether the job was submitted and Ray does not know it any more."""
    if not is_missing(look) or _resubmits(look):
        return False
    return was_seen(look) or (bool(look.job.submission) and is_other_head(look)) or _is_forgotten(look)


def _resubmits(look: Look) -> bool:
    """Tell whether a lost job is to be submitted again, as the user may wish where the operator submits."""
    return look.job.mode == HTTP and look.job.annotations.get(RESUBMIT_LOST) == "true"


def _is_forgotten(look: Look) -> bool:
    """Tell whether Ray has taken our submission, and later knew nothing of it."""
    if not was_accepted(look) or look.info is None or look.outcome is None:
        return False
    return is_missing(look) and look.info.at > look.outcome.at


def was_accepted(look: Look) -> bool:
    """Tell whether Ray is known to have taken our own submission, be it an earlier one under the same id."""
    done = look.outcome
    return done is not None and (done.is_success or isinstance(done.error, AlreadyThere))


def refusal(look: Look) -> DashboardError | None:
    """Return how our own submission failed, if it did."""
    return None if look.outcome is None or was_accepted(look) else look.outcome.error


def lost_message(look: Look) -> str:
    """Return what became of a lost job, in words."""
    recorded = look.job.submission.get("headSession") or "of an earlier head"
    answering = (look.session.session if look.session is not None else "") or "unknown"
    if is_other_head(look) or is_younger_head(look):
        return (
            f"Ray job {look.job.job_id} was lost with its head: it was submitted in session {recorded},"
            f" and session {answering} answers now"
        )
    return f"Ray job {look.job.job_id} is not known to Ray any more, in session {answering}"


def record(look: Look) -> Decision:
    """Return the record of an attempt's submission, or what it waits for: the session of the head."""
    session = look.session.session if look.session is not None else ""
    is_answered = bool(session) or _tells_no_session(look)
    if not is_answered and look.job.mode == K8S_JOB:
        left = _patience_left(look)
        if left > 0:
            is_brief = left > SESSION_PATIENCE - _FIRST_ANSWER
            return Decision(cause=_unreachable(look), again=min(left, _FIRST_ANSWER), is_brief=is_brief)
    elif not is_answered and look.job.mode == HTTP:
        return Decision(cause=_unreachable(look))
    attempt = int(look.job.status.get("failed") or 0) + 1
    recorded: Object = {
        "attempt": attempt,
        "submissionId": look.job.job_id,
        "requestedAt": format_time(look.now),
    }
    if session:
        recorded["headSession"] = session
    is_told = (
        look.job.mode != SIDECAR
    )  # whose submitter comes with the cluster, which is what it waits for first
    cause = Cause("Submitting", f"Ray job {look.job.job_id} is being submitted") if is_told else None
    return Decision(fields={"submission": recorded}, cause=cause)


def submit_by_job(look: Look, cluster: Cluster) -> Decision:
    """Return the creation of the submitter Job of a recorded attempt."""
    job = look.job
    place = f"{job.namespace}/{job.name}"
    failed = Say(
        "FailedToCreateRayJobSubmitter", "Create", f"Failed to create new Kubernetes Job {place}:", "Warning"
    )
    cause = None
    recorded = job.submission
    expected = Expected(recorded.get("headSession") or "", recorded["requestedAt"])
    action: Action
    try:
        wanted = submitter_job(job, cluster, expected, look.config.settings)
    except NotSubmittable as why:
        action = Refuse(str(why), failed._replace(note=f"{failed.note} {why}"))
        cause = Cause("NotSubmittable", str(why))
    else:
        look.config.scheduler.mark_pod(job, SUBMITTER_GROUP, wanted["spec"]["template"])
        done = Say("CreatedRayJobSubmitter", "Create", f"Created Kubernetes Job {place}")
        action = Create(JOBS, wanted, Said(done, failed))
    return Decision(stages=(Stage("submitter", (action,)),), cause=cause)


def submit_by_http(look: Look) -> Decision:
    """Return the order to run a recorded attempt; the poller carries it out beside the passes."""
    address = address_of(look)
    if address is None:
        return Decision(cause=_unreachable(look))
    job = look.job
    session = job.submission.get("headSession") or ""
    try:
        submission = _submission(look)
    except NotSubmittable as why:
        cause = Cause("NotSubmittable", str(why))
        return Decision(stages=(Stage("submission", (Refuse(str(why)),)),), cause=cause)
    failed = refusal(look)
    if failed is None:
        cause = Cause("Submitting", f"Ray job {job.job_id} is being submitted to {address}")
    else:
        cause = Cause("SubmissionRefused", f"Ray job {job.job_id} cannot be submitted to {address}: {failed}")
        if (left := _pause_left(look)) > 0:
            return Decision(cause=cause, again=left)
    order = Order(order_id(look), address, Submit(submission, session))
    return Decision(orders=(order,), cause=cause)


def order_id(look: Look) -> str:
    """Return the name of the order to submit the recorded attempt; another head makes it another order."""
    return f"submit {look.job.job_id} in {look.job.submission.get('headSession') or ''}"


def _pause_left(look: Look) -> float:
    """Return for how many seconds more a refused submission is left alone: as long as it has been failing by then."""
    done = look.outcome
    if done is None:
        return 0.0
    failing = look.job.status.get("jobStatusCheckFailureStartTime")
    lasted = (done.at - parse_time(failing)).total_seconds() if failing else 0.0
    pause = min(max(lasted, _SHORTEST_PAUSE), _LONGEST_PAUSE)
    return pause - (look.now - done.at).total_seconds()


def needs_submission(look: Look) -> bool:
    """Tell whether the operator itself has to hand the job to Ray now."""
    if look.job.mode != HTTP or not is_missing(look) or (was_accepted(look) and not _is_forgotten(look)):
        return False
    return _resubmits(look) or not was_seen(look)


def needs_record(look: Look) -> bool:
    """Tell whether the next submission of this attempt is not recorded yet."""
    recorded = look.job.submission
    if not recorded:
        return True
    return _resubmits(look) and is_other_head(look)


def _submission(look: Look) -> Submission:
    spec = look.job.spec
    text = spec.get("entrypointResources") or ""
    try:
        resources = json.loads(text) if text else None
    except ValueError as bad:
        raise NotSubmittable(f"spec.entrypointResources: {bad}") from bad
    if resources is not None and not (
        isinstance(resources, dict)
        and all(isinstance(amount, int | float) and amount is not True for amount in resources.values())
    ):
        raise NotSubmittable("spec.entrypointResources: has to be a JSON object of numbers")
    environment = spec.get("runtimeEnvYAML")
    return Submission(
        (spec.get("entrypoint") or ""),
        look.job.job_id,
        runtime_env(environment) if environment else None,
        spec.get("metadata"),
        float(spec.get("entrypointNumCpus") or 0),
        float(spec.get("entrypointNumGpus") or 0),
        resources,
    )


def _tells_no_session(look: Look) -> bool:
    """Tell whether the dashboard has answered and does not name its session; asking for it again would not help."""
    return look.session is not None and isinstance(look.session.value, Version) and not look.session.session


def _unreachable(look: Look) -> Cause:
    error = look.session.error if look.session is not None else None
    why = f": {error}" if error is not None else ""
    return Cause("DashboardUnreachable", f"Ray's dashboard at {look.job.dashboard_url} does not answer{why}")


def _patience_left(look: Look) -> float:
    """Return for how many seconds more a submitter waits for the session, from when its cluster became ready."""
    times = ((look.cluster or {}).get("status") or {}).get("stateTransitionTimes") or {}
    since = look.seconds_since(times.get("ready"))
    return SESSION_PATIENCE - since if since is not None else 0.0


def token_secret(cluster: Cluster | None) -> str:
    """Return the Secret with the token that a cluster's dashboard asks for."""
    if cluster is None or cluster.auth.get("mode") != "token":
        return ""
    return cluster.auth.get("secretName") or naming.checked_name(cluster.name)
