"""Pod disruption budgets: how many of some Pods must stay, whoever has to make room on a node."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector
from kubereef.kinds.behaviours.workloads import amount_of, number_or_percent
from kubereef.kinds.columns import AGE, NAME, at
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_NUMBERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _budget(budget: Object) -> Problems:
    spec = budget.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = checks.go_struct(
            ("MinAvailable", least),
            ("Selector", spec.get("selector")),
            ("MaxUnavailable", most),
            ("UnhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy")),
        )
        yield fielderrors.invalid(("spec",), shown, "minAvailable and maxUnavailable cannot be both set")
    for field, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            yield from number_or_percent(("spec", field), value)
            if isinstance(value, str) and (amount_of(value) or 0) > 100:
                yield fielderrors.invalid(("spec", field), value, "must not be greater than 100%")
    if spec.get("selector") is not None:
        yield from label_selector(("spec", "selector"), spec["selector"])
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        yield fielderrors.not_supported(("spec", "unhealthyPodEvictionPolicy"), policy, _POLICIES)


def _status(new: Object, _old: Object) -> Problems:
    yield from checks.numbers_not_negative(("status",), new.get("status") or {}, *_NUMBERS)


def _shown(budget: Object, field: str) -> str:
    value = at(budget, "spec", field)
    return "N/A" if value is None else str(value)


POD_DISRUPTION_BUDGETS = Behaviour(
    prepare_status=checks.beside_spec,
    validate=checks.listed(_budget),
    validate_status=checks.listed(_status),
    check_name=checks.path_segment_name,
    counts_generations=True,
    needs_version=True,
    columns=(
        NAME,
        Column("Min Available", lambda obj, _: _shown(obj, "minAvailable")),
        Column("Max Unavailable", lambda obj, _: _shown(obj, "maxUnavailable")),
        Column(
            "Allowed Disruptions",
            lambda obj, _: at(obj, "status", "disruptionsAllowed") or 0,
            type="integer",
        ),
        AGE,
    ),
)
