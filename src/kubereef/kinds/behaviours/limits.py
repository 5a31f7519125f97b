"""Limit ranges and resource quotas: how much one Pod, and how much a whole namespace may have."""

from itertools import islice

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.pod_resources import may_overcommit
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named
from kubereef.kinds.behaviours.podspec_validation.resources import container_resource_name
from kubereef.kinds.columns import AGE, CREATED_AT, NAME, at
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors, names
from kubewire.paths import FieldPath, Key
from kubewire.quantity import ZERO, Quantity

_CONTAINER = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED = frozenset(
    (
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_QUOTA = frozenset(
    (
        *_CONTAINER,
        *_COUNTED,
        "requests.storage",
        *(
            f"{side}.{name}"
            for side in ("requests", "limits")
            for name in ("cpu", "memory", "ephemeral-storage")
        ),
    )
)
_STANDARD = _QUOTA | {"storage"}
_STANDARD_PREFIXES = ("hugepages-", "requests.hugepages-", "count/", "requests.storage")
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
# These pairs say that something is and is not.
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_OF_PODS = frozenset(
    (
        "pods",
        "cpu",
        "memory",
        *(f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory")),
    )
)
_PLAIN_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating,"
    " ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or"
    " ResourceQuotaScopeCrossNamespacePodAffinity"
)
_MOST_SCOPES = 16
_MOST_COMPLAINTS = 64
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _resource_name(at_name: FieldPath, name: str) -> Problems:
    """Yield why a text cannot name a resource."""
    complaints = list(named(at_name, name, names.qualified_name))
    yield from complaints
    if complaints:
        return
    if "/" not in name and name not in _STANDARD and not name.startswith(_STANDARD_PREFIXES):
        detail = "must be a standard resource type or fully qualified"
        yield fielderrors.invalid(at_name, name, detail)


# --- quotas


def _quota(quota: Object) -> Problems:
    spec = quota["spec"]
    yield from _amounts(("spec", "hard"), spec.get("hard"))
    yield from _scopes(spec)


def _quota_status(new: Object, _old: Object) -> Problems:
    for field in ("hard", "used"):
        yield from _amounts(("status", field), at(new, "status", field))


def _amounts(here: FieldPath, amounts: dict[str, str] | None) -> Problems:
    for name, amount in (amounts or {}).items():
        place = (*here, Key(name))
        yield from _resource_name(place, name)
        if "/" not in name and name not in _QUOTA and not name.startswith(_STANDARD_PREFIXES):
            yield fielderrors.invalid(place, name, "must be a standard resource for quota")
        quantity = Quantity.parse(amount)
        if quantity < ZERO:
            yield fielderrors.invalid(place, amount, "must be greater than or equal to 0")
        if (name in _COUNTED or name.startswith("count/")) and quantity.nano % 10**9:
            yield fielderrors.invalid(place, amount, "must be an integer")


def _scopes(spec: Object) -> Problems:
    here, scopes = ("spec", "scopes"), spec.get("scopes") or []
    # Every message shows the whole list, so a long list of nonsense is not complained about entry by entry.
    for scope in scopes[:_MOST_SCOPES]:
        if scope not in _SCOPES:
            yield fielderrors.invalid(here, scopes, "unsupported scope")
            continue
        for name in islice(spec.get("hard") or (), _MOST_COMPLAINTS):
            if name in _QUOTA and not _may_scope(scope, name):
                yield fielderrors.invalid(here, scopes, "unsupported scope applied to resource")
    for one, other in _OPPOSITES:
        if one in scopes and other in scopes:
            yield fielderrors.invalid(here, scopes, "conflicting scopes")
    expressions = at(spec, "scopeSelector", "matchExpressions") or ()
    for expression in expressions:
        # The path does not say which one.
        yield from _scope_expression(("spec", "scopeSelector", "matchExpressions"), expression)


def _may_scope(scope: str, resource: str) -> bool:
    """Tell whether a scope can narrow down what is counted of a resource."""
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return resource in _OF_PODS


def _scope_expression(here: FieldPath, expression: Object) -> Problems:
    scope, operator, values = (expression.get(field) for field in ("scopeName", "operator", "values"))
    if scope not in _SCOPES:
        yield fielderrors.invalid((*here, "scopeName"), scope, "unsupported scope")
    if scope in _PLAIN_SCOPES and operator != "Exists":
        yield fielderrors.invalid((*here, "operator"), operator, _ONLY_EXISTS)
    elif operator in ("In", "NotIn") and not values:
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        yield fielderrors.required((*here, "values"), detail)
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        yield fielderrors.invalid((*here, "values"), values, detail)
    elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield fielderrors.invalid((*here, "operator"), operator, "not a valid selector operator")


def _quota_update(new: Object, old: Object) -> Problems:
    before, after = old["spec"].get("scopes") or [], new["spec"].get("scopes") or []
    yield from checks.unchanged(("spec", "scopes"), sorted(after), sorted(before))


# --- limit ranges


def _limit_defaults(limit_range: Object) -> None:
    """Fill in what a container gets and asks for from what it may have at most and must have at least."""
    for limit in limit_range["spec"].get("limits") or ():
        if limit.get("type") != "Container":
            continue
        default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
        if default:
            limit["default"] = default
        if request:
            limit["defaultRequest"] = request


def _limit_range(limit_range: Object) -> Problems:
    seen = set()
    for index, limit in enumerate(limit_range["spec"].get("limits") or ()):
        here = ("spec", "limits", index)
        kind = limit.get("type") or ""
        complaints = list(named((*here, "type"), kind, names.qualified_name))
        yield from complaints
        if not complaints and "/" not in kind and kind not in _LIMIT_TYPES:
            detail = "must be a standard limit type or fully qualified"
            yield fielderrors.invalid((*here, "type"), kind, detail)
        if kind in seen:
            yield fielderrors.duplicate((*here, "type"), kind)
        seen.add(kind)
        if kind == "Pod":
            for field in ("default", "defaultRequest"):
                if limit.get(field):
                    detail = "may not be specified when `type` is 'Pod'"
                    yield fielderrors.forbidden((*here, field), detail)
        yield from _limit(here, limit, kind)


def _limit(here: FieldPath, limit: Object, kind: str) -> Problems:
    for field in _LIMIT_FIELDS:
        for name in limit.get(field) or {}:
            check = container_resource_name if kind in ("Container", "Pod") else _resource_name
            yield from check((*here, field, Key(name)), name)
    if kind == "PersistentVolumeClaim" and not (
        "storage" in (limit.get("max") or {}) or "storage" in (limit.get("min") or {})
    ):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield fielderrors.required((*here, "limits"), detail)
    for name in sorted({name for field in _LIMIT_FIELDS for name in limit.get(field) or {}}):
        given = {
            field: Quantity.parse(limit[field][name])
            for field in _LIMIT_FIELDS
            if name in (limit.get(field) or {})
        }
        yield from _bounds(here, name, given)


# Each pair must be in this order. The third is the field that is blamed, the fourth the one whose value is shown.
_ORDERED = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)
_WORDS = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}


