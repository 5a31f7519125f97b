"""What this machine's kernel lets the node's network do, found out by doing it."""

from collections.abc import Callable
from ipaddress import IPv4Network
from typing import NamedTuple

from kubereef.node.network import nftables
from kubereef.node.network.namespaces import Namespace, in_own_thread


class NetworkAbilities(NamedTuple):
    """Each ability: empty if it is there, otherwise why it is not."""

    namespaces: str = ""
    links: str = ""
    ipv6: str = ""
    redirect: str = ""
    masquerade: str = ""

    @property
    def missing(self) -> dict[str, str]:
        """What is not there, and why."""
        return {name: reason for name, reason in self._asdict().items() if reason}

    @property
    def can_connect_pods(self) -> bool:
        """Tell whether Pods can have a network at all."""
        return not (self.namespaces or self.links)


def probe() -> NetworkAbilities:
    """Return what the kernel allows: everything is tried in a namespace that is thrown away. Blocks for a moment."""
    try:
        with Namespace.new() as scratch:
            return in_own_thread(lambda: _look_around(scratch))
    except OSError as refusal:
        return NetworkAbilities(*[str(refusal)] * len(NetworkAbilities._fields))


def _look_around(scratch: Namespace) -> NetworkAbilities:
    scratch.enter()
    pods = IPv4Network("10.0.0.0/8")
    return NetworkAbilities(
        links=_reason(_try_links),
        ipv6=_reason(_try_ipv6),
        redirect=_reason(lambda: nftables.redirect_outgoing("probe", 1, [pods])),
        masquerade=_reason(lambda: nftables.masquerade("probe", pods)),
    )


def _reason(attempt: Callable[[], None]) -> str:
    try:
        attempt()
    except Exception as refusal:  # noqa: BLE001 - whatever stands in the way is the answer
        return str(refusal) or type(refusal).__name__
    return ""


def _try_links() -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink:
        netlink.link("add", ifname="probe", kind="bridge")
        (bridge,) = netlink.link_lookup(ifname="probe")
        netlink.link("add", ifname="probe0", kind="veth", master=bridge, peer={"ifname": "probe1"})


def _try_ipv6() -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink:
        netlink.link("set", index=1, state="up")
        netlink.addr("add", index=1, address="fd00::1", prefixlen=128)
