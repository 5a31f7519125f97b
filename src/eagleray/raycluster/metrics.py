"""The metrics of RayClusters, under the reference's names."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from eagleray.kube.cache import Cache
from eagleray.kube.resources import Key
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.naming import ORIGIN_KIND_LABEL
from eagleray.raycluster.status import PROVISIONED, condition_of
from eagleray.runtime.metrics import Family, Registry, Sample
from kubewire.times import parse_time

Object = dict[str, Any]

_LABELS = ("name", "namespace", "uid")


class ClusterMetrics:
    """Tells what clusters there are, whether they are provisioned, and how long that took."""

    def __init__(self, registry: Registry, clusters: Cache[Object]) -> None:
        self._clusters = clusters
        self._duration = registry.gauge(
            "kuberay_cluster_provisioned_duration_seconds",
            "Seconds from the creation of a cluster until all of its Pods were ready for the first time",
            _LABELS,
        )
        self._known: dict[Key, tuple[str, str, str]] = {}
        registry.collect(self._families)

    def wrote(self, cluster: Cluster, old: Object, new: Object, now: datetime) -> None:
        """Note that a status was written."""
        if _is_provisioned(old) or not _is_provisioned(new):
            return
        labels = (cluster.name, cluster.namespace, cluster.uid)
        key = Key(cluster.namespace, cluster.name)
        self.gone(key)
        self._known[key] = labels
        created = parse_time(cluster.metadata["creationTimestamp"])
        self._duration.set((now - created).total_seconds(), *labels)

    def gone(self, key: Key) -> None:
        """Drop what is told of a cluster that is no more."""
        labels = self._known.pop(key, None)
        if labels is not None:
            self._duration.remove(*labels)

    def _families(self) -> Iterable[Family]:
        info: list[Sample] = []
        provisioned: list[Sample] = []
        for obj in self._clusters:
            cluster = Cluster(obj)
            labels = tuple(zip(_LABELS, (cluster.name, cluster.namespace, cluster.uid), strict=True))
            owner = cluster.labels.get(ORIGIN_KIND_LABEL) or "None"
            info.append(Sample("", (*labels, ("owner_kind", owner)), 1))
            word = "true" if _is_provisioned(obj.get("status") or {}) else "false"
            provisioned.append(Sample("", (*labels, ("condition", word)), 1))
        yield Family("kuberay_cluster_info", "gauge", "RayClusters and what they were made for", info)
        yield Family(
            "kuberay_cluster_condition_provisioned",
            "gauge",
            "Whether all Pods of a RayCluster have been ready once",
            provisioned,
        )


def _is_provisioned(status: Object) -> bool:
    condition = condition_of(status, PROVISIONED)
    return condition is not None and condition["status"] == "True"
