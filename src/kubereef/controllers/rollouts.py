"""How a Deployment moves from old ReplicaSets to the new one: pure functions of the Deployment and its ReplicaSets.

Every function returns the size that each ReplicaSet is to have, by name, for those that are to change.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kubereef.kinds.resource import Object

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"

Sizes = dict[str, int]


class Family(NamedTuple):
    """The ReplicaSets of a Deployment: the one of its present template, if there is one, and all others."""

    new: Object | None
    old: list[Object]

    @property
    def all(self) -> list[Object]:
        return [*self.old, self.new] if self.new is not None else self.old


# --- reading


def is_recreated(deployment: Object) -> bool:
    """Tell whether all old Pods go before the first new one comes."""
    return bool((deployment["spec"].get("strategy") or {}).get("type") == "Recreate")


def wanted(deployment: Object) -> int:
    replicas: int = deployment["spec"].get("replicas", 1)
    return replicas


def size(replica_set: Object) -> int:
    """Return how many Pods a ReplicaSet is to have."""
    replicas: int = replica_set["spec"].get("replicas", 1)
    return replicas


def counted(replica_set: Object, field: str) -> int:
    """Return a number from the status of a ReplicaSet."""
    number: int = (replica_set.get("status") or {}).get(field) or 0
    return number


def active(replica_sets: Iterable[Object]) -> list[Object]:
    """Return the ReplicaSets that are to have Pods."""
    return [one for one in replica_sets if size(one) > 0]


def by_age(replica_sets: Iterable[Object]) -> list[Object]:
    """Return ReplicaSets, the oldest first."""
    return sorted(
        replica_sets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"])
    )


def annotated(replica_set: Object, annotation: str) -> int | None:
    """Return the number that an annotation holds."""
    text = (replica_set["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def max_surge(deployment: Object) -> int:
    """Return how many Pods there may be above the wanted number during an update."""
    return 0 if is_recreated(deployment) else _bounds(deployment)[0]


def max_unavailable(deployment: Object) -> int:
    """Return how many of the wanted Pods may be missing during an update."""
    if is_recreated(deployment) or wanted(deployment) == 0:
        return 0
    return min(_bounds(deployment)[1], wanted(deployment))


def _bounds(deployment: Object) -> tuple[int, int]:
    """Return the surge and the unavailability that are allowed; one of them is above 0, or nothing would ever move."""
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), wanted(deployment), round_up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), wanted(deployment), round_up=False)
    return surge, unavailable if surge or unavailable else 1


def share(value: int | str, whole: int, *, round_up: bool) -> int:
    """Return a number, or a percentage of the whole."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    percent = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else 0
    return -(-percent * whole // 100) if round_up else percent * whole // 100


# --- a rolling update


def new_size(deployment: Object, family: Family, present: int) -> int:
    """Return how large the new ReplicaSet, `present` large now, may be with regard to the others."""
    if is_recreated(deployment):
        return wanted(deployment)
    total = sum(map(size, family.old)) + present
    room = wanted(deployment) + max_surge(deployment) - total
    return present if room <= 0 else present + min(room, wanted(deployment) - present)


def grow_new(deployment: Object, family: Family) -> Sizes:
    """Bring the new ReplicaSet to the size that is possible now."""
    if family.new is None:
        return {}
    present = size(family.new)
    target = wanted(deployment)
    if present < target:
        target = new_size(deployment, family, present)
    return {family.new["metadata"]["name"]: target} if target != present else {}


def shrink_old(deployment: Object, family: Family) -> Sizes:
    """Take away from the old ReplicaSets what availability does not need: first what is of no use, then the oldest."""
    if sum(map(size, family.old)) == 0:
        return {}
    at_least = wanted(deployment) - max_unavailable(deployment)
    new_missing = 0
    if family.new is not None:
        new_missing = size(family.new) - counted(family.new, "availableReplicas")
    removable = sum(map(size, family.all)) - at_least - new_missing
    if removable <= 0:
        return {}
    sizes = {one["metadata"]["name"]: size(one) for one in family.old}
    for one in by_age(family.old):
        useless = size(one) - counted(one, "availableReplicas")
        taken = max(0, min(useless, removable, size(one)))
        sizes[one["metadata"]["name"]] -= taken
        removable -= taken
    spare = sum(counted(one, "availableReplicas") for one in family.all) - at_least
    for one in by_age(family.old):
        taken = max(0, min(spare, sizes[one["metadata"]["name"]]))
        sizes[one["metadata"]["name"]] -= taken
        spare -= taken
    return {
        one["metadata"]["name"]: target
        for one in family.old
        if (target := sizes[one["metadata"]["name"]]) != size(one)
    }


# --- a change of the wanted number


def is_scaled(deployment: Object, family: Family) -> bool:
    """Tell whether the wanted number has changed since the ReplicaSets were given their sizes."""
    desired = (annotated(one, DESIRED_REPLICAS) for one in active(family.all))
    return any(number is not None and number != wanted(deployment) for number in desired)


def scaled(deployment: Object, family: Family) -> Sizes:
    """Share a new number among the ReplicaSets: all of it to the only one in use, else in proportion to their sizes."""
    target = wanted(deployment)
    if not family.all:
        return {}  # it was paused before it made any
    only = _only_in_use(family)
    if only is not None:
        return {only["metadata"]["name"]: target}
    if family.new is not None and _is_saturated(deployment, family.new):
        return {one["metadata"]["name"]: 0 for one in active(family.old)}
    if is_recreated(deployment):
        return {}
    return _in_proportion(deployment, active(family.all))


def _only_in_use(family: Family) -> Object | None:
    """Return the only ReplicaSet with Pods; if none has any, the new one or the youngest."""
    in_use = active(family.all)
    if len(in_use) == 1:
        return in_use[0]
    if in_use:
        return None
    return family.new or next(reversed(by_age(family.old)), None)


def _is_saturated(deployment: Object, replica_set: Object) -> bool:
    target = wanted(deployment)
    return (
        annotated(replica_set, DESIRED_REPLICAS) == target
        and size(replica_set) == target
        and counted(replica_set, "availableReplicas") == target
    )


def _in_proportion(deployment: Object, in_use: list[Object]) -> Sizes:
    target = wanted(deployment)
    allowed = target + max_surge(deployment) if target > 0 else 0
    to_add = allowed - sum(map(size, in_use))
    if to_add == 0:
        return {one["metadata"]["name"]: size(one) for one in in_use}
    # The largest give or take the rest; of equally large ones the younger grow and the older shrink.
    ordered = by_age(in_use)
    if to_add > 0:
        ordered.reverse()
    ordered.sort(key=size, reverse=True)
    sizes: Sizes = {}
    added = 0
    for one in ordered:
        share = 0 if added == to_add else _fraction(deployment, one)
        share = min(share, to_add - added) if to_add > 0 else max(share, to_add - added)
        sizes[one["metadata"]["name"]] = size(one) + share
        added += share
    first = ordered[0]["metadata"]["name"]
    sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _fraction(deployment: Object, replica_set: Object) -> int:
    """Return by how much a ReplicaSet changes to keep its share."""
    if wanted(deployment) == 0:
        return -size(replica_set)
    whole = wanted(deployment) + max_surge(deployment)
    before = annotated(replica_set, MAX_REPLICAS) or (deployment.get("status") or {}).get("replicas") or 0
    if not before:
        return 0
    exact = size(replica_set) * whole / before
    return int(exact + 0.5) - size(replica_set)
