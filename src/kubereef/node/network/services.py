"""Services and their endpoints as the network reads them, kept up to date one object at a time.

DNS and the Service proxy both look at Services through this module: what the objects say is read once, here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Object = Mapping[str, Any]

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
PROXY_LABEL = "service.kubernetes.io/service-proxy-name"
AFFINITY_SECONDS = 10800
"""How long a client stays with its backend when a Service with ClientIP affinity does not say."""


class ServiceKey(NamedTuple):
    """Which Service."""

    namespace: str
    name: str


class ServicePort(NamedTuple):
    """A port that a Service offers."""

    name: str
    protocol: str
    port: int
    node_port: int = 0


class Service(NamedTuple):
    """What the network reads of a Service."""

    key: ServiceKey
    addresses: tuple[str, ...] = ()
    external_addresses: tuple[str, ...] = ()
    is_headless: bool = False
    external_name: str = ""
    ports: tuple[ServicePort, ...] = ()
    publishes_unready: bool = False
    affinity_seconds: int = 0
    proxy_name: str = ""  # who serves it, if not the ordinary proxy


class EndpointPort(NamedTuple):
    """Where a port of a Service is found at its endpoints."""

    name: str
    protocol: str
    port: int


class Endpoint(NamedTuple):
    """One address behind a Service."""

    address: str
    hostname: str = ""
    is_ready: bool = True
    is_serving: bool = True
    is_terminating: bool = False
    ports: tuple[EndpointPort, ...] = ()


class _Slice(NamedTuple):
    service: ServiceKey
    endpoints: tuple[Endpoint, ...]


def read_service(service: Object) -> Service:
    """Return what the network reads of a Service object."""
    meta, spec = service["metadata"], service.get("spec") or {}
    key = ServiceKey(meta["namespace"], meta["name"])
    if spec.get("type") == "ExternalName":
        return Service(key, external_name=spec.get("externalName") or "")
    listed = spec.get("clusterIPs") or [spec.get("clusterIP") or ""]
    affinity = 0
    if spec.get("sessionAffinity") == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        affinity = client.get("timeoutSeconds") or AFFINITY_SECONDS
    return Service(
        key,
        addresses=tuple(one for one in listed if one and one != "None"),
        external_addresses=tuple(spec.get("externalIPs") or ()),
        is_headless="None" in listed,
        ports=tuple(
            ServicePort(
                port.get("name") or "", port.get("protocol") or "TCP", port["port"], port.get("nodePort") or 0
            )
            for port in spec.get("ports") or ()
        ),
        publishes_unready=bool(spec.get("publishNotReadyAddresses")),
        affinity_seconds=affinity,
        proxy_name=(meta.get("labels") or {}).get(PROXY_LABEL) or "",
    )


def read_endpoints(endpoint_slice: Object) -> tuple[Endpoint, ...]:
    """Return the endpoints of an EndpointSlice object; those that are names, not addresses, are left out."""
    if endpoint_slice.get("addressType") == "FQDN":
        return ()
    ports = tuple(
        EndpointPort(port.get("name") or "", port.get("protocol") or "TCP", port["port"])
        for port in endpoint_slice.get("ports") or ()
        if port.get("port") is not None  # without a number it means every port, which nothing here can offer
    )
    return tuple(
        _endpoint(one, ports) for one in endpoint_slice.get("endpoints") or () if one.get("addresses")
    )


def _endpoint(endpoint: Object, ports: tuple[EndpointPort, ...]) -> Endpoint:
    conditions = endpoint.get("conditions") or {}
    ready = conditions.get("ready")
    is_ready = ready is not False  # unknown counts as ready
    serving = conditions.get("serving")
    return Endpoint(
        # The addresses of one endpoint are interchangeable, and clients are told to use the first.
        address=endpoint["addresses"][0],
        hostname=endpoint.get("hostname") or "",
        is_ready=is_ready,
        is_serving=is_ready if serving is None else bool(serving),
        is_terminating=bool(conditions.get("terminating")),
        ports=ports,
    )


def _service_of(endpoint_slice: Object) -> ServiceKey | None:
    meta = endpoint_slice["metadata"]
    name = (meta.get("labels") or {}).get(SERVICE_NAME_LABEL)
    return ServiceKey(meta["namespace"], name) if name else None


class Services:
    """The Services of a cluster and their endpoints, as last heard of.

    Every change returns the keys of the Services that it may concern, so that whoever derives something from a
    Service derives it anew for these alone. Slices may come before their Service and stay after it.
    """

    def __init__(self) -> None:
        self._services: dict[ServiceKey, Service] = {}
        self._slices: dict[tuple[str, str], _Slice] = {}
        self._slices_of: dict[ServiceKey, dict[tuple[str, str], None]] = {}

    def __iter__(self) -> Iterator[ServiceKey]:
        return iter(tuple(self._services))

    def get(self, key: ServiceKey) -> Service | None:
        """Return a Service, if there is one."""
        return self._services.get(key)

    def endpoints(self, key: ServiceKey) -> list[Endpoint]:
        """Return the endpoints of a Service from all of its slices, each address with the same ports once."""
        found: dict[tuple[str, tuple[EndpointPort, ...]], Endpoint] = {}
        for name in sorted(self._slices_of.get(key, ())):
            for endpoint in self._slices[name].endpoints:
                same = found.get((endpoint.address, endpoint.ports))
                # While an endpoint moves from one slice to another it may be in both; the better news wins.
                if same is None or endpoint.is_ready > same.is_ready:
                    found[endpoint.address, endpoint.ports] = endpoint
        return list(found.values())

    def apply_service(self, service: Object) -> set[ServiceKey]:
        """Take in a Service that is new or changed."""
        read = read_service(service)
        if self._services.get(read.key) == read:
            return set()
        self._services[read.key] = read
        return {read.key}

    def remove_service(self, namespace: str, name: str) -> set[ServiceKey]:
        """Forget a Service."""
        key = ServiceKey(namespace, name)
        return {key} if self._services.pop(key, None) is not None else set()

    def apply_slice(self, endpoint_slice: Object) -> set[ServiceKey]:
        """Take in an EndpointSlice that is new or changed."""
        meta = endpoint_slice["metadata"]
        service = _service_of(endpoint_slice)
        if service is None:
            return self.remove_slice(meta["namespace"], meta["name"])
        name = (meta["namespace"], meta["name"])
        new, old = _Slice(service, read_endpoints(endpoint_slice)), self._slices.get(name)
        if new == old:
            return set()
        changed = self.remove_slice(*name) if old and old.service != service else set()
        self._slices[name] = new
        self._slices_of.setdefault(service, {})[name] = None
        return changed | {service}

    def remove_slice(self, namespace: str, name: str) -> set[ServiceKey]:
        """Forget an EndpointSlice."""
        old = self._slices.pop((namespace, name), None)
        if old is None:
            return set()
        siblings = self._slices_of[old.service]
        del siblings[namespace, name]
        if not siblings:
            del self._slices_of[old.service]
        return {old.service}

    def replace(self, services: Iterable[Object], slices: Iterable[Object]) -> set[ServiceKey]:
        """Take in everything there is, and forget everything else."""
        services, slices = list(services), list(slices)
        kept = {ServiceKey(one["metadata"]["namespace"], one["metadata"]["name"]) for one in services}
        kept_slices = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in slices}
        changed: set[ServiceKey] = set()
        for key in [key for key in self._services if key not in kept]:
            changed |= self.remove_service(*key)
        for name in [name for name in self._slices if name not in kept_slices]:
            changed |= self.remove_slice(*name)
        for service in services:
            changed |= self.apply_service(service)
        for endpoint_slice in slices:
            changed |= self.apply_slice(endpoint_slice)
        return changed
