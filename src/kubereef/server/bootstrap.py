"""What a cluster has from its first moment: namespaces, roles, priority classes, and a Service for the API itself."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.server.aggregation import aggregate_all
from kubereef.server.bootstrap_roles import AUTOUPDATE, cluster_role_bindings, cluster_roles
from kubereef.server.inprocess import LocalClient
from kubereef.server.requests import AUTHENTICATED, MASTERS, User
from kubewire import errors

BOOTSTRAP_USER = User("system:apiserver", (MASTERS, AUTHENTICATED))

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_DEFAULT = "/api/v1/namespaces/default"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


class Entrance(NamedTuple):
    """Where the API server listens."""

    address: str = ""
    port: int = 6443

    @property
    def reachable(self) -> str:
        """The address for the endpoints; nothing if only this machine's loopback can reach it."""
        if not self.address:
            return ""
        address = ip_address(self.address)
        return "" if address.is_loopback or address.is_unspecified else self.address


def api_service_ip(service_cidr: str) -> str:
    """Return the first address of the Services, which is the API server's own."""
    return str(ip_network(service_cidr)[1])


async def bootstrap(client: LocalClient, entrance: Entrance, service_ip: str) -> None:
    """Create what is missing and bring the default roles up to date; what users have added stays."""
    await _create_missing(client, "/api/v1/namespaces", [{"metadata": {"name": name}} for name in NAMESPACES])
    roles = cluster_roles()
    aggregate_all(roles)
    await _create_or_extend(client, f"{_RBAC}/clusterroles", roles, "rules")
    await _create_or_extend(client, f"{_RBAC}/clusterrolebindings", cluster_role_bindings(), "subjects")
    await _create_missing(client, _PRIORITY_CLASSES, priority_classes())
    await _ensure_entrance(client, entrance, service_ip)


def priority_classes() -> list[Object]:
    """Return the classes of what a cluster cannot do without."""
    return [
        {
            "metadata": {"name": "system-cluster-critical"},
            "value": 2000000000,
            "description": "Used for system critical pods that must run in the cluster, but can be moved to"
            " another node if necessary.",
            "preemptionPolicy": "PreemptLowerPriority",
        },
        {
            "metadata": {"name": "system-node-critical"},
            "value": 2000001000,
            "description": "Used for system critical pods that must not be moved from their current node.",
            "preemptionPolicy": "PreemptLowerPriority",
        },
    ]


async def _create_missing(client: LocalClient, url: str, wanted: Sequence[Object]) -> None:
    present = await _present(client, url)
    # Together, so that a store on disk takes them in one commit.
    await asyncio.gather(
        *(client.create(url, obj) for obj in wanted if obj["metadata"]["name"] not in present)
    )


async def _create_or_extend(client: LocalClient, url: str, wanted: Sequence[Object], field: str) -> None:
    """Create what is missing, and add to what is there the entries of a list that it lacks.

    So a newer release brings its new rules along. An object that says it does not want this is left alone.
    """
    await _create_missing(client, url, wanted)
    present = await _present(client, url)
    for obj in wanted:
        old = present[obj["metadata"]["name"]]
        annotations = old["metadata"].get("annotations") or {}
        lacking = [entry for entry in obj.get(field) or () if entry not in (old.get(field) or ())]
        if lacking and annotations.get(AUTOUPDATE) == "true":
            patch = {field: [*(old.get(field) or ()), *lacking]}
            await client.patch(f"{url}/{obj['metadata']['name']}", patch)


async def _present(client: LocalClient, url: str) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in (await client.get(url))["items"]}


async def _ensure_entrance(client: LocalClient, entrance: Entrance, service_ip: str) -> None:
    """Have the `kubernetes` Service lead to this server."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    service: Object = {
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {
            "clusterIP": service_ip,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": entrance.port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    }
    await _put(client, f"{_DEFAULT}/services", service, {"spec": {"ports": service["spec"]["ports"]}})
    subsets = []
    points = []
    if entrance.reachable:
        ports = [{"name": "https", "port": entrance.port, "protocol": "TCP"}]
        subsets = [{"addresses": [{"ip": entrance.reachable}], "ports": ports}]
        points = [{"addresses": [entrance.reachable], "conditions": {"ready": True}}]
    mirror = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints: Object = {"metadata": {"name": "kubernetes", "labels": mirror}, "subsets": subsets}
    await _put(client, f"{_DEFAULT}/endpoints", endpoints, {"subsets": subsets or None})
    family = "IPv6" if ":" in (entrance.reachable or service_ip) else "IPv4"
    endpoint_slice: Object = {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": family,
        "endpoints": points,
        "ports": [{"name": "https", "port": entrance.port, "protocol": "TCP"}],
    }
    changes = {"endpoints": points, "ports": endpoint_slice["ports"]}
    await _put(client, _SLICES, endpoint_slice, changes)


async def _put(client: LocalClient, url: str, obj: Object, changes: Object) -> None:
    """Create an object; if it is there, make the changes to it."""
    try:
        await client.create(url, obj)
    except errors.AlreadyExists:
        await client.patch(f"{url}/{obj['metadata']['name']}", changes)
