"""scheduler-plugins, the coscheduling of Kubernetes' own scheduler framework.

| what | how |
|---|---|
| opt-in to gangs | label `ray.io/gang-scheduling-enabled`, whatever its value |
| object | PodGroup `<cluster>` of `scheduling.x-k8s.io/v1alpha1`, which the cluster owns and does not control |
| members, resources | the head and the desired workers |
| Pod marks | `schedulerName` in any case, and a label that names the PodGroup |
| RayJob | its cluster has the PodGroup; its submitter is no member |
| updates | members and resources follow |
"""

from collections.abc import Sequence
from typing import Any, Final

from eagleray.kube.cache import Cache
from eagleray.manifests.cluster import Cluster
from eagleray.runtime.actions import Stage
from eagleray.schedulers.gangs import gang_of
from eagleray.schedulers.interface import GANG_LABEL, NoScheduler, Owner, labels_of, schedule_by
from eagleray.schedulers.made import STEP, Made, Making
from kubewire.owners import owner_reference

Object = dict[str, Any]

NAME: Final = "scheduler-plugins"
SCHEDULER_NAME: Final = "scheduler-plugins-scheduler"
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


class SchedulerPlugins(NoScheduler):
    """Keeps the PodGroups of clusters that ask for one."""

    def __init__(self, groups: Making) -> None:
        self._groups = groups

    def watches(self) -> Sequence[Cache[Made]]:
        return (self._groups.cache,)

    def submit(self, owner: Owner) -> Sequence[Stage]:
        if not isinstance(owner, Cluster) or GANG_LABEL not in owner.labels:
            return ()
        gang = gang_of(owner)
        found = self._groups.find(owner.namespace, owner.name)
        if found is None:
            return (self._groups.create(_metadata(owner), spec=gang.written()),)
        if not found.belongs_to(owner):
            return (self._groups.taken(found),)
        change = gang.changes(found.spec)
        return (Stage(STEP, (self._groups.change(found, change),)),) if change else ()

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:  # noqa: ARG002 - all groups are one gang
        schedule_by(SCHEDULER_NAME, pod)
        if isinstance(owner, Cluster) and GANG_LABEL in owner.labels:
            labels_of(pod)[GROUP_LABEL] = owner.name


def _metadata(cluster: Cluster) -> Object:
    owner = owner_reference(cluster.obj, controller=False, block_owner_deletion=False)
    return {"name": cluster.name, "namespace": cluster.namespace, "ownerReferences": [owner]}
