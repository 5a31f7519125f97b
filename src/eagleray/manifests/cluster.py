"""What builders read of a RayCluster."""

from collections.abc import Sequence
from typing import Any

from eagleray.manifests.naming import ORIGIN_KIND_LABEL
from eagleray.manifests.settings import Settings
from eagleray.manifests.stored import Stored

Object = dict[str, Any]

DEFAULT_GCS_PORT = "6379"
FT_ENABLED = "ray.io/ft-enabled"


class Cluster(Stored):
    """A RayCluster as stored, with names for the questions that builders ask. Nothing here changes it."""

    __slots__ = ()

    @property
    def head(self) -> Object:
        return self.spec.get("headGroupSpec") or {}

    @property
    def workers(self) -> Sequence[Object]:
        return self.spec.get("workerGroupSpecs") or []

    @property
    def crd_type(self) -> str:
        """The kind that a user wrote and this cluster came from."""
        origin = self.labels.get(ORIGIN_KIND_LABEL)
        return origin if origin in ("RayJob", "RayService") else "RayCluster"

    @property
    def ray_version(self) -> str:
        return self.spec.get("rayVersion") or ""

    @property
    def autoscaling(self) -> bool:
        return self.spec.get("enableInTreeAutoscaling") is True

    @property
    def autoscaler_options(self) -> Object:
        return self.spec.get("autoscalerOptions") or {}

    @property
    def autoscaler_version(self) -> str:
        """The version that was asked for; nothing else decides, as in the reference."""
        return self.autoscaler_options.get("version") or ""

    @property
    def fault_tolerance(self) -> Object | None:
        options: Object | None = self.spec.get("gcsFaultToleranceOptions")
        return options

    @property
    def is_fault_tolerant(self) -> bool:
        return self.fault_tolerance is not None or self.annotations.get(FT_ENABLED, "").lower() == "true"

    @property
    def has_embedded_storage(self) -> bool:
        """Whether the head keeps its state itself, on a volume, and not in Redis."""
        return (self.fault_tolerance or {}).get("backend") == "rocksdb"

    @property
    def auth(self) -> Object:
        return self.spec.get("authOptions") or {}

    @property
    def head_port(self) -> str:
        return (self.head.get("rayStartParams") or {}).get("port") or DEFAULT_GCS_PORT

    @property
    def head_service_name(self) -> str:
        service = self.head.get("headService") or {}
        return (service.get("metadata") or {}).get("name") or f"{self.name}-head-svc"

    def head_host(self, settings: Settings) -> str:
        """Return the full name under which the head is reached."""
        return f"{self.head_service_name}.{self.namespace}.svc.{settings.cluster_domain}"


def ray_container(group: Object) -> Object:
    """Return the container that runs Ray: always the first of the template."""
    containers = ((group.get("template") or {}).get("spec") or {}).get("containers") or [{}]
    container: Object = containers[0]
    return container


def owner_of(cluster: Cluster) -> Object:
    """Return the owner reference that a child of the cluster carries."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": cluster.name,
        "uid": cluster.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
