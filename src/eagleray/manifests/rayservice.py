"""What a RayService has made for it: its clusters, and the Services that lead to the one that serves."""

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from eagleray.gates import Gates
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, ray_container
from eagleray.manifests.cluster import owner_of as cluster_owner
from eagleray.manifests.hashing import service_hash
from eagleray.manifests.services import NoServePort, head_ports, head_service
from eagleray.manifests.settings import Settings
from eagleray.manifests.stored import Stored
from kubewire.times import parse_time

Object = dict[str, Any]

HASH_ANNOTATION: Final = "ray.io/hash-without-replicas-and-workers-to-delete"
GROUPS_ANNOTATION: Final = "ray.io/num-worker-groups"
VERSION_ANNOTATION: Final = "ray.io/kuberay-version"
DEADLINE_ANNOTATION: Final = "eagleray.io/upgrade-deadline-seconds"

INCREMENTAL: Final = "NewClusterWithIncrementalUpgrade"
INCREMENTAL_GATE: Final = "RayServiceIncrementalUpgrade"
DEFAULT_DELETION_DELAY: Final = 60
DEFAULT_SERVE_PORT: Final = 8000


class UpgradeOptions(NamedTuple):
    """The pace of an incremental upgrade, in percent and seconds, and through whose Gateway it goes."""

    surge: int = 100
    step: int = 0
    interval: int = 0
    gateway_class: str = ""


class ServiceSide:
    """One of the two clusters of a service as its status has it; without a name there is no such cluster."""

    __slots__ = ("status",)

    def __init__(self, status: Object) -> None:
        self.status = status

    @property
    def name(self) -> str:
        return self.status.get("rayClusterName") or ""

    @property
    def capacity(self) -> int | None:
        """The percentage of the service's capacity that it is to have."""
        return self.status.get("targetCapacity")

    @property
    def traffic(self) -> int | None:
        """The percentage of the requests that it gets."""
        return self.status.get("trafficRoutedPercent")

    @property
    def migrated_at(self) -> datetime | None:
        """When its traffic changed last."""
        stamp = self.status.get("lastTrafficMigratedTime")
        return parse_time(stamp) if stamp else None


class RayService(Stored):
    """A RayService as stored, with names for the questions that are asked about it. Nothing here changes it."""

    __slots__ = ("_config_hash",)

    def __init__(self, obj: Object) -> None:
        super().__init__(obj)
        self._config_hash = ""

    @property
    def config_hash(self) -> str:
        """The hash of the spec that the service's cluster is to have; asked for often, and computed once."""
        if not self._config_hash:
            self._config_hash = service_hash(self.cluster_config)
        return self._config_hash

    @property
    def cluster_config(self) -> Object:
        """The spec that the service's cluster is to have."""
        return self.spec.get("rayClusterConfig") or {}

    @property
    def serve_config(self) -> str:
        return self.spec.get("serveConfigV2") or ""

    @property
    def upgrade_type(self) -> str:
        """The strategy that a user chose; empty if none."""
        return (self.spec.get("upgradeStrategy") or {}).get("type") or ""

    @property
    def upgrade_options(self) -> UpgradeOptions:
        options = (self.spec.get("upgradeStrategy") or {}).get("clusterUpgradeOptions") or {}
        surge = options.get("maxSurgePercent")
        return UpgradeOptions(
            UpgradeOptions().surge if surge is None else surge,
            options.get("stepSizePercent") or 0,
            options.get("intervalSeconds") or 0,
            options.get("gatewayClassName") or "",
        )

    def is_incremental(self, gates: Gates) -> bool:
        """Whether a new cluster takes over step by step."""
        return self.upgrade_type == INCREMENTAL and gates.enabled(INCREMENTAL_GATE)

    @property
    def deletion_delay(self) -> int:
        """How many seconds a replaced cluster is kept."""
        delay = self.spec.get("rayClusterDeletionDelaySeconds")
        return DEFAULT_DELETION_DELAY if delay is None else int(delay)

    @property
    def upgrade_deadline(self) -> int | None:
        """How many seconds a new cluster has to become healthy; None, also if it cannot be read, is for ever."""
        text = self.annotations.get(DEADLINE_ANNOTATION, "")
        # More digits than these are more years than there have been.
        is_number = text.isascii() and text.isdecimal() and len(text) <= 10
        return int(text) or None if is_number else None

    @property
    def excludes_head(self) -> bool:
        return self.spec.get("excludeHeadPodFromServeSvc") is True

    @property
    def is_suspended(self) -> bool:
        return self.spec.get("suspend") is True

    @property
    def custom_service(self) -> Object | None:
        """The template of the serve Service that a user brings."""
        given: Object | None = self.spec.get("serveService")
        return given

    @property
    def active(self) -> ServiceSide:
        return ServiceSide(self.status.get("activeServiceStatus") or {})

    @property
    def pending(self) -> ServiceSide:
        return ServiceSide(self.status.get("pendingServiceStatus") or {})

    @property
    def head_service_name(self) -> str:
        return f"{self.name}-head-svc"

    @property
    def serve_service_name(self) -> str:
        """The name of the one serve Service; an incremental upgrade has one for each cluster instead."""
        given = ((self.custom_service or {}).get("metadata") or {}).get("name")
        return given or f"{self.name}-serve-svc"


