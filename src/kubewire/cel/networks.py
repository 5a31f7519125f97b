"""IP addresses and networks: `cidr('10.0.0.0/8').containsIP(self.address)`."""

from functools import lru_cache
from typing import TYPE_CHECKING

from kubewire.cel.cost import double_traversal, tenth, traversal
from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function, method
from kubewire.cel.types import CIDR, IP
from kubewire.cel.values import Value, held_by

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


class Ip:
    """An IP address."""

    __slots__ = ("address",)

    def __init__(self, address: "IPv4Address | IPv6Address") -> None:
        self.address = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ip) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    @property
    def size(self) -> int:
        return self.address.max_prefixlen // 8


class Cidr:
    """A network: an address, of which the first `prefix` bits count."""

    __slots__ = ("ip", "prefix")

    def __init__(self, ip: Ip, prefix: int) -> None:
        self.ip = ip
        self.prefix = prefix

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and (self.ip, self.prefix) == (other.ip, other.prefix)

    def __hash__(self) -> int:
        return hash((self.ip, self.prefix))

    def network_of(self, ip: Ip) -> int:
        """Return the bits of an address that count for this network."""
        return int(ip.address) >> (ip.address.max_prefixlen - self.prefix)

    def contains(self, ip: Ip) -> bool:
        return ip.size == self.ip.size and self.network_of(ip) == self.network_of(self.ip)


held_by(IP, Ip)
held_by(CIDR, Cidr)


@lru_cache(maxsize=256)
def parse_ip(text: str) -> Ip:
    """Return the address that a text writes; raises EvaluationError."""
    from ipaddress import IPv6Address, ip_address  # only rules over addresses need it

    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    try:
        address = ip_address(text)
    except ValueError as bad:
        raise EvaluationError(
            f'IP Address "{text}" parse error during conversion from string: {bad}'
        ) from bad
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return Ip(address)


@lru_cache(maxsize=256)
def parse_cidr(text: str) -> Cidr:
    """Return the network that a text writes; raises EvaluationError."""
    base, slash, digits = text.partition("/")
    ip = parse_ip(base)
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    if not slash or not plain or len(digits) > 3 or int(digits) > 8 * ip.size:
        raise EvaluationError(f"network address parse error during conversion from string: {text}")
    return Cidr(ip, int(digits))


function("ip", "string -> ip", cost=traversal)(parse_ip)
function("cidr", "string -> cidr", cost=traversal)(parse_cidr)


@function("isIP", "string -> bool", cost=traversal)
def is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except EvaluationError:
        return False
    return True


@function("isCIDR", "string -> bool", cost=traversal)
def is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except EvaluationError:
        return False
    return True


@function("ip.isCanonical", "string -> bool", cost=double_traversal)
def is_canonical(text: str) -> bool:
    return str(parse_ip(text).address) == text


@function("string", "ip -> string")
def text_of_ip(ip: Ip) -> str:
    return str(ip.address)


@function("string", "cidr -> string")
def text_of_cidr(network: Cidr) -> str:
    return f"{network.ip.address}/{network.prefix}"


@method("family", "ip -> int")
def family(ip: Ip) -> int:
    return ip.address.version


@method("isUnspecified", "ip -> bool")
def is_unspecified(ip: Ip) -> bool:
    return ip.address.is_unspecified


@method("isLoopback", "ip -> bool")
def is_loopback(ip: Ip) -> bool:
    return ip.address.is_loopback


@method("isLinkLocalMulticast", "ip -> bool")
def is_link_local_multicast(ip: Ip) -> bool:
    bits = int(ip.address)
    return bits >> 8 == 0xE00000 if ip.address.version == 4 else bits >> 112 == 0xFF02


@method("isLinkLocalUnicast", "ip -> bool")
def is_link_local_unicast(ip: Ip) -> bool:
    return ip.address.is_link_local


@method("isGlobalUnicast", "ip -> bool")
def is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


@method("ip", "cidr -> ip")
def ip_of(network: Cidr) -> Ip:
    return network.ip


@method("prefixLength", "cidr -> int")
def prefix_length(network: Cidr) -> int:
    return network.prefix


@method("masked", "cidr -> cidr")
def masked(network: Cidr) -> Cidr:
    bits = 8 * network.ip.size - network.prefix
    return Cidr(Ip(type(network.ip.address)(int(network.ip.address) >> bits << bits)), network.prefix)


def _address_price(network: Cidr, other: Value) -> int:
    return tenth(2 * network.ip.size) + (tenth(len(other)) if isinstance(other, str) else 0)


def _network_price(network: Cidr, other: Value) -> int:
    return _address_price(network, other) + tenth(network.ip.size) + 1


@method("containsIP", "cidr, ip -> bool", "cidr, string -> bool", cost=_address_price)
def contains_ip(network: Cidr, other: Ip | str) -> bool:
    return network.contains(parse_ip(other) if isinstance(other, str) else other)


@method("containsCIDR", "cidr, cidr -> bool", "cidr, string -> bool", cost=_network_price)
def contains_cidr(network: Cidr, other: Cidr | str) -> bool:
    inner = parse_cidr(other) if isinstance(other, str) else other
    return inner.prefix >= network.prefix and network.contains(inner.ip)
