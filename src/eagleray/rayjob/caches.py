"""What the RayJob controller watches besides what the RayCluster controller does, and whom a change wakes."""

from collections.abc import Callable
from typing import Any

from eagleray.kube.cache import Cache, Change
from eagleray.kube.informers import Informers
from eagleray.kube.resources import RAY_JOBS, SERVICES, Key
from eagleray.kube.views import whole
from eagleray.manifests import naming
from eagleray.manifests.rayjob import RayJob
from eagleray.raycluster.caches import Caches as ClusterCaches
from eagleray.raycluster.views import JobView, PodView
from kubewire.owners import controller_of

Object = dict[str, Any]
Wake = Callable[[Key, bool], None]

_BY_ORIGIN = (naming.ORIGIN_NAME_LABEL,)


class Caches:
    """RayJobs, their Services, and the clusters, Pods and Jobs that are watched anyway."""

    def __init__(self, informers: Informers, shared: ClusterCaches) -> None:
        self.jobs: Cache[Object] = informers.add(RAY_JOBS, whole(RAY_JOBS)).cache
        self.services: Cache[Object] = informers.add(
            SERVICES,
            whole(SERVICES),
            label_selector=f"{naming.ORIGIN_KIND_LABEL}=RayJob",
            labels=_BY_ORIGIN,
        ).cache
        self.clusters = shared.clusters
        self.pods = shared.pods
        self.submitters = shared.jobs
        # Which jobs use a cluster that a user chose: the cluster itself does not say.
        self._selecting: dict[Key, dict[Key, None]] = {}
        # Which job a cluster was made for: its Pods do not say, and may outlive it.
        self._attempts: dict[Key, Key] = {}
        self.jobs.listen(self._note_selection)
        self.jobs.listen(self._note_attempt)

    def submitter_of(self, job: RayJob) -> JobView | None:
        """Return the Job that submits for a RayJob, if it is the RayJob's own."""
        found = self.submitters.get((job.namespace, job.name))
        return found if found is not None and found.metadata.controller == job.uid else None

    def pods_of(self, job: RayJob) -> list[PodView]:
        """Return the heads and workers of the attempt's cluster."""
        return self.pods.labelled(job.namespace, naming.CLUSTER_LABEL, job.cluster_name)

    def wake_by(self, wake: Wake) -> None:
        """Have a function called with the RayJob that a change is about, and whether it is only a start-up recheck."""

        def job_changed(change: Change[Object]) -> None:
            # Another controller of this process makes and deletes RayJobs, and the answer to that is all that is heard.
            if change.cause != "write" or _is_other(change.old, change.new):
                wake(change.key, change.cause == "list")

        def cluster_changed(change: Change[Object]) -> None:
            if change.cause == "write" and change.old is None:
                return  # made by the pass that goes on from it
            for obj in (change.new, change.old):
                owner = controller_of(obj) if obj is not None else None
                if owner is not None and owner.get("kind") == "RayJob":
                    wake(Key(change.key.namespace, owner["name"]), change.cause == "list")
                    break
            for key in self._selecting.get(change.key, ()):
                wake(key, change.cause == "list")

        def child_changed(change: Change[Any]) -> None:
            if change.cause == "write" or change.old == change.new:
                return
            value: Any = change.new if change.new is not None else change.old
            labels = (
                value["metadata"].get("labels") or {} if isinstance(value, dict) else value.metadata.labels
            )
            if labels.get(naming.ORIGIN_KIND_LABEL) == "RayJob":
                wake(Key(change.key.namespace, labels[naming.ORIGIN_NAME_LABEL]), change.cause == "list")

        self.jobs.listen(job_changed)
        self.clusters.listen(cluster_changed)
        self.services.listen(child_changed)
        self.submitters.listen(child_changed)
        self.pods.listen(self._head_changed(wake))
        self.pods.listen(self._pod_gone(wake))

    def _pod_gone(self, wake: Wake) -> Callable[[Change[PodView]], None]:
        """Wake the job of a Pod that is gone: a suspended one waits for the last."""

        def changed(change: Change[PodView]) -> None:
            if change.new is not None or change.old is None:
                return
            cluster = Key(change.key.namespace, change.old.metadata.labels.get(naming.CLUSTER_LABEL, ""))
            if cluster in self._attempts:
                wake(self._attempts[cluster], change.cause == "list")

        return changed

    def _head_changed(self, wake: Wake) -> Callable[[Change[PodView]], None]:
        """Wake the job of a head whose submitter runs beside Ray."""

        def changed(change: Change[PodView]) -> None:
            pod = change.new or change.old
            if pod is None or not pod.is_head or change.cause == "write" or change.old == change.new:
                return
            cluster = self.clusters.get(
                (change.key.namespace, pod.metadata.labels.get(naming.CLUSTER_LABEL, ""))
            )
            owner = controller_of(cluster) if cluster is not None else None
            if owner is not None and owner.get("kind") == "RayJob":
                wake(Key(change.key.namespace, owner["name"]), change.cause == "list")

        return changed

    def _note_attempt(self, change: Change[Object]) -> None:
        for obj, is_there in ((change.old, False), (change.new, True)):
            job = RayJob(obj) if obj is not None else None
            if job is None or not job.cluster_name or job.has_selector:
                continue
            cluster = Key(job.namespace, job.cluster_name)
            if is_there:
                self._attempts[cluster] = change.key
            else:
                self._attempts.pop(cluster, None)

    def _note_selection(self, change: Change[Object]) -> None:
        for obj, is_there in ((change.old, False), (change.new, True)):
            name = RayJob(obj).selected_cluster if obj is not None else ""
            if not name:
                continue
            cluster = Key(change.key.namespace, name)
            if is_there:
                self._selecting.setdefault(cluster, {})[change.key] = None
            elif cluster in self._selecting:
                self._selecting[cluster].pop(change.key, None)
                if not self._selecting[cluster]:
                    del self._selecting[cluster]


def _is_other(old: Object | None, new: Object | None) -> bool:
    """Tell whether more has changed than the status and the finalizers, which the RayJob controller writes itself."""
    if old is None or new is None:
        return True
    fields = ("generation", "deletionTimestamp")
    return any(old["metadata"].get(field) != new["metadata"].get(field) for field in fields)
