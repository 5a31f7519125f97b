"""The node's bridge and the links of Pods to it, made over netlink.

Everything happens inside the node's own network namespace and those of its Pods, so the kernel removes it all when
they end; removing a link by hand only makes it sooner. Netlink calls block for a short while and enter Pods'
namespaces, so one thread makes them, one after the other: the kernel would serialise them anyway.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kubereef.node.network.ipam import Address, Network
from kubereef.node.network.namespaces import Namespace, NamespaceTarget, NamespaceThreads

if TYPE_CHECKING:
    from pyroute2 import IPRoute

Interface = IPv4Interface | IPv6Interface
T = TypeVar("T")

POD_INTERFACE = "eth0"
LOOPBACK_INDEX = 1
_LOCAL_TABLE = 255
_MOST_NAME_CHARACTERS = 15
_NO_DUPLICATE_CHECK = 0x02  # IFA_F_NODAD: an address is usable at once


class Route(NamedTuple):
    """A network, and the neighbour through which it is reached."""

    network: Network
    gateway: Address


class PodLink(NamedTuple):
    """How a Pod is connected: an id that is its own, its addresses, and the ways out besides the bridge."""

    pod: str
    addresses: tuple[Interface, ...]
    routes: tuple[Route, ...] = ()


class LinkFailed(Exception):
    """The kernel refused a link; the message says which and why."""


def link_name(pod: str) -> str:
    """Return the name of a Pod's link at the bridge: always the same, and short enough for the kernel."""
    return ("pod" + sha256(pod.encode()).hexdigest())[:_MOST_NAME_CHARACTERS]


def hardware_address(address: Address) -> str:
    """Return the hardware address that goes with an address.

    A bridge that chooses its own takes the lowest of its ports' and so changes it as Pods come and go, and an address
    that is used again would be remembered by neighbours under its former hardware.
    """
    return "0a:58:" + ":".join(f"{byte:02x}" for byte in address.packed[-4:])


class Links:
    """The bridge of a node and what is attached to it.

    Made by `await Links.start(...)` in the node's namespace. `close` ends only the thread: the links end with the
    namespace.
    """

    def __init__(self, bridge: str, addresses: Sequence[Interface], mtu: int) -> None:
        self.bridge = bridge
        self.addresses = tuple(addresses)
        self.mtu = mtu
        self._threads = NamespaceThreads("links")
        self._node = Namespace.current()

    @classmethod
    async def start(
        cls, addresses: Sequence[Interface], *, bridge: str = "kubereef", mtu: int = 1500
    ) -> "Links":
        """Return the links of a node whose bridge has these addresses: its Pods' gateways, with their networks."""
        links = cls(bridge, addresses, mtu)
        try:
            await links._threads.run(links._node, links._make_bridge)
        except BaseException:
            links.close()
            raise
        return links

    async def attach(self, link: PodLink, namespace: NamespaceTarget) -> None:
        """Connect a namespace to the bridge; a link of the same Pod that is left from before is replaced."""

        def attach() -> None:
            with _explained(f"link of Pod {link.pod}"), Namespace.at(namespace) as pod:
                self._make_link(link, pod)
                try:
                    pod.enter()
                    _configure_pod(link, self.gateways)
                except BaseException:
                    self._node.enter()
                    _remove_link(link_name(link.pod))  # half a link would look like a whole one
                    raise

        await self._threads.run(self._node, attach)

    async def detach(self, pod: str) -> None:
        """Remove a Pod's link at once; one that is gone, with its namespace, is nothing to complain about."""
        await self._threads.run(self._node, lambda: _remove_link(link_name(pod)))

    async def add_route(self, route: Route) -> None:
        """Make the node reach a network through a neighbour on the bridge."""
        await self._threads.run(self._node, lambda: _add_route(route))

    async def remove_route(self, route: Route) -> None:
        """Take a route of the node away again."""
        await self._threads.run(self._node, lambda: _remove_route(route))

    async def serve_network(self, network: Network, namespace: Namespace) -> None:
        """Make every address of a network an own one of a namespace: sockets there may be bound to any of them."""
        await self._threads.run(namespace, lambda: _own_network(network, "replace"))

    async def leave_network(self, network: Network, namespace: Namespace) -> None:
        """Undo `serve_network`."""
        await self._threads.run(namespace, lambda: _own_network(network, "del"))

    async def connect_host(
        self, name: str, host_name: str, host: Namespace, own: Interface, other: Interface
    ) -> None:
        """Link the node to another namespace, with an address at each end, and make that the node's way out."""

        def connect() -> None:
            from pyroute2 import IPRoute

            with _explained(f"link {host_name} to the host"):
                with IPRoute() as netlink:
                    peer = {"ifname": host_name, "net_ns_fd": host.fd, "mtu": self.mtu}
                    netlink.link("add", ifname=name, kind="veth", mtu=self.mtu, peer=peer)
                    _raise_link(netlink, name, [own])
                host.enter()
                with IPRoute() as netlink:
                    _raise_link(netlink, host_name, [other])
                self._node.enter()
                with IPRoute() as netlink:
                    netlink.route("add", dst="0.0.0.0/0", gateway=str(other.ip))

        await self._threads.run(self._node, connect)

    async def inside(self, function: Callable[[], T]) -> T:
        """Return what a blocking function returns when it is called in the node's namespace, off the event loop."""
        return await self._threads.run(self._node, function)

    @property
    def gateways(self) -> tuple[Address, ...]:
        """The addresses of the node on its bridge, which are the Pods' gateways."""
        return tuple(one.ip for one in self.addresses)

    def close(self) -> None:
        """End the thread. Links stay until their namespaces end."""
        self._threads.close()
        self._node.close()

    def _make_bridge(self) -> None:
        from pyroute2 import IPRoute

        with IPRoute() as netlink, _explained(f"bridge {self.bridge}"):
            netlink.link("set", index=LOOPBACK_INDEX, state="up")
            hardware = hardware_address(self.addresses[0].ip)
            netlink.link("add", ifname=self.bridge, kind="bridge", address=hardware, mtu=self.mtu)
            _raise_link(netlink, self.bridge, self.addresses)
            _write_setting("ipv4/ip_forward", "1")
            if any(one.version == 6 for one in self.addresses):
                _write_setting("ipv6/conf/all/forwarding", "1")
            # Pods would remember the shorter way to a Service that they were told of, also when it is no longer there.
            for which in ("all", self.bridge):  # either one alone would turn it on
                _write_setting(f"ipv4/conf/{which}/send_redirects", "0")

    def _make_link(self, link: PodLink, pod: Namespace) -> None:
        from pyroute2 import IPRoute

        name = link_name(link.pod)
        peer = {
            "ifname": POD_INTERFACE,
            "net_ns_fd": pod.fd,
            "address": hardware_address(link.addresses[0].ip),
            "mtu": self.mtu,
        }
        with IPRoute() as netlink:
            if netlink.link_lookup(ifname=name):
                netlink.link("del", ifname=name)
            bridge = _index(netlink, self.bridge)
            netlink.link("add", ifname=name, kind="veth", master=bridge, mtu=self.mtu, state="up", peer=peer)


