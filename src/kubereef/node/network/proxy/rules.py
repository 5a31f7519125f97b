"""What the proxy shall do for a Service: a pure function of the Service and its endpoints."""

from collections.abc import Sequence
from typing import NamedTuple

from kubereef.node.network.services import Endpoint, Service, ServicePort

PROTOCOLS = ("TCP", "UDP")


class Listener(NamedTuple):
    """Where clients connect to. A port of the node is in the node's own namespace, a Service's in that of Services."""

    address: str
    port: int
    protocol: str
    is_node_port: bool = False


class Backend(NamedTuple):
    """Where a client is connected to."""

    address: str
    port: int


class Target(NamedTuple):
    """Who serves the clients of a listener, and for how many seconds a client stays with the same one, if at all."""

    backends: tuple[Backend, ...]
    affinity_seconds: int = 0


Rules = dict[Listener, Target]


def service_rules(
    service: Service, endpoints: Sequence[Endpoint], node_addresses: Sequence[str] = ()
) -> Rules:
    """Return the listeners of a Service and who is behind each.

    A port without any backend has no listener: where nobody listens the kernel refuses at once, which is what a
    client should see. Headless Services, other protocols and Services that somebody else serves have none either.
    """
    if service.proxy_name:
        return {}
    rules: Rules = {}
    for port in service.ports:
        if port.protocol not in PROTOCOLS:
            continue
        places = [
            Listener(one, port.port, port.protocol) for one in service.addresses + service.external_addresses
        ]
        if port.node_port:
            places += [
                Listener(one, port.node_port, port.protocol, is_node_port=True) for one in node_addresses
            ]
        for place in places:
            # A port of the node serves whatever family its Service has; an address only its own.
            backends = port_backends(port, endpoints, None if place.is_node_port else ":" in place.address)
            if backends:
                rules[place] = Target(backends, service.affinity_seconds)
    return rules


def port_backends(
    port: ServicePort, endpoints: Sequence[Endpoint], is_ipv6: bool | None = None
) -> tuple[Backend, ...]:
    """Return who serves a port: all that are ready, or, if none is, those that still serve while they terminate."""
    ready: dict[Backend, None] = {}
    leaving: dict[Backend, None] = {}
    for endpoint in endpoints:
        if is_ipv6 is not None and (":" in endpoint.address) != is_ipv6:
            continue
        chosen = (
            ready
            if endpoint.is_ready
            else leaving
            if endpoint.is_serving and endpoint.is_terminating
            else None
        )
        if chosen is None:
            continue
        for offered in endpoint.ports:
            if (offered.name, offered.protocol) == (port.name, port.protocol):
                chosen[Backend(endpoint.address, offered.port)] = None
    return tuple(sorted(ready or leaving))
