"""Columns of `kubectl get` that many kinds have, and how their cells are written."""

from collections.abc import Iterable, Mapping
from typing import Any

from kubereef.kinds.resource import Column, Object, TableMoment
from kubewire.selectors import LabelSelector, SelectorError
from kubewire.times import parse_time

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def age(obj: Object, moment: TableMoment) -> str:
    """Return how old an object is, as kubectl prints it."""
    return since(obj["metadata"].get("creationTimestamp"), moment)


def since(time: str | None, moment: TableMoment) -> str:
    """Return how long ago something was, as kubectl prints it."""
    return UNKNOWN if not time else duration(moment.now - parse_time(time).timestamp())


def duration(seconds: float) -> str:
    """Return a time span in at most two units: `45s`, `3m20s`, `5h`, `2d3h`, `1y40d`."""
    left = int(seconds)
    if left < -1:
        return "<invalid>"
    left = max(left, 0)
    if left < 60 * 2:
        return f"{left}s"
    minutes, hours, days = left // 60, left // 3600, left // 86400
    if minutes < 10:
        return _two(minutes, "m", left % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(whole: int, unit: str, rest: int, part: str) -> str:
    return f"{whole}{unit}{rest}{part}" if rest else f"{whole}{unit}"


def at(obj: Object, *path: str) -> Any:
    """Return the value at the end of a path, or None."""
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def text(name: str, *path: str, absent: str = "", priority: int = 0) -> Column:
    """Return a column that shows the text at the end of a path."""
    return Column(name, lambda obj, _: at(obj, *path) or absent, priority=priority)


def number(name: str, *path: str, type: str = "integer") -> Column:  # noqa: A002 - wire name
    """Return a column that shows the number at the end of a path."""
    return Column(name, lambda obj, _: at(obj, *path) or 0, type=type)


def count(name: str, *fields: str) -> Column:
    """Return a column that shows how many entries some fields have together."""
    return Column(name, lambda obj, _: sum(len(obj.get(field) or ()) for field in fields))


def joined(parts: Iterable[str], empty: str = NONE) -> str:
    return ",".join(parts) or empty


def shown_labels(labels: Mapping[str, str] | None) -> str:
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def shown_selector(selector: Mapping[str, Any] | None) -> str:
    """Return a selector of labels as kubectl prints it."""
    try:
        return str(LabelSelector.of(selector)) or NONE
    except SelectorError:
        return "<error>"


def containers_and_images(*path: str, priority: int = 1) -> tuple[Column, Column]:
    """Return the columns that show the containers of a Pod template."""

    def each(field: str, obj: Object) -> str:
        return ",".join(one.get(field) or "" for one in at(obj, *path, "spec", "containers") or ())

    return (
        Column("Containers", lambda obj, _: each("name", obj), priority=priority),
        Column("Images", lambda obj, _: each("image", obj), priority=priority),
    )


NAME = Column("Name", lambda obj, _: obj["metadata"]["name"], format="name")
AGE = Column("Age", age)
CREATED_AT = Column("Created At", lambda obj, _: obj["metadata"].get("creationTimestamp"), type="date")
SELECTOR = Column("Selector", lambda obj, _: shown_selector(at(obj, "spec", "selector")), priority=1)
