"""Kubernetes' own gang scheduling, by its workload API.

| what | how |
|---|---|
| opt-in | label `ray.io/gang-scheduling-enabled: "true"`, in any case, and no autoscaling |
| objects | Workload `<cluster>` with one template, and PodGroup `<cluster>-cluster` made from it |
| members | the head and the desired workers |
| Pod marks | `schedulerName`, and the PodGroup as the Pod's scheduling group |
| RayJob | its cluster alone |
| updates | both are immutable, so they are deleted, the PodGroup first, and made anew |
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from eagleray.kube.cache import Cache
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, owner_of
from eagleray.runtime.actions import Stage
from eagleray.schedulers.gangs import gang_of
from eagleray.schedulers.interface import GANG_LABEL, NoScheduler, Owner, schedule_by
from eagleray.schedulers.made import Made, Making

Object = dict[str, Any]

NAME: Final = "kubernetes-was"
# Kubernetes holds a PodGroup by it as long as there are Pods of the group, which outlive a change of its size.
PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
_TEMPLATE: Final = "cluster"


class WorkloadApi(NoScheduler):
    """Keeps a Workload and a PodGroup for each cluster that asks for them."""

    def __init__(self, workloads: Making, groups: Making) -> None:
        self._workloads = workloads
        self._groups = groups

    def watches(self) -> Sequence[Cache[Made]]:
        return (self._workloads.cache, self._groups.cache)

    def submit(self, owner: Owner) -> Sequence[Stage]:
        if not isinstance(owner, Cluster):
            return ()
        return tuple(self._kept(owner) if _is_gang(owner) else self._given_up(owner))

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:  # noqa: ARG002 - all groups are one gang
        if isinstance(owner, Cluster) and _is_gang(owner):
            schedule_by("default-scheduler", pod)
            pod["spec"]["schedulingGroup"] = {"podGroupName": _group_name(owner)}

    def _kept(self, cluster: Cluster) -> Iterator[Stage]:
        """Yield what makes both objects say how large the gang is; nothing if they do."""
        workload = self._workloads.find(cluster.namespace, cluster.name)
        group = self._groups.find(cluster.namespace, _group_name(cluster))
        for making, found in ((self._workloads, workload), (self._groups, group)):
            if found is not None and not found.belongs_to(cluster):
                yield making.taken(found)
                return
        policy = {"gang": {"minCount": gang_of(cluster).members}}
        is_workload_right = workload is not None and _is_right(workload, _policy_of_template, policy)
        # A PodGroup that was made from a Workload goes before it does.
        is_based = workload is None or is_workload_right
        is_group_right = is_based and group is not None and _is_right(group, _policy_of, policy)
        if group is not None and not is_group_right:
            yield from self._groups.delete(group, held_by=PROTECTION)
        if not is_workload_right:
            if workload is not None:
                yield from self._workloads.delete(workload)
            yield self._workloads.create(_metadata(cluster, cluster.name), spec=_workload(cluster, policy))
        if not is_group_right:
            metadata = _metadata(cluster, _group_name(cluster))
            yield self._groups.create(metadata, spec=_pod_group(cluster, policy))

    def _given_up(self, cluster: Cluster) -> Iterator[Stage]:
        """Yield the deletion of what an earlier wish has left."""
        if (group := self._groups.own(cluster, _group_name(cluster))) is not None:
            yield from self._groups.delete(group, held_by=PROTECTION)
        workload = self._workloads.own(cluster, cluster.name)
        if workload is not None and not workload.is_terminating:
            yield from self._workloads.delete(workload)


def _is_gang(cluster: Cluster) -> bool:
    return cluster.labels.get(GANG_LABEL, "").lower() == "true" and not cluster.autoscaling


def _group_name(cluster: Cluster) -> str:
    return f"{cluster.name}-{_TEMPLATE}"


def _is_right(found: Made, policy_of: Callable[[Object], object], policy: Object) -> bool:
    return not found.is_terminating and policy_of(found.spec) == policy


def _policy_of(spec: Object) -> object:
    return spec.get("schedulingPolicy")


def _policy_of_template(spec: Object) -> object:
    templates = spec.get("podGroupTemplates") or [{}]
    is_ours = len(templates) == 1 and templates[0].get("name") == _TEMPLATE
    return templates[0].get("schedulingPolicy") if is_ours else None


def _workload(cluster: Cluster, policy: Object) -> Object:
    return {
        "controllerRef": {"apiGroup": "ray.io", "kind": "RayCluster", "name": cluster.name},
        "podGroupTemplates": [{"name": _TEMPLATE, "schedulingPolicy": policy}],
    }


def _pod_group(cluster: Cluster, policy: Object) -> Object:
    made_from = {"workloadName": cluster.name, "podGroupTemplateName": _TEMPLATE}
    return {"podGroupTemplateRef": {"workload": made_from}, "schedulingPolicy": policy}


def _metadata(cluster: Cluster, name: str) -> Object:
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": {naming.CLUSTER_LABEL: cluster.name},
        "ownerReferences": [owner_of(cluster)],
    }
