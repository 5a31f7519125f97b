"""Volcano: every cluster, and every job with its cluster, has a PodGroup that is scheduled as a whole.

| what | how |
|---|---|
| object | PodGroup `ray-<name>-pg` of `scheduling.volcano.sh/v1beta1`, of the RayJob where there is one |
| members | the head and the desired workers; with autoscaling the least number of workers |
| resources | those of the members and of the submitter, which is no member: it comes when the others run |
| queue, priority | from the owner's labels, into the PodGroup and on every Pod |
| Pod marks | `schedulerName`, and annotations that name the PodGroup and the group |
| updates | members and resources follow; after the end of a job they are given back |
"""

from collections.abc import Sequence
from typing import Any, Final

from eagleray.kube.cache import Cache
from eagleray.manifests import cluster as clusters
from eagleray.manifests import rayjob as jobs
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import RayJob
from eagleray.manifests.sizes import plus
from eagleray.runtime.actions import Action, Stage
from eagleray.schedulers.gangs import NOBODY, Gang, described_cluster, gang_of, submitter_demand
from eagleray.schedulers.interface import NoScheduler, Owner, annotations_of, copy_label, schedule_by
from eagleray.schedulers.made import STEP, Made, Making
from kubewire.gotext import parse_int64
from kubewire.owners import controller_of

Object = dict[str, Any]

NAME: Final = "volcano"
QUEUE_LABEL: Final = "volcano.sh/queue-name"
PRIORITY_LABEL: Final = "ray.io/priority-class-name"
TOPOLOGY_LABEL: Final = "volcano.sh/network-topology-mode"
TIER_LABEL: Final = "volcano.sh/network-topology-highest-tier-allowed"
GROUP_ANNOTATION: Final = "scheduling.k8s.io/group-name"
TASK_ANNOTATION: Final = "volcano.sh/task-spec"


class Volcano(NoScheduler):
    """Keeps the PodGroups of clusters and jobs."""

    def __init__(self, groups: Making) -> None:
        self._groups = groups

    def watches(self) -> Sequence[Cache[Made]]:
        return (self._groups.cache,)

    def submit(self, owner: Owner) -> Sequence[Stage]:
        name = _group_name(owner)
        if not name or _job_name(owner):
            return ()  # the PodGroup is that of the selected cluster, or of the job
        gang = _job_gang(owner) if isinstance(owner, RayJob) else _cluster_gang(owner)
        found = self._groups.find(owner.namespace, name)
        if found is None:
            return (self._creation(owner, name, gang),)
        if not found.belongs_to(owner):
            return (self._groups.taken(found),)
        changes = self._changes(found, gang)
        return (Stage(STEP, changes),) if changes else ()

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:
        schedule_by(NAME, pod)
        # A Pod of a group that does not exist would wait for ever; without one Volcano makes one for it.
        if name := _group_name(owner):
            annotations_of(pod).update({GROUP_ANNOTATION: name, TASK_ANNOTATION: group})
        copy_label(owner, QUEUE_LABEL, pod)
        copy_label(owner, PRIORITY_LABEL, pod)

    def clean_up(self, job: RayJob, cluster: Cluster | None) -> Sequence[Action]:
        name = _group_name(job) if job.cluster_name else ""
        found = self._groups.own(job, name) if name else None
        if found is None:
            return ()
        if cluster is None or cluster.metadata.get("deletionTimestamp"):
            return self._changes(found, NOBODY)
        return self._changes(found, _cluster_gang(cluster))

    def _changes(self, found: Made, gang: Gang) -> Sequence[Action]:
        change = gang.changes(found.spec)
        return (self._groups.change(found, change),) if change else ()

    def _creation(self, owner: Owner, name: str, gang: Gang) -> Stage:
        spec = gang.written()
        for label, field in ((QUEUE_LABEL, "queue"), (PRIORITY_LABEL, "priorityClassName")):
            if label in owner.labels:
                spec[field] = owner.labels[label]
        if mode := owner.labels.get(TOPOLOGY_LABEL):
            topology: Object = {"mode": mode}
            spec["networkTopology"] = topology
            tier = owner.labels.get(TIER_LABEL)
            number = parse_int64(tier) if tier is not None else None
            if tier is not None and number is None:
                return self._groups.refuse(f"label {TIER_LABEL}: {tier!r} is no integer")
            if number is not None:
                topology["highestTierAllowed"] = number
        metadata: Object = {
            "name": name,
            "namespace": owner.namespace,
            "ownerReferences": [
                jobs.owner_of(owner) if isinstance(owner, RayJob) else clusters.owner_of(owner)
            ],
        }
        if owner.annotations:
            metadata["annotations"] = dict(owner.annotations)
        return self._groups.create(metadata, spec=spec, status={"phase": "Pending"})


def _group_name(owner: Owner) -> str:
    """Return the PodGroup that an object's Pods are in; empty for a job on a cluster that has its own."""
    if isinstance(owner, RayJob) and owner.has_selector:
        return ""
    return f"ray-{_job_name(owner) or owner.name}-pg"


def _job_name(owner: Owner) -> str:
    """Return the job that a cluster was made for; empty if there is none."""
    controller = controller_of(owner.obj) or {}
    is_job = isinstance(owner, Cluster) and controller.get("kind") == "RayJob"
    return str(controller["name"]) if is_job else ""


def _cluster_gang(cluster: Cluster) -> Gang:
    return gang_of(cluster, at_least=cluster.autoscaling)


def _job_gang(job: RayJob) -> Gang:
    gang = _cluster_gang(described_cluster(job))
    return gang._replace(demand=plus(gang.demand, submitter_demand(job)))
