"""The scopes of a quota, which narrow down what it counts, and whether an object is within them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubereef.kinds.behaviours.pod_resources import quality_of_service
from kubereef.kinds.resource import Object

_PRIORITY_CLASS = "PriorityClass"
_VOLUME_CLASS = "VolumeAttributesClass"


class Scope(NamedTuple):
    """One condition of a quota."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


class Traits(NamedTuple):
    """What scopes ask about an object: the plain ones that hold, and the classes that it names."""

    plain: frozenset[str] = frozenset()
    classes: Mapping[str, frozenset[str]] = {}


NO_TRAITS = Traits()


def scopes_of(quota: Object) -> list[Scope]:
    """Return the conditions that an object must meet, all of them, to be counted."""
    spec = quota.get("spec") or {}
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return [
        *(Scope(name) for name in spec.get("scopes") or ()),
        *(
            Scope(one.get("scopeName", ""), one.get("operator", ""), tuple(one.get("values") or ()))
            for one in expressions
        ),
    ]


def is_within(traits: Traits, scopes: list[Scope]) -> bool:
    """Tell whether an object with these traits meets every one of the conditions."""
    return all(_meets(traits, scope) for scope in scopes)


def _meets(traits: Traits, scope: Scope) -> bool:
    if scope.name not in (_PRIORITY_CLASS, _VOLUME_CLASS):
        return scope.name in traits.plain
    named = traits.classes.get(scope.name)
    if named is None:
        return False
    if scope.operator == "Exists":
        return bool(named)
    if scope.operator == "DoesNotExist":
        return not named
    if scope.operator == "In":
        return any(name in scope.values for name in named)
    # An object that names no class is in none of those listed.
    return not named or any(name not in scope.values for name in named)


def pod_traits(pod: Object) -> Traits:
    """Return what scopes ask about a Pod."""
    spec = pod.get("spec") or {}
    is_limited = spec.get("activeDeadlineSeconds") is not None
    is_best_effort = quality_of_service(spec) == "BestEffort"
    plain = {
        "Terminating" if is_limited else "NotTerminating",
        "BestEffort" if is_best_effort else "NotBestEffort",
    }
    if _reaches_out(spec.get("affinity") or {}):
        plain.add("CrossNamespacePodAffinity")
    named = spec.get("priorityClassName")
    return Traits(frozenset(plain), {_PRIORITY_CLASS: frozenset((named,) if named else ())})


def claim_traits(claim: Object) -> Traits:
    """Return what scopes ask about a volume claim."""
    status = claim.get("status") or {}
    named = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return Traits(classes={_VOLUME_CLASS: frozenset(name for name in named if name)})


def _reaches_out(affinity: Mapping[str, Any]) -> bool:
    """Tell whether a Pod's place depends on Pods of namespaces that it names or selects."""
    for kind in ("podAffinity", "podAntiAffinity"):
        wishes = affinity.get(kind) or {}
        preferred = wishes.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms = [
            *(wishes.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
            *(one.get("podAffinityTerm") or {} for one in preferred),
        ]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
