"""How many Pods have to start together, and what they ask for."""

from typing import Any, NamedTuple

from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import K8S_JOB, SIDECAR, RayJob
from eagleray.manifests.sizes import Demand, amounts, hosts_of, least_replicas, plus, pod_demand, replicas_of
from eagleray.manifests.submitter import submitter_template
from kubewire import mergepatch

Object = dict[str, Any]


class Gang(NamedTuple):
    """So many Pods, which together ask for so much."""

    members: int
    demand: Demand

    def written(self) -> Object:
        """Return it as the fields of a PodGroup."""
        resources = {name: str(amount) for name, amount in self.demand.items()}
        return {"minMember": self.members, **({"minResources": resources} if resources else {})}

    def changes(self, spec: Object) -> Object:
        """Return the merge patch by which a PodGroup's spec says so; nothing if it does, in whatever words."""
        if (spec.get("minMember") or 0) == self.members and amounts(
            spec.get("minResources") or {}
        ) == self.demand:
            return {}
        fields = ("minMember", "minResources")
        change: Object = mergepatch.create(
            {field: spec[field] for field in fields if field in spec}, self.written()
        )
        return change


NOBODY = Gang(0, {})


def gang_of(cluster: Cluster, *, at_least: bool = False) -> Gang:
    """Return the head and all wanted workers; with `at_least` only those below which autoscaling does not go."""
    members, demand = 1, pod_demand(cluster.head.get("template") or {})
    for group in cluster.workers:
        if group.get("suspend"):
            continue
        pods = (least_replicas(group) if at_least else replicas_of(group)) * hosts_of(group)
        members += pods
        demand = plus(demand, pod_demand(group.get("template") or {}), pods)
    return Gang(members, demand)


def described_cluster(job: RayJob) -> Cluster:
    """Return the cluster that a job describes, be it made or not."""
    metadata = {"name": job.cluster_name, "namespace": job.namespace}
    return Cluster({"metadata": metadata, "spec": job.spec.get("rayClusterSpec") or {}})


def submitter_demand(job: RayJob) -> Demand:
    """Return what the submitter of a job asks for; nothing if there is none."""
    if job.mode not in (K8S_JOB, SIDECAR):
        return {}
    return pod_demand(submitter_template(job, described_cluster(job)))
