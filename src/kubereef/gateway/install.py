"""What a cluster needs for Gateways before there are any: the kinds, the class, and the rights of the data plane."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from kubereef.gateway.definitions import MANAGED_BY, definitions
from kubereef.gateway.objects import CLASS, CONTROLLER, DATA_PLANE_ROLE, GATEWAY_CLASSES, GROUP
from kubereef.kinds.resource import Object
from kubereef.server.bootstrap import BOOTSTRAP_USER
from kubereef.server.core import Server
from kubereef.server.inprocess import LocalClient
from kubewire import errors

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RBAC = "/apis/rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]


class Host(Protocol):
    """The cluster that is to have Gateways."""

    server: Server


@asynccontextmanager
async def furnished(cluster: Host) -> AsyncIterator[None]:
    """Be the part of a cluster that furnishes it for Gateways, before the controllers that need it."""
    await install(LocalClient(cluster.server, BOOTSTRAP_USER))
    yield


async def install(client: LocalClient) -> None:
    """Create what is missing. Kinds that somebody else has defined, and a class that was changed, stay as they are."""
    for definition in definitions():
        await _define(client, definition)
    await _create(client, GATEWAY_CLASSES.url(), _gateway_class())
    await _create(client, f"{_RBAC}/v1/clusterroles", _role())
    await _create(client, f"{_RBAC}/v1/clusterrolebindings", _binding())


async def _define(client: LocalClient, definition: Object) -> None:
    url = f"{_DEFINITIONS}/{definition['metadata']['name']}"
    present = await _present(client, url)
    if present is None:
        await client.create(_DEFINITIONS, definition)
        return
    is_ours = MANAGED_BY.items() <= (present["metadata"].get("labels") or {}).items()
    if is_ours and present["spec"]["versions"] != definition["spec"]["versions"]:
        await client.replace(url, {**present, "spec": {**present["spec"], **definition["spec"]}})


async def _create(client: LocalClient, url: str, obj: Object) -> None:
    if await _present(client, f"{url}/{obj['metadata']['name']}") is None:
        await client.create(url, obj)


async def _present(client: LocalClient, url: str) -> Object | None:
    # Asking first is cheap; a definition is looked through from end to end before it is found to be there already.
    try:
        return await client.get(url)
    except errors.NotFound:
        return None


def _gateway_class() -> Object:
    return {
        "apiVersion": GATEWAY_CLASSES.api_version,
        "kind": GATEWAY_CLASSES.kind,
        "metadata": {"name": CLASS, "labels": MANAGED_BY},
        "spec": {"controllerName": CONTROLLER, "description": "Gateways that Kubereef's node serves"},
    }


def _role() -> Object:
    rules = [
        {"apiGroups": [GROUP], "resources": ["gateways", "httproutes"], "verbs": _READ},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": _READ},
    ]
    return {"metadata": {"name": DATA_PLANE_ROLE, "labels": MANAGED_BY}, "rules": rules}


def _binding() -> Object:
    api = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": DATA_PLANE_ROLE, "labels": MANAGED_BY},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": DATA_PLANE_ROLE},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": "system:nodes"}],
    }
