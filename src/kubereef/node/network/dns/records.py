"""What the names of a cluster stand for: a pure function of its Services, as Kubernetes' DNS specification has it."""

from collections.abc import Iterable, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from kubereef.node.network.ipam import Network
from kubereef.node.network.services import Endpoint, Object, Service, ServiceKey, Services

Name = tuple[str, ...]
"""A name as its labels, in lower case, without the empty one at the end."""

VERSION = "1.1.0"
"""The version of the DNS specification, which a cluster tells under `dns-version`."""


class Host(NamedTuple):
    """A record with an address: A or AAAA, as the address is."""

    address: str

    @property
    def kind(self) -> str:
        return "AAAA" if ":" in self.address else "A"


class Alias(NamedTuple):
    """A CNAME record."""

    target: Name
    kind: str = "CNAME"


class Location(NamedTuple):
    """An SRV record."""

    port: int
    target: Name
    weight: int
    kind: str = "SRV"


class Pointer(NamedTuple):
    """A PTR record."""

    target: Name
    kind: str = "PTR"


class Text(NamedTuple):
    """A TXT record."""

    text: str
    kind: str = "TXT"


Record = Host | Alias | Location | Pointer | Text
Zone = dict[Name, list[Record]]
"""Records by name. A name without records of its own is there if others lie below it."""


class Answer(NamedTuple):
    """What the cluster knows of a name.

    `is_ours` says whether the cluster is the one to ask; if it is not, another server may know. A name that exists
    may still have no record of the wanted kind.
    """

    is_ours: bool
    exists: bool = False
    records: tuple[Record, ...] = ()


def name_of(text: str) -> Name:
    """Return the labels of a name that is written with dots."""
    return tuple(label for label in text.lower().split(".") if label)


def service_zone(service: Service, endpoints: Sequence[Endpoint], domain: Name) -> Zone:
    """Return all records of one Service, with reverse ones; touches nothing."""
    base: Name = (service.key.name, service.key.namespace, "svc", *domain)
    if service.external_name:
        return {base: [Alias(name_of(service.external_name))]}
    if service.is_headless:
        return _headless_zone(service, endpoints, base)
    zone: Zone = {base: [Host(address) for address in service.addresses]} if service.addresses else {}
    for address in service.addresses:
        zone[reverse_name(address)] = [Pointer(base)]
    for port in service.ports:
        if port.name and service.addresses:
            zone[_port_name(port.name, port.protocol, base)] = [Location(port.port, base, 100)]
    return zone


