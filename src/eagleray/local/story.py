"""What a run tells: from what is there at one moment to the lines that say what is new about it. Pure.

    told, lines = news(told, picture)

A picture is all that a run has made, as it is now. What it says is a set of facts, each of which is told once for as
long as the object that it is about exists.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eagleray.dashboard.words import SUCCEEDED, is_terminal
from eagleray.local.screen import Tone
from eagleray.manifests.rayjob import INTERACTIVE, RayJob
from eagleray.raycluster.status import condition_of
from eagleray.raycluster.troubles import trouble_of
from eagleray.raycluster.views import PodView, pod_view
from eagleray.rayjob.stages import stages_of
from eagleray.rayjob.status import TERMINAL

Object = dict[str, Any]

_SUBMITTER_LABEL: Final = "batch.kubernetes.io/job-name"
# What Pods themselves say better, or say soon enough: probes fail while Ray starts.
_TOLD_BY_PODS: Final = frozenset(("Failed", "BackOff", "FailedScheduling", "Unhealthy", "InspectFailed"))
_IMAGE: Final = re.compile(r'image "([^"]*)"(?:: (.*))?', re.DOTALL)
_TOOK: Final = re.compile(r"Successfully pulled .* in (\S+) ")
_LONGEST: Final = 400


class Line(NamedTuple):
    """What to show of a fact."""

    text: str
    tone: Tone = "plain"


class Fact(NamedTuple):
    """Something that is told once: `about` is the object or image, `word` tells its facts apart."""

    about: str
    word: str
    line: Line


class Picture(NamedTuple):
    """What a run has made, at one moment; `urls` leads to what can be opened, by namespace/name of its cluster.

    `passed` are jobs as they were in states that are over already, and that are told of nevertheless.
    """

    jobs: Sequence[Object] = ()
    clusters: Sequence[Object] = ()
    services: Sequence[Object] = ()
    crons: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    kube_services: Sequence[Object] = ()
    events: Sequence[Object] = ()
    passed: Sequence[Object] = ()
    urls: Mapping[str, str] = {}


# What was told, by what it was about.
Told = Mapping[str, frozenset[str]]


def news(told: Told, picture: Picture, *, verbose: bool = False) -> tuple[Told, list[Line]]:
    """Return what has been told from now on, and the lines that are new. What is gone may be told of again."""
    now: dict[str, set[str]] = {}
    lines = []
    for about, word, line in facts(picture, verbose=verbose):
        if word not in told.get(about, ()) and word not in now.get(about, ()):
            lines.append(line)
        now.setdefault(about, set()).add(word)
    kept = {about: told.get(about, frozenset()) | words for about, words in now.items()}
    # Whoever is there and says nothing at the moment has not been forgotten.
    present = {
        obj["metadata"]["uid"]
        for objects in (picture.jobs, picture.clusters, picture.services, picture.crons, picture.pods)
        for obj in objects
    }
    kept |= {about: words for about, words in told.items() if about in present and about not in kept}
    return kept, lines


def facts(picture: Picture, *, verbose: bool = False) -> Iterator[Fact]:
    """Yield all that can be said of a picture, in the order in which it makes sense."""
    yield from _of_images(picture.events, verbose=verbose)
    for pod in picture.pods:
        yield from _of_pod(pod_view(pod), verbose=verbose)
    for cluster in picture.clusters:
        yield from _of_cluster(cluster)
    for job in (*picture.passed, *picture.jobs):
        yield from _of_job(RayJob(job), picture.urls)
    for service in picture.services:
        yield from _of_service(service)
    for cron in picture.crons:
        yield from _of_cron(cron)
    for event in picture.events:
        yield from _of_event(event)


# --- Pods and their images


def _of_images(events: Sequence[Object], *, verbose: bool) -> Iterator[Fact]:
    """Yield how far images are. Of several Pods that wait for one, the first speaks for all."""
    speakers: dict[str, str] = {}
    for event in events:
        note = str(event.get("note") or "")
        found = _IMAGE.search(note)
        if found is None or event.get("reason") not in ("Pulling", "Pulled"):
            continue
        image, detail = found[1], found[2]
        speaker = str((event.get("regarding") or {}).get("uid"))
        if event["reason"] == "Pulling" and speakers.setdefault(image, speaker) == speaker:
            text = f"image {image}: {detail}" if detail else f"image {image} is being made"
            word = note if verbose or not detail else _moment(event) or note
            yield Fact(f"image {image}", word, Line(clipped(text)))
        elif event["reason"] == "Pulled" and (took := _TOOK.search(note)) and speakers.get(image) == speaker:
            yield Fact(f"image {image}", "pulled", Line(f"image {image} is there, after {took[1]}", "good"))
        elif event["reason"] == "Pulled" and verbose:
            yield Fact(f"image {image}", "present", Line(f"image {image} is there already", "quiet"))


def _moment(event: Object) -> str:
    """Return a word for when something happened: what shares it is told of by the first alone.

    An image is made in hundreds of steps, and a line every ten seconds is enough to see that it goes on.
    """
    created = str((event.get("metadata") or {}).get("creationTimestamp") or "")
    return created[: len("2030-01-01T00:00:0")]


def _of_pod(pod: PodView, *, verbose: bool) -> Iterator[Fact]:
    if pod.is_terminating:
        return
    uid, title = pod.metadata.uid, f"{role_of(pod)} {pod.name}"
    if verbose and pod.spec.node_name:
        yield Fact(uid, "placed", Line(f"{title} is placed on {pod.spec.node_name}", "quiet"))
    if any(one.state.running or one.state.terminated for one in pod.status.container_statuses):
        yield Fact(uid, "started", Line(f"{title} has started"))
    if is_ready(pod) and not _is_submitter(pod):
        yield Fact(uid, "ready", Line(f"{title} is ready"))
    for one in pod.status.container_statuses:
        last = one.last_state.terminated
        if one.restart_count and last is not None:
            how = f"exit code {last.exit_code}{f', {last.reason}' if last.reason else ''}"
            text = f"{title}: container {one.name} was started again (restart {one.restart_count}): {how}"
            yield Fact(uid, f"restart {one.name} {one.restart_count}", Line(text, "warn"))
    # How a submitter ends is how its job does, which is told there; a Pod that is over by itself is no trouble.
    if pod.status.phase == "Succeeded" or (_is_submitter(pod) and pod.status.phase == "Failed"):
        return
    if (trouble := trouble_of(pod)) is not None:
        said = trouble.text or trouble.kind
        yield Fact(uid, f"{trouble.kind} {said}", Line(clipped(f"{title}: {said}; {trouble.help}"), "warn"))


def role_of(pod: PodView) -> str:
    """Return what a Pod is for, in a word."""
    if pod.is_head:
        return "head"
    if pod.is_worker:
        return "worker"
    return "submitter" if _is_submitter(pod) else "Pod"


def is_ready(pod: PodView) -> bool:
    """Tell whether a Pod runs and says that it is ready."""
    return pod.is_running and pod.ready is not None and pod.ready.status == "True"


def _is_submitter(pod: PodView) -> bool:
    return _SUBMITTER_LABEL in pod.metadata.labels


# --- Ray's kinds


def _of_cluster(cluster: Object) -> Iterator[Fact]:
    metadata, status = cluster["metadata"], cluster.get("status") or {}
    uid, title = metadata["uid"], f"RayCluster {metadata['name']}"
    state = status.get("state")
    if state == "ready":
        workers = int(status.get("desiredWorkerReplicas") or 0)
        text = f"{title} is ready: 1 head, {workers} worker{'' if workers == 1 else 's'}"
        yield Fact(uid, f"ready {workers}", Line(text, "good"))
    elif state == "suspended":
        text = f"{title} is suspended: nothing of it runs until spec.suspend is false"
        yield Fact(uid, "suspended", Line(text, "warn"))
    elif state == "failed":
        reason = str(status.get("reason") or "")
        yield Fact(uid, f"failed {reason}", Line(clipped(f"{title} has failed: {reason}"), "bad"))


def _of_job(job: RayJob, urls: Mapping[str, str]) -> Iterator[Fact]:
    title, status = f"RayJob {job.name}", job.status
    if job.state == "Running" and job.mode != INTERACTIVE:
        yield Fact(job.uid, f"submitted {job.job_id}", Line(f"{title} is submitted as {job.job_id}"))
    if job.state == "Running" and job.job_status and not is_terminal(job.job_status):
        text = f"{title} is {job.job_status}"
        yield Fact(job.uid, f"{job.job_status} {job.job_id}", Line(text))
    if job.state == "Waiting":
        yield Fact(job.uid, f"by hand {job.cluster_name}", Line(_by_hand(job, urls), "warn"))
    if job.state == "Retrying":
        failed, most = int(status.get("failed") or 0), int(job.spec.get("backoffLimit") or 0) + 1
        text = f"{title}: attempt {failed} of {most} failed ({how_it_ended(job)}) and is retried"
        yield Fact(job.uid, f"retry {failed}", Line(clipped(text), "warn"))
    if job.state == "Suspended":
        text = f"{title} is suspended; it runs when its spec.suspend is false"
        yield Fact(job.uid, f"suspended {job.generation}", Line(text, "warn"))
    if job.state == "ValidationFailed":
        text = f"{title} is invalid: {status.get('message', '')}"
        yield Fact(job.uid, f"invalid {job.generation}", Line(clipped(text), "bad"))
    if job.state in TERMINAL:
        tone: Tone = "good" if has_succeeded(job) else "bad"
        stages = ", ".join(f"{one.name} {one.seconds} s" for one in stages_of(status))
        took = f" ({stages})" if stages else ""
        yield Fact(job.uid, "ended", Line(f"{clipped(f'{title} {how_it_ended(job)}')}{took}", tone))


def _by_hand(job: RayJob, urls: Mapping[str, str]) -> str:
    address = urls.get(f"{job.namespace}/{job.cluster_name}") or f"http://{job.dashboard_url}"
    change = '{"spec":{"jobId":"ID"}}'
    return (
        f"RayJob {job.name} waits for you to submit: ray job submit --address {address} --submission-id ID -- COMMAND,"
        f" then kubectl patch rayjob {job.name} -n {job.namespace} --type merge -p '{change}'"
    )


def has_succeeded(job: RayJob) -> bool:
    """Tell whether a job has done what it was for."""
    return job.state == "Complete" and job.job_status == SUCCEEDED


def how_it_ended(job: RayJob) -> str:
    """Return the end of a job, or of an attempt, in a few words."""
    if job.state == "Complete":
        return job.job_status
    reason, message = str(job.status.get("reason") or ""), str(job.status.get("message") or "")
    return "failed: " + (
        ": ".join(part for part in (reason, " ".join(message.split())) if part) or "no reason"
    )


def _of_service(service: Object) -> Iterator[Fact]:
    metadata, status = service["metadata"], service.get("status") or {}
    uid, title = metadata["uid"], f"RayService {metadata['name']}"
    for side in ("activeServiceStatus", "pendingServiceStatus"):
        seen = status.get(side) or {}
        for name, application in (seen.get("applicationStatuses") or {}).items():
            state, message = str(application.get("status", "")), str(application.get("message") or "")
            tone: Tone = (
                "good"
                if state == "RUNNING"
                else "warn"
                if state in ("UNHEALTHY", "DEPLOY_FAILED")
                else "plain"
            )
            detail = f": {' '.join(message.split())}" if message and tone == "warn" else ""
            word = f"{seen.get('rayClusterName')} {name} {state}{detail}"
            yield Fact(uid, word, Line(clipped(f"{title}: application {name} is {state}{detail}"), tone))
    if is_service_ready(service):
        cluster = (status.get("activeServiceStatus") or {}).get("rayClusterName", "")
        yield Fact(uid, f"ready {cluster}", Line(f"{title} is ready", "good"))


def _of_cron(cron: Object) -> Iterator[Fact]:
    metadata, spec, status = cron["metadata"], cron.get("spec") or {}, cron.get("status") or {}
    title = f"RayCronJob {metadata['name']}"
    if spec.get("suspend"):
        yield Fact(metadata["uid"], "suspended", Line(f"{title} is suspended: it starts nothing", "warn"))
    else:
        zone = f" ({spec['timeZone']})" if spec.get("timeZone") else ""
        text = f"{title} waits for its schedule, {spec.get('schedule')}{zone}"
        yield Fact(metadata["uid"], "waits", Line(text))
    if last := status.get("lastScheduleTime"):
        yield Fact(metadata["uid"], f"run {last}", Line(f"{title} has started the run of {last}"))


# --- events


def _of_event(event: Object) -> Iterator[Fact]:
    if event.get("type") != "Warning":
        return
    regarding = event.get("regarding") or {}
    kind, name = regarding.get("kind", ""), regarding.get("name", "")
    reason, note = str(event.get("reason") or ""), " ".join(str(event.get("note") or "").split())
    if kind == "Pod" and reason in _TOLD_BY_PODS:
        return
    # Said of many Pods in the same words, it is said once.
    about = str(regarding.get("uid")) if kind != "Pod" else "warnings of Pods"
    yield Fact(about, f"{reason} {note}", Line(clipped(f"{kind} {name}: {reason}: {note}"), "warn"))


def clipped(text: str) -> str:
    """Return a text as one line that a person still reads."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


