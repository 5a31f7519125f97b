"""What a pass over a cluster sees: one consistent picture, taken from the caches at one moment."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eagleray.kube.resources import Resource
from eagleray.manifests.cluster import Cluster
from eagleray.raycluster.views import Child, JobView, PodView

Object = dict[str, Any]


class Snapshot(NamedTuple):
    """A cluster and its children. `pods` are its heads and workers, without those on nodes that are lost."""

    cluster: Cluster
    pods: Sequence[PodView] = ()
    head_services: Sequence[Object] = ()
    ingress: Object | None = None
    claim: Object | None = None  # for a head that keeps its state itself
    cleanup: JobView | None = None  # the Job that removes the cluster's state from Redis
    children: Mapping[tuple[Resource, str], Child] = {}  # by kind and name, those of other owners too
    lost: Sequence[PodView] = ()  # on their way out on nodes that will never say that they are gone

    def has(self, resource: Resource, name: str) -> bool:
        """Tell whether the cluster has a child of this name that is there to stay."""
        child = self.children.get((resource, name))
        if child is None or child.metadata.deletion_timestamp is not None:
            return False
        return child.metadata.controller == self.cluster.uid
