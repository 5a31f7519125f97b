"""What the controller watches: which objects, how much of each, and whom a change wakes."""

from collections.abc import Callable
from typing import Any

from eagleray.kube.cache import Cache, Change
from eagleray.kube.informers import Informers
from eagleray.kube.resources import (
    INGRESSES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RAY_CLUSTERS,
    ROLE_BINDINGS,
    ROLES,
    ROUTES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Key,
    Resource,
)
from eagleray.kube.views import typed, whole
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.ingress import head_ingress
from eagleray.manifests.redis_cleanup import NODE_TYPE, cleanup_name
from eagleray.manifests.storage import claim_name
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.views import Child, JobView, PodView
from kubewire.owners import controller_of

Object = dict[str, Any]
Wake = Callable[[Key, bool], None]

_RAY_NODES = f"{naming.NODE_TYPE_LABEL} in (head,worker,{NODE_TYPE})"
_OURS = f"{naming.CREATED_BY_LABEL}={naming.APP_LABELS[naming.CREATED_BY_LABEL]}"


class Caches:
    """The objects of all clusters. Of children that only have to exist no more than their metadata is kept."""

    def __init__(self, informers: Informers, *, routes: bool = False, claims: bool = False) -> None:
        by_cluster = (naming.CLUSTER_LABEL,)
        self.clusters: Cache[Object] = informers.add(RAY_CLUSTERS, whole(RAY_CLUSTERS)).cache
        self.pods: Cache[PodView] = informers.add(
            PODS, typed(PodView), label_selector=_RAY_NODES, labels=by_cluster
        ).cache
        self.services: Cache[Object] = informers.add(
            SERVICES, whole(SERVICES), label_selector=naming.CLUSTER_LABEL, labels=by_cluster
        ).cache
        self.ingresses: Cache[Object] = informers.add(
            INGRESSES, whole(INGRESSES), label_selector=naming.CLUSTER_LABEL
        ).cache
        self.jobs: Cache[JobView] = informers.add(JOBS, typed(JobView), label_selector=_OURS).cache
        self.claims: Cache[Object] | None = None
        if claims:
            of_claims = whole(PERSISTENT_VOLUME_CLAIMS)
            self.claims = informers.add(
                PERSISTENT_VOLUME_CLAIMS, of_claims, label_selector=naming.CLUSTER_LABEL
            ).cache
        self._children: list[tuple[Resource, Cache[Child]]] = [
            (resource, informers.add(resource, typed(Child), label_selector=selector).cache)
            for resource, selector in (
                (SERVICES, naming.HEADLESS_LABEL),
                (SERVICES, naming.SERVE_LABEL),
                (SECRETS, naming.CLUSTER_LABEL),
                (SERVICE_ACCOUNTS, _OURS),
                (ROLES, _OURS),
                (ROLE_BINDINGS, _OURS),
                *([(ROUTES, naming.CLUSTER_LABEL)] if routes else []),
            )
        ]

    def snapshot(self, key: Key) -> Snapshot | None:
        """Return a cluster with everything that belongs to it; None if there is no such cluster."""
        obj = self.clusters.get(key)
        if obj is None:
            return None
        cluster = Cluster(obj)
        pods = [
            pod
            for pod in self.pods.labelled(key.namespace, naming.CLUSTER_LABEL, key.name)
            if pod.metadata.controller in ("", cluster.uid) and (pod.is_head or pod.is_worker)
        ]
        ingress_name = head_ingress_name(cluster)
        return Snapshot(
            cluster,
            pods,
            self._head_services(cluster),
            self.ingresses.get((key.namespace, ingress_name)) if ingress_name else None,
            claim=self._claim(cluster),
            cleanup=self.jobs.get((key.namespace, cleanup_name(cluster))),
            children={
                (resource, child.metadata.name): child
                for resource, cache in self._children
                for child in cache.owned_by(cluster.uid)
            },
        )

    def _claim(self, cluster: Cluster) -> Object | None:
        if self.claims is None or not cluster.has_embedded_storage:
            return None
        return self.claims.get((cluster.namespace, claim_name(cluster)))

    def _head_services(self, cluster: Cluster) -> list[Object]:
        """Return the Services to a cluster's head that the cluster controls, or nobody does."""
        return [
            service
            for service in self.services.labelled(cluster.namespace, naming.CLUSTER_LABEL, cluster.name)
            if service["metadata"]["labels"].get(naming.NODE_TYPE_LABEL) == "head"
            and (controller_of(service) or {}).get("uid", "") in ("", cluster.uid)
        ]

    def wake_by(self, wake: Wake) -> None:
        """Have a function called with the cluster that a change is about, and whether it is only a start-up recheck."""
        waking = _Waking(wake)
        self.clusters.listen(waking.cluster_changed)
        if self.claims is not None:
            self.claims.listen(waking.labelled_changed)
        for labelled in (self.pods, self.services, self.jobs):
            labelled.listen(waking.labelled_changed)
        for _, cache in self._children:
            cache.listen(waking.child_changed)


class _Waking:
    """Finds the cluster that a change is about.

    What we wrote ourselves wakes nobody but for clusters, which other controllers of ours make: the pass that wrote
    goes on from the answer. What is gone by our own deletion does wake, since its place is free only now. A change of
    fields that no view has wakes nobody.
    """

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._by_uid: dict[str, Key] = {}

    def cluster_changed(self, change: Change[Object]) -> None:
        if change.new is not None:
            self._by_uid[change.new["metadata"]["uid"]] = change.key
        elif change.old is not None:
            self._by_uid.pop(change.old["metadata"]["uid"], None)
        if _concerns_us(change.old, change.new):
            self._wake(change.key, change.cause == "list")

    def labelled_changed(self, change: Change[Any]) -> None:
        labels = _labels(change.new if change.new is not None else change.old)
        if naming.CLUSTER_LABEL in labels:
            self._child_changed(change, Key(change.key.namespace, labels[naming.CLUSTER_LABEL]))

    def child_changed(self, change: Change[Child]) -> None:
        child = change.new or change.old
        key = self._by_uid.get(child.metadata.controller) if child is not None else None
        if key is not None:
            self._child_changed(change, key)

    def _child_changed(self, change: Change[Any], key: Key) -> None:
        if change.old != change.new and (change.cause != "write" or change.new is None):
            self._wake(key, change.cause == "list")


def head_ingress_name(cluster: Cluster) -> str:
    """Return the name of the Ingress that a cluster asks for, if it does."""
    return str(head_ingress(cluster)["metadata"]["name"]) if cluster.head.get("enableIngress") else ""


def _concerns_us(old: Object | None, new: Object | None) -> bool:
    """Tell whether a change is more than one of the status, which we write ourselves."""
    if old is None or new is None:
        return True
    return any(
        old["metadata"].get(field) != new["metadata"].get(field)
        for field in ("generation", "labels", "annotations", "deletionTimestamp", "uid")
    )


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return value["metadata"].get("labels") or {}
    labels: dict[str, str] = value.metadata.labels
    return labels
