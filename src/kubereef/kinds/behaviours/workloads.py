"""Deployments, ReplicaSets and Pod templates: how many Pods of which kind there should be."""

from typing import Any

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_defaults import template_defaults
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector
from kubereef.kinds.behaviours.podspec_validation.specs import template_problems
from kubereef.kinds.behaviours.podspec_validation.warnings import template_warnings
from kubereef.kinds.columns import AGE, NAME, SELECTOR, at, containers_and_images, number, shown_labels
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors
from kubewire.fielderrors import FieldError
from kubewire.paths import FieldPath
from kubewire.selectors import LabelSelector, SelectorError

_TEMPLATE = ("spec", "template")
_ROLLING = "RollingUpdate"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%',"
    " regex used for validation is '[0-9]+%')"
)
_ABOVE_REPLICAS = "cannot be greater than status.replicas"


def _deployment_defaults(deployment: Object) -> None:
    spec = deployment["spec"]
    for field, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        if spec.get(field) is None:
            spec[field] = value
    strategy = spec["strategy"]
    strategy["type"] = strategy.get("type") or _ROLLING
    if strategy["type"] == _ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        for field in ("maxUnavailable", "maxSurge"):
            if rolling.get(field) is None:
                rolling[field] = "25%"
    template_defaults(spec["template"])


def _replica_set_defaults(replica_set: Object) -> None:
    spec = replica_set["spec"]
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    template_defaults(spec["template"])


def _deployment(deployment: Object) -> Problems:
    spec = deployment["spec"]
    yield from checks.numbers_not_negative(("spec",), spec, "replicas")
    yield from _selector_and_template(spec)
    yield from _strategy(spec["strategy"])
    yield from checks.numbers_not_negative(
        ("spec",), spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"
    )
    deadline = spec["progressDeadlineSeconds"]
    if deadline <= spec.get("minReadySeconds", 0):
        at_deadline = ("spec", "progressDeadlineSeconds")
        yield fielderrors.invalid(at_deadline, deadline, "must be greater than minReadySeconds")


def _replica_set(replica_set: Object) -> Problems:
    spec = replica_set["spec"]
    yield from checks.numbers_not_negative(("spec",), spec, "replicas", "minReadySeconds")
    yield from _selector_and_template(spec)


