"""The end of a cluster whose state lives in Redis: its Pods go first, then its state, then the object."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eagleray.kube.requests import Selection
from eagleray.kube.resources import JOBS, PODS, RAY_CLUSTERS, Ref
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.environment import storage_namespace
from eagleray.manifests.redis_cleanup import redis_cleanup_job
from eagleray.manifests.settings import Settings
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.views import JobView
from eagleray.runtime.actions import Action, Create, DeleteAll, Patch, Said, Say, Stage, Tell
from kubewire import errors
from kubewire.times import parse_time

Object = dict[str, Any]

FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"
TIMEOUT_ANNOTATION = "ray.io/gcs-ft-deletion-timeout"
DEFAULT_TIMEOUT = 300
# Pods and Jobs are watched; in case a change was missed, they are looked at again after so many seconds.
RECHECK = 30.0


def needs_cleanup(cluster: Cluster, *, enabled: bool) -> bool:
    """Tell whether the end of a cluster leaves state in Redis that we are to remove."""
    return enabled and cluster.is_fault_tolerant and not cluster.has_embedded_storage


def has_finalizer(cluster: Cluster) -> bool:
    return FINALIZER in (cluster.metadata.get("finalizers") or ())


def deletion_timeout(cluster: Cluster) -> int:
    """Return how many seconds the cleanup may take before the object is let go."""
    text = cluster.annotations.get(TIMEOUT_ANNOTATION, "")
    seconds = int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else 0
    return seconds or DEFAULT_TIMEOUT


def add_finalizer(cluster: Cluster) -> Stage:
    finalizers = [*(cluster.metadata.get("finalizers") or ()), FINALIZER]
    return Stage("finalizer", (_set_finalizers(cluster, finalizers),))


class Ending(NamedTuple):
    """What a deletion needs now, what to do instead if that fails, and after how many seconds to look again.

    `in_vain` is what to do instead if it will fail for ever, because the namespace goes as well.
    """

    stages: Sequence[Stage]
    look_again: float | None = None
    otherwise: Sequence[Stage] = ()
    in_vain: Sequence[Stage] = ()

    def instead(self, refusal: Exception) -> Sequence[Stage]:
        """Return what to do after a refusal; nothing if trying again may help."""
        is_going = isinstance(refusal, errors.ApiError) and refusal.is_of_a_going_namespace
        return self.in_vain if is_going else self.otherwise


def plan_deletion(snapshot: Snapshot, settings: Settings, now: datetime, *, cleanup_enabled: bool) -> Ending:
    """Plan the next step of a deletion: Pods, the cleanup Job, the end of the finalizer.

    However long the head takes to go, the cleanup is tried; once it has begun it has its whole time. What was left
    behind in Redis is told.
    """
    cluster = snapshot.cluster
    if not has_finalizer(cluster):
        return Ending(())
    if not needs_cleanup(cluster, enabled=cleanup_enabled):
        return Ending((_let_go(cluster),))
    job = snapshot.cleanup
    if job is not None and job.metadata.controller == cluster.uid:
        return _follow(cluster, job, now)
    if any(not pod.is_terminating for pod in snapshot.pods):
        return Ending(tuple(_delete_pods(snapshot)), RECHECK)
    if any(pod.is_head for pod in snapshot.pods):
        return Ending((), RECHECK)
    begin = (Stage("redis-cleanup", (_cleanup(cluster, settings),)),)
    has_time = _time_left(cluster, cluster.metadata["deletionTimestamp"], now) > 0
    return Ending(
        begin,
        RECHECK,
        otherwise=() if has_time else _give_up(cluster, "its cleanup Job could not be created"),
        in_vain=_give_up(cluster, "its namespace is being deleted and takes no cleanup Job"),
    )


def _follow(cluster: Cluster, job: JobView, now: datetime) -> Ending:
    """Plan from how the cleanup Job stands: let the cluster go when it has ended or has had its time."""
    ended = job.ending
    if ended is not None and ended.type == "Complete":
        return Ending((_let_go(cluster),))
    if ended is not None:
        why = f"its cleanup Job failed: {ended.message or ended.reason}"
        return Ending((Stage("redis-cleanup", (Tell(_failed(cluster, why)),)), _let_go(cluster)))
    left = _time_left(cluster, job.metadata.creation_timestamp, now)
    if left > 0:
        return Ending((), left)
    return Ending(_give_up(cluster, f"its cleanup Job did not end in {deletion_timeout(cluster)} s"))


def _give_up(cluster: Cluster, why: str) -> Sequence[Stage]:
    note = f"RayCluster {_place(cluster)} was let go before its cleanup was done: {why}"
    forced = Tell(Say("ForceDeletedStuckCluster", "Cleanup", note, "Warning"))
    return Stage("redis-cleanup", (forced, Tell(_failed(cluster, why)))), _let_go(cluster)


def _time_left(cluster: Cluster, since: str, now: datetime) -> float:
    return deletion_timeout(cluster) - (now - parse_time(since)).total_seconds()


def _delete_pods(snapshot: Snapshot) -> Iterator[Stage]:
    """Yield the deletion of the head, then of the workers: without a head nobody writes to Redis any more."""
    cluster = snapshot.cluster
    for part in ("head", "worker"):
        if any(not pod.is_terminating for pod in snapshot.pods if pod.is_head == (part == "head")):
            labels = f"{naming.CLUSTER_LABEL}={cluster.name},{naming.NODE_TYPE_LABEL}={part}"
            failed = Say(
                "FailedToDeletePodCollection",
                "Delete",
                f"Failed deleting {part} Pods of RayCluster {_place(cluster)}",
                "Warning",
            )
            selection = Selection(cluster.namespace, labels)
            yield Stage(f"delete-{part}-pods", (DeleteAll(PODS, selection, Said(failed=failed)),))


def _cleanup(cluster: Cluster, settings: Settings) -> Action:
    job = redis_cleanup_job(cluster, settings)
    place = f"{cluster.namespace}/{job['metadata']['name']}"
    said = Said(
        Say("CreatedRedisCleanupJob", "Create", f"Created Redis cleanup Job {place}"),
        Say(
            "FailedToCreateRedisCleanupJob",
            "Create",
            f"Failed to create Redis cleanup Job {place}",
            "Warning",
        ),
    )
    return Create(JOBS, job, said)


def _failed(cluster: Cluster, why: str) -> Say:
    storage = storage_namespace(cluster)
    note = (
        f"Redis storage namespace {storage} of RayCluster {_place(cluster)} was not cleaned up: {why}."
        f" To do it by hand, delete the keys RAY{storage}@* from its Redis"
    )
    return Say("RedisCleanupFailed", "Cleanup", note, "Warning")


def _let_go(cluster: Cluster) -> Stage:
    left = [name for name in cluster.metadata.get("finalizers") or () if name != FINALIZER]
    return Stage("finalizer", (_set_finalizers(cluster, left),))


def _set_finalizers(cluster: Cluster, finalizers: list[str]) -> Action:
    return Patch(RAY_CLUSTERS, Ref.of(cluster.obj), {"metadata": {"finalizers": finalizers or None}})


def _place(cluster: Cluster) -> str:
    return f"{cluster.namespace}/{cluster.name}"
