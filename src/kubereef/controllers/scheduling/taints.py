"""Taints keep Pods away from nodes; tolerations let them in."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kubereef.kinds.resource import Object
from kubewire.times import parse_time

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

# Longer than anybody waits, and short enough to be added to any time.
_LONGEST = 100 * 365 * 86400


def taints(node: Object, *effects: str) -> list[Object]:
    """Return the taints of a node that have one of the effects."""
    return [one for one in (node.get("spec") or {}).get("taints") or () if one.get("effect") in effects]


def tolerations(pod: Object) -> list[Object]:
    found: list[Object] = (pod.get("spec") or {}).get("tolerations") or []
    return found


def is_tolerated(taint: Object, tolerated: Iterable[Object]) -> bool:
    return any(_tolerates(one, taint) for one in tolerated)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool((toleration.get("value") or "") == (taint.get("value") or ""))
        case _:
            return False


def leaves_at(pod: Object, node: Object, first_seen: datetime) -> datetime | None:
    """Return when a Pod has to leave its node because of the node's taints; None if it may stay.

    A toleration that ends counts from when the taint was added, or was first seen if it does not say.
    """
    moments: list[datetime] = []
    for taint in taints(node, "NoExecute"):
        tolerating = [one for one in tolerations(pod) if _tolerates(one, taint)]
        since = parse_time(taint["timeAdded"]) if taint.get("timeAdded") else first_seen
        if not tolerating:
            moments.append(since)
        limits = [one["tolerationSeconds"] for one in tolerating if one.get("tolerationSeconds") is not None]
        moments += [since + timedelta(seconds=min(max(limit, 0), _LONGEST)) for limit in limits]
    return min(moments, default=None)