def _selector_and_template(spec: Object) -> Problems:
    """Yield what is wrong with the Pods that are wanted, and with how they are found again."""
    selector = spec.get("selector")
    if selector is None:
        yield fielderrors.required(("spec", "selector"))
    else:
        yield from label_selector(("spec", "selector"), selector)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            # Kubernetes says so of ReplicaSets, too.
            detail = "empty selector is invalid for deployment"
            yield fielderrors.invalid(("spec", "selector"), selector, detail)
    try:
        wanted = LabelSelector.of(selector)
    except SelectorError:
        yield fielderrors.invalid(("spec", "selector"), selector, "invalid label selector")
        return
    template = spec["template"]
    labels = template["metadata"].get("labels")
    is_empty = selector is not None and not wanted.requirements
    if selector is None or not (is_empty or wanted.matches(labels)):
        at_labels = (*_TEMPLATE, "metadata", "labels")
        yield fielderrors.invalid(at_labels, labels, "`selector` does not match template `labels`")
    yield from template_problems(template, _TEMPLATE)
    pod = template["spec"]
    if pod.get("restartPolicy") != "Always":
        at_policy = (*_TEMPLATE, "spec", "restartPolicy")
        yield fielderrors.not_supported(at_policy, pod.get("restartPolicy", ""), ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield fielderrors.forbidden((*_TEMPLATE, "spec", "activeDeadlineSeconds"), detail)


def _strategy(strategy: Object) -> Problems:
    here = ("spec", "strategy")
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield fielderrors.forbidden((*here, "rollingUpdate"), detail)
    elif kind == _ROLLING:
        yield from _rolling((*here, "rollingUpdate"), rolling or {})
    else:
        parts = ("maxUnavailable", "MaxUnavailable"), ("maxSurge", "MaxSurge")
        inner = checks.go_struct(*((name, (rolling or {}).get(field)) for field, name in parts))
        shown = checks.go_struct(("Type", kind), ("RollingUpdate", None if rolling is None else inner))
        yield fielderrors.not_supported(here, shown, ("Recreate", _ROLLING))


def _rolling(here: FieldPath, rolling: Object) -> Problems:
    surge, missing = rolling.get("maxSurge", 0), rolling.get("maxUnavailable", 0)
    yield from number_or_percent((*here, "maxUnavailable"), missing)
    yield from number_or_percent((*here, "maxSurge"), surge)
    if not amount_of(surge) and not amount_of(missing):
        yield fielderrors.invalid((*here, "maxUnavailable"), missing, "may not be 0 when `maxSurge` is 0")
    if isinstance(missing, str) and (amount_of(missing) or 0) > 100:
        yield fielderrors.invalid((*here, "maxUnavailable"), missing, "must not be greater than 100%")


def number_or_percent(here: FieldPath, value: int | str) -> Problems:
    """Yield why a value is neither a number of Pods nor a percentage of them."""
    if isinstance(value, str):
        if amount_of(value) is None:
            yield fielderrors.invalid(here, value, _PERCENT)
    elif value < 0:
        yield fielderrors.invalid(here, value, "must be greater than or equal to 0")


def amount_of(value: int | str) -> int | None:
    """Return the number in front of a percent sign, or a plain number as it is."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    is_percent = digits != value and digits.isascii() and digits.isdigit() and len(digits) < 20
    return int(digits) if is_percent else None


def _selector_kept(new: Object, old: Object) -> Problems:
    before, after = at(old, "spec", "selector"), at(new, "spec", "selector")
    yield from checks.unchanged(("spec", "selector"), after, before)


def _count_annotations(new: Object, old: Object) -> None:
    """Count an update of the annotations as one of the spec, since a rollback may be asked for in them."""
    metadata, before = new["metadata"], old["metadata"]
    if (metadata.get("annotations") or {}) != (before.get("annotations") or {}):
        metadata["generation"] = before.get("generation", 0) + 1


def _deployment_status_parts(new: Object, old: Object) -> None:
    checks.beside_spec(new, old)
    if "labels" in old["metadata"]:
        new["metadata"]["labels"] = old["metadata"]["labels"]
    else:
        new["metadata"].pop("labels", None)


def _status(new: Object, numbers: tuple[str, ...], within: tuple[str, ...]) -> Problems:
    """Yield numbers of Pods that cannot be: below zero, or more than there are in all."""
    status = new.get("status") or {}
    yield from checks.numbers_not_negative(("status",), status, *numbers)
    total, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    for field in within:
        if status.get(field, 0) > total:
            yield fielderrors.invalid(("status", field), status.get(field, 0), _ABOVE_REPLICAS)
    if status.get("availableReplicas", 0) > ready:
        available = status.get("availableReplicas", 0)
        at_available = ("status", "availableReplicas")
        yield fielderrors.invalid(at_available, available, "cannot be greater than readyReplicas")


_DEPLOYMENT_NUMBERS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_REPLICA_SET_NUMBERS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    "observedGeneration",
)


def _deployment_status(new: Object, old: Object) -> list[FieldError]:
    within = ("updatedReplicas", "readyReplicas", "availableReplicas")
    found = list(_status(new, _DEPLOYMENT_NUMBERS, within))
    before, after = (at(one, "status", "collisionCount") for one in (old, new))
    if before is not None and (after is None or after < before):
        here = ("status", "collisionCount")
        found.append(fielderrors.invalid(here, after or 0, "cannot be decremented"))
    return found


def _replica_set_status(new: Object, _old: Object) -> list[FieldError]:
    within = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    return list(_status(new, _REPLICA_SET_NUMBERS, within))


def _warnings(obj: Object) -> list[str]:
    return template_warnings(obj["spec"]["template"], _TEMPLATE)


def _update_warnings(new: Object, old: Object) -> list[str]:
    before: Any = at(old, *_TEMPLATE)
    return [] if new["spec"]["template"] == before else _warnings(new)


def _ready_cell(deployment: Object) -> str:
    ready, wanted = at(deployment, "status", "readyReplicas") or 0, at(deployment, "spec", "replicas") or 0
    return f"{ready}/{wanted}"


DEPLOYMENTS = Behaviour(
    defaults=_deployment_defaults,
    prepare_update=_count_annotations,
    prepare_status=_deployment_status_parts,
    validate=checks.listed(_deployment),
    validate_update=checks.listed(_selector_kept),
    validate_status=_deployment_status,
    warnings=_warnings,
    update_warnings=_update_warnings,
    counts_generations=True,
    columns=(
        NAME,
        Column("Ready", lambda obj, _: _ready_cell(obj)),
        number("Up-to-date", "status", "updatedReplicas", type="string"),
        number("Available", "status", "availableReplicas", type="string"),
        AGE,
        *containers_and_images(*_TEMPLATE),
        SELECTOR,
    ),
)
REPLICA_SETS = Behaviour(
    defaults=_replica_set_defaults,
    prepare_status=checks.beside_spec,
    validate=checks.listed(_replica_set),
    validate_update=checks.listed(_selector_kept),
    validate_status=_replica_set_status,
    warnings=_warnings,
    update_warnings=_update_warnings,
    counts_generations=True,
    columns=(
        NAME,
        number("Desired", "spec", "replicas"),
        number("Current", "status", "replicas"),
        number("Ready", "status", "readyReplicas"),
        AGE,
        *containers_and_images(*_TEMPLATE),
        SELECTOR,
    ),
)
POD_TEMPLATES = Behaviour(
    defaults=lambda obj: template_defaults(obj["template"]),
    validate=lambda obj: template_problems(obj["template"], ("template",)),
    warnings=lambda obj: template_warnings(obj["template"], ("template",)),
    counts_generations=True,
    returns_deleted=True,
    columns=(
        NAME,
        *containers_and_images("template", priority=0),
        Column("Pod Labels", lambda obj, _: shown_labels(at(obj, "template", "metadata", "labels"))),
    ),
)
