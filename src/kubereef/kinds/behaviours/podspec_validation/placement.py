"""Where a Pod may run: nodes, other Pods nearby, taints, and how Pods spread."""

from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    in_or_exists,
    label_selector,
    label_values,
    named,
)
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import duplicate, forbidden, invalid, not_supported, required
from kubewire.paths import FieldPath, show

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WEIGHTS = range(1, 101)
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSIONS = ("Honor", "Ignore")


def affinity(at: FieldPath, given: Object) -> Problems:
    """Yield what is wrong with the nodes and Pods that a Pod wants to be near to or far from."""
    nodes = given.get("nodeAffinity")
    if nodes is not None:
        yield from _node_affinity((*at, "nodeAffinity"), nodes)
    for field in ("podAffinity", "podAntiAffinity"):
        pods = given.get(field)
        if pods is None:
            continue
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term((*at, field, _REQUIRED, index), term)
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            place = (*at, field, _PREFERRED, index)
            yield from _weight(place, weighted)
            yield from _pod_term((*place, "podAffinityTerm"), weighted.get("podAffinityTerm") or {})


def tolerations(at: FieldPath, given: list[Object]) -> Problems:
    """Yield what is wrong with the taints that a Pod tolerates."""
    for index, toleration in enumerate(given):
        yield from _toleration((*at, index), toleration)


def spread(at: FieldPath, constraints: list[Object]) -> Problems:
    """Yield what is wrong with how a Pod is to be spread with its likes."""
    last = {_spread_key(constraint): index for index, constraint in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        yield from _spread_constraint((*at, index), constraint)
        key = _spread_key(constraint)
        if last[key] > index:
            written = f"{show((*at, index))}.{{topologyKey, whenUnsatisfiable}}"
            yield duplicate((*at, index), f"{{{key[0]}, {key[1]}}}", written)


def _node_affinity(at: FieldPath, given: Object) -> Problems:
    must = given.get(_REQUIRED)
    if must is not None:
        terms = must.get("nodeSelectorTerms") or []
        place = (*at, _REQUIRED, "nodeSelectorTerms")
        if not terms:
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _node_term((*place, index), term, checks_values=True)
    for index, preferred in enumerate(given.get(_PREFERRED) or ()):
        place = (*at, _PREFERRED, index)
        yield from _weight(place, preferred)
        # A preference that no node can have does no harm.
        yield from _node_term((*place, "preference"), preferred.get("preference") or {}, checks_values=False)


def _node_term(at: FieldPath, term: Object, *, checks_values: bool) -> Problems:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        yield from _node_expression((*at, "matchExpressions", index), expression, checks_values=checks_values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field((*at, "matchFields", index), expression)


def _node_expression(at: FieldPath, expression: Object, *, checks_values: bool) -> Problems:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    yield from in_or_exists((*at, "values"), operator, values)
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required((*at, "values"), detail)
    elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield invalid((*at, "operator"), operator, "not a valid selector operator")
    yield from named((*at, "key"), expression.get("key", ""), names.label_key)
    if checks_values:
        yield from label_values((*at, "values"), values)


def _node_field(at: FieldPath, expression: Object) -> Problems:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator not in ("In", "NotIn"):
        yield invalid((*at, "operator"), operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required((*at, "values"), detail)
    key = expression.get("key", "")
    if key != "metadata.name":
        yield invalid((*at, "key"), key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from named((*at, "values", index), value, names.dns1123_subdomain)


def _weight(at: FieldPath, preferred: Object) -> Problems:
    weight = preferred.get("weight", 0)
    if weight not in _WEIGHTS:
        yield invalid((*at, "weight"), weight, "must be in the range 1-100")


def _pod_term(at: FieldPath, term: Object) -> Problems:
    selector = term.get("labelSelector")
    yield from label_selector((*at, "labelSelector"), selector)
    yield from label_selector((*at, "namespaceSelector"), term.get("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        yield from named((*at, "namespace"), namespace, names.dns1123_label)
    yield from _label_keys(
        at, term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or [], selector
    )
    key = term.get("topologyKey", "")
    if not key:
        yield required((*at, "topologyKey"), "can not be empty")
    yield from named((*at, "topologyKey"), key, names.label_key)


def _label_keys(at: FieldPath, same: list[str], other: list[str], selector: Object | None) -> Problems:
    """Yield what is wrong with labels whose value is to be that of the Pod itself, or not that."""
    for field, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            yield forbidden((*at, field), "must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                yield from named((*at, field, index), key, names.label_key)
    places = {key: index for index, key in enumerate(same)}
    seen = set((selector or {}).get("matchLabels") or ())
    for expression in (selector or {}).get("matchExpressions") or ():
        key = expression.get("key", "")
        # What follows from the keys has been added to the selector before.
        if key in places and key in seen:
            yield invalid((*at, places[key]), key, "exists in both matchLabelKeys and labelSelector")
        seen.add(key)
    differing = set(other)
    for index, key in enumerate(same):
        if key in differing:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid((*at, "matchLabelKeys", index), key, detail)


def _toleration(at: FieldPath, toleration: Object) -> Problems:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if key:
        yield from named((*at, "key"), key, names.label_key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid((*at, "operator"), operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid((*at, "effect"), effect, detail)
    if operator in ("", "Equal"):
        problems = names.label_value(value)
        if problems:
            yield invalid((*at, "operator"), value, ";".join(problems))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            yield invalid((*at, "operator"), value, detail)
    else:
        # Numbers cannot be compared yet, though the list says so.
        comparing = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        yield not_supported((*at, "operator"), operator, ("Equal", "Exists", *comparing))
    if effect and effect not in _EFFECTS:
        yield not_supported((*at, "effect"), effect, _EFFECTS)


def _spread_key(constraint: Object) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _spread_constraint(at: FieldPath, constraint: Object) -> Problems:
    skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    action, domains = constraint.get("whenUnsatisfiable", ""), constraint.get("minDomains")
    if skew <= 0:
        yield invalid((*at, "maxSkew"), skew, "must be greater than zero")
    if not key:
        yield required((*at, "topologyKey"), "can not be empty")
    if action not in _ACTIONS:
        yield not_supported((*at, "whenUnsatisfiable"), action, _ACTIONS)
    if domains is not None:
        place = (*at, "minDomains")
        if domains <= 0:
            yield invalid(place, domains, "must be greater than zero")
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield invalid(place, domains, detail)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(field) is not None and constraint[field] not in _INCLUSIONS:
            yield not_supported((*at, field), constraint[field], _INCLUSIONS)
    selector = constraint.get("labelSelector")
    yield from _label_keys(at, constraint.get("matchLabelKeys") or [], [], selector)
    yield from label_selector((*at, "labelSelector"), selector)
