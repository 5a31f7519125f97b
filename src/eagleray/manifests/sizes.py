"""How many Pods the groups of a cluster should have, and what a Pod asks for."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubewire.quantity import ZERO, Quantity, QuantityError

Object = dict[str, Any]
Demand = dict[str, Quantity]  # by the name of a resource

MAX_INT32 = 2**31 - 1


def replicas_of(group: Object) -> int:
    """Return how many replicas a group should have: what it asks for, within its bounds; none while suspended."""
    if group.get("suspend"):
        return 0
    low, high = least_replicas(group), most_replicas(group)
    wanted = group.get("replicas")
    return low if wanted is None else max(low, min(wanted, high))


def least_replicas(group: Object) -> int:
    return int(group.get("minReplicas") or 0)


def most_replicas(group: Object) -> int:
    high = group.get("maxReplicas")
    return MAX_INT32 if high is None else int(high)


def hosts_of(group: Object) -> int:
    """Return how many Pods make one replica."""
    hosts = group.get("numOfHosts")
    return 1 if hosts is None else int(hosts)


def desired_pods(group: Object) -> int:
    """Return how many Pods a group should have."""
    return replicas_of(group) * hosts_of(group)


def pod_demand(template: Object) -> Demand:
    """Return what the containers of a Pod template ask for together: of each what it requests, or else its limit."""
    total: Demand = {}
    for container in (template.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        total = plus(total, amounts(asked))
    return total


def plus(one: Demand, other: Mapping[str, Quantity], times: int = 1) -> Demand:
    """Return a demand and so many times another one."""
    names = dict.fromkeys((*one, *other))
    return {name: one.get(name, ZERO) + other.get(name, ZERO) * times for name in names}


def amounts(written: Mapping[str, Any]) -> Demand:
    """Return what a resource list means; what is no quantity is left out."""
    return dict(_amounts(written))


def _amounts(written: Mapping[str, Any]) -> Iterator[tuple[str, Quantity]]:
    for name, value in written.items():
        try:
            yield name, Quantity.of(value)
        except QuantityError:
            continue
