"""Looks at a RayJob as values: what a pass sees, without a cluster."""

from datetime import timedelta

from eagleray.dashboard.errors import NotThere, Unreachable
from eagleray.dashboard.questions import Observation
from eagleray.dashboard.words import JobInfo, Version
from eagleray.manifests.rayjob import RayJob
from eagleray.raycluster.views import Condition, JobStatus, JobView, Metadata, pod_view
from eagleray.rayjob.look import Config, Look
from kubewire.sources import SeededEntropy
from kubewire.times import format_time, parse_time
from tests.eagleray.world import raycluster, rayjob

NOW = parse_time("2030-01-01T01:00:00Z")
HOST = "c-head-svc.default.svc.cluster.local:8265"


def ago(seconds):
    return format_time(NOW - timedelta(seconds=seconds))


def look_at(state, *, status=None, mode="K8sJobMode", config=None, now=NOW, seen=None, **spec):
    """Return a look at a job in a state, which has begun a minute ago; `seen` are further parts of the look."""
    obj = rayjob(submissionMode=mode, **spec)
    obj["metadata"] |= {"uid": "u", "generation": 1, "finalizers": ["ray.io/rayjob-finalizer"]}
    names = {"jobId": "j-1", "rayClusterName": "c", "startTime": ago(60), "dashboardURL": HOST}
    obj["status"] = {
        **(names if state not in ("", "Suspended") else {}),
        "jobDeploymentStatus": state,
        **(status or {}),
    }
    return Look(RayJob(obj), now, SeededEntropy("looks"), config or Config(), **(seen or {}))


def cluster(*, state="ready", owner="u", head="c-head", **changes):
    obj = raycluster("c", **changes)
    obj["metadata"] |= {
        "uid": "cu",
        "resourceVersion": "1",
        "ownerReferences": [{"kind": "RayJob", "name": "j", "uid": owner, "controller": True}],
    }
    obj["status"] = {"state": state, "head": {"podName": head}, "stateTransitionTimes": {"ready": ago(50)}}
    return obj


def submitter(ending="", *, seconds=5):
    conditions: tuple[Condition, ...] = ()
    if ending:
        conditions = (Condition(ending, "True", "BackoffLimitExceeded", "too often", ago(seconds)),)
    return JobView(Metadata("j", "default", "ju"), JobStatus(conditions))


def head(*, code=None, seconds=5):
    state = (
        {"running": {}} if code is None else {"terminated": {"exitCode": code, "finishedAt": ago(seconds)}}
    )
    return pod_view(
        {
            "metadata": {"name": "c-head", "labels": {"ray.io/node-type": "head"}},
            "status": {"containerStatuses": [{"name": "ray-job-submitter", "state": state}]},
        }
    )


def says(status, message="", **times):
    """Ray's answer about a job."""
    return Observation(JobInfo(status=status, message=message, **times), None, NOW)


def missing():
    return Observation(None, NotThere("no such job", certainly_not_done=True), NOW)


def unreachable():
    return Observation(None, Unreachable("no answer", certainly_not_done=True), NOW, NOW)


def session(name="s1"):
    return Observation(Version("2.52.0", name), None, NOW)


RECORDED = {"submission": {"attempt": 1, "submissionId": "j-1", "headSession": "s1", "requestedAt": ago(40)}}
