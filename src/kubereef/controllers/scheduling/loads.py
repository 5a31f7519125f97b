"""What the Pods on each node take up, kept up to date Pod by Pod."""

from collections.abc import Iterator
from typing import NamedTuple

from kubereef.kinds.behaviours.pod_resources import amounts, needed
from kubereef.kinds.resource import Object
from kubewire.quantity import Quantity, QuantityError

# Amounts of resources, in units of 10**-9.
Amounts = dict[str, int]

# What a container that asks for nothing is taken for when nodes are compared, so that such Pods spread too.
_ASSUMED = {"cpu": 10**8, "memory": 200 * 2**20 * 10**9}


class Demand(NamedTuple):
    """What a Pod takes up: what it asks for, what it is taken for when nodes are compared, and ports of the node."""

    requests: Amounts
    weight: Amounts
    ports: tuple[tuple[str, str, int], ...]


def demand(pod: Object) -> Demand:
    """Return what a Pod takes up."""
    spec = pod.get("spec") or {}
    requests = {name: amount.nano for name, amount in needed(spec, "requests").items()}
    weight = dict(requests)
    for name, assumed in _ASSUMED.items():
        silent = sum(name not in amounts(one, "requests") for one in spec.get("containers") or ())
        weight[name] = weight.get(name, 0) + silent * assumed
    return Demand(requests, weight, tuple(_host_ports(spec)))


def _host_ports(spec: Object) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"])  # noqa: S104 - "any address"
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


class Load:
    """The Pods of one node and what they take up together."""

    def __init__(self) -> None:
        self.pods: dict[str, Demand] = {}
        self.requested: Amounts = {}
        self.weight: Amounts = {}

    def add(self, uid: str, taken: Demand) -> None:
        self.pods[uid] = taken
        self._count(taken, 1)

    def remove(self, uid: str) -> None:
        self._count(self.pods.pop(uid), -1)

    def _count(self, taken: Demand, sign: int) -> None:
        for totals, more in ((self.requested, taken.requests), (self.weight, taken.weight)):
            for name, amount in more.items():
                totals[name] = totals.get(name, 0) + sign * amount

    def has_free(self, ports: tuple[tuple[str, str, int], ...]) -> bool:
        """Tell whether ports of the node are still free."""
        if not ports:
            return True
        taken = [port for one in self.pods.values() for port in one.ports]
        return not any(_clash(one, other) for one in ports for other in taken)


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    every = "0.0.0.0"  # noqa: S104 - how Kubernetes writes "any address"
    return one[1:] == other[1:] and (one[0] == other[0] or every in (one[0], other[0]))


class Loads:
    """Which Pod is where, including those that were placed but whose place the server has not told yet."""

    def __init__(self) -> None:
        self._nodes: dict[str, Load] = {}
        self._places: dict[str, tuple[str, Object]] = {}

    def on(self, node: str) -> Load:
        return self._nodes.get(node) or _NOTHING

    def place(self, pod: Object, node: str) -> None:
        """Count a Pod on a node, and nowhere else."""
        uid = pod["metadata"]["uid"]
        self.remove(uid)
        self._places[uid] = (node, pod)
        self._nodes.setdefault(node, Load()).add(uid, demand(pod))

    def remove(self, uid: str) -> None:
        """Count a Pod nowhere."""
        place = self._places.pop(uid, None)
        if place is None:
            return
        node, _pod = place
        load = self._nodes[node]
        load.remove(uid)
        if not load.pods:
            del self._nodes[node]

    def place_of(self, uid: str) -> str:
        """Return the node that a Pod is counted on, if it is."""
        place = self._places.get(uid)
        return place[0] if place is not None else ""

    def placed(self) -> Iterator[tuple[str, Object]]:
        """Yield every Pod that is counted, with its node."""
        yield from self._places.values()


_NOTHING = Load()


def allocatable(node: Object) -> Amounts:
    """Return what a node has for Pods; what cannot be read is not there."""
    status = node.get("status") or {}
    found: Amounts = {}
    for name, text in (status.get("allocatable") or status.get("capacity") or {}).items():
        try:
            found[name] = Quantity.of(text).nano
        except QuantityError:
            continue
    return found
