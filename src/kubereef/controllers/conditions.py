"""Conditions in a status: a list with one entry per type."""

from datetime import datetime

from kubereef.kinds.resource import Object
from kubewire.times import format_time


def condition(conditions: list[Object], kind: str) -> Object | None:
    """Return the condition of a type."""
    return next((one for one in conditions if one.get("type") == kind), None)


def is_true(conditions: list[Object], kind: str) -> bool:
    """Tell whether there is a condition of a type and it holds."""
    found = condition(conditions, kind)
    return found is not None and found.get("status") == "True"


def with_condition(
    conditions: list[Object], now: datetime, kind: str, status: str, reason: str, message: str
) -> list[Object]:
    """Return the conditions with this one in its place; the very same list if it says nothing new.

    The time of transition is that of the last change of `status`.
    """
    old = condition(conditions, kind)
    new = {"type": kind, "status": status, "reason": reason, "message": message}
    if old is not None and all(old.get(field) == value for field, value in new.items()):
        return conditions
    new["lastTransitionTime"] = (
        old["lastTransitionTime"]
        if old is not None and old.get("status") == status and "lastTransitionTime" in old
        else format_time(now)
    )
    if old is None:
        return [*conditions, new]
    return [new if one is old else one for one in conditions]
