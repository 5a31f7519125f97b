"""Keeping up with what the node is to know: its own Pods, and the Services of the cluster."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol
from urllib.parse import quote

from kubereef.controllers.following import Reader
from kubereef.kinds.resource import Object
from kubereef.node.network.services import SERVICE_NAME_LABEL

_API_SERVER = ("default", "kubernetes")


class ListensToServices(Protocol):
    """What follows Services and their endpoints: the DNS records, and the Service proxy."""

    def apply_service(self, service: Object) -> None: ...

    def remove_service(self, namespace: str, name: str) -> None: ...

    def apply_slice(self, endpoint_slice: Object) -> None: ...

    def remove_slice(self, namespace: str, name: str) -> None: ...


class ApiServerHere:
    """Passes Services on, with the API server behind the `kubernetes` Service at an address of this node.

    In a cluster that the node has joined, the endpoints of that Service are addresses that Pods in here may not
    reach, or there are none.
    """

    def __init__(self, listener: ListensToServices, address: str, port: int) -> None:
        self._listener = listener
        self._address = address
        self._port = port

    def apply_service(self, service: Object) -> None:
        self._listener.apply_service(service)
        if _key(service) == _API_SERVER:
            self._listener.apply_slice(self._slice(service))

    def remove_service(self, namespace: str, name: str) -> None:
        self._listener.remove_service(namespace, name)

    def apply_slice(self, endpoint_slice: Object) -> None:
        meta = endpoint_slice["metadata"]
        service = (meta.get("labels") or {}).get(SERVICE_NAME_LABEL)
        if (meta["namespace"], service) != _API_SERVER:
            self._listener.apply_slice(endpoint_slice)

    def remove_slice(self, namespace: str, name: str) -> None:
        if (namespace, name) != _API_SERVER:
            self._listener.remove_slice(namespace, name)

    def _slice(self, service: Object) -> Object:
        namespace, name = _API_SERVER
        ports = [
            {"name": port.get("name") or "", "protocol": "TCP", "port": self._port}
            for port in service["spec"].get("ports") or ()
        ]
        return {
            "metadata": {"namespace": namespace, "name": name, "labels": {SERVICE_NAME_LABEL: name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [self._address], "conditions": {"ready": True}}],
            "ports": ports,
        }


class Selected:
    """Reads only the objects of a field selector, at whatever address it is asked for."""

    def __init__(self, client: Reader, field_selector: str) -> None:
        self._client = client
        self._option = f"fieldSelector={quote(field_selector)}"

    async def get(self, url: str) -> dict[str, Any]:
        return await self._client.get(self._with_option(url))

    def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]:
        return self._client.watch(self._with_option(url))

    def _with_option(self, url: str) -> str:
        return f"{url}{'&' if '?' in url else '?'}{self._option}"


class ObjectSink:
    """Turns a watch into single news: this object is there, that one is gone. A `following.Sink`."""

    def __init__(self, apply: Callable[[Object], None], remove: Callable[[str, str], None]) -> None:
        self._apply = apply
        self._remove = remove
        self._known: dict[tuple[str, str], None] = {}

    def replace(self, objects: list[Object], revision: int) -> None:  # noqa: ARG002 - every sink is told the revision
        present = dict.fromkeys(_key(obj) for obj in objects)
        for gone in [key for key in self._known if key not in present]:
            self._remove(*gone)
        self._known = present
        for obj in objects:
            self._apply(obj)

    def apply(self, kind: str, obj: Object, revision: int) -> None:  # noqa: ARG002 - as above
        if kind == "DELETED":
            self._known.pop(_key(obj), None)
            self._remove(*_key(obj))
        else:
            self._known[_key(obj)] = None
            self._apply(obj)


def service_sinks(*listeners: ListensToServices) -> tuple[ObjectSink, ObjectSink]:
    """Return the sinks for Services and for EndpointSlices that tell all these."""

    def apply_service(service: Object) -> None:
        for one in listeners:
            one.apply_service(service)

    def remove_service(namespace: str, name: str) -> None:
        for one in listeners:
            one.remove_service(namespace, name)

    def apply_slice(endpoint_slice: Object) -> None:
        for one in listeners:
            one.apply_slice(endpoint_slice)

    def remove_slice(namespace: str, name: str) -> None:
        for one in listeners:
            one.remove_slice(namespace, name)

    return ObjectSink(apply_service, remove_service), ObjectSink(apply_slice, remove_slice)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