# --- what is going on


def is_up(picture: Picture, roots: Collection[str]) -> bool:
    """Tell whether the clusters and services among some objects, given by their uids, are ready."""
    clusters = [one for one in picture.clusters if one["metadata"]["uid"] in roots]
    services = [one for one in picture.services if one["metadata"]["uid"] in roots]
    return all((one.get("status") or {}).get("state") == "ready" for one in clusters) and all(
        is_service_ready(one) for one in services
    )


def is_service_ready(service: Object) -> bool:
    """Tell whether a RayService takes traffic."""
    ready = condition_of(service.get("status") or {}, "Ready")
    return ready is not None and ready["status"] == "True"


def stage(picture: Picture) -> str:
    """Return in a few words what a run waits for at the moment."""
    if progress := _image_progress(picture):
        return progress
    jobs = [RayJob(obj) for obj in picture.jobs]
    open_jobs = [job for job in jobs if job.state not in TERMINAL]
    if len(jobs) > 1 and open_jobs:
        return f"{len(jobs) - len(open_jobs)} of {len(jobs)} jobs have ended; {_job_stage(open_jobs[0], picture)}"
    if open_jobs:
        return _job_stage(open_jobs[0], picture)
    unready = [one for one in picture.clusters if (one.get("status") or {}).get("state") != "ready"]
    if unready:
        return _cluster_stage(str(unready[0]["metadata"]["name"]), picture)
    for service in picture.services:
        if not is_service_ready(service):
            return f"RayService {service['metadata']['name']} is coming up"
    return "up; Ctrl-C ends it" if not jobs else "ending"


