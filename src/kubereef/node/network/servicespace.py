"""Where the addresses of Services live: a namespace of their own, attached to the bridge like a Pod."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from kubereef.node.network.ipam import Address, Network
from kubereef.node.network.links import Interface, Links, PodLink, Route
from kubereef.node.network.namespaces import Namespace


class ServiceSpace:
    """The namespace in which the addresses of Services are served, attached to the bridge like a Pod.

    It is apart from the node's own so that a program in the host network may listen at any port on all addresses
    while some Service has the same port. The networks of Services are wholly its own: an address or port that
    nobody listens at refuses at once, and connections outlive their Service.
    """

    def __init__(
        self, links: Links, namespace: Namespace, address: Address, networks: Sequence[Network]
    ) -> None:
        self.namespace = namespace
        self.address = address
        self.networks = tuple(networks)
        self._links = links
        self._claimed: dict[str, int] = {}

    @classmethod
    async def start(cls, links: Links, address: Interface, networks: Sequence[Network]) -> "ServiceSpace":
        """Return the space for Services with addresses in these networks; its own address is in the Pods' network."""
        namespace = await asyncio.get_running_loop().run_in_executor(None, Namespace.new)
        space = cls(links, namespace, address.ip, networks)
        try:
            await links.attach(PodLink("services", (address,)), namespace.fd)
            for network in networks:
                await links.serve_network(network, namespace)
            for route in space.routes:
                await links.add_route(route)
        except BaseException:
            namespace.close()
            raise
        return space

    @property
    def routes(self) -> tuple[Route, ...]:
        """How a Pod, or the node, gets to the Services directly."""
        return tuple(Route(one, self.address) for one in self.networks if one.version == self.address.version)

    async def claim(self, address: str) -> None:
        """See to it that an address can be listened at, also one outside the networks of Services."""
        count = self._claimed.get(address, 0)
        self._claimed[address] = count + 1
        if count == 0 and not self._is_covered(address):
            await self._links.serve_network(ip_network(address), self.namespace)
            await self._links.add_route(Route(ip_network(address), self.address))

    async def release(self, address: str) -> None:
        """Undo one `claim`."""
        count = self._claimed.pop(address) - 1
        if count:
            self._claimed[address] = count
        elif not self._is_covered(address):
            await self._links.remove_route(Route(ip_network(address), self.address))
            await self._links.leave_network(ip_network(address), self.namespace)

    def _is_covered(self, address: str) -> bool:
        return any(ip_address(address) in network for network in self.networks)

    def close(self) -> None:
        """Let go of the namespace; it ends with the last socket in it."""
        self.namespace.close()
