"""The columns that a definition asks for in tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubereef.kinds.columns import NAME, duration
from kubereef.kinds.custom.jsonpath import BadPath, JsonPath
from kubereef.kinds.resource import Column, Object, TableMoment
from kubewire.fielderrors import as_json, printed_float
from kubewire.times import parse_time

# What kubectl shows of kinds whose definition says nothing.
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns_of(declared: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return the columns of a version."""
    return (NAME, *(_column(column) for column in declared or (_AGE,)))


def _column(declared: Mapping[str, Any]) -> Column:
    path_text = declared["jsonPath"]
    description = declared.get("description") or (
        f"Custom resource definition column (in JSONPath format): {path_text}"
    )
    return Column(
        declared["name"],
        _cell(declared["type"], path_text),
        declared["type"],
        declared.get("format") or "",
        declared.get("priority") or 0,
        description,
    )


def _cell(type_name: str, path_text: str) -> Callable[[Object, TableMoment], object]:
    try:
        path = JsonPath(path_text)
    except BadPath:
        return lambda _obj, _moment: None  # definitions may hold paths that nobody can follow
    show = _SHOWN[type_name]
    if type_name == "date":
        return lambda obj, moment: _age(path.first(obj), moment)
    return lambda obj, _moment: show(found[0]) if (found := path.find(obj)) else None


def _age(value: object, moment: TableMoment) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return duration(moment.now - parse_time(value).timestamp())
    except ValueError:
        return "<invalid>"


def _text(value: object) -> str:
    """Return a value as Go prints it: lists and objects as JSON, everything else plain."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    return printed_float(value) if isinstance(value, float) else as_json(value)


def _integer(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


_SHOWN: dict[str, Callable[[object], object]] = {
    "boolean": _boolean,
    "date": _text,
    "integer": _integer,
    "number": _number,
    "string": _text,
}
