"""The metrics of RayJobs, under the reference's names."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from eagleray.kube.cache import Cache
from eagleray.kube.resources import Key
from eagleray.manifests.rayjob import RayJob
from eagleray.runtime.metrics import Family, Registry, Sample
from kubewire.times import parse_time

Object = dict[str, Any]

_LABELS = ("name", "namespace", "uid")
_ENDS = ("Complete", "Failed", "Retrying")


class JobMetrics:
    """Tells what jobs there are, their states, and how long attempts took."""

    def __init__(self, registry: Registry, jobs: Cache[Object]) -> None:
        self._jobs = jobs
        self._duration = registry.gauge(
            "kuberay_job_execution_duration_seconds",
            "Seconds from the start of an attempt to its end",
            (*_LABELS, "job_deployment_status", "retry_count"),
        )
        self._known: dict[Key, list[tuple[str, ...]]] = {}
        registry.collect(self._families)

    def wrote(self, job: RayJob, status: Object, now: datetime) -> None:
        """Note that a status was written."""
        state = status.get("jobDeploymentStatus") or ""
        if state not in _ENDS or job.state in _ENDS or not status.get("startTime"):
            return
        retries = str(job.status.get("failed") or 0)
        labels = (job.name, job.namespace, job.uid, state, retries)
        self._known.setdefault(Key(job.namespace, job.name), []).append(labels)
        self._duration.set((now - parse_time(status["startTime"])).total_seconds(), *labels)

    def gone(self, key: Key) -> None:
        """Drop what is told of a job that is no more."""
        for labels in self._known.pop(key, ()):
            self._duration.remove(*labels)

    def _families(self) -> Iterable[Family]:
        info: list[Sample] = []
        states: list[Sample] = []
        for obj in self._jobs:
            job = RayJob(obj)
            labels = tuple(zip(_LABELS, (job.name, job.namespace, job.uid), strict=True))
            info.append(Sample("", labels, 1))
            states.append(Sample("", (*labels, ("deployment_status", job.state)), 1))
        yield Family("kuberay_job_info", "gauge", "RayJobs", info)
        yield Family("kuberay_job_deployment_status", "gauge", "The states that RayJobs are in", states)
