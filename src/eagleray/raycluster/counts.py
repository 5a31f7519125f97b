"""How many Pods a cluster wants, and how much it asks for."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from eagleray.manifests.cluster import Cluster
from eagleray.manifests.sizes import MAX_INT32, desired_pods, hosts_of, least_replicas, most_replicas
from eagleray.manifests.startparams import is_gpu
from kubewire.quantity import ZERO, Quantity, QuantityError

Object = dict[str, Any]

_TPU = "google.com/tpu"


class WorkerCounts(NamedTuple):
    """Numbers of worker Pods that a cluster wants."""

    desired: int
    least: int
    most: int


def worker_counts(cluster: Cluster) -> WorkerCounts:
    active = [group for group in cluster.workers if not group.get("suspend")]
    desired = sum(desired_pods(group) for group in active)
    least = sum(least_replicas(group) * hosts_of(group) for group in active)
    most = sum(most_replicas(group) * hosts_of(group) for group in active)
    return WorkerCounts(desired, least, min(most, MAX_INT32))


class Demand(NamedTuple):
    """What all Pods of a cluster ask for together."""

    cpu: Quantity = ZERO
    memory: Quantity = ZERO
    gpu: Quantity = ZERO
    tpu: Quantity = ZERO

    def plus(self, other: "Demand", times: int) -> "Demand":
        return Demand(*(mine + theirs * times for mine, theirs in zip(self, other, strict=True)))


def demand_of(cluster: Cluster) -> Demand:
    """Return what the head and all wanted workers ask for; replicas count as written, unclamped."""
    total = Demand().plus(_template_demand(cluster.head), 1)
    for group in cluster.workers:
        if not group.get("suspend"):
            total = total.plus(_template_demand(group), (group.get("replicas") or 0) * hosts_of(group))
    return total


def _template_demand(group: Object) -> Demand:
    containers = ((group.get("template") or {}).get("spec") or {}).get("containers") or []
    total = Demand()
    for container in containers:
        total = total.plus(_container_demand(container.get("resources") or {}), 1)
    return total


def _container_demand(resources: Object) -> Demand:
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Demand(
        _amount(asked.get("cpu")),
        _amount(asked.get("memory")),
        _sum(asked[name] for name in asked if is_gpu(name)),
        _amount(asked.get(_TPU)),
    )


def _sum(values: Iterable[Any]) -> Quantity:
    total = ZERO
    for value in values:
        total = total + _amount(value)
    return total


def _amount(value: Any) -> Quantity:
    if value is None:
        return ZERO
    try:
        return Quantity.of(value)
    except QuantityError:
        return ZERO
