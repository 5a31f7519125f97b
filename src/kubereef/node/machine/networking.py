"""The network of a node, put together: the bridge, Pods' addresses, DNS, Services, and the way out."""

import asyncio
from contextlib import AsyncExitStack
from ipaddress import IPv4Interface, IPv4Network, ip_network
from pathlib import Path

import msgspec

from kubereef.node.machine.following import ListensToServices
from kubereef.node.network import (
    AddressPool,
    Answers,
    DnsServer,
    Forwarder,
    Links,
    Listener,
    Namespace,
    NamespaceThreads,
    Outbound,
    Places,
    PodLink,
    Records,
    Resolution,
    ServiceProxy,
    ServiceSpace,
    SocketsHere,
    SocketsThere,
    Upstream,
    Way,
    best_way,
    probe,
    read_resolution,
)
from kubewire.sources import Clock, Entropy

POD_CIDR = "10.244.0.0/16"
DNS_PORT = 53
_RESOLV_CONF = Path("/etc/resolv.conf")


class NetworkSettings(msgspec.Struct, frozen=True):
    """The addresses of a node. An empty `outbound` is the best way out that the kernel allows."""

    pod_cidr: str = POD_CIDR
    service_cidr: str = "10.96.0.0/16"
    dns: str = "10.96.0.10"
    domain: str = "cluster.local"
    outbound: str = ""


def gateway_of(pod_cidr: str) -> str:
    """Return the node's own address on the bridge: the first one of its Pods' network."""
    return str(ip_network(pod_cidr)[1])


class NodeNetwork:
    """Everything of the node's network that runs; made by `start` inside the node's namespace."""

    def __init__(self, settings: NetworkSettings) -> None:
        self.settings = settings
        self.gateway = gateway_of(settings.pod_cidr)
        self.resolution = Resolution()
        self.environment: dict[str, str] = {}
        """Variables that Pods need to be given to find the way out."""
        self.way = Way.OFF
        self.listeners: tuple[ListensToServices, ...] = ()
        self.places: Places
        """Where Services are served."""
        self._opened = AsyncExitStack()
        self._links: Links
        self._pool: AddressPool
        self._space: ServiceSpace

    @classmethod
    async def start(
        cls, settings: NetworkSettings, host: Namespace, clock: Clock, entropy: Entropy
    ) -> "NodeNetwork":
        """Return the network of a node; `host` is the namespace by which it goes out."""
        network = cls(settings)
        try:
            await network._build(host, clock, entropy)
        except BaseException:
            await network.close()
            raise
        return network

    async def attach(self, uid: str, namespace: int) -> tuple[str, ...]:
        """Connect a Pod's namespace; return its addresses."""
        address = self._pool.allocate(uid)
        interface = IPv4Interface(f"{address}/{self._pool.network.prefixlen}")
        try:
            await self._links.attach(PodLink(uid, (interface,), self._space.routes), namespace)
        except BaseException:
            self._pool.release(uid)
            raise
        return (str(address),)

    async def detach(self, uid: str) -> None:
        """Give a Pod's addresses back; its link ends with its namespace."""
        self._pool.release(uid)

    async def close(self) -> None:
        """End what runs. Links and addresses end with the namespace."""
        await self._opened.aclose()

    async def _build(self, host: Namespace, clock: Clock, entropy: Entropy) -> None:
        pods, services = IPv4Network(self.settings.pod_cidr), IPv4Network(self.settings.service_cidr)
        own, neighbour = (IPv4Interface(f"{pods[number]}/{pods.prefixlen}") for number in (1, 2))
        self._pool = AddressPool(pods, reserved=[own.ip, neighbour.ip])
        self._links = await Links.start([own])
        self._opened.callback(self._links.close)
        self._space = await ServiceSpace.start(self._links, neighbour, [services])
        self._opened.callback(self._space.close)
        threads = NamespaceThreads("sockets", 2)
        self._opened.callback(threads.close)
        inside = SocketsThere(threads, self._space.namespace)
        records = await self._start_dns(inside, SocketsThere(threads, host), [pods, services], entropy)
        self.places = Places(inside, self._space, SocketsHere(), (self.gateway,))
        # The node answers for names itself, also where a Service has other servers of the cluster behind that address.
        names = [Listener(self.settings.dns, DNS_PORT, protocol) for protocol in ("TCP", "UDP")]
        proxy = ServiceProxy(self.places, clock, entropy, taken=names)
        proxy.start()
        self._opened.push_async_callback(proxy.close)
        self.listeners = (records, proxy)
        wanted = self.settings.outbound
        self.way = Way(wanted) if wanted else best_way(await asyncio.to_thread(probe))
        outbound = await Outbound.start(
            self.way, self._links, host, networks=[pods, services], domain=self.settings.domain
        )
        self._opened.push_async_callback(outbound.close)
        self.environment = outbound.environment

    async def _start_dns(
        self, inside: SocketsThere, outside: SocketsThere, networks: list[IPv4Network], entropy: Entropy
    ) -> Records:
        """Serve names at the cluster's DNS address, and ask the host's servers for what is not the cluster's."""
        text = await asyncio.to_thread(lambda: _RESOLV_CONF.read_text() if _RESOLV_CONF.exists() else "")
        self.resolution = read_resolution(text)
        upstreams = [Upstream(server) for server in self.resolution.nameservers]
        records = Records(self.settings.domain, networks)
        # Where nothing goes out, addresses outside are of no use, and asking for them would be a way out too.
        forwarder = (
            Forwarder(upstreams, outside, entropy) if self.settings.outbound != Way.OFF.value else None
        )
        await self._space.claim(self.settings.dns)
        server = await DnsServer.start(Answers(records, forwarder), inside, [self.settings.dns])
        self._opened.push_async_callback(server.close)
        return records