def cluster_serve_name(cluster: str) -> str:
    """Return the name of the serve Service that a cluster has for itself."""
    return f"{cluster}-serve-svc"


def owner_of(service: RayService) -> Object:
    """Return the owner reference that a child of the service carries."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "name": service.name,
        "uid": service.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def origin_labels(name: str) -> dict[str, str]:
    """Return the labels that say for which service, or for which cluster of one, a child was made."""
    return {naming.ORIGIN_NAME_LABEL: name, naming.ORIGIN_KIND_LABEL: "RayService"}


def service_cluster(
    service: RayService, name: str, version: str, *, at_least_workers: bool = False
) -> Object:
    """Return the cluster that the service describes; with `at_least_workers` it begins with as few as it may have."""
    spec = copy.deepcopy(service.cluster_config)
    if at_least_workers:
        for group in spec.get("workerGroupSpecs") or ():
            group.pop("replicas", None)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "namespace": service.namespace,
            "labels": {**service.labels, **origin_labels(service.name)},
            "annotations": {**service.annotations, **cluster_stamps(service.cluster_config, version)},
            "ownerReferences": [owner_of(service)],
        },
        "spec": spec,
    }


def cluster_stamps(spec: Object, version: str) -> dict[str, str]:
    """Return the annotations by which a cluster is later compared with what its service describes."""
    return {
        HASH_ANNOTATION: service_hash(spec),
        GROUPS_ANNOTATION: str(len(spec.get("workerGroupSpecs") or ())),
        VERSION_ANNOTATION: version,
    }


def service_head_service(service: RayService, cluster: Cluster, settings: Settings) -> Object:
    """Return the Service under the service's own name that leads to the head of a cluster."""
    given = (cluster.head.get("headService") or {}).get("metadata") or {}
    metadata: Object = {
        "name": service.head_service_name,
        "namespace": service.namespace,
        "labels": {
            **origin_labels(service.name),
            naming.NODE_TYPE_LABEL: "head",
            naming.IDENTIFIER_LABEL: naming.checked_label(f"{service.name}-head"),
        },
        "ownerReferences": [owner_of(service)],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    spec = head_service(cluster, settings)["spec"]
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def service_serve_service(service: RayService, cluster: Cluster) -> Object:
    """Return the Service through which the applications on a cluster are reached, as far as a user wants it.

    Raises NoServePort where neither the head nor the user's Service has a port for it.
    """
    given = service.custom_service
    detected = _serve_ports(cluster)
    if given is None:
        metadata = _serve_metadata(service.name, service.namespace, service.serve_service_name)
        spec: Object = {"type": _service_type(cluster), "ports": _required(detected)}
    else:
        template = given.get("metadata") or {}
        metadata = _serve_metadata(service.name, service.namespace, service.serve_service_name)
        metadata["labels"] = {**(template.get("labels") or {}), **metadata["labels"]}
        if template.get("annotations"):
            metadata["annotations"] = dict(template["annotations"])
        spec = copy.deepcopy(given.get("spec") or {})
        spec["type"] = spec.get("type") or _service_type(cluster)
        spec["ports"] = _chosen(detected, spec.get("ports") or [])
    metadata["ownerReferences"] = [owner_of(service)]
    spec["selector"] = _serve_selector(cluster)
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def cluster_serve_service(cluster: Cluster) -> Object:
    """Return the serve Service that a cluster has for itself during incremental upgrades; the cluster owns it.

    Raises NoServePort where the head has no port for it.
    """
    metadata = _serve_metadata(cluster.name, cluster.namespace, cluster_serve_name(cluster.name))
    metadata["ownerReferences"] = [cluster_owner(cluster)]
    spec = {
        "type": _service_type(cluster),
        "selector": _serve_selector(cluster),
        "ports": _required(_serve_ports(cluster)),
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def serve_port(cluster: Cluster) -> int:
    """Return the port on which Serve listens."""
    ports = ray_container(cluster.head).get("ports") or ()
    return next(
        (int(port["containerPort"]) for port in ports if port.get("name") == "serve"), DEFAULT_SERVE_PORT
    )


def _serve_metadata(origin: str, namespace: str, name: str) -> Object:
    labels = {**origin_labels(origin), naming.SERVE_LABEL: naming.checked_label(f"{origin}-serve")}
    return {"name": name, "namespace": namespace, "labels": labels}


def _serve_selector(cluster: Cluster) -> dict[str, str]:
    return {naming.CLUSTER_LABEL: cluster.name, naming.SERVE_LABEL: "true"}


def _service_type(cluster: Cluster) -> str:
    return cluster.head.get("serviceType") or "ClusterIP"


def _serve_ports(cluster: Cluster) -> list[Object]:
    return [
        {"name": name, "port": port}
        for name, port in head_ports(cluster).items()
        if name == "serve" or name.startswith("serve-")
    ]


def _required(ports: list[Object]) -> list[Object]:
    if not ports:
        raise NoServePort(
            "the head has no port named serve or serve-…; name the port on which Serve listens so"
        )
    return ports


def _chosen(detected: list[Object], given: list[Object]) -> list[Object]:
    """Return the ports that the head has, in the user's words where he has some for them."""
    by_name: Mapping[str, Object] = {port.get("name", ""): port for port in given}
    return [by_name.get(port["name"], port) for port in detected] if detected else _required(given)
