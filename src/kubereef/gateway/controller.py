"""The control side of Gateways: statuses, and for each Gateway a Service that holds its address.

The Service has an address of the cluster and no selector. It says by a label that the ordinary Service proxy shall
leave it alone: the data plane listens at the very address, so that clients' own addresses are seen there.
"""

from collections.abc import Iterable

from kubereef.controllers.caches import Key
from kubereef.controllers.pods import is_deleting
from kubereef.controllers.resources import ENDPOINT_SLICES, NAMESPACES, SERVICES
from kubereef.controllers.runtime import Controller, World
from kubereef.gateway.attachment import ACCEPTED, Attachment, Labels, attach, judge_listeners
from kubereef.gateway.definitions import MANAGED_BY
from kubereef.gateway.objects import (
    CONTROLLER,
    GATEWAY_CLASSES,
    GATEWAY_LABEL,
    GATEWAYS,
    HTTP_ROUTES,
    PROXY_LABEL,
    PROXY_NAME,
    service_name,
)
from kubereef.gateway.reading import Gateway, ServicePortRef, read_gateway, read_route
from kubereef.gateway.statuses import (
    Address,
    accepted_gateway,
    class_status,
    count_attached,
    gateway_status,
    judge_references,
    route_status,
)
from kubereef.kinds.resource import Object
from kubewire.owners import is_controlled_by
from kubewire.times import format_time

_BY_GATEWAY = "gateway"
_BY_SERVICE = "service"
_SLICE_LABELS = {"endpointslice.kubernetes.io/managed-by": CONTROLLER.replace("/", ".")}


class GatewayClassController(Controller):
    """Accepts the classes that name this implementation."""

    name = "gateway-class-controller"
    workers = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._classes = self.watch(GATEWAY_CLASSES)

    async def sync(self, key: Key) -> None:
        found = self._classes.get(key)
        if found is None or not _is_our_class(found):
            return
        status = class_status(found, format_time(self.clock.now()))
        if status != found.get("status"):
            await self.hands.replace_status(GATEWAY_CLASSES, found, status)