def _bounds(here: FieldPath, name: str, given: dict[str, Quantity]) -> Problems:
    for low, high, blamed, shown in _ORDERED:
        if low in given and high in given and given[low] > given[high]:
            above = "default limit" if (low, high) == ("defaultRequest", "default") else _WORDS[high]
            detail = f"{_WORDS[low]} value {given[low]} is greater than {above} value {given[high]}"
            yield fielderrors.invalid((*here, blamed, Key(name)), str(given[shown]), detail)
    default, request = given.get("default", ZERO), given.get("defaultRequest", ZERO)
    if not may_overcommit(name) and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield fielderrors.invalid((*here, "defaultRequest", Key(name)), str(request), detail)
    if "maxLimitRequestRatio" in given:
        yield from _ratio((*here, "maxLimitRequestRatio", Key(name)), given)


def _ratio(here: FieldPath, given: dict[str, Quantity]) -> Problems:
    ratio = given["maxLimitRequestRatio"]
    if ratio < Quantity.parse("1"):
        yield fielderrors.invalid(here, str(ratio), f"ratio {ratio} is less than 1")
    if "max" in given and given.get("min", ZERO) > ZERO:
        most = given["max"].nano / given["min"].nano
        if float(ratio) > most:
            yield fielderrors.invalid(here, str(ratio), f"ratio {ratio} is greater than max/min = {most:f}")


# --- columns


def _usage(quota: Object, *, of_limits: bool) -> str:
    """Return what is used of what a quota allows, for the limits or for the rest."""
    hard, used = at(quota, "status", "hard") or {}, at(quota, "status", "used") or {}
    chosen = [name for name in sorted(hard) if name.startswith("limits.") == of_limits]
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in chosen)


RESOURCE_QUOTAS = Behaviour(
    prepare_status=checks.beside_spec,
    validate=checks.listed(_quota),
    validate_update=checks.listed(_quota_update),
    validate_status=checks.listed(_quota_status),
    returns_deleted=True,
    columns=(
        NAME,
        Column("Request", lambda obj, _: _usage(obj, of_limits=False)),
        Column("Limit", lambda obj, _: _usage(obj, of_limits=True)),
        AGE,
    ),
)
LIMIT_RANGES = Behaviour(
    defaults=_limit_defaults,
    validate=checks.listed(_limit_range),
    put_creates=True,
    columns=(NAME, CREATED_AT),
)
