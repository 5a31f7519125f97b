"""What may be asked of a Service, and what may change about one that has an address."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    address,
    labels,
    named,
    port,
    port_number,
    read_address,
)
from kubereef.kinds.resource import Object
from kubewire import fielderrors, names
from kubewire.paths import FieldPath

HEADLESS = "None"
ADDRESSED_TYPES = ("ClusterIP", "NodePort", "LoadBalancer")
NODE_PORT_TYPES = ("NodePort", "LoadBalancer")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 86400
_MOST_FAMILIES = 10
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"


def needs_address(spec: Object) -> bool:
    """Tell whether a Service of this type has an address in the cluster, or says that it has none."""
    return spec.get("type") in ADDRESSED_TYPES


def is_headless(spec: Object) -> bool:
    """Tell whether a Service leads straight to its Pods."""
    return needs_address(spec) and (spec.get("clusterIPs") or [spec.get("clusterIP")])[0] == HEADLESS


def is_reachable_from_outside(spec: Object) -> bool:
    """Tell whether somebody outside of the cluster may reach a Service."""
    return spec.get("type") in NODE_PORT_TYPES or (
        spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def service_problems(service: Object) -> Problems:
    """Yield what is wrong with a Service."""
    spec = service["spec"]
    if not spec.get("ports") and not is_headless(spec) and spec["type"] != "ExternalName":
        yield fielderrors.required(("spec", "ports"))
    yield from _of_type(spec)
    yield from _ports(spec)
    yield from labels(("spec", "selector"), spec.get("selector"))
    yield from _affinity(spec)
    yield from _addresses(spec)
    for index, text in enumerate(spec.get("externalIPs") or ()):
        yield from address(("spec", "externalIPs", index), text)
        yield from checks.no_special_address(("spec", "externalIPs", index), text)
    if spec["type"] not in _TYPES:
        yield fielderrors.not_supported(("spec", "type"), spec["type"], _TYPES)
    yield from _repeated_ports(spec)
    yield from _balancer(spec)
    yield from _traffic(spec)


def _of_type(spec: Object) -> Problems:
    kind = spec["type"]
    if kind in NODE_PORT_TYPES and is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        yield fielderrors.invalid(("spec", "clusterIPs", 0), HEADLESS, detail)
    if kind != "ExternalName":
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield fielderrors.forbidden(("spec", field), "may not be set for ExternalName services")
    # The name of another host may end in a dot.
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        yield from named(("spec", "externalName"), name, names.dns1123_subdomain)
    else:
        yield fielderrors.required(("spec", "externalName"))


def _ports(spec: Object) -> Problems:
    ports = spec.get("ports") or []
    seen: set[str] = set()
    for index, one in enumerate(ports):
        here = ("spec", "ports", index)
        name = one.get("name") or ""
        if name:
            yield from named((*here, "name"), name, names.dns1123_label)
            if name in seen:
                yield fielderrors.duplicate((*here, "name"), name)
            seen.add(name)
        elif len(ports) > 1:
            yield fielderrors.required((*here, "name"))
        yield from port_number((*here, "port"), one.get("port", 0))
        if one["protocol"] not in _PROTOCOLS:
            yield fielderrors.not_supported((*here, "protocol"), one["protocol"], _PROTOCOLS)
        yield from port((*here, "targetPort"), one["targetPort"])
        if one.get("appProtocol") is not None:
            yield from named((*here, "appProtocol"), one["appProtocol"], names.qualified_name)
        if spec["type"] == "ClusterIP" and one.get("nodePort"):
            detail = "may not be used when `type` is 'ClusterIP'"
            yield fielderrors.forbidden((*here, "nodePort"), detail)


def _repeated_ports(spec: Object) -> Problems:
    node_ports: set[tuple[str, int]] = set()
    own_ports: set[tuple[str, int]] = set()
    for index, one in enumerate(spec.get("ports") or ()):
        here = ("spec", "ports", index)
        node_port = (one["protocol"], one.get("nodePort") or 0)
        if node_port[1] and node_port in node_ports:
            yield fielderrors.duplicate((*here, "nodePort"), node_port[1])
        node_ports.add(node_port)
        own = (one["protocol"], one.get("port", 0))
        if own in own_ports:
            shown = checks.go_struct(
                ("Name", ""),
                ("Protocol", own[0]),
                ("AppProtocol", None),
                ("Port", own[1]),
                ("TargetPort", 0),
                ("NodePort", 0),
            )
            yield fielderrors.duplicate(here, shown)
        own_ports.add(own)


def _affinity(spec: Object) -> Problems:
    affinity, config = spec["sessionAffinity"], spec.get("sessionAffinityConfig")
    if affinity not in ("ClientIP", "None"):
        yield fielderrors.not_supported(("spec", "sessionAffinity"), affinity, ("ClientIP", "None"))
    elif affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
        if not 0 < seconds <= _LONGEST_AFFINITY:
            at = ("spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds")
            detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield fielderrors.invalid(at, seconds, detail)
    elif config is not None:
        detail = "must not be set when session affinity is None"
        yield fielderrors.forbidden(("spec", "sessionAffinityConfig"), detail)


def _addresses(spec: Object) -> Problems:
    if not needs_address(spec):
        return
    first, addresses = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    if addresses and first != addresses[0]:
        detail = (
            "first value must match `clusterIP`"
            if first
            else "must be empty when `clusterIP` is not specified"
        )
        yield fielderrors.invalid(("spec", "clusterIPs"), addresses, detail)
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield fielderrors.not_supported(("spec", "ipFamilyPolicy"), policy, _FAMILY_POLICIES)
    yield from _families(families)
    at = ("spec", "clusterIPs")
    if HEADLESS in addresses:
        if len(addresses) > 1:
            detail = "'None' must be the first and only value"
            yield fielderrors.invalid(at, addresses, detail)
        return
    if len(addresses) > 2:
        yield fielderrors.invalid(at, addresses, "may only hold up to 2 values")
        return
    for index, text in enumerate(addresses):
        yield from address((*at, index), text)
    versions = [found.version for text in addresses if (found := read_address(text)) is not None]
    if len(versions) == 2 and versions[0] == versions[1]:
        detail = "may specify no more than one IP for each IP family"
        yield fielderrors.invalid(at, addresses, detail)
    for index, (version, family) in enumerate(zip(versions, families, strict=False)):
        if family != f"IPv{version}":
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield fielderrors.invalid((*at, index), addresses[index], detail)


def _families(families: list[str]) -> Problems:
    at = ("spec", "ipFamilies")
    # However many are given, looking at the first ones tells what is wrong.
    for index, family in enumerate(families[:_MOST_FAMILIES]):
        if family not in _FAMILIES:
            yield fielderrors.not_supported((*at, index), family, _FAMILIES)
        elif family in families[:index]:
            yield fielderrors.duplicate((*at, index), family)
    if len(families) > 2:
        yield fielderrors.invalid(at, families, "may only hold up to 2 values")


def _balancer(spec: Object) -> Problems:
    is_balanced = spec["type"] == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not is_balanced:
        yield fielderrors.forbidden(("spec", "LoadBalancerSourceRanges"), _ONLY_BALANCED)
    for index, text in enumerate(ranges):
        yield from checks.cidr(("spec", "LoadBalancerSourceRanges", index), text.strip())
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balanced:
        yield fielderrors.forbidden(("spec", "allocateLoadBalancerNodePorts"), _ONLY_BALANCED)
    balancer = spec.get("loadBalancerClass")
    if balancer is not None:
        if not is_balanced:
            yield fielderrors.forbidden(("spec", "loadBalancerClass"), _ONLY_BALANCED)
        yield from named(("spec", "loadBalancerClass"), balancer, names.qualified_name)


def _traffic(spec: Object) -> Problems:
    outside, inside = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    at = ("spec", "externalTrafficPolicy")
    if not is_reachable_from_outside(spec):
        if outside:
            detail = "may only be set for externally-accessible services"
            yield fielderrors.invalid(at, outside, detail)
    elif outside not in _TRAFFIC:
        yield fielderrors.not_supported(at, outside, _TRAFFIC)
    if spec.get("healthCheckNodePort") and (outside != "Local" or spec["type"] != "LoadBalancer"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield fielderrors.invalid(("spec", "healthCheckNodePort"), spec["healthCheckNodePort"], detail)
    if (needs_address(spec) or inside) and inside not in _TRAFFIC:
        yield fielderrors.not_supported(("spec", "internalTrafficPolicy"), inside, _TRAFFIC)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        yield fielderrors.not_supported(("spec", "trafficDistribution"), distribution, _DISTRIBUTIONS)


def update_problems(new: Object, old: Object) -> Problems:
    """Yield what changed about a Service that may not."""
    spec, before = new["spec"], old["spec"]
    if needs_address(spec) and needs_address(before):
        yield from _kept_addresses(spec.get("clusterIPs") or [], before.get("clusterIPs") or [])
        families, had = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
        if families and had and families[0] != had[0]:
            yield fielderrors.invalid(("spec", "ipFamilies", 0), families, "may not change once set")
    if spec["type"] == "LoadBalancer" == before.get("type"):
        balancer, had_balancer = spec.get("loadBalancerClass"), before.get("loadBalancerClass")
        if balancer != had_balancer:
            yield fielderrors.invalid(("spec", "loadBalancerClass"), balancer, "may not change once set")


def _kept_addresses(addresses: list[str], before: list[str]) -> Problems:
    if not before:
        return
    at = ("spec", "clusterIPs")
    if not addresses:
        yield fielderrors.invalid((*at, 0), addresses, "primary clusterIP can not be unset")
    elif addresses[0] != before[0]:
        yield fielderrors.invalid((*at, 0), addresses, "may not change once set")
    elif len(addresses) > 1 and len(before) > 1 and addresses[1] != before[1]:
        yield fielderrors.invalid((*at, 1), addresses, "may not change once set")


def status_problems(new: Object, _old: Object) -> Problems:
    """Yield what is wrong with what a load balancer says of itself."""
    given = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    here = ("status", "loadBalancer", "ingress")
    if given and new["spec"]["type"] != "LoadBalancer":
        yield fielderrors.forbidden(here, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    yield from balancer_entries(here, given, has_modes=True)


def balancer_entries(at: FieldPath, given: list[Object], *, has_modes: bool) -> Problems:
    """Yield what is wrong with the points at which a load balancer is reached."""
    for index, entry in enumerate(given):
        here = (*at, index)
        ip, mode, host = entry.get("ip"), entry.get("ipMode"), entry.get("hostname")
        if ip:
            yield from address((*here, "ip"), ip)
        if has_modes:
            if ip and mode is None:
                yield fielderrors.required((*here, "ipMode"), "must be specified when `ip` is set")
            elif not ip and mode is not None:
                yield fielderrors.forbidden((*here, "ipMode"), "may not be specified when `ip` is not set")
            elif mode is not None and mode not in ("VIP", "Proxy"):
                yield fielderrors.not_supported((*here, "ipMode"), mode, ("Proxy", "VIP"))
        if host:
            yield from named((*here, "hostname"), host, names.dns1123_subdomain)
            if read_address(host) is not None:
                yield fielderrors.invalid((*here, "hostname"), host, "must be a DNS name, not an IP address")
