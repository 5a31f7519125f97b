"""Priority classes: names for how important a Pod is. Their values never change, since Pods carry copies."""

from kubereef.kinds.behaviours.checks import listed
from kubereef.kinds.behaviours.podspec_validation.checks import Problems
from kubereef.kinds.columns import AGE, NAME, number, text
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors

DEFAULT_PREEMPTION = "PreemptLowerPriority"
_POLICIES = ("Never", DEFAULT_PREEMPTION)
_HIGHEST_OF_USERS = 1_000_000_000
_SYSTEM = "system-"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _defaults(priority: Object) -> None:
    if priority.get("preemptionPolicy") is None:
        priority["preemptionPolicy"] = DEFAULT_PREEMPTION


def _first_generation(priority: Object) -> None:
    # Nothing about a class counts it up.
    priority["metadata"]["generation"] = 1


def _problems(priority: Object) -> Problems:
    name, value = priority["metadata"].get("name", ""), priority.get("value", 0)
    if name.startswith(_SYSTEM):
        if because := _not_a_system_class(priority, name, value):
            detail = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. error: {because}"
            yield fielderrors.forbidden(("metadata", "name"), detail)
    elif value > _HIGHEST_OF_USERS:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_OF_USERS}"
        yield fielderrors.forbidden(("value",), detail)
    if priority["preemptionPolicy"] not in _POLICIES:
        at = ("preemptionPolicy",)
        yield fielderrors.not_supported(at, priority["preemptionPolicy"], (DEFAULT_PREEMPTION, "Never"))


def _not_a_system_class(priority: Object, name: str, value: int) -> str:
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    if priority.get("globalDefault"):
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


def _update_problems(new: Object, old: Object) -> Problems:
    if new.get("value", 0) != old.get("value", 0):
        yield fielderrors.forbidden(("value",), "may not be changed in an update.")
    if new["preemptionPolicy"] != old.get("preemptionPolicy", DEFAULT_PREEMPTION):
        detail = "field is immutable"
        yield fielderrors.invalid(("preemptionPolicy",), new["preemptionPolicy"], detail)


PRIORITY_CLASSES = Behaviour(
    defaults=_defaults,
    prepare_create=_first_generation,
    validate=listed(_problems),
    validate_update=listed(_update_problems),
    columns=(
        NAME,
        number("Value", "value"),
        Column("Global-Default", lambda obj, _: bool(obj.get("globalDefault")), type="boolean"),
        AGE,
        text("PreemptionPolicy", "preemptionPolicy"),
    ),
)
