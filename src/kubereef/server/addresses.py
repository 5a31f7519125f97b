"""Addresses and node ports of Services: every one has one owner at most, and is free again when its owner lets go.

What is taken is what the Services in the store say, written or still being written. The book below only remembers who
took what, so that it need not be searched for; an entry whose owner no longer says so is void. So there is nothing to
give back when a write fails, a Service goes or the process is killed, and a new process reads the book from the store.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from kubereef.kinds.behaviours.service_validation import HEADLESS, NODE_PORT_TYPES, needs_address
from kubereef.kinds.behaviours.services import has_health_port
from kubereef.kinds.resource import Object
from kubereef.server.admission import Attempt
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors, fielderrors
from kubewire.fielderrors import FieldError
from kubewire.paths import FieldPath
from kubewire.sources import Entropy

DEFAULT_CIDR = "10.96.0.0/16"
NODE_PORTS = range(30000, 32768)

# How often a place is tried at random before all are looked through in turn.
_TRIES = 16
_SERVICES = "services"


class ServiceAddresses:
    """The admission step that gives Services their addresses, families and node ports."""

    def __init__(self, entropy: Entropy, cidr: str = DEFAULT_CIDR, node_ports: range = NODE_PORTS) -> None:
        self._entropy = entropy
        self._network: IPv4Network | IPv6Network = ip_network(cidr)
        self._family = f"IPv{self._network.version}"
        self._node_ports = node_ports
        self._owners: dict[str | int, Key] | None = None

    def __call__(self, store: Store, attempt: Attempt) -> list[str]:
        """Complete a Service that is created or changed; refuse what somebody else has."""
        is_write = attempt.operation in ("CREATE", "UPDATE") and not attempt.subresource
        if attempt.resource_type.resource != _SERVICES or not is_write:
            return []
        book = _Book(store, self._known(store), Key(_SERVICES, attempt.namespace, attempt.name))
        spec = attempt.obj["spec"]
        before: Object = (attempt.old or {}).get("spec") or {}
        problems = self._family_problems(spec)
        if not problems:
            problems = [*self._address_problems(book, spec, before), *self._port_problems(book, spec, before)]
        if problems:
            raise errors.invalid("Service", attempt.name, problems)
        if not attempt.dry_run:
            book.note(places(spec))
        return []

    def _known(self, store: Store) -> dict[str | int, Key]:
        if self._owners is None:
            self._owners = {
                place: record.key
                for record in store.records(_SERVICES)
                for place in places(record.object()["spec"])
            }
        return self._owners

    def _family_problems(self, spec: Object) -> list[FieldError]:
        """Fill in the families of addresses, of which this cluster has one."""
        if not needs_address(spec):
            return []
        if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
            # Whoever writes its endpoints may use both families, whatever the cluster has.
            spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "RequireDualStack"
            families = spec.get("ipFamilies") or [self._family]
            if spec["ipFamilyPolicy"] != "SingleStack" and len(families) == 1:
                families = [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]
            spec["ipFamilies"] = families
            return []
        if spec.get("ipFamilyPolicy") == "RequireDualStack" or len(spec.get("ipFamilies") or ()) > 1:
            at, value = ("spec", "ipFamilyPolicy"), spec.get("ipFamilyPolicy", "")
            detail = "this cluster is not configured for dual-stack services"
            return [fielderrors.invalid(at, value, detail)]
        spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
        spec["ipFamilies"] = spec.get("ipFamilies") or [self._family]
        if spec["ipFamilies"] != [self._family]:
            at_family = ("spec", "ipFamilies", 0)
            return [fielderrors.invalid(at_family, spec["ipFamilies"][0], "not configured on this cluster")]
        return []

    def _address_problems(self, book: "_Book", spec: Object, before: Object) -> list[FieldError]:
        given = spec.get("clusterIPs") or []
        if not needs_address(spec) or HEADLESS in given or (given and given == before.get("clusterIPs")):
            return []
        if given:
            return [problem for text in given for problem in self._claim(book, text, given)]
        try:
            address = next(text for text in self._candidates() if book.is_free(text))
        except StopIteration:
            detail = f"failed to allocate a serviceIP: the range {self._network} is full"
            raise errors.internal_error(detail) from None
        spec["clusterIP"], spec["clusterIPs"] = address, [address]
        return []

    def _claim(self, book: "_Book", text: str, given: list[str]) -> list[FieldError]:
        because = ""
        if not self._is_usable(text):
            because = f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {self._network}"
        elif not book.is_free(text):
            because = "provided IP is already allocated"
        if not because:
            return []
        return [
            fielderrors.invalid(("spec", "clusterIPs"), given, f"failed to allocate IP {text}: {because}")
        ]

    def _is_usable(self, text: str) -> bool:
        network = self._network
        ends = (str(network[0]), str(network[-1]))
        return text not in ends and int(network[0]) < _number(text) < int(network[-1])

    def _candidates(self) -> Iterator[str]:
        """Yield addresses to try: some at random, then all in turn. The first and last belong to nobody."""
        count = min(self._network.num_addresses, 2**20) - 2
        for _ in range(_TRIES):
            yield str(self._network[1 + int(self._entropy.uniform(0, count)) % count])
        yield from (str(self._network[index]) for index in range(1, count + 1))

    def _port_problems(self, book: "_Book", spec: Object, before: Object) -> list[FieldError]:
        problems: list[FieldError] = []
        had = set(_ports_of(before))
        if spec.get("type") in NODE_PORT_TYPES:
            # One number may serve several protocols of one Service.
            chosen = {
                port["port"]: port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")
            }
            for index, port in enumerate(spec.get("ports") or ()):
                if port.get("nodePort"):
                    path = ("spec", "ports", index, "nodePort")
                    problems += self._port_claim(book, port["nodePort"], path, had)
                elif spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False:
                    number: int = chosen.get(port["port"]) or self._free_port(book, _ports_of(spec))
                    port["nodePort"] = chosen[port["port"]] = number
        if has_health_port(spec):
            if spec.get("healthCheckNodePort"):
                path_to_health = ("spec", "healthCheckNodePort")
                problems += self._port_claim(book, spec["healthCheckNodePort"], path_to_health, had)
            else:
                spec["healthCheckNodePort"] = self._free_port(book, _ports_of(spec))
        return problems

    def _port_claim(self, book: "_Book", number: int, at: FieldPath, had: set[int]) -> list[FieldError]:
        if number in had:
            return []
        if number not in self._node_ports:
            first, last = self._node_ports[0], self._node_ports[-1]
            detail = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
            return [fielderrors.invalid(at, number, detail)]
        if not book.is_free(number):
            return [fielderrors.invalid(at, number, "provided port is already allocated")]
        return []

    def _free_port(self, book: "_Book", taken: Iterable[int]) -> int:
        taken = set(taken)
        ports = self._node_ports
        tries = [ports[int(self._entropy.uniform(0, len(ports))) % len(ports)] for _ in range(_TRIES)]
        candidates: list[int] = [*tries, *ports]
        for number in candidates:
            if number not in taken and book.is_free(number):
                return number
        raise errors.internal_error("failed to allocate a nodePort: range is full")


class _Book:
    """Who has which place, as one Service that wants some sees it."""

    def __init__(self, store: Store, owners: dict[str | int, Key], own: Key) -> None:
        self._store = store
        self._owners = owners
        self._own = own

    def is_free(self, place: str | int) -> bool:
        """Tell whether nobody else has a place. An owner that is gone, or says something else now, has it no longer."""
        owner = self._owners.get(place)
        if owner is None or owner == self._own:
            return True
        record = self._store.latest(owner)
        return record is None or place not in places(record.object()["spec"])

    def note(self, taken: Iterable[str | int]) -> None:
        self._owners.update(dict.fromkeys(taken, self._own))


def places(spec: Object) -> list[str | int]:
    """Return the addresses and node ports that a Service has."""
    addresses = [text for text in spec.get("clusterIPs") or () if text != HEADLESS]
    return [*addresses, *_ports_of(spec)]


def _ports_of(spec: Object) -> list[int]:
    ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def _number(text: str) -> int:
    return int(ip_network(text).network_address)
