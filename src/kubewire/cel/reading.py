"""Values of JSON as their declared types: a date-time string is a timestamp, a whole number in a double field a double.

Only scalars that JSON writes differently need this. Objects are left alone and their fields read on the way in,
so a large object costs only what an expression looks at; lists and maps of such scalars are converted whole,
because calls such as `sum()` see all of them. What is not of its declared type is passed on as it is: the
schema has refused it before, and if not, the first function that is given it does.
"""

from collections.abc import Callable
from typing import NamedTuple

from kubewire.cel.cost import Run
from kubewire.cel.errors import EvaluationError
from kubewire.cel.types import (
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    TIMESTAMP,
    UINT,
    CelType,
    ListType,
    MapType,
    is_optional,
)
from kubewire.cel.values import Duration, OptionalValue, Timestamp, UInt, Value

Convert = Callable[[Run, Value], Value]


class Reader(NamedTuple):
    """How to read a type: a value whose class is `ready` is taken as it is, any other is converted."""

    ready: type
    convert: Convert


class _Never:
    """The class of no value: everything is converted."""


def reader_of(declared: CelType) -> Reader | None:
    """Return how to read a type, or None when every value is taken as it is."""
    if declared in _SCALARS:
        return _SCALARS[declared]
    if isinstance(declared, ListType):
        element = reader_of(declared.element)
        return None if element is None or declared.element == INT else _list_reader(element)
    if isinstance(declared, MapType):
        value = reader_of(declared.value)
        return None if value is None or declared.value == INT else _map_reader(value)
    if is_optional(declared):
        content = reader_of(declared.parameters[0])
        return None if content is None else _optional_reader(content)
    return None


def _list_reader(element: Reader) -> Reader:
    def convert(run: Run, value: Value) -> Value:
        if type(value) is not list:
            return value
        run.work(len(value))
        return [element.convert(run, item) for item in value]

    return Reader(_Never, convert)


def _map_reader(content: Reader) -> Reader:
    def convert(run: Run, value: Value) -> Value:
        if type(value) is not dict:
            return value
        run.work(len(value))
        return {key: content.convert(run, item) for key, item in value.items()}

    return Reader(_Never, convert)


def _optional_reader(content: Reader) -> Reader:
    def convert(run: Run, value: Value) -> Value:
        return OptionalValue(content.convert(run, value.value)) if value.present else value

    return Reader(_Never, convert)


def _int(_: Run, value: Value) -> Value:
    return int(value) if type(value) is float and value.is_integer() else value


def _uint(_: Run, value: Value) -> Value:
    return UInt(value) if type(value) is int and value >= 0 else value


def _double(_: Run, value: Value) -> Value:
    return float(value) if type(value) is int else value


def _bytes(_: Run, value: Value) -> Value:
    if type(value) is not str:
        return value
    from base64 import b64decode  # only rules over `format: byte` need it

    try:
        return b64decode(value, validate=True)
    except ValueError as bad:
        raise EvaluationError(f"Invalid byte formatted string {value}: {bad}") from bad


def _timestamp(_: Run, value: Value) -> Value:
    from kubewire.cel.times import parse_date_or_time  # only rules over times need it

    return parse_date_or_time(value) if type(value) is str else value


def _duration(_: Run, value: Value) -> Value:
    from kubewire.cel.times import parse_lenient_duration  # only rules over durations need it

    return parse_lenient_duration(value) if type(value) is str else value


_SCALARS: dict[CelType, Reader] = {
    INT: Reader(int, _int),
    UINT: Reader(UInt, _uint),
    DOUBLE: Reader(float, _double),
    BYTES: Reader(bytes, _bytes),
    TIMESTAMP: Reader(Timestamp, _timestamp),
    DURATION: Reader(Duration, _duration),
}
