"""Services: one name and address for many Pods. The addresses themselves come from `kubereef.server.addresses`."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.service_validation import (
    HEADLESS,
    NODE_PORT_TYPES,
    is_reachable_from_outside,
    needs_address,
    service_problems,
    status_problems,
    update_problems,
)
from kubereef.kinds.columns import AGE, NAME, NONE, at, joined, shown_labels, text
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import names

_AFFINITY_SECONDS = 10800
_OLD_HINTS = "service.kubernetes.io/topology-aware-hints"
_HINTS = "service.kubernetes.io/topology-mode"


def _defaults(service: Object) -> None:
    spec = service["spec"]
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        if config.get("timeoutSeconds") is None:
            config["timeoutSeconds"] = _AFFINITY_SECONDS
    spec["type"] = spec.get("type") or "ClusterIP"
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if is_reachable_from_outside(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if needs_address(spec) and not spec.get("internalTrafficPolicy"):
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for entry in at(service, "status", "loadBalancer", "ingress") or ():
            if entry.get("ip") and entry.get("ipMode") is None:
                entry["ipMode"] = "VIP"


def _prepare_create(service: Object) -> None:
    spec = service["spec"]
    # A writer of old knows one address only.
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _prepare_update(new: Object, old: Object) -> None:
    spec, before = new["spec"], old["spec"]
    _carry_over_allocations(spec, before)
    _agree_on_addresses(spec, before)
    _drop_what_the_type_lacks(spec, before)
    if not needs_address(spec):
        spec.pop("internalTrafficPolicy", None)
    if spec["type"] != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def _carry_over_allocations(spec: Object, before: Object) -> None:
    """Keep what was allocated where the writer says nothing: whoever replaces a Service need not know its addresses."""
    if needs_address(spec) and needs_address(before):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
            _take(spec, before, "clusterIPs")
    if spec["type"] in NODE_PORT_TYPES and before.get("type") in NODE_PORT_TYPES:
        _carry_over_node_ports(spec.get("ports") or [], before.get("ports") or [])
    if has_health_port(spec) and has_health_port(before) and not spec.get("healthCheckNodePort"):
        _take(spec, before, "healthCheckNodePort")


def _carry_over_node_ports(ports: list[Object], before: list[Object]) -> None:
    """Give the ports that lack one the node port of the former port with the same name, unless another has it now."""
    kept = {port.get("nodePort") for port in ports} & {port.get("nodePort") for port in before}
    known = {port.get("name"): port.get("nodePort") for port in before}
    for port in ports:
        node_port = known.get(port.get("name"))
        if not port.get("nodePort") and node_port and node_port not in kept:
            port["nodePort"] = node_port


def _agree_on_addresses(spec: Object, before: Object) -> None:
    """Keep the one address and the list of all in step when a writer changes only the first."""
    if spec.get("clusterIP") == before.get("clusterIP"):
        return
    if spec.get("clusterIPs") == before.get("clusterIPs"):
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        else:
            spec.pop("clusterIPs", None)


def _drop_what_the_type_lacks(spec: Object, before: Object) -> None:
    """Drop what belonged to the former type and was not changed along with it."""
    if needs_address(before) and not needs_address(spec):
        _drop_unchanged(spec, before, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    if before.get("type") in NODE_PORT_TYPES and spec["type"] not in NODE_PORT_TYPES:
        ports = [port.get("nodePort") for port in spec.get("ports") or ()]
        if ports == [port.get("nodePort") for port in before.get("ports") or ()]:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if before.get("type") == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if has_health_port(before) and not has_health_port(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if is_reachable_from_outside(before) and not is_reachable_from_outside(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")


def has_health_port(spec: Object) -> bool:
    """Tell whether a load balancer asks each node whether it has Pods of the Service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _drop_unchanged(spec: Object, before: Object, *fields: str) -> None:
    for field in fields:
        if field in spec and spec[field] == before.get(field):
            del spec[field]


def _take(spec: Object, source: Object, field: str) -> None:
    if source.get(field):
        spec[field] = source[field]


def _warnings(service: Object) -> list[str]:
    spec = service["spec"]
    found = []
    if _OLD_HINTS in (service["metadata"].get("annotations") or {}):
        found.append(f"annotation {_OLD_HINTS} is deprecated, please use {_HINTS} instead")
    if spec["type"] == "ClusterIP" and spec.get("clusterIP") == HEADLESS:
        found += [
            f"spec.{field} is ignored for headless services"
            for field in ("loadBalancerIP", "externalIPs")
            if spec.get(field)
        ]
        if spec["sessionAffinity"] != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    elif spec.get("externalIPs") and spec["type"] != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec["type"] == "ExternalName":
        if spec.get("externalIPs"):
            found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    elif spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _external_address(service: Object) -> str:
    spec = service["spec"]
    outside = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or "")
    if spec.get("type") != "LoadBalancer":
        return joined(outside)
    given = at(service, "status", "loadBalancer", "ingress") or ()
    outside = [one.get("ip") or one.get("hostname") or "" for one in given] + outside
    return joined(outside, empty="<pending>")


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol')}"


SERVICES = Behaviour(
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=checks.beside_spec,
    validate=checks.listed(service_problems),
    validate_update=checks.listed(update_problems),
    validate_status=checks.listed(status_problems),
    warnings=_warnings,
    check_name=names.dns1123_label,
    put_creates=True,
    returns_deleted=True,
    selectable={
        "spec.clusterIP": lambda service: at(service, "spec", "clusterIP") or "",
        "spec.type": lambda service: at(service, "spec", "type") or "",
    },
    columns=(
        NAME,
        text("Type", "spec", "type"),
        Column("Cluster-IP", lambda service, _: (at(service, "spec", "clusterIPs") or [NONE])[0]),
        Column("External-IP", lambda service, _: _external_address(service)),
        Column("Port(s)", lambda service, _: joined(map(_port, at(service, "spec", "ports") or ()))),
        AGE,
        Column("Selector", lambda service, _: shown_labels(at(service, "spec", "selector")), priority=1),
    ),
)
