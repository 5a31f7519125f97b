"""What a ReplicaSet does next, and what its status says: pure functions of the ReplicaSet and its Pods."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import log2
from typing import NamedTuple

from kubereef.controllers import pods
from kubereef.controllers.conditions import condition, with_condition
from kubereef.kinds.resource import Object
from kubewire.selectors import LabelSelector
from kubewire.times import parse_time

# How many Pods one pass makes or deletes at most.
MOST_AT_ONCE = 500
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = ("Pending", "Unknown", "Running")


class Steps(NamedTuple):
    """What to do to the Pods."""

    create: int = 0
    delete: tuple[Object, ...] = ()


class Failure(NamedTuple):
    """Why the number of Pods could not be brought about."""

    reason: str
    message: str


def wanted(replica_set: Object) -> int:
    replicas: int = (replica_set.get("spec") or {}).get("replicas", 1)
    return replicas


def steps(replica_set: Object, active: list[Object], related: Iterable[Object], now: datetime) -> Steps:
    """Return what brings the active Pods to the number that is wanted.

    `related` are the active Pods of all ReplicaSets with the same owner: of two Pods on one node, one goes first.
    """
    missing = wanted(replica_set) - len(active)
    if missing >= 0:
        return Steps(create=min(missing, MOST_AT_ONCE))
    surplus = min(-missing, MOST_AT_ONCE)
    return Steps(delete=tuple(least_missed(active, related, now)[:surplus]))


def least_missed(active: list[Object], related: Iterable[Object], now: datetime) -> list[Object]:
    """Return Pods in the order in which they go when there are too many.

    First those without a node, then those less far, not ready, of lower deletion cost, with more related Pods on
    their node, ready for a shorter time, restarted more often, and young. Times count by their order of magnitude,
    so that of Pods of about the same age any may go.
    """
    crowd: dict[str, int] = {}
    for pod in related:
        node = _node(pod)
        crowd[node] = crowd.get(node, 0) + 1

    def rank(pod: Object) -> tuple[object, ...]:
        is_ready = pods.is_ready(pod)
        ready = condition((pod.get("status") or {}).get("conditions") or [], "Ready") if is_ready else None
        phase = pods.phase(pod)
        return (
            bool(_node(pod)),
            _PHASES.index(phase) if phase in _PHASES else len(_PHASES),
            is_ready,
            deletion_cost(pod),
            -crowd.get(_node(pod), 0),
            _magnitude((ready or {}).get("lastTransitionTime"), now),
            -pods.restarts(pod),
            _magnitude(pod["metadata"].get("creationTimestamp"), now),
            pod["metadata"]["uid"],
        )

    return sorted(active, key=rank)


def deletion_cost(pod: Object) -> int:
    """Return what the Pod says it costs to delete it; what cannot be read costs nothing."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _magnitude(time: str | None, now: datetime) -> int:
    """Return the order of magnitude of an age, in powers of two; what has no time is the youngest."""
    if not time:
        return -2
    nanoseconds = int((now - parse_time(time)).total_seconds() * 1_000_000) * 1000
    return int(log2(nanoseconds)) if nanoseconds > 0 else -1


def _node(pod: Object) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""


class Tally(NamedTuple):
    """The Pods of a ReplicaSet, counted, and in how many seconds the next ready one becomes available."""

    replicas: int = 0
    fully_labelled: int = 0
    ready: int = 0
    available: int = 0
    terminating: int = 0
    next_available: float | None = None


def tally(replica_set: Object, owned: list[Object], now: datetime) -> Tally:
    """Count the Pods of a ReplicaSet."""
    spec = replica_set.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = LabelSelector.exactly(labels)
    active = [pod for pod in owned if pods.is_active(pod)]
    waits = [seconds_to_availability(pod, spec.get("minReadySeconds") or 0, now) for pod in active]
    pending = [wait for wait in waits if wait]
    return Tally(
        replicas=len(active),
        fully_labelled=sum(selector.matches(pod["metadata"].get("labels")) for pod in active),
        ready=sum(map(pods.is_ready, active)),
        available=sum(wait == 0 for wait in waits),
        terminating=sum(map(pods.is_terminating, owned)),
        next_available=min(pending, default=None),
    )


def seconds_to_availability(pod: Object, min_ready: int, now: datetime) -> float | None:
    """Return how long a Pod has to stay ready until it counts as available: 0 if it does, None if it is not ready."""
    if not pods.is_ready(pod):
        return None
    ready = condition(pod["status"]["conditions"], "Ready") or {}
    since = ready.get("lastTransitionTime")
    if not min_ready:
        return 0.0
    if not since:
        return None
    return max(0.0, (parse_time(since) + timedelta(seconds=min_ready) - now).total_seconds())


def next_status(replica_set: Object, counted: Tally, failure: Failure | None, now: datetime) -> Object:
    """Return what the status of the ReplicaSet is to be."""
    conditions = (replica_set.get("status") or {}).get("conditions") or []
    if failure is None:
        conditions = [one for one in conditions if one.get("type") != "ReplicaFailure"]
    elif condition(conditions, "ReplicaFailure") is None:
        conditions = with_condition(
            conditions, now, "ReplicaFailure", "True", failure.reason, failure.message
        )
    status: Object = {
        "replicas": counted.replicas,
        "terminatingReplicas": counted.terminating,
        "observedGeneration": replica_set["metadata"].get("generation", 0),
    }
    optional = {
        "fullyLabeledReplicas": counted.fully_labelled,
        "readyReplicas": counted.ready,
        "availableReplicas": counted.available,
        "conditions": conditions,
    }
    status.update({field: value for field, value in optional.items() if value})
    return status
