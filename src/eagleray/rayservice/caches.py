"""What the RayService controller watches besides what the RayCluster controller does, and whom a change wakes."""

from collections.abc import Callable
from typing import Any

from eagleray.kube.cache import Cache, Change
from eagleray.kube.informers import Informers
from eagleray.kube.resources import (
    ENDPOINT_SLICES,
    GATEWAYS,
    HTTP_ROUTES,
    RAY_SERVICES,
    SERVICES,
    Key,
    Resource,
)
from eagleray.kube.views import whole
from eagleray.manifests import naming
from eagleray.manifests.gateway import gateway_name, route_name
from eagleray.manifests.rayservice import RayService, cluster_serve_name
from eagleray.raycluster.caches import Caches as ClusterCaches
from eagleray.raycluster.views import PodView
from eagleray.rayservice.serving import SERVICE_NAME_LABEL
from kubewire.owners import controller_of, is_controlled_by

Object = dict[str, Any]
Wake = Callable[[Key, bool], None]

_OURS = f"{naming.ORIGIN_KIND_LABEL}=RayService"


class Caches:
    """RayServices, what leads to them, and the clusters and Pods that are watched anyway.

    Gateways and their routes are watched only where the API server knows them.
    """

    def __init__(self, informers: Informers, shared: ClusterCaches, *, gateways: bool) -> None:
        self.rayservices: Cache[Object] = informers.add(RAY_SERVICES, whole(RAY_SERVICES)).cache
        self.services: Cache[Object] = informers.add(
            SERVICES, whole(SERVICES), label_selector=_OURS, labels=(naming.ORIGIN_NAME_LABEL,)
        ).cache
        # Slices have the labels of their Services.
        self.slices: Cache[Object] = informers.add(
            ENDPOINT_SLICES,
            whole(ENDPOINT_SLICES),
            label_selector=f"{_OURS},{naming.SERVE_LABEL}",
            labels=(SERVICE_NAME_LABEL,),
        ).cache
        self.gateways = _whole(informers, GATEWAYS) if gateways else None
        self.routes = _whole(informers, HTTP_ROUTES) if gateways else None
        self.clusters = shared.clusters
        self.pods = shared.pods

    # --- reading

    def cluster_of(self, service: RayService, name: str) -> Object | None:
        """Return a cluster of this name, if it was made for the service."""
        found = self.clusters.get((service.namespace, name)) if name else None
        return found if found is not None and is_controlled_by(found, service.uid) else None

    def heads_of(self, cluster: Object) -> list[PodView]:
        metadata = cluster["metadata"]
        pods = self.pods.labelled(metadata["namespace"], naming.CLUSTER_LABEL, metadata["name"])
        return [pod for pod in pods if pod.is_head and pod.metadata.controller in ("", metadata["uid"])]

    def takes_requests(self, cluster: Object) -> bool:
        """Tell whether a Service that leads to a cluster has anybody behind it."""
        metadata = cluster["metadata"]
        return any(
            pod.metadata.labels.get(naming.SERVE_LABEL) == "true"
            and not pod.is_terminating
            and pod.ready is not None
            and pod.ready.status == "True"
            for pod in self.pods.labelled(metadata["namespace"], naming.CLUSTER_LABEL, metadata["name"])
        )

    def services_of(self, service: RayService) -> dict[str, Object]:
        """Return the Services that lead to a service, and those that its clusters have for themselves, by name."""
        found = self.services.owned_by(service.uid)
        for name in (service.active.name, service.pending.name):
            own = self.services.get((service.namespace, cluster_serve_name(name))) if name else None
            found += [own] if own is not None else []
        return {one["metadata"]["name"]: one for one in found}

    def slices_of(self, service: RayService, names: list[str]) -> list[Object]:
        """Return the EndpointSlices of some of a service's Services."""
        return [
            found
            for name in names
            for found in self.slices.labelled(service.namespace, SERVICE_NAME_LABEL, name)
        ]

    def gateway_of(self, service: RayService) -> Object | None:
        return (
            self.gateways.get((service.namespace, gateway_name(service)))
            if self.gateways is not None
            else None
        )

    def route_of(self, service: RayService) -> Object | None:
        return self.routes.get((service.namespace, route_name(service))) if self.routes is not None else None

    # --- waking

    def wake_by(self, wake: Wake) -> None:
        """Have a function called with the service that a change is about, and whether it is only a start-up recheck.

        What the controller wrote itself wakes nobody, since the pass that wrote goes on from the answer; but clusters
        and Pods are written by another controller, too.
        """

        def service_changed(change: Change[Object]) -> None:
            if change.cause != "write":
                wake(change.key, change.cause == "list")

        def cluster_changed(change: Change[Object]) -> None:
            if change.cause != "write" or change.old is not None:
                self._wake_owner(wake, change, change.new or change.old)

        def child_changed(change: Change[Object]) -> None:
            if change.cause != "write":
                self._wake_owner(wake, change, change.new or change.old)

        def slice_changed(change: Change[Object]) -> None:
            found = change.new or change.old
            name = found["metadata"]["labels"].get(SERVICE_NAME_LABEL, "") if found is not None else ""
            self._wake_owner(wake, change, self.services.get((change.key.namespace, name)))

        def pod_changed(change: Change[PodView]) -> None:
            pod = change.new or change.old
            is_own = change.cause == "write" and change.new is not None
            if pod is not None and pod.is_head and change.old != change.new and not is_own:
                name = pod.metadata.labels.get(naming.CLUSTER_LABEL, "")
                self._wake_owner(wake, change, self.clusters.get((change.key.namespace, name)))

        self.rayservices.listen(service_changed)
        self.clusters.listen(cluster_changed)
        self.services.listen(child_changed)
        self.slices.listen(slice_changed)
        self.pods.listen(pod_changed)
        for cache in (self.gateways, self.routes):
            if cache is not None:
                cache.listen(child_changed)

    def _wake_owner(self, wake: Wake, change: Change[Any], obj: Object | None) -> None:
        """Wake the service that an object was made for, itself or by way of a cluster."""
        owner = controller_of(obj) if obj is not None else None
        if owner is not None and owner.get("kind") == "RayCluster":
            cluster = self.clusters.get((change.key.namespace, owner["name"]))
            owner = controller_of(cluster) if cluster is not None else None
        if owner is not None and owner.get("kind") == "RayService":
            wake(Key(change.key.namespace, owner["name"]), change.cause == "list")


def _whole(informers: Informers, resource: Resource) -> Cache[Object]:
    return informers.add(resource, whole(resource)).cache
