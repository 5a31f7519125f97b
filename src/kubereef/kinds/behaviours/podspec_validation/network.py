"""How a Pod is named and what it shares with the network of its host."""

from kubereef.kinds.behaviours.podspec_validation.checks import Problems, address, named, search_domain
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import forbidden, invalid, required, too_long
from kubewire.paths import FieldPath

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
# What the C library's resolver can take.
_MOST_NAMESERVERS = 3
_MOST_SEARCHES = 32
_LONGEST_SEARCHES = 2048
_LONGEST_HOSTNAME = 64


def dns_config(at: FieldPath, spec: Object) -> Problems:
    """Yield what is wrong with how names are looked up."""
    at = (*at, "dnsConfig")
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required((*at, "nameservers"), detail)
            return
    if config is not None:
        yield from _resolver(at, config)


def _resolver(at: FieldPath, config: Object) -> Problems:
    servers = config.get("nameservers") or []
    if len(servers) > _MOST_NAMESERVERS:
        detail = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        yield invalid((*at, "nameservers"), servers, detail)
    for index, server in enumerate(servers):
        yield from address((*at, "nameservers", index), server)
    searches = config.get("searches") or []
    if len(searches) > _MOST_SEARCHES:
        detail = f"must not have more than {_MOST_SEARCHES} search paths"
        yield invalid((*at, "searches"), searches, detail)
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = (
            f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        )
        yield invalid((*at, "searches"), searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            yield from named((*at, "searches", index), search.removesuffix("."), search_domain)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required((*at, "options", index), "must not be empty")


def host_names(at: FieldPath, spec: Object) -> Problems:
    """Yield what is wrong with the names of a Pod and of the hosts it knows."""
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from named((*at, field), spec[field], names.dns1123_label)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address((*at, "hostAliases", index, "ip"), alias.get("ip", ""))
        for number, hostname in enumerate(alias.get("hostnames") or ()):
            place = (*at, "hostAliases", index, "hostnames", number)
            yield from named(place, hostname, names.dns1123_subdomain)
    override = spec.get("hostnameOverride")
    if override is None:
        return
    place = (*at, "hostnameOverride")
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(place, "may not be specified when hostNetwork is true")
    if len(override) > _LONGEST_HOSTNAME:
        yield too_long(place, _LONGEST_HOSTNAME)
    yield from named(place, override, names.dns1123_subdomain)


def host_network_ports(at: FieldPath, spec: Object, *, is_pod: bool) -> Problems:
    """Yield ports that cannot differ from those of the host, since the Pod is in the host's network."""
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host, own = port.get("hostPort", 0), port.get("containerPort", 0)
            if (is_pod or host) and host != own:
                place = (*at, "containers", index, "ports", number, "hostPort")
                yield invalid(place, host, "must match `containerPort` when `hostNetwork` is true")


def host_users(at: FieldPath, spec: Object, containers: list[tuple[FieldPath, Object]]) -> Problems:
    """Yield what a Pod with users of its own cannot share with its host."""
    if spec.get("hostUsers") is not False:
        return
    detail = "when `hostUsers` is false"
    for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            yield forbidden((*at, shown), detail)
    for where, container in containers:
        if container.get("volumeDevices"):
            yield forbidden((*at, *where, "volumeDevices"), detail)
