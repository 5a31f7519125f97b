"""YuniKorn: Pods say themselves which gang they are of; no object has to be made.

| what | how |
|---|---|
| opt-in to gangs | label `ray.io/gang-scheduling-enabled`, whatever its value |
| members | a task group for the head, one for each worker group with its least number of Pods, one for the submitter |
| queue | label `yunikorn.apache.org/queue` → `queue`, and `yunikorn.apache.org/app-id` → `applicationId` |
| Pod marks | `schedulerName`, and annotations with the Pod's own task group and with all of them |
| RayJob | the task groups are made from it and stand on its cluster, so that the submitter is one of the gang |
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import K8S_JOB, RayJob
from eagleray.manifests.sizes import hosts_of, least_replicas, pod_demand
from eagleray.manifests.submitter import submitter_template
from eagleray.runtime.actions import Stage
from eagleray.schedulers.gangs import described_cluster
from eagleray.schedulers.interface import (
    GANG_LABEL,
    SUBMITTER_GROUP,
    NoScheduler,
    Owner,
    annotations_of,
    copy_label,
    schedule_by,
)
from eagleray.schedulers.made import refusal

Object = dict[str, Any]

NAME: Final = "yunikorn"
QUEUE_LABEL: Final = "yunikorn.apache.org/queue"
APPLICATION_LABEL: Final = "yunikorn.apache.org/app-id"
TASK_GROUP: Final = "yunikorn.apache.org/task-group-name"
TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"


class YuniKorn(NoScheduler):
    """Marks Pods, and clusters of jobs."""

    def submit(self, owner: Owner) -> Sequence[Stage]:
        if isinstance(owner, RayJob) and owner.has_selector and GANG_LABEL in owner.labels:
            message = (
                f"a RayJob with clusterSelector describes no Pods to make a gang of; remove its label {GANG_LABEL}"
                " and set it on the RayCluster"
            )
            return (refusal(NAME, message),)
        return ()

    def mark_cluster(self, job: RayJob, cluster: Object) -> None:
        if GANG_LABEL in job.labels:
            annotations_of(cluster)[TASK_GROUPS] = _task_groups(job)

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:
        schedule_by(NAME, pod)
        copy_label(owner, QUEUE_LABEL, pod, "queue")
        copy_label(owner, APPLICATION_LABEL, pod, "applicationId")
        if GANG_LABEL in owner.labels:
            annotations_of(pod).update({TASK_GROUP: group, TASK_GROUPS: _task_groups(owner)})


def _task_groups(owner: Owner) -> str:
    """Return the task groups of an object: those it was given, or else those that its spec describes."""
    given = owner.annotations.get(TASK_GROUPS)
    if given is not None:
        return given
    return json.dumps(list(_described_groups(owner)), separators=(",", ":"))


def _described_groups(owner: Owner) -> Iterator[Object]:
    cluster = owner if isinstance(owner, Cluster) else described_cluster(owner)
    yield _task_group(naming.HEAD_GROUP, 1, cluster.head.get("template"))
    for group in cluster.workers:
        yield _task_group(group["groupName"], least_replicas(group) * hosts_of(group), group.get("template"))
    if isinstance(owner, RayJob) and owner.mode == K8S_JOB:
        yield _task_group(SUBMITTER_GROUP, 1, submitter_template(owner, cluster))


def _task_group(name: str, members: int, template: Object | None) -> Object:
    spec = (template or {}).get("spec") or {}
    demand = {resource: str(amount) for resource, amount in pod_demand(template or {}).items()}
    placed = {field: spec[field] for field in ("nodeSelector", "tolerations", "affinity") if spec.get(field)}
    return {"name": name, "minMember": members, "minResource": demand, **placed}
