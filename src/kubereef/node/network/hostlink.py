"""One link between the node's namespace and the host's, for machines whose host forwards."""

from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import NamedTuple

from kubereef.node.network import nftables
from kubereef.node.network.links import Links
from kubereef.node.network.namespaces import Namespace, NamespaceThreads

NODE_INTERFACE = "host0"
DEFAULT_NETWORK = IPv4Network("169.254.240.0/30")


class HostLink(NamedTuple):
    """The two ends of the link, and whether the host passes on what comes from it."""

    node: IPv4Interface
    host: IPv4Interface
    host_forwards: bool


async def link_to_host(
    links: Links,
    host: Namespace,
    pods: IPv4Network,
    *,
    network: IPv4Network = DEFAULT_NETWORK,
    host_interface: str = "kubereef0",
) -> HostLink:
    """Link the node to the host and make it the node's way out, under one address for all Pods.

    This link is all that the host gets to see; it ends with the node's namespace. Whether the host passes anything
    on is its own affair: it is reported, not changed. Raises LinkFailed or NfTablesUnavailable.
    """
    first, second = list(network.hosts())[:2]
    ends = (
        IPv4Interface(f"{second}/{network.prefixlen}"),
        IPv4Interface(f"{first}/{network.prefixlen}"),
    )
    await links.connect_host(NODE_INTERFACE, host_interface, host, *ends)
    await links.inside(lambda: nftables.masquerade(NODE_INTERFACE, pods))
    with NamespaceThreads("hostlink") as threads:
        forwards = await threads.run(host, _forwards)
    return HostLink(*ends, forwards)


def _forwards() -> bool:
    return Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="ascii").strip() == "1"
