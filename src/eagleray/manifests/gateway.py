"""The way in while traffic moves from one cluster of a service to another: a Gateway, and a route with weights."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from eagleray.kube.resources import GATEWAYS, HTTP_ROUTES, Resource
from eagleray.manifests.rayservice import RayService, cluster_serve_name, owner_of

Object = dict[str, Any]

_DEFAULT_PARENT: Final = {"group": GATEWAYS.group, "kind": GATEWAYS.kind}
_DEFAULT_MATCH: Final = {"path": {"type": "PathPrefix", "value": "/"}}


class Backend(NamedTuple):
    """A cluster that gets a part of the traffic."""

    cluster: str
    port: int
    weight: int


def gateway_name(service: RayService) -> str:
    return f"{service.name}-gateway"


def route_name(service: RayService) -> str:
    return f"{service.name}-httproute"


def service_gateway(service: RayService) -> Object:
    """Return the Gateway through which the service is reached."""
    spec = {
        "gatewayClassName": service.upgrade_options.gateway_class,
        "listeners": [{"name": "http", "protocol": "HTTP", "port": 80}],
    }
    return _child(service, GATEWAYS, gateway_name(service), spec)


def service_route(service: RayService, backends: Sequence[Backend]) -> Object:
    """Return the route that shares all requests out among clusters, by their weights."""
    rule = {
        "matches": [_DEFAULT_MATCH],
        "backendRefs": [
            {
                "name": cluster_serve_name(backend.cluster),
                "namespace": service.namespace,
                "port": backend.port,
                "weight": backend.weight,
            }
            for backend in backends
        ],
    }
    parent = {"name": gateway_name(service), "namespace": service.namespace}
    return _child(service, HTTP_ROUTES, route_name(service), {"parentRefs": [parent], "rules": [rule]})


def is_same_gateway(found: Object, wanted: Object) -> bool:
    """Tell whether a Gateway is what we want in all that we care for; others may add to it."""
    return _gateway_facts(found) == _gateway_facts(wanted)


def is_same_route(found: Object, wanted: Object) -> bool:
    """Tell whether a route is what we want in all that we care for."""
    return _route_facts(found) == _route_facts(wanted)


def is_open(gateway: Object | None) -> bool:
    """Tell whether somebody has taken a Gateway on, and traffic goes through it."""
    conditions = ((gateway or {}).get("status") or {}).get("conditions") or ()
    return _are_true(conditions, "Accepted", "Programmed")


def is_routed(route: Object | None) -> bool:
    """Tell whether a Gateway has taken a route on, and knows all clusters that it leads to."""
    parents = ((route or {}).get("status") or {}).get("parents") or ()
    return any(_are_true(parent.get("conditions") or (), "Accepted", "ResolvedRefs") for parent in parents)


def weights(route: Object | None, namespace: str) -> Mapping[str, int]:
    """Return the weights of the first rule of a route, by the names of Services of the namespace."""
    rules = ((route or {}).get("spec") or {}).get("rules") or [{}]
    return {
        backend["name"]: _or_default(backend.get("weight"), 1)
        for backend in rules[0].get("backendRefs") or ()
        if backend.get("namespace", namespace) == namespace
    }


def _child(service: RayService, resource: Resource, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": service.namespace, "ownerReferences": [owner_of(service)]}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _are_true(conditions: Sequence[Object], *kinds: str) -> bool:
    true = {found.get("type") for found in conditions if found.get("status") == "True"}
    return true.issuperset(kinds)


def _gateway_facts(gateway: Object) -> object:
    spec = gateway.get("spec") or {}
    listeners = [
        (listener.get("name"), listener.get("protocol"), listener.get("port"))
        for listener in spec.get("listeners") or ()
    ]
    return spec.get("gatewayClassName"), listeners


def _route_facts(route: Object) -> object:
    """Return what is compared of a route, with what an API server fills in."""
    spec = route.get("spec") or {}
    parents = [{**_DEFAULT_PARENT, **parent} for parent in spec.get("parentRefs") or ()]
    return spec.get("hostnames") or [], parents, [_rule_facts(rule) for rule in spec.get("rules") or ()]


def _rule_facts(rule: Object) -> object:
    backends = [
        (
            backend.get("name"),
            backend.get("namespace"),
            _or_default(backend.get("port"), 0),
            _or_default(backend.get("weight"), 1),
        )
        for backend in rule.get("backendRefs") or ()
    ]
    return rule.get("matches") or [_DEFAULT_MATCH], rule.get("filters") or [], backends


def _or_default(number: int | None, default: int) -> int:
    return default if number is None else number