def _headless_zone(service: Service, endpoints: Sequence[Endpoint], base: Name) -> Zone:
    zone: Zone = {base: []}
    locations: dict[Name, dict[tuple[int, Name], None]] = {}
    for endpoint in endpoints:
        if not (endpoint.is_ready or service.publishes_unready):
            continue
        host = Host(endpoint.address)
        own: Name = (endpoint.hostname.lower() or dashed(endpoint.address), *base)
        for name in (base, own):
            records = zone.setdefault(name, [])
            if host not in records:
                records.append(host)
        zone[reverse_name(endpoint.address)] = [Pointer(own)]
        for port in endpoint.ports:
            if port.name:
                there = locations.setdefault(_port_name(port.name, port.protocol, base), {})
                there[port.port, own] = None
    for name, found in locations.items():
        weight = max(1, 100 // len(found))
        zone[name] = [Location(port, target, weight) for port, target in found]
    return zone


def _port_name(port: str, protocol: str, base: Name) -> Name:
    return (f"_{port.lower()}", f"_{protocol.lower()}", *base)


def dashed(address: str) -> str:
    """Return an address as a label of a name."""
    return address.replace(".", "-").replace(":", "-")


def undashed(label: str) -> str | None:
    """Return the address that a label such as 10-1-2-3 stands for, if it stands for one."""
    for family, separator in ((IPv4Address, "."), (IPv6Address, ":")):
        try:
            return str(family(label.replace("-", separator)))
        except AddressValueError:
            continue
    return None


def reverse_name(address: str) -> Name:
    """Return the name under which the PTR record of an address is found."""
    return name_of(ip_address(address).reverse_pointer)


def _address_of(name: Name) -> IPv4Address | IPv6Address | None:
    """Return the address that a whole reverse name stands for."""
    try:
        if name[-2:] == ("in-addr", "arpa") and len(name) == 6:
            return IPv4Address(".".join(reversed(name[:-2])))
        if name[-2:] == ("ip6", "arpa") and len(name) == 34 and all(len(digit) == 1 for digit in name[:-2]):
            return IPv6Address(int("".join(reversed(name[:-2])), 16))
    except ValueError:  # labels that are not numbers: some other name of that zone
        return None
    return None


class Records:
    """The names of a cluster, kept up to date.

    `networks` are those of Pods and Services: a reverse name in one of them is the cluster's to answer, also with no.
    A change costs what the Services concerned cost, however many there are.
    """

    def __init__(self, domain: str = "cluster.local", networks: Iterable[Network] = ()) -> None:
        self.domain = name_of(domain)
        self._networks = tuple(networks)
        self._services = Services()
        self._zones: dict[ServiceKey, Zone] = {}
        self._records: dict[Name, dict[ServiceKey, list[Record]]] = {}
        # How many names lie at or below a name: such a name exists, with or without records of its own.
        self._below: dict[Name, int] = {}

    def replace(self, services: Iterable[Object], slices: Iterable[Object]) -> None:
        """Take in all Services and EndpointSlices there are, and forget all others."""
        self._refresh(self._services.replace(services, slices))

    def apply_service(self, service: Object) -> None:
        """Take in a Service that is new or changed."""
        self._refresh(self._services.apply_service(service))

    def remove_service(self, namespace: str, name: str) -> None:
        """Forget a Service."""
        self._refresh(self._services.remove_service(namespace, name))

    def apply_slice(self, endpoint_slice: Object) -> None:
        """Take in an EndpointSlice that is new or changed."""
        self._refresh(self._services.apply_slice(endpoint_slice))

    def remove_slice(self, namespace: str, name: str) -> None:
        """Forget an EndpointSlice."""
        self._refresh(self._services.remove_slice(namespace, name))

    def _refresh(self, changed: Iterable[ServiceKey]) -> None:
        for key in changed:
            service = self._services.get(key)
            new = {} if service is None else service_zone(service, self._services.endpoints(key), self.domain)
            old = self._zones.pop(key, {})
            for name in old.keys() - new.keys():
                self._drop(name, key)
            for name, records in new.items():
                if name not in old:
                    self._count(name, 1)
                self._records.setdefault(name, {})[key] = records
            if new:
                self._zones[key] = new

    def _drop(self, name: Name, key: ServiceKey) -> None:
        self._count(name, -1)
        there = self._records[name]
        del there[key]
        if not there:
            del self._records[name]

    def _count(self, name: Name, difference: int) -> None:
        for start in range(len(name)):
            part = name[start:]
            count = self._below.get(part, 0) + difference
            if count:
                self._below[part] = count
            else:
                del self._below[part]

    def is_ours(self, name: Name) -> bool:
        """Tell whether the cluster is the one to ask for a name."""
        if name[-len(self.domain) :] == self.domain or name in self._records:
            return True
        address = _address_of(name)
        return address is not None and any(address in network for network in self._networks)

    def lookup(self, name: Name) -> Answer:
        """Return what is known of a name, given in lower case."""
        if not self.is_ours(name):
            return Answer(is_ours=False)
        found = self._records.get(name)
        if found is not None:
            return Answer(
                True, exists=True, records=tuple(one for records in found.values() for one in records)
            )
        if name in self._below:
            return Answer(True, exists=True)
        return self._lookup_unlisted(name[: -len(self.domain)])

    def _lookup_unlisted(self, name: Name) -> Answer:
        """Return what is known of a name inside the domain that no Service stands for."""
        match name:
            case () | ("svc",) | ("pod",) | (_, "pod"):
                return Answer(True, exists=True)
            case ("dns-version",):
                return Answer(True, exists=True, records=(Text(VERSION),))
            case (label, _, "pod") if address := undashed(label):
                return Answer(True, exists=True, records=(Host(address),))
        return Answer(True)
