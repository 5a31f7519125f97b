"""What a Pod finds in /etc/resolv.conf and /etc/hosts, and what it is called: pure functions of its spec."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

MOST_NAMESERVERS = 3
"""Servers that resolvers look at; Kubernetes gives no more either."""

MOST_SEARCHES = 32
MOST_SEARCH_CHARACTERS = 2048
_MOST_HOSTNAME = 63
_MOST_FQDN = 64

Spec = Mapping[str, Any]


class BadHostname(Exception):
    """A Pod's name is too long for the kernel; the message says which."""


class Resolution(NamedTuple):
    """How names are looked up."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class PodNames(NamedTuple):
    """What a Pod is called: the kernel's hostname, and its full name in the cluster, if it has one."""

    hostname: str
    fqdn: str = ""


def read_resolution(text: str) -> Resolution:
    """Return what a resolv.conf says; of several `search` or `options` lines the last one counts, as for resolvers."""
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []
    for line in text.splitlines():
        words = line.split("#")[0].split(";")[0].split()
        match words:
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search" | "domain", *names]:
                searches = names
            case ["options", *given]:
                options = given
    return Resolution(tuple(servers), tuple(searches), tuple(options))


def write_resolution(resolution: Resolution) -> str:
    """Return the text of a resolv.conf."""
    lines = []
    if resolution.searches:
        lines.append("search " + " ".join(resolution.searches))
    lines += [f"nameserver {server}" for server in resolution.nameservers]
    if resolution.options:
        lines.append("options " + " ".join(resolution.options))
    return "".join(f"{line}\n" for line in lines)


def pod_resolution(
    spec: Spec, namespace: str, *, cluster_dns: Sequence[str], domain: str, node: Resolution
) -> Resolution:
    """Return how a Pod looks names up, from its dnsPolicy and dnsConfig.

    `node` is what the node itself does. A Pod of the host's network with ClusterFirst gets the node's too, and so
    does every Pod if the cluster has no DNS.
    """
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    config = spec.get("dnsConfig") or {}
    is_cluster = policy == "ClusterFirstWithHostNet" or (
        policy == "ClusterFirst" and not spec.get("hostNetwork")
    )
    if policy == "None":
        base = Resolution()
    elif is_cluster and cluster_dns:
        own = (f"{namespace}.svc.{domain}", f"svc.{domain}", domain)
        base = Resolution(tuple(cluster_dns), (*own, *node.searches), ("ndots:5",))
    else:
        base = node
    return Resolution(
        _unique([*base.nameservers, *(config.get("nameservers") or ())])[:MOST_NAMESERVERS],
        _fitting(_unique([*base.searches, *(config.get("searches") or ())])),
        _merged_options(base.options, config.get("options") or ()),
    )


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _fitting(searches: Sequence[str]) -> tuple[str, ...]:
    """Return as many search domains as a resolver takes."""
    kept: list[str] = []
    for search in searches[:MOST_SEARCHES]:
        if len(" ".join([*kept, search])) > MOST_SEARCH_CHARACTERS:
            break
        kept.append(search)
    return tuple(kept)


def _merged_options(base: Iterable[str], given: Iterable[Spec]) -> tuple[str, ...]:
    """Return the options, of which those that the Pod gives replace those of the same name."""
    options = {option.partition(":")[0]: option for option in base}
    for option in given:
        name = option.get("name") or ""
        value = option.get("value")
        if name:
            options[name] = f"{name}:{value}" if value else name
    return tuple(options.values())


def pod_names(spec: Spec, name: str, namespace: str, *, domain: str, node_hostname: str = "") -> PodNames:
    """Return what a Pod is called; raises BadHostname if setHostnameAsFQDN asks for more than the kernel can hold.

    A Pod of the host's network has the node's hostname, if that is given.
    """
    if spec.get("hostnameOverride") and not spec.get("hostNetwork"):
        return PodNames(str(spec["hostnameOverride"]))
    hostname = spec.get("hostname") or name
    hostname = hostname[:_MOST_HOSTNAME].rstrip("-.")
    if spec.get("hostNetwork") and node_hostname:
        hostname = node_hostname
    subdomain = spec.get("subdomain")
    fqdn = f"{hostname}.{subdomain}.{namespace}.svc.{domain}" if subdomain else ""
    if fqdn and spec.get("setHostnameAsFQDN"):
        if len(fqdn) > _MOST_FQDN:
            raise BadHostname(
                f"the name {fqdn} has {len(fqdn)} characters, more than the {_MOST_FQDN} that a hostname may have;"
                " shorten hostname or subdomain, or leave setHostnameAsFQDN out"
            )
        return PodNames(fqdn, fqdn)
    return PodNames(hostname, fqdn)


def pod_hosts(spec: Spec, addresses: Sequence[str], names: PodNames, *, node_hosts: str = "") -> str:
    """Return the text of a Pod's /etc/hosts. A Pod of the host's network has the node's, with its own aliases added."""
    aliases = [
        f"{alias['ip']}\t" + "\t".join(alias.get("hostnames") or ())
        for alias in spec.get("hostAliases") or ()
        if alias.get("ip")
    ]
    if spec.get("hostNetwork"):
        lines = ["# Managed by Kubereef, from the node's own.", *node_hosts.splitlines()]
    else:
        short = names.fqdn.partition(".")[0] if names.fqdn else names.hostname
        called = f"{names.fqdn}\t{short}" if names.fqdn else names.hostname
        lines = [
            "# Managed by Kubereef.",
            "127.0.0.1\tlocalhost",
            "::1\tlocalhost ip6-localhost ip6-loopback",
            "fe00::0\tip6-localnet",
            "fe00::0\tip6-mcastprefix",
            "fe00::1\tip6-allnodes",
            "fe00::2\tip6-allrouters",
            *(f"{address}\t{called}" for address in addresses),
        ]
    if aliases:
        lines += ["", "# From the Pod's hostAliases.", *aliases]
    return "".join(f"{line}\n" for line in lines)
