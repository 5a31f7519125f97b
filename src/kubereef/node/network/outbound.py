"""The way out for Pods: none, one they do not notice, a proxy that they are told of, or a link to the host.

Nothing of the host's is changed in any of these. By `REDIRECT`, TCP connections to addresses outside are led to a relay
that makes them anew with sockets of the host's namespace; other traffic does not leave. `PROXY` does the same for
programs that heed `http_proxy`, where the kernel has no nf_tables. `LINK` adds one link to the host, over which
everything goes, if the host forwards it.
"""

import asyncio
import logging
import socket
from collections.abc import Sequence
from enum import Enum
from ipaddress import IPv4Network, ip_address

from kubereef.node.network import nftables
from kubereef.node.network.abilities import NetworkAbilities
from kubereef.node.network.hostlink import HostLink, link_to_host
from kubereef.node.network.httpproxy import HttpProxy
from kubereef.node.network.ipam import Network
from kubereef.node.network.links import Links
from kubereef.node.network.namespaces import Namespace
from kubereef.node.network.outside import NotReached, Outside
from kubereef.node.network.relay import Relay, listen_tcp

log = logging.getLogger(__name__)


class Way(Enum):
    """How Pods reach the world outside."""

    OFF = "off"
    REDIRECT = "redirect"
    PROXY = "proxy"
    LINK = "link"


def best_way(abilities: NetworkAbilities) -> Way:
    """Return the way out that asks least of Pods and nothing of the host, as far as the kernel goes."""
    return Way.PROXY if abilities.redirect else Way.REDIRECT


class Outbound:
    """The way out that was chosen, until closed."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.environment: dict[str, str] = {}
        """Variables that Pods need to be given; empty unless they go through a proxy that they must know of."""
        self.host_link: HostLink | None = None
        self._outside: Outside | None = None
        self._serving: Relay | HttpProxy | None = None

    @classmethod
    async def start(
        cls,
        way: Way,
        links: Links,
        host: Namespace,
        *,
        networks: Sequence[Network],
        domain: str = "cluster.local",
    ) -> "Outbound":
        """Return a way out for the Pods on a node's bridge; `networks` are the cluster's own, which stay inside.

        Must be called in the node's namespace. Raises LinkFailed, NfTablesUnavailable or OSError.
        """
        outbound = cls(way)
        own = [one for one in networks if isinstance(one, IPv4Network)]
        gateway = str(links.gateways[0])
        try:
            if way is Way.LINK:
                pods = links.addresses[0].network
                if not isinstance(pods, IPv4Network):
                    raise ValueError("a link to the host needs Pods with IPv4 addresses")
                outbound.host_link = await link_to_host(links, host, pods)
            elif way is not Way.OFF:
                outbound._outside = Outside(host)
                listening = listen_tcp(gateway, 0)
                port: int = listening.getsockname()[1]
                if way is Way.PROXY:
                    outbound._serving = HttpProxy(listening, outbound._outside)
                    outbound.environment = proxy_environment(f"http://{gateway}:{port}", networks, domain)
                else:
                    outbound._serving = Relay(listening, _Redirected(outbound._outside, own).greet)
                    await links.inside(lambda: nftables.redirect_outgoing(links.bridge, port, own))
        except BaseException:
            await outbound.close()
            raise
        return outbound

    async def close(self) -> None:
        """Let nothing out any more, except over a link to the host: that ends with the node's namespace."""
        if self._serving is not None:
            await self._serving.close()
        if self._outside is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._outside.close)


class _Redirected:
    """Takes up connections that the kernel led here instead of outside."""

    def __init__(self, outside: Outside, networks: Sequence[IPv4Network]) -> None:
        self._outside = outside
        self._networks = tuple(networks)

    async def greet(self, client: socket.socket) -> socket.socket:
        address, port = nftables.original_destination(client)
        # Who connects to this port itself was not redirected, and wants nothing that is outside.
        if any(ip_address(address) in network for network in self._networks):
            raise NotReached(f"{address} is inside")
        return await self._outside.connect(address, port)


def proxy_environment(address: str, networks: Sequence[Network], domain: str) -> dict[str, str]:
    """Return the variables that lead programs to a proxy, except for what is inside the cluster."""
    inside = ["localhost", "127.0.0.1", "::1", ".svc", f".{domain}", *map(str, networks)]
    values = {"http_proxy": address, "https_proxy": address, "no_proxy": ",".join(inside)}
    return {name: value for key, value in values.items() for name in (key, key.upper())}
