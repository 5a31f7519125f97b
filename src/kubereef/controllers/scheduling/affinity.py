"""Which nodes a Pod or a volume wants, by labels and names."""

from collections.abc import Mapping

from kubereef.kinds.resource import Object
from kubewire.selectors import LabelSelector, Requirement

_OPERATORS = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}


def is_chosen(spec: Object, node: Object) -> bool:
    """Tell whether a node has the labels that a Pod asks for, and meets the affinity that it requires."""
    selector = spec.get("nodeSelector")
    if selector and not LabelSelector.exactly(selector).matches(_labels(node)):
        return False
    required = _affinity(spec).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or matches_any(required, node)


def preference(spec: Object, node: Object) -> int:
    """Return how much a Pod would like a node: the weights of the preferences that the node meets."""
    preferred = _affinity(spec).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(one["weight"] for one in preferred if _is_met(one.get("preference") or {}, node))


def matches_any(selector: Object, node: Object) -> bool:
    """Tell whether a node meets one of the terms of a node selector."""
    return any(_is_met(term, node) for term in selector.get("nodeSelectorTerms") or ())


def _affinity(spec: Object) -> Object:
    found: Object = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return found


def _is_met(term: Object, node: Object) -> bool:
    """Tell whether a node meets all of a term; an empty one is met by none."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(one, _labels(node)) for one in expressions) and all(_holds(one, name) for one in fields)


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(expression.get("operator", ""))
    if operator is None:
        return False
    values = tuple(expression.get("values") or ())
    if operator in ("gt", "lt") and len(values) != 1:
        return False
    return Requirement(expression.get("key", ""), operator, values).matches(labels)


def _labels(node: Object) -> dict[str, str]:
    labels: dict[str, str] = node["metadata"].get("labels") or {}
    return labels