def _configure_pod(link: PodLink, gateways: Sequence[Address]) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink:
        netlink.link("set", index=LOOPBACK_INDEX, state="up")
        _raise_link(netlink, POD_INTERFACE, link.addresses)
        for gateway in gateways:
            if any(gateway in address.network for address in link.addresses):
                everywhere = "0.0.0.0/0" if gateway.version == 4 else "::/0"
                netlink.route("add", dst=everywhere, gateway=str(gateway))
        for route in link.routes:
            netlink.route("add", dst=str(route.network), gateway=str(route.gateway))
    # As with other container runtimes, a program needs no privilege for a low port: the ports are the Pod's own.
    _write_setting("ipv4/ip_unprivileged_port_start", "0")


def _raise_link(netlink: "IPRoute", name: str, addresses: Sequence[Interface]) -> None:
    index = _index(netlink, name)
    netlink.link("set", index=index, state="up")
    for address in addresses:
        nodad = {"flags": _NO_DUPLICATE_CHECK} if address.version == 6 else {}
        netlink.addr(
            "add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen, **nodad
        )


def _index(netlink: "IPRoute", name: str) -> int:
    found = netlink.link_lookup(ifname=name)
    if not found:
        raise LinkFailed(f"there is no link {name}")
    index: int = found[0]
    return index


def _remove_link(name: str) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink, _explained(f"link {name}"):
        if netlink.link_lookup(ifname=name):
            netlink.link("del", ifname=name)


def _add_route(route: Route) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink, _explained(f"route to {route.network}"):
        netlink.route("replace", dst=str(route.network), gateway=str(route.gateway))


def _remove_route(route: Route) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink, _explained(f"route to {route.network}"):
        netlink.route("del", dst=str(route.network), gateway=str(route.gateway))


def _own_network(network: Network, action: str) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink, _explained(f"own network {network}"):
        netlink.route(
            action, dst=str(network), oif=LOOPBACK_INDEX, type="local", scope="host", table=_LOCAL_TABLE
        )


def _write_setting(setting: str, value: str) -> None:
    """Write a network setting of the thread's namespace."""
    Path("/proc/sys/net", setting).write_text(value, encoding="ascii")


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn the kernel's refusals into ones that say what was being made."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        yield
    except NetlinkError as refusal:
        raise LinkFailed(f"{what}: {refusal.args[1] if len(refusal.args) > 1 else refusal}") from refusal
    except OSError as refusal:
        raise LinkFailed(f"{what}: {refusal}") from refusal
