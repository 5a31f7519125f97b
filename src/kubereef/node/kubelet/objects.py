"""The objects that Pods name: fetched when they are needed, and only once for everybody who asks at the same time."""

import asyncio

from kubereef.controllers.resources import CONFIG_MAPS, SERVICES, Resource
from kubereef.kinds.resource import Object
from kubereef.node.kubelet.environment import ObjectName, Objects
from kubereef.node.kubelet.interfaces import Client
from kubewire import errors

SECRETS = Resource("", "v1", "secrets", "Secret")
_RESOURCES = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


async def fetch_objects(client: Client, namespace: str, wanted: set[ObjectName]) -> Objects:
    """Return ConfigMaps and Secrets of a namespace; None for those that do not exist."""
    names = sorted(wanted)
    found = await asyncio.gather(*(fetch(client, _RESOURCES[kind], namespace, name) for kind, name in names))
    return dict(zip(names, found, strict=True))


async def fetch(client: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    """Return an object, or None if there is none of that name."""
    try:
        return await client.get(resource.url(namespace, name))
    except errors.NotFound:
        return None


async def visible_services(client: Client, namespace: str, *, all_of_them: bool) -> list[Object]:
    """Return the Services that a container's environment tells of: that of the API server, and those beside the Pod."""
    found: list[Object] = []
    if all_of_them:
        found = (await client.get(SERVICES.url(namespace)))["items"]
    names = {service["metadata"]["name"] for service in found}
    if "kubernetes" not in names:
        master = await fetch(client, SERVICES, "default", "kubernetes")
        found += [master] if master is not None else []
    return found
