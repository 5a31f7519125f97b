"""Whether a Pod fits a node, why not, and which of several nodes fits best."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubereef.controllers.scheduling import affinity
from kubereef.controllers.scheduling.leanings import NONE, Leanings
from kubereef.controllers.scheduling.loads import Amounts, Demand, Load, allocatable
from kubereef.controllers.scheduling.neighbours import NOBODY, Neighbourhood
from kubereef.controllers.scheduling.taints import UNSCHEDULABLE, is_tolerated, taints, tolerations
from kubereef.kinds.resource import Object

_ONE = 10**9
_AFFINITY_WEIGHT = 2
_NEIGHBOURS_WEIGHT = 2
_SPREAD_WEIGHT = 2
_TAINT_WEIGHT = 3
_BEST = 100


class Candidate(NamedTuple):
    """A node, with what it offers and what is taken."""

    node: Object
    offers: Amounts
    load: Load

    @classmethod
    def of(cls, node: Object, load: Load) -> "Candidate":
        return cls(node, allocatable(node), load)

    @property
    def name(self) -> str:
        name: str = self.node["metadata"]["name"]
        return name


class Obstacle(NamedTuple):
    """Why a Pod does not fit a node, and whether it would not even if the node were empty."""

    reasons: tuple[str, ...]
    is_final: bool = True


def obstacle(
    pod: Object,
    needs: Demand,
    candidate: Candidate,
    volume_affinities: Sequence[Object] = (),
    neighbours: Neighbourhood = NOBODY,
) -> Obstacle | None:
    """Return the first thing that keeps a Pod off a node; None if it fits."""
    node, tolerated = candidate.node, tolerations(pod)
    if (node.get("spec") or {}).get("unschedulable"):
        cordon = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
        if not is_tolerated(cordon, tolerated):
            return Obstacle(("node(s) were unschedulable",))
    if any(not is_tolerated(one, tolerated) for one in taints(node, "NoSchedule", "NoExecute")):
        return Obstacle(("node(s) had untolerated taint(s)",))
    if not affinity.is_chosen(pod.get("spec") or {}, node):
        return Obstacle(("node(s) didn't match Pod's node affinity/selector",))
    if not candidate.load.has_free(needs.ports):
        return Obstacle(("node(s) didn't have free ports for the requested pod ports",), is_final=False)
    lacking = _lacking(needs, candidate)
    if lacking is not None:
        return lacking
    if not all(affinity.matches_any(one, node) for one in volume_affinities):
        return Obstacle(("node(s) didn't match PersistentVolume's node affinity",))
    objection = neighbours.objection(node)
    return Obstacle((objection[0],), objection[1]) if objection else None


def _lacking(needs: Demand, candidate: Candidate) -> Obstacle | None:
    """Return what a node has too little of."""
    reasons = []
    is_final = False
    offers, load = candidate.offers, candidate.load
    if (len(load.pods) + 1) * _ONE > offers.get("pods", 0):
        reasons.append("Too many pods")
    for name in sorted(needs.requests, key=_resource_order):
        needed = needs.requests[name]
        if needed and needed > offers.get(name, 0) - load.requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            is_final = is_final or needed > offers.get(name, 0)
    return Obstacle(tuple(reasons), is_final) if reasons else None


def _resource_order(name: str) -> tuple[int, str]:
    known = ("cpu", "memory", "ephemeral-storage")
    return (known.index(name) if name in known else len(known), name)


def best(pod: Object, needs: Demand, fitting: Sequence[Candidate], leanings: Leanings = NONE) -> Candidate:
    """Return the node that a Pod gets: preferred by it, not shunned, and with the most left; there must be one."""
    spec = pod.get("spec") or {}
    preferences = [affinity.preference(spec, one.node) for one in fitting]
    shunned = [_untolerated(pod, one.node) for one in fitting]
    most_preferred, most_shunned = max(preferences), max(shunned)
    attraction = _attraction([leanings.attraction(one.node) for one in fitting])
    emptiness = _emptiness([leanings.crowding(one.node) for one in fitting])

    def rank(index: int) -> tuple[float, int, str]:
        candidate = fitting[index]
        score = _room(needs, candidate)
        score += _NEIGHBOURS_WEIGHT * attraction[index] + _SPREAD_WEIGHT * emptiness[index]
        if most_preferred:
            score += _AFFINITY_WEIGHT * _BEST * preferences[index] / most_preferred
        if most_shunned:
            score += _TAINT_WEIGHT * _BEST * (1 - shunned[index] / most_shunned)
        return (-score, len(candidate.load.pods), candidate.name)

    return fitting[min(range(len(fitting)), key=rank)]


def _attraction(points: list[int]) -> list[float]:
    """Return how attractive each node is, 0 to 100: the least attractive has 0, and so have all if none stands out."""
    least, most = min(points), max(points)
    return [_BEST * (one - least) / (most - least) if most > least else 0.0 for one in points]


def _emptiness(crowding: list[float | None]) -> list[float]:
    """Return how empty it is around each node, 0 to 100; a node that is in no part of the cluster has 0."""
    known = [one for one in crowding if one is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)
    return [
        0.0 if one is None else (_BEST * (most + least - one) / most if most else float(_BEST))
        for one in crowding
    ]


def _untolerated(pod: Object, node: Object) -> int:
    return sum(not is_tolerated(one, tolerations(pod)) for one in taints(node, "PreferNoSchedule"))


def _room(needs: Demand, candidate: Candidate) -> float:
    """Return how much of a node is left with the Pod on it, 0 to 100."""
    shares = []
    for name in ("cpu", "memory"):
        whole = candidate.offers.get(name, 0)
        if whole:
            left = whole - candidate.load.weight.get(name, 0) - needs.weight.get(name, 0)
            shares.append(max(0.0, left / whole) * _BEST)
    return sum(shares) / len(shares) if shares else 0.0


def explanation(pod: Object, obstacles: Iterable[Obstacle], upfront: str = "", count: int = 0) -> str:
    """Return why a Pod fits no node, in the words that users know.

    `upfront` is a reason that has nothing to do with the single nodes, of which there are `count`.
    """
    found = list(obstacles)
    count = count or len(found)
    if not count:
        return "no nodes available to schedule pods"
    reasons = upfront or _histogram(reason for one in found for reason in one.reasons)
    return (
        f"0/{count} nodes are available: {reasons}. no new claims to deallocate, preemption: "
        + _preemption(pod, found, count)
    )


def _preemption(pod: Object, found: list[Obstacle], count: int) -> str:
    """Say what preemption would do: nothing."""
    if (pod.get("spec") or {}).get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    hopeless = "Preemption is not helpful for scheduling"
    hopeful = "No preemption victims found for incoming pod"
    words = [hopeless if one.is_final else hopeful for one in found] or [hopeless] * count
    return f"0/{count} nodes are available: {_histogram(words)}."


def _histogram(reasons: Iterable[str]) -> str:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