class _Attaching(Controller):
    """What the controllers of Gateways and of routes have in common: they look at both."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        caches = world.caches
        self._classes, self._namespaces = caches.of(GATEWAY_CLASSES), caches.of(NAMESPACES)
        self._gateways, self._routes = caches.of(GATEWAYS), caches.of(HTTP_ROUTES)
        self._services = caches.of(SERVICES)
        self._routes.index(
            _BY_GATEWAY, lambda route: [f"{one.namespace}/{one.name}" for one in gateways_of(route)]
        )
        self._routes.index(_BY_SERVICE, _service_words)

    def _is_ours(self, gateway: Object | None) -> bool:
        if gateway is None:
            return False
        found = self._classes.get(("", gateway["spec"].get("gatewayClassName") or ""))
        return found is not None and _is_our_class(found)

    def _labels(self) -> dict[str, Labels]:
        """Return the labels of all namespaces."""
        return {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in self._namespaces}


class GatewayController(_Attaching):
    """Gives Gateways their addresses and statuses."""

    name = "gateway-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.watch(GATEWAYS)
        self.watch(GATEWAY_CLASSES, self._gateways_of_class)
        self.watch(HTTP_ROUTES, gateways_of)
        self.watch(SERVICES, _gateway_of_service)
        self._slices = self.watch(ENDPOINT_SLICES, _gateway_of_service)
        self._namespaces.listen(self._namespace_changed)

    async def sync(self, key: Key) -> None:
        found = self._gateways.get(key)
        if found is None or is_deleting(found) or not self._is_ours(found):
            return
        gateway = read_gateway(found)
        address = await self._address(found, gateway)
        attached = count_attached(self._attachments(gateway))
        status = gateway_status(found, gateway, attached, address, format_time(self.clock.now()))
        if status != found.get("status"):
            await self.hands.replace_status(GATEWAYS, found, status)

    def _attachments(self, gateway: Gateway) -> Iterable[Attachment]:
        labels = self._labels()
        for found in self._routes.by(_BY_GATEWAY, f"{gateway.namespace}/{gateway.name}"):
            route = read_route(found)
            places = {
                listener.name: (listener, hostnames)
                for parent in route.parents
                if parent.key == gateway.key
                for listener, hostnames in attach(route, parent, gateway, labels).places
            }
            yield Attachment(ACCEPTED, tuple(places.values()))

    async def _address(self, found: Object, gateway: Gateway) -> Address:
        verdicts = judge_listeners(gateway)
        if not accepted_gateway(gateway, verdicts).holds:
            return Address()
        ports = sorted({one.port for one in gateway.listeners if verdicts[one.name].is_served})
        wanted = service_of(found, ports)
        present = self._services.get(Key.of(wanted))
        if present is not None and not is_controlled_by(present, found["metadata"]["uid"]):
            return Address(
                problem=f"Service {wanted['metadata']['name']} is there already, and is not the Gateway's"
            )
        if present is None:
            present = await self.hands.create(SERVICES, wanted)
        elif changes := _changes(present, wanted):
            present = await self.hands.patch(SERVICES, present, changes)
        address = present["spec"].get("clusterIP") or ""
        await self._lead_there(present, address)
        return Address(address, "" if address else f"Service {wanted['metadata']['name']} has no address")

    async def _lead_there(self, service: Object, address: str) -> None:
        """Have the endpoints of the Service lead to the data plane, for clients that look for them."""
        wanted = slice_of(service, address)
        present = self._slices.get(Key.of(wanted))
        if present is None:
            await self.hands.create(ENDPOINT_SLICES, wanted)
        elif (present.get("endpoints"), present.get("ports")) != (wanted["endpoints"], wanted["ports"]):
            changes = {"endpoints": wanted["endpoints"], "ports": wanted["ports"]}
            await self.hands.patch(ENDPOINT_SLICES, present, changes)

    def _gateways_of_class(self, gateway_class: Object) -> list[Key]:
        name = gateway_class["metadata"]["name"]
        return [Key.of(one) for one in self._gateways if one["spec"].get("gatewayClassName") == name]

    def _namespace_changed(self, old: Object | None, new: Object | None) -> None:
        if _labels_of(old) != _labels_of(new):
            for gateway in self._gateways:
                self.queue.add(Key.of(gateway))


class HttpRouteController(_Attaching):
    """Tells routes which Gateways have taken them on, and whether their Services are there."""

    name = "http-route-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.watch(HTTP_ROUTES)
        self.watch(GATEWAYS, self._routes_of_gateway)
        self.watch(SERVICES, self._routes_of_service)
        self.watch(GATEWAY_CLASSES, lambda _: map(Key.of, self._routes))
        self._namespaces.listen(self._namespace_changed)

    async def sync(self, key: Key) -> None:
        found = self._routes.get(key)
        if found is None or is_deleting(found):
            return
        route = read_route(found)
        labels = self._labels()
        attachments = [
            (parent, attach(route, parent, read_gateway(gateway), labels))
            for parent in route.parents
            if (gateway := self._gateways.get(parent.key)) is not None and self._is_ours(gateway)
        ]
        references = judge_references(route, self._problem_with)
        status = route_status(found, attachments, references, format_time(self.clock.now()))
        if status["parents"] != ((found.get("status") or {}).get("parents") or []):
            await self.hands.replace_status(HTTP_ROUTES, found, status)

    def _problem_with(self, wanted: ServicePortRef) -> str:
        """Return why a port of a Service cannot be used; nothing if it can."""
        service = self._services.get((wanted.namespace, wanted.name))
        if service is None:
            return f"Service {wanted.name} does not exist"
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return f"Service {wanted.name} is an ExternalName, which has no endpoints"
        if not any(_is_port(one, wanted.port) for one in spec.get("ports") or ()):
            return f"Service {wanted.name} has no TCP port {wanted.port}"
        return ""

    def _routes_of_gateway(self, gateway: Object) -> list[Key]:
        return [Key.of(one) for one in self._routes.by(_BY_GATEWAY, str(Key.of(gateway)))]

    def _routes_of_service(self, service: Object) -> list[Key]:
        return [Key.of(one) for one in self._routes.by(_BY_SERVICE, str(Key.of(service)))]

    def _namespace_changed(self, old: Object | None, new: Object | None) -> None:
        if _labels_of(old) != _labels_of(new):
            for route in self._routes:
                self.queue.add(Key.of(route))


GATEWAY_CONTROLLERS = (GatewayClassController, GatewayController, HttpRouteController)


def service_of(gateway: Object, ports: list[int]) -> Object:
    """Return the Service that holds the address of a Gateway."""
    meta, infrastructure = gateway["metadata"], gateway["spec"].get("infrastructure") or {}
    labels = {**(infrastructure.get("labels") or {}), **MANAGED_BY, PROXY_LABEL: PROXY_NAME}
    if len(meta["name"]) <= _MOST_LABEL:
        labels[GATEWAY_LABEL] = meta["name"]
    made: Object = {
        "metadata": {
            "name": service_name(meta["name"]),
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [GATEWAYS.reference_to(gateway)],
        },
        "spec": {"type": "ClusterIP", "ports": [{"name": f"http-{port}", "port": port} for port in ports]},
    }
    if annotations := infrastructure.get("annotations"):
        made["metadata"]["annotations"] = dict(annotations)
    return made


_MOST_LABEL = 63


def slice_of(service: Object, address: str) -> Object:
    """Return the endpoints of a Gateway's Service: the data plane listens at the Service's own address."""
    meta = service["metadata"]
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**_SLICE_LABELS, "kubernetes.io/service-name": meta["name"]},
            "ownerReferences": [SERVICES.reference_to(service)],
        },
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [
            {"name": port["name"], "port": port["port"], "protocol": "TCP"}
            for port in service["spec"]["ports"]
        ],
    }


def _changes(present: Object, wanted: Object) -> Object:
    """Return the patch that gives a Service the ports and labels that it shall have; nothing if it has them."""
    changes: Object = {}
    ports = [(one["name"], one["port"]) for one in present["spec"].get("ports") or ()]
    if ports != [(one["name"], one["port"]) for one in wanted["spec"]["ports"]]:
        changes["spec"] = {"ports": wanted["spec"]["ports"]}
    for field in ("labels", "annotations"):
        asked = wanted["metadata"].get(field) or {}
        if not asked.items() <= (present["metadata"].get(field) or {}).items():
            changes.setdefault("metadata", {})[field] = asked
    return changes


def gateways_of(route: Object) -> list[Key]:
    """Return the Gateways that a route names."""
    return list(dict.fromkeys(Key(*parent.key) for parent in read_route(route).parents))


def _service_words(route: Object) -> list[str]:
    backends = (one for rule in read_route(route).rules for one in rule.backends)
    words = (f"{one.service.namespace}/{one.service.name}" for one in backends if one.service is not None)
    return list(dict.fromkeys(words))


def _gateway_of_service(obj: Object) -> list[Key]:
    """Return the Gateway that a Service, or its endpoints, may be for: the name of the Service is told by it."""
    meta = obj["metadata"]
    name = meta["name"].removesuffix("-kubereef")
    owners = [one["name"] for one in meta.get("ownerReferences") or () if one.get("kind") == GATEWAYS.kind]
    return [Key(meta["namespace"], one) for one in owners or ([name] if name != meta["name"] else [])]


def _is_our_class(gateway_class: Object) -> bool:
    return bool((gateway_class.get("spec") or {}).get("controllerName") == CONTROLLER)


def _is_port(port: Object, number: int) -> bool:
    return port.get("port") == number and (port.get("protocol") or "TCP") == "TCP"


def _labels_of(namespace: Object | None) -> object:
    return None if namespace is None else namespace["metadata"].get("labels")
