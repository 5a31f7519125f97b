"""The resources that the operator reads and writes, and how one of their objects is named."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

Object = dict[str, Any]


class Key(NamedTuple):
    """Which object of a resource; `namespace` is empty for what belongs to no namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Ref(NamedTuple):
    """One very object as it was observed: a later one of the same name has another uid."""

    namespace: str
    name: str
    uid: str = ""
    version: str = ""

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> "Ref":
        """Return what an object that the API server answered says of itself."""
        metadata = obj["metadata"]
        return cls(
            metadata.get("namespace", ""),
            metadata["name"],
            metadata.get("uid", ""),
            metadata.get("resourceVersion", ""),
        )

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class Resource(NamedTuple):
    """One resource at one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """Return the address of an object, of a part of it, or, without a name, of all objects."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{_step(namespace)}" if namespace and self.namespaced else ""
        below = "".join(f"/{_step(step)}" for step in (name, part) if step)
        return f"{prefix}{inside}/{self.plural}{below}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _step(text: str) -> str:
    """Return a name so that it stays one step of an address, whatever it holds."""
    if text in (".", ".."):
        raise ValueError(f"{text!r} is no name of an object")
    return quote(text, safe="")


# Of batch schedulers: scheduler-plugins' and Volcano's, and those of Kubernetes itself.
COSCHEDULING_POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
VOLCANO_POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
GANG_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
GANG_WORKLOADS = Resource("scheduling.k8s.io", "v1alpha2", "workloads", "Workload")

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
GATEWAYS = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = Resource("", "v1", "pods", "Pod")
RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")
RAY_CRON_JOBS = Resource("ray.io", "v1", "raycronjobs", "RayCronJob")
RAY_JOBS = Resource("ray.io", "v1", "rayjobs", "RayJob")
RAY_SERVICES = Resource("ray.io", "v1", "rayservices", "RayService")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
ROUTES = Resource("route.openshift.io", "v1", "routes", "Route")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
