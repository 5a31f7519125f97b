"""Gateways and HTTPRoutes as far as anything here reads them. What cannot be honoured is named, never passed over."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubereef.gateway.filters import NO_FILTERS, Filters, Unsupported, read_filters
from kubereef.gateway.objects import GROUP
from kubewire.times import DurationError, parse_go_duration

Object = Mapping[str, Any]

_NANOSECONDS = 1_000_000_000


class Listener(NamedTuple):
    """A port of a Gateway, for the hosts that it is for; an empty hostname is every host."""

    name: str
    port: int
    protocol: str
    hostname: str = ""
    kinds: tuple[tuple[str, str], ...] = ()
    namespaces: str = "Same"
    selector: Object | None = None
    has_tls: bool = False


class Gateway(NamedTuple):
    """What is read of a Gateway."""

    namespace: str
    name: str
    class_name: str
    listeners: tuple[Listener, ...]
    asks_for_addresses: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class ParentRef(NamedTuple):
    """The Gateway that a route wants to be reached through; `source` is the reference as it stands in the route."""

    namespace: str
    name: str
    section: str
    port: int
    source: Object

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class Match(NamedTuple):
    """What a request has to look like. Names of headers are in lower case."""

    path: str = "/"
    is_exact: bool = False
    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()


class ServicePortRef(NamedTuple):
    """A port of a Service."""

    namespace: str
    name: str
    port: int


class Backend(NamedTuple):
    """Where a share of the requests goes; without a `service` nowhere, for the reason in `problem`."""

    weight: int
    service: ServicePortRef | None
    problem: str = ""
    reason: str = ""
    filters: Filters = NO_FILTERS


class Rule(NamedTuple):
    """Requests that look alike, and where they go. Seconds of 0 are no limit."""

    matches: tuple[Match, ...]
    backends: tuple[Backend, ...]
    filters: Filters = NO_FILTERS
    request_seconds: float = 0.0
    backend_seconds: float = 0.0


class Route(NamedTuple):
    """What is read of an HTTPRoute. One with a `problem` asks for what is not to be had, and is not accepted."""

    namespace: str
    name: str
    created: str
    hostnames: tuple[str, ...]
    parents: tuple[ParentRef, ...]
    rules: tuple[Rule, ...]
    problem: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def read_gateway(gateway: Object) -> Gateway:
    """Return what is read of a Gateway object."""
    meta, spec = gateway["metadata"], gateway.get("spec") or {}
    listeners = tuple(_listener(one) for one in spec.get("listeners") or ())
    class_name = spec.get("gatewayClassName") or ""
    return Gateway(meta["namespace"], meta["name"], class_name, listeners, bool(spec.get("addresses")))


def _listener(listener: Object) -> Listener:
    allowed = listener.get("allowedRoutes") or {}
    namespaces = allowed.get("namespaces") or {}
    return Listener(
        name=listener["name"],
        port=listener["port"],
        protocol=listener["protocol"],
        hostname=(listener.get("hostname") or "").lower(),
        kinds=tuple((one.get("group") or GROUP, one.get("kind") or "") for one in allowed.get("kinds") or ()),
        namespaces=namespaces.get("from") or "Same",
        selector=namespaces.get("selector"),
        has_tls=bool(listener.get("tls")),
    )


def read_route(route: Object) -> Route:
    """Return what is read of an HTTPRoute object."""
    meta, spec = route["metadata"], route.get("spec") or {}
    namespace = meta["namespace"]
    rules: tuple[Rule, ...] = ()
    problem = ""
    try:
        rules = tuple(_rules(spec, namespace))
    except Unsupported as bad:
        problem = str(bad)
    return Route(
        namespace=namespace,
        name=meta["name"],
        created=meta.get("creationTimestamp") or "",
        hostnames=tuple(one.lower() for one in spec.get("hostnames") or ()),
        parents=tuple(_parents(spec, namespace)),
        rules=rules,
        problem=problem,
    )


def _parents(spec: Object, namespace: str) -> Iterator[ParentRef]:
    for parent in spec.get("parentRefs") or ():
        if (parent.get("group", GROUP), parent.get("kind") or "Gateway") == (GROUP, "Gateway"):
            yield ParentRef(
                parent.get("namespace") or namespace,
                parent["name"],
                parent.get("sectionName") or "",
                parent.get("port") or 0,
                parent,
            )


def _rules(spec: Object, namespace: str) -> Iterator[Rule]:
    for number, rule in enumerate(spec.get("rules") or [{}]):
        where = f"spec.rules[{number}]"
        for field in ("retry", "sessionPersistence"):
            if rule.get(field):
                raise Unsupported(f"{where}.{field} is not supported")
        timeouts = rule.get("timeouts") or {}
        backends = enumerate(rule.get("backendRefs") or ())
        yield Rule(
            matches=tuple(_match(one, where) for one in rule.get("matches") or [{}]),
            backends=tuple(_backend(one, namespace, f"{where}.backendRefs[{at}]") for at, one in backends),
            filters=read_filters(rule.get("filters") or (), where),
            request_seconds=_seconds(timeouts, "request", where),
            backend_seconds=_seconds(timeouts, "backendRequest", where),
        )


def _match(match: Object, where: str) -> Match:
    path = match.get("path") or {}
    kind = path.get("type") or "PathPrefix"
    if kind not in ("Exact", "PathPrefix"):
        raise Unsupported(f"{where}.matches: paths are matched by Exact or PathPrefix, not by {kind}")
    headers = [(name.lower(), value) for name, value in _pairs(match, "headers", where)]
    return Match(
        path=path.get("value") or "/",
        is_exact=kind == "Exact",
        method=match.get("method") or "",
        # Of several that mean the same name the first counts.
        headers=tuple(dict(reversed(headers)).items()),
        query=tuple(dict(reversed(list(_pairs(match, "queryParams", where)))).items()),
    )


def _pairs(match: Object, field: str, where: str) -> Iterator[tuple[str, str]]:
    for one in match.get(field) or ():
        if (one.get("type") or "Exact") != "Exact":
            raise Unsupported(f"{where}.matches: {field} are matched by Exact, not by {one['type']}")
        yield one["name"], one["value"]


def _backend(backend: Object, namespace: str, where: str) -> Backend:
    weight = 1 if backend.get("weight") is None else backend["weight"]
    filters = read_filters(backend.get("filters") or (), where)
    if (backend.get("group") or "", backend.get("kind") or "Service") != ("", "Service"):
        kind = backend.get("kind") or "Service"
        return Backend(
            weight, None, f"{where}: {kind} is no kind of backend here, use a Service", "InvalidKind"
        )
    if (other := backend.get("namespace") or namespace) != namespace:
        problem = f"{where}: Services of namespace {other} may not be used from {namespace}"
        return Backend(weight, None, problem, "RefNotPermitted")
    if not backend.get("port"):
        return Backend(
            weight, None, f"{where}: a Service is used at a port, and none is named", "BackendNotFound"
        )
    return Backend(weight, ServicePortRef(namespace, backend["name"], backend["port"]), filters=filters)


def _seconds(timeouts: Object, field: str, where: str) -> float:
    text = timeouts.get(field)
    if not text:
        return 0.0
    try:
        return max(parse_go_duration(text) / _NANOSECONDS, 0.0)
    except DurationError as bad:
        raise Unsupported(f"{where}.timeouts.{field}: {bad}") from None