def _job_stage(job: RayJob, picture: Picture) -> str:
    if job.state in ("", "New", "Initializing") and job.cluster_name:
        return _cluster_stage(job.cluster_name, picture)
    words = {
        "Waiting": "waits for you to submit",
        "Running": f"is {job.job_status}" if job.job_status else "is being submitted",
        "Retrying": "is retried",
        "Suspending": "is being suspended",
        "Suspended": "is suspended",
        "ValidationFailed": "is invalid",
    }
    return f"RayJob {job.name} {words.get(job.state, 'begins')}"


def _cluster_stage(name: str, picture: Picture) -> str:
    pods = [pod_view(pod) for pod in picture.pods]
    nodes = [pod for pod in pods if pod.metadata.labels.get("ray.io/cluster") == name]
    ready = sum(is_ready(pod) for pod in nodes)
    return f"RayCluster {name} starts: {ready} of {len(nodes)} Pods ready"


def _image_progress(picture: Picture) -> str:
    """Return how far the image is that a Pod waits for now; empty if none does."""
    waiting = {
        pod["metadata"]["uid"]
        for pod in picture.pods
        if (pod.get("status") or {}).get("phase", "Pending") == "Pending"
    }
    last = ""
    done: set[str] = set()
    for event in picture.events:
        uid = (event.get("regarding") or {}).get("uid")
        if uid not in waiting or (found := _IMAGE.search(str(event.get("note") or ""))) is None:
            continue
        if event.get("reason") == "Pulled":
            done.add(found[1])
        elif event.get("reason") == "Pulling":
            last = f"image {found[1]}: {found[2]}" if found[2] else f"image {found[1]} is being made"
            done.discard(found[1])
    return last if last and not any(last.startswith(f"image {image}") for image in done) else ""
