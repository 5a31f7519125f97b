"""Which Pods a Pod wants near it, which it keeps away from, and how evenly it wants to be spread."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubereef.controllers.pods import is_deleting
from kubereef.controllers.scheduling import affinity
from kubereef.controllers.scheduling.taints import is_tolerated, taints, tolerations
from kubereef.kinds.resource import Object
from kubewire.selectors import LabelSelector

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# A part of the cluster: a label of nodes and its value.
Domain = tuple[str, str]


class Placed(NamedTuple):
    """A Pod and the node that it is on."""

    pod: Object
    node: Object


class _Near(NamedTuple):
    key: str
    domains: frozenset[Domain]
    # Nobody is there yet whom the Pod could be near to, except itself: then any part of the cluster will do.
    is_first: bool


class _Spread(NamedTuple):
    key: str
    counts: dict[str, int]
    fewest: int
    adds: int
    most: int


class Neighbourhood(NamedTuple):
    """What the Pods that are placed mean for one that is not: made once, asked for every node."""

    near: tuple[_Near, ...] = ()
    far: frozenset[Domain] = frozenset()
    shunned: frozenset[Domain] = frozenset()
    spread: tuple[_Spread, ...] = ()

    def objection(self, node: Object) -> tuple[str, bool] | None:
        """Return why a node will not do, and whether it would not even if it were empty; None if it will."""
        labels = node["metadata"].get("labels") or {}
        spreading = "node(s) didn't match pod topology spread constraints"
        for rule in self.spread:
            if rule.key not in labels:
                return f"{spreading} (missing required label)", True
            if rule.counts.get(labels[rule.key], 0) + rule.adds - rule.fewest > rule.most:
                return spreading, False
        for wish in self.near:
            here = (wish.key, labels.get(wish.key, ""))
            if wish.key not in labels or (here not in wish.domains and not wish.is_first):
                return "node(s) didn't match pod affinity rules", True
        here_are = set(labels.items())
        if here_are & self.far:
            return "node(s) didn't match pod anti-affinity rules", False
        if here_are & self.shunned:
            return "node(s) didn't satisfy existing pods anti-affinity rules", False
        return None


NOBODY = Neighbourhood()


def neighbourhood(
    pod: Object, placed: Iterable[Placed], nodes: Iterable[Object], namespace_labels: Callable[[str], Object]
) -> Neighbourhood:
    """Return what the placed Pods mean for a Pod. `namespace_labels` tells the labels of a namespace."""
    others = list(placed)
    near, far = required_terms(pod, "podAffinity"), required_terms(pod, "podAntiAffinity")
    shunned = {
        domain
        for other in others
        for term in required_terms(other.pod, "podAntiAffinity")
        if is_meant(term, other.pod, pod, namespace_labels)
        for domain in domain_of(other.node, term)
    }
    return Neighbourhood(
        tuple(_near(term, near, pod, others, namespace_labels) for term in near),
        frozenset(domain for term in far for domain in _domains(term, pod, others, namespace_labels)),
        frozenset(shunned),
        tuple(_spread(pod, others, list(nodes))),
    )


def has_wishes(pod: Object) -> bool:
    """Tell whether other Pods matter to a Pod."""
    spec = pod.get("spec") or {}
    return bool(
        required_terms(pod, "podAffinity") or required_terms(pod, "podAntiAffinity") or _constraints(spec)
    )


def shuns(pod: Object) -> bool:
    """Tell whether a Pod keeps others away."""
    return bool(required_terms(pod, "podAntiAffinity"))


def required_terms(pod: Object, kind: str) -> list[Object]:
    """Return the terms that a Pod insists on."""
    found: list[Object] = (((pod.get("spec") or {}).get("affinity") or {}).get(kind) or {}).get(
        _REQUIRED
    ) or []
    return found


def _near(
    term: Object,
    all_terms: list[Object],
    pod: Object,
    others: list[Placed],
    namespace_labels: Callable[[str], Object],
) -> _Near:
    def meets_all(one: Object) -> bool:
        return all(is_meant(each, pod, one, namespace_labels) for each in all_terms)

    found = frozenset(
        domain for other in others if meets_all(other.pod) for domain in domain_of(other.node, term)
    )
    return _Near(term["topologyKey"], found, not found and meets_all(pod))


def _domains(
    term: Object, pod: Object, others: list[Placed], namespace_labels: Callable[[str], Object]
) -> Iterable[Domain]:
    """Return the parts of the cluster that have a Pod which a term is about."""
    for other in others:
        if is_meant(term, pod, other.pod, namespace_labels):
            yield from domain_of(other.node, term)


def domain_of(node: Object, term: Object) -> list[Domain]:
    """Return the part of the cluster that a node is in, as a term divides it; none if it is in none."""
    key = term["topologyKey"]
    labels = node["metadata"].get("labels") or {}
    return [(key, labels[key])] if key in labels else []


def is_meant(term: Object, owner: Object, other: Object, namespace_labels: Callable[[str], Object]) -> bool:
    """Tell whether a term of one Pod is about another Pod."""
    namespace = other["metadata"]["namespace"]
    named, selected = term.get("namespaces") or (), term.get("namespaceSelector")
    if not named and selected is None:
        named = (owner["metadata"]["namespace"],)
    if namespace not in named and not (
        selected is not None and LabelSelector.of(selected).matches(namespace_labels(namespace))
    ):
        return False
    return LabelSelector.of(term.get("labelSelector")).matches(other["metadata"].get("labels"))


def _constraints(spec: Object) -> list[Object]:
    listed = spec.get("topologySpreadConstraints") or ()
    return [one for one in listed if one.get("whenUnsatisfiable") == "DoNotSchedule"]


def _spread(pod: Object, others: list[Placed], nodes: list[Object]) -> Iterable[_Spread]:
    rules = _constraints(pod.get("spec") or {})
    keys = [rule["topologyKey"] for rule in rules]
    labelled = [node for node in nodes if all(key in (node["metadata"].get("labels") or {}) for key in keys)]
    for rule in rules:
        eligible = [node for node in labelled if _is_counted(rule, pod, node)]
        names = {node["metadata"]["name"] for node in eligible}
        key, selector = rule["topologyKey"], LabelSelector.of(rule.get("labelSelector"))
        counts = dict.fromkeys((node["metadata"]["labels"][key] for node in eligible), 0)
        for other in others:
            is_counted = (
                other.node["metadata"]["name"] in names
                and other.pod["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and not is_deleting(other.pod)
                and selector.matches(other.pod["metadata"].get("labels"))
            )
            if is_counted:
                counts[other.node["metadata"]["labels"][key]] += 1
        fewest = 0 if len(counts) < rule.get("minDomains", 1) else min(counts.values(), default=0)
        adds = int(selector.matches(pod["metadata"].get("labels")))
        yield _Spread(key, counts, fewest, adds, rule["maxSkew"])


def _is_counted(rule: Object, pod: Object, node: Object) -> bool:
    """Tell whether a node is one that a Pod is spread over: mostly all that it could choose, with any taints."""
    if rule.get("nodeAffinityPolicy") != "Ignore" and not affinity.is_chosen(pod.get("spec") or {}, node):
        return False
    return rule.get("nodeTaintsPolicy") != "Honor" or all(
        is_tolerated(one, tolerations(pod)) for one in taints(node, "NoSchedule", "NoExecute")
    )
