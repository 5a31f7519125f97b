"""Endpoints and EndpointSlices: the addresses behind a Service."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    address,
    named,
    port_number,
    read_address,
)
from kubereef.kinds.columns import AGE, NAME, NONE, UNSET, at, text
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors, names
from kubewire.paths import FieldPath

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100
_MOST_PORTS = 20000
_MOST_ZONES = 8
_SHOWN = 3


def _endpoints_defaults(endpoints: Object) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def _endpoints(endpoints: Object) -> Problems:
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        here = ("subsets", index)
        ready, others = subset.get("addresses") or [], subset.get("notReadyAddresses") or []
        if not ready and not others:
            yield fielderrors.required(here, "must specify `addresses` or `notReadyAddresses`")
        for field, given in (("addresses", ready), ("notReadyAddresses", others)):
            for position, one in enumerate(given):
                yield from _endpoint_address((*here, field, position), one)
        ports = subset.get("ports") or []
        for position, port in enumerate(ports):
            yield from _endpoint_port((*here, "ports", position), port, needs_name=len(ports) > 1)


def _endpoint_address(here: FieldPath, given: Object) -> Problems:
    ip = given.get("ip") or ""
    yield from address((*here, "ip"), ip)
    if read_address(ip) is None:
        yield fielderrors.invalid((*here, "ip"), ip, "must be a valid IP address")
    yield from checks.no_special_address((*here, "ip"), ip)
    if given.get("hostname"):
        yield from named((*here, "hostname"), given["hostname"], names.dns1123_label)
    if given.get("nodeName") is not None:
        yield from named((*here, "nodeName"), given["nodeName"], names.dns1123_subdomain)


def _endpoint_port(here: FieldPath, port: Object, *, needs_name: bool) -> Problems:
    name = port.get("name") or ""
    if not name and needs_name:
        yield fielderrors.required((*here, "name"))
    elif name:
        yield from named((*here, "name"), name, names.dns1123_label)
    yield from port_number((*here, "port"), port.get("port", 0))
    yield from _protocol_and_application(here, port)


def _protocol_and_application(here: FieldPath, port: Object) -> Problems:
    protocol = port.get("protocol") or ""
    if not protocol:
        yield fielderrors.required((*here, "protocol"))
    elif protocol not in _PROTOCOLS:
        yield fielderrors.not_supported((*here, "protocol"), protocol, _PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from named((*here, "appProtocol"), port["appProtocol"], names.qualified_name)


def _slice_defaults(endpoint_slice: Object) -> None:
    for port in endpoint_slice.get("ports") or ():
        if port.get("name") is None:
            port["name"] = ""
        if port.get("protocol") is None:
            port["protocol"] = "TCP"


def _drop_topology(endpoint_slice: Object) -> None:
    """Drop where an endpoint is in the words of older versions."""
    for endpoint in endpoint_slice.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def _slice_warnings(endpoint_slice: Object) -> list[str]:
    is_old = endpoint_slice.get("addressType") == "FQDN"
    return ["spec.addressType: FQDN endpoints are deprecated"] if is_old else []


def _changed_slice(new: Object, old: Object) -> Problems:
    """Yield what is wrong with an update; endpoints that nobody touched are not judged again."""
    same = new.get("endpoints") == old.get("endpoints")
    yield from _slice({**new, "endpoints": []} if same else new)
    yield from checks.unchanged(("addressType",), new.get("addressType"), old.get("addressType"))


def _slice(endpoint_slice: Object) -> Problems:
    kind = endpoint_slice.get("addressType") or ""
    if not kind:
        yield fielderrors.required(("addressType",))
    elif kind not in _ADDRESS_TYPES:
        yield fielderrors.not_supported(("addressType",), kind, _ADDRESS_TYPES)
    endpoints = endpoint_slice.get("endpoints") or []
    if len(endpoints) > _MOST_ENDPOINTS:
        yield fielderrors.too_many(("endpoints",), len(endpoints), _MOST_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _slice_endpoint(("endpoints", index), endpoint, kind)
    yield from _slice_ports(endpoint_slice.get("ports") or [])


def _slice_endpoint(here: FieldPath, endpoint: Object, kind: str) -> Problems:
    addresses = endpoint.get("addresses") or []
    at_addresses = (*here, "addresses")
    if not addresses:
        yield fielderrors.required(at_addresses, "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield fielderrors.too_many(at_addresses, len(addresses), _MOST_ADDRESSES)
        return
    for index, given in enumerate(addresses):
        yield from _slice_address((*at_addresses, index), at_addresses, given, kind)
    if endpoint.get("hostname") is not None:
        yield from named((*here, "hostname"), endpoint["hostname"], names.dns1123_label)
    if endpoint.get("nodeName") is not None:
        yield from named((*here, "nodeName"), endpoint["nodeName"], names.dns1123_subdomain)
    yield from _zones((*here, "hints", "forZones"), at(endpoint, "hints", "forZones") or [])


def _zones(here: FieldPath, zones: list[Object]) -> Problems:
    if len(zones) > _MOST_ZONES:
        yield fielderrors.too_many(here, len(zones), _MOST_ZONES)
        return
    seen = set()
    for index, zone in enumerate(zones):
        name = zone.get("name") or ""
        if name in seen:
            yield fielderrors.duplicate((*here, index, "name"), name)
        seen.add(name)
        yield from named((*here, index, "name"), name, names.label_value)


def _slice_address(one: FieldPath, all_of: FieldPath, given: str, kind: str) -> Problems:
    if kind == "FQDN":
        if "." not in given:
            detail = "should be a domain with at least two segments separated by dots"
            yield fielderrors.invalid(one, given, detail)
        yield from named(one, given.removesuffix("."), names.dns1123_subdomain)
        return
    if kind not in ("IPv4", "IPv6"):
        return
    found = read_address(given)
    if found is None:
        yield from address(one, given)
        return
    if f"IPv{found.version}" != kind:
        yield fielderrors.invalid(all_of, given, f"must be an {kind} address")
    yield from checks.no_special_address(one, given)


def _slice_ports(ports: list[Object]) -> Problems:
    if len(ports) > _MOST_PORTS:
        yield fielderrors.too_many(("ports",), len(ports), _MOST_PORTS)
        return
    seen = set()
    for index, port in enumerate(ports):
        here = ("ports", index)
        name = port.get("name") or ""
        if name:
            yield from named((*here, "name"), name, names.dns1123_label)
        if name in seen:
            yield fielderrors.duplicate((*here, "name"), name)
        seen.add(name)
        yield from _protocol_and_application(here, port)


def _some(shown: list[str]) -> str:
    """Return the first of a list, and how many more there are."""
    more = f" + {len(shown) - _SHOWN} more..." if len(shown) > _SHOWN else ""
    return ",".join(shown[:_SHOWN]) + more


def _endpoints_cell(endpoints: Object) -> str:
    if not endpoints.get("subsets"):
        return NONE
    shown = []
    for subset in endpoints.get("subsets") or ():
        ready, ports = subset.get("addresses") or (), subset.get("ports") or ()
        if not ports:
            shown += [one.get("ip") or "" for one in ready]
        for port in ports:
            for one in ready:
                ip = one.get("ip") or ""
                shown.append(f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}")
    return _some(shown)


def _ports_cell(endpoint_slice: Object) -> str:
    ports = endpoint_slice.get("ports") or ()
    return _some([str(one["port"]) for one in ports if one.get("port") is not None]) or UNSET


def _addresses_cell(endpoint_slice: Object) -> str:
    endpoints = endpoint_slice.get("endpoints") or ()
    if not endpoints:
        return UNSET
    return _some([one for endpoint in endpoints for one in endpoint.get("addresses") or ()])


ENDPOINTS = Behaviour(
    defaults=_endpoints_defaults,
    validate=checks.listed(_endpoints),
    put_creates=True,
    columns=(NAME, Column("Endpoints", lambda obj, _: _endpoints_cell(obj)), AGE),
)
ENDPOINT_SLICES = Behaviour(
    defaults=_slice_defaults,
    prepare_create=_drop_topology,
    warnings=_slice_warnings,
    validate_create=checks.listed(_slice),
    validate_update=checks.listed(_changed_slice),
    counts_generations=True,
    columns=(
        NAME,
        text("AddressType", "addressType"),
        Column("Ports", lambda obj, _: _ports_cell(obj)),
        Column("Endpoints", lambda obj, _: _addresses_cell(obj)),
        AGE,
    ),
)
