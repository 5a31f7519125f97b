"""Where a Pod would rather be, for the sake of other Pods: near some, away from others, and not where it is crowded."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

from kubereef.controllers.pods import is_deleting
from kubereef.controllers.scheduling import affinity
from kubereef.controllers.scheduling.neighbours import Domain, Placed, domain_of, is_meant, required_terms
from kubereef.kinds.resource import Object
from kubewire.selectors import LabelSelector

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME = "kubernetes.io/hostname"
# What it is worth to Pods that insist on a neighbour to get one more.
_REQUIRED_WORTH = 1
_KINDS = (("podAffinity", 1), ("podAntiAffinity", -1))

NamespaceLabels = Callable[[str], Object]


class _Crowd(NamedTuple):
    """How many like the Pod are in each part of the cluster, and how much one of them weighs."""

    key: str
    counts: dict[str, int]
    weight: float
    skew: int


class Leanings(NamedTuple):
    """What the placed Pods mean for the choice among nodes that will all do: made once, asked for every node."""

    points: Mapping[Domain, int]
    crowds: tuple[_Crowd, ...]

    def attraction(self, node: Object) -> int:
        """Return how much the Pod and those on and around a node would like to be together."""
        labels = node["metadata"].get("labels") or {}
        return sum(self.points.get(domain, 0) for domain in labels.items()) if self.points else 0

    def crowding(self, node: Object) -> float | None:
        """Return how crowded it is where a node is; None for one that is in no part of the cluster."""
        labels = node["metadata"].get("labels") or {}
        if any(crowd.key not in labels for crowd in self.crowds):
            return None
        # A Pod that minds a difference of one less minds every single one more.
        return sum(
            crowd.counts.get(labels[crowd.key], 0) * crowd.weight + (crowd.skew - 1) for crowd in self.crowds
        )


NONE = Leanings({}, ())


def leans(pod: Object) -> bool:
    """Tell whether a Pod would rather be in one place than in another, for the sake of others."""
    return _is_social(pod) or bool(_soft_constraints(pod))


def _is_social(pod: Object) -> bool:
    wishes = (pod.get("spec") or {}).get("affinity") or {}
    return any((wishes.get(kind) or {}).get(_PREFERRED) for kind, _ in _KINDS)


def draws(pod: Object) -> bool:
    """Tell whether a placed Pod makes its surroundings better or worse for others."""
    return _is_social(pod) or bool(required_terms(pod, "podAffinity"))


def leanings(
    pod: Object, placed: Iterable[Placed], nodes: Sequence[Object], namespace_labels: NamespaceLabels
) -> Leanings:
    """Return what the placed Pods mean for the choice among some nodes that will all do."""
    others = list(placed)
    points: dict[Domain, int] = {}
    for other in others:
        for domain, worth in _feelings(pod, other, namespace_labels):
            points[domain] = points.get(domain, 0) + worth
    return Leanings(points, tuple(_crowds(pod, others, nodes)))


def _feelings(pod: Object, other: Placed, namespace_labels: NamespaceLabels) -> Iterator[tuple[Domain, int]]:
    """Yield what a Pod and a placed one are worth to each other, and where."""
    for owner, whom in ((pod, other.pod), (other.pod, pod)):
        for term, worth in _preferred_terms(owner):
            if is_meant(term, owner, whom, namespace_labels):
                yield from ((domain, worth) for domain in domain_of(other.node, term))
    for term in required_terms(other.pod, "podAffinity"):
        if is_meant(term, other.pod, pod, namespace_labels):
            yield from ((domain, _REQUIRED_WORTH) for domain in domain_of(other.node, term))


def _preferred_terms(pod: Object) -> Iterator[tuple[Object, int]]:
    wishes = (pod.get("spec") or {}).get("affinity") or {}
    for kind, sign in _KINDS:
        for one in (wishes.get(kind) or {}).get(_PREFERRED) or ():
            yield one.get("podAffinityTerm") or {}, sign * one.get("weight", 0)


def _soft_constraints(pod: Object) -> list[Object]:
    listed = (pod.get("spec") or {}).get("topologySpreadConstraints") or ()
    return [one for one in listed if one.get("whenUnsatisfiable") == "ScheduleAnyway"]


def _crowds(pod: Object, others: list[Placed], nodes: Sequence[Object]) -> Iterator[_Crowd]:
    rules = _soft_constraints(pod)
    keys = [rule["topologyKey"] for rule in rules]
    here = [
        node["metadata"]["labels"]
        for node in nodes
        if all(key in (node["metadata"].get("labels") or {}) for key in keys)
    ]
    spec = pod.get("spec") or {}
    for rule in rules:
        key, selector = rule["topologyKey"], LabelSelector.of(rule.get("labelSelector"))
        counts = dict.fromkeys((labels[key] for labels in here), 0)
        for other in others:
            domain = (other.node["metadata"].get("labels") or {}).get(key)
            if (
                domain in counts
                and other.pod["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and not is_deleting(other.pod)
                and selector.matches(other.pod["metadata"].get("labels"))
                and (rule.get("nodeAffinityPolicy") == "Ignore" or affinity.is_chosen(spec, other.node))
            ):
                counts[domain] += 1
        # One of a few zones weighs less than one of many nodes, or the nodes would decide nothing.
        size = len(here) if key == _HOSTNAME else len(counts)
        yield _Crowd(key, counts, log(size + 2), rule["maxSkew"])
