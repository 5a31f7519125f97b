"""The resources that controllers read and write, and where they are found."""

from typing import Any, NamedTuple

from kubereef.kinds.resource import Object, ResourceType
from kubewire.owners import owner_reference


class Resource(NamedTuple):
    """One resource at one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @classmethod
    def of(cls, resource_type: ResourceType) -> "Resource":
        """Return the resource that a registered type describes."""
        return cls(
            resource_type.group,
            resource_type.version,
            resource_type.plural,
            resource_type.kind,
            resource_type.namespaced,
        )

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def url(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """Return the address of an object, of a part of it, or, without a name, of all objects."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{prefix}{inside}/{self.plural}{f'/{name}' if name else ''}{f'/{part}' if part else ''}"

    def url_of(self, obj: Object, part: str = "") -> str:
        """Return the address of this very object."""
        meta = obj["metadata"]
        return self.url(meta.get("namespace", ""), meta["name"], part)

    def reference_to(self, obj: Object) -> Object:
        """Return the owner reference that makes this object the controller of another."""
        return owner_reference({"apiVersion": self.api_version, "kind": self.kind, **obj})

    def involved(self, obj: Object) -> dict[str, Any]:
        """Return the reference by which an Event says what it is about."""
        meta = obj["metadata"]
        reference = {
            "kind": self.kind,
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
            "uid": meta["uid"],
            "apiVersion": self.api_version,
            "resourceVersion": meta.get("resourceVersion", ""),
        }
        return {field: value for field, value in reference.items() if value}


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SERVICES = Resource("", "v1", "services", "Service")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
