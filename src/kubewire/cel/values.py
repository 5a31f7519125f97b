"""The values Python has no type for: unsigned integers, points in time, lengths of time, types and optionals.

Everything else is plain: bool, int, float, str, bytes, None, list and dict.
"""

from typing import Any

from kubewire.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
)

# A value of an expression whose type only its run shows.
Value = Any

ABSENT: Value = type("Absent", (), {"__repr__": lambda _: "ABSENT", "__slots__": ()})()
"""Stands for a value that is not there, where None would be the null of JSON."""

MIN_INT, MAX_INT, MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1


class UInt(int):
    """An unsigned integer, written `5u`."""

    __slots__ = ()


class Duration(int):
    """A length of time in nanoseconds."""

    __slots__ = ()


class Timestamp:
    """A point in time in nanoseconds since 1970, with the offset from UTC (in seconds) it was written in."""

    __slots__ = ("nanoseconds", "offset")

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        self.nanoseconds = nanoseconds
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __lt__(self, other: "Timestamp") -> bool:
        return self.nanoseconds < other.nanoseconds

    def __le__(self, other: "Timestamp") -> bool:
        return self.nanoseconds <= other.nanoseconds

    def __repr__(self) -> str:
        return f"Timestamp({self.nanoseconds})"


class TypeValue:
    """A type as a value, such as the result of `type(1)`; types of one name are equal."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class OptionalValue:
    """A value that may be missing: `optional.of(1)` or `optional.none()`."""

    __slots__ = ("value",)

    def __init__(self, value: Value = ABSENT) -> None:
        self.value = value

    @property
    def present(self) -> bool:
        return self.value is not ABSENT


NONE = OptionalValue()

# The Python class that holds a CEL type; a type that is not here can be held by several.
CLASSES: dict[str, type] = {
    BOOL.name: bool,
    INT.name: int,
    UINT.name: UInt,
    DOUBLE.name: float,
    STRING.name: str,
    BYTES.name: bytes,
    NULL.name: type(None),
    TIMESTAMP.name: Timestamp,
    DURATION.name: Duration,
    "list": list,
    "map": dict,
    "type": TypeValue,
    "optional_type": OptionalValue,
}

# What `type()` answers, and what identifiers such as `int` and `google.protobuf.Duration` stand for.
TYPE_NAMES: dict[type, str] = {held: name for name, held in CLASSES.items()} | {
    type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
}
TYPE_IDENTIFIERS: dict[str, CelType] = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "null_type": NULL,
    "list": CelType("list", DYN),
    "map": CelType("map", DYN, DYN),
    "type": CelType("type", DYN),
    "optional_type": CelType("optional_type", DYN),
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
    IP.name: IP,
    CIDR.name: CIDR,
}


def held_by(declared: CelType, held: type) -> None:
    """Register the class that holds a type which a library brings."""
    CLASSES[declared.name] = held
    TYPE_NAMES[held] = declared.name


def type_name(value: Value) -> str:
    """Return the name CEL has for the type of a value."""
    return TYPE_NAMES[type(value)]


def holds(value: Value, wanted: CelType) -> bool:
    """Tell whether a value is of a type, as far as its own class shows."""
    held = CLASSES.get(wanted.name)
    return held is None or type(value) is held
