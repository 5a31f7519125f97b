"""Reading Pods: how far they are, when they ended, and which of several are missed least."""

from datetime import datetime, timedelta
from typing import Any

from kubereef.controllers.conditions import condition
from kubereef.kinds.resource import Object
from kubewire.times import parse_time

_PHASES = ("Pending", "Unknown", "Running")


def phase(pod: Object) -> str:
    found = (pod.get("status") or {}).get("phase")
    return found if isinstance(found, str) else "Pending"


def is_over(pod: Object) -> bool:
    """Tell whether a Pod has ended, well or not."""
    return phase(pod) in ("Succeeded", "Failed")


def is_deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_active(pod: Object) -> bool:
    """Tell whether a Pod runs or is going to, and nobody has asked it to end."""
    return not is_over(pod) and not is_deleting(pod)


def is_terminating(pod: Object) -> bool:
    """Tell whether a Pod was asked to end and has not yet."""
    return not is_over(pod) and is_deleting(pod)


def is_ready(pod: Object) -> bool:
    ready = condition((pod.get("status") or {}).get("conditions") or [], "Ready")
    return ready is not None and ready.get("status") == "True"


def restarts(pod: Object) -> int:
    """Return how often the containers of a Pod were started again, all together."""
    status = pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return sum(one.get("restartCount", 0) for one in statuses)


def finish_time(pod: Object) -> datetime:
    """Return when a Pod ended, as well as its status tells."""
    status, meta = pod.get("status") or {}, pod["metadata"]
    ended = _containers_ended(status.get("containerStatuses") or [])
    if ended is not None:
        return ended
    ready = condition(status.get("conditions") or [], "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if meta.get("deletionTimestamp"):
        grace = timedelta(seconds=meta.get("deletionGracePeriodSeconds") or 0)
        return parse_time(meta["deletionTimestamp"]) - grace
    return parse_time(meta["creationTimestamp"])


def _containers_ended(statuses: list[Object]) -> datetime | None:
    """Return when the last container ended, or None while one has not, or if nobody says when."""
    times = [((one.get("state") or {}).get("terminated") or {}).get("finishedAt") or "" for one in statuses]
    return max(map(parse_time, times)) if times and all(times) else None


def least_missed_first(pod: Object) -> tuple[Any, ...]:
    """Return a key by which to sort Pods when some have to go.

    Those without a node come first, then those that are less far, not ready, ready for a shorter time, often
    restarted, and young.
    """
    status = pod.get("status") or {}
    ready = condition(status.get("conditions") or [], "Ready") if is_ready(pod) else None
    ready_since = (ready or {}).get("lastTransitionTime") or ""
    return (
        bool((pod.get("spec") or {}).get("nodeName")),
        _PHASES.index(phase(pod)) if phase(pod) in _PHASES else len(_PHASES),
        ready is not None,
        _latest_first(ready_since),
        -restarts(pod),
        _latest_first(pod["metadata"].get("creationTimestamp") or ""),
        pod["metadata"]["name"],
    )


def _latest_first(time: str) -> float:
    """Return a number that is smaller for later times; what has no time counts as the latest."""
    return -parse_time(time).timestamp() if time else float("-inf")
