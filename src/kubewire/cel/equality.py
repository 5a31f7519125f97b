"""When two values are equal. Numbers compare across kinds, `true` is not 1, and Kubernetes' list types count.

Lists of type `set` and `map` are equal whatever the order of their elements, and joining such lists merges them.
"""

from collections.abc import Callable

from kubewire.cel.cost import Run
from kubewire.cel.errors import EvaluationError
from kubewire.cel.operators import append_lists
from kubewire.cel.reading import Reader, reader_of
from kubewire.cel.types import (
    BOOL,
    BYTES,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    ListType,
    MapType,
    ObjectType,
)
from kubewire.cel.values import ABSENT, OptionalValue, UInt, Value

Equality = Callable[[Run, Value, Value], bool]

_NUMBERS = (int, UInt, float)
_MAX_DEPTH = 100

# Two values of such a type are equal when Python says so; of these, so are whole lists as JSON has them.
_PLAIN = frozenset({BOOL, BYTES, DURATION, INT, STRING, TIMESTAMP, UINT})
_PLAIN_IN_JSON = frozenset({BOOL, INT, STRING})


def equal(run: Run, left: Value, right: Value, depth: int = 0) -> bool:
    """Tell whether two values are equal, judging by the values alone."""
    held = type(left)
    if held is not type(right):
        return held in _NUMBERS and type(right) in _NUMBERS and left == right
    if held is list:
        _descend(run, left, depth)
        return len(left) == len(right) and all(
            equal(run, *pair, depth + 1) for pair in zip(left, right, strict=True)
        )
    if held is dict:
        _descend(run, left, depth)
        return len(left) == len(right) and all(
            (other := right.get(key, ABSENT)) is not ABSENT and equal(run, value, other, depth + 1)
            for key, value in left.items()
        )
    if held is OptionalValue:
        return equal(run, left.value, right.value, depth + 1)
    return bool(left == right)


def _descend(run: Run, container: Value, depth: int) -> None:
    run.work(len(container))
    if depth > _MAX_DEPTH:
        raise EvaluationError("values are nested too deeply to be compared")


def equality_of(declared: CelType) -> Equality:
    """Return how values of a type compare, when both have it."""
    if declared in _PLAIN:
        return _plainly
    if isinstance(declared, ListType | MapType | ObjectType):
        return _Typed(declared).equal
    return equal


def _plainly(_: Run, left: Value, right: Value) -> bool:
    return bool(left == right)


class _Typed:
    """Equality of containers whose contents have declared types, worked out when first needed."""

    __slots__ = ("_contents", "declared")

    def __init__(self, declared: CelType) -> None:
        self.declared = declared
        self._contents: dict[str, tuple[Reader | None, Equality]] = {}

    def equal(self, run: Run, left: Value, right: Value) -> bool:
        declared = self.declared
        if isinstance(declared, ListType):
            if type(left) is not list or type(right) is not list:
                return left is right
            _descend(run, left, 0)
            if len(left) != len(right):
                return False
            if declared.kind != "atomic":
                return self._unordered(run, declared, left, right)
            if declared.element in _PLAIN_IN_JSON:
                return bool(left == right)
            return all(self._same(run, "", *pair) for pair in zip(left, right, strict=True))
        if type(left) is not dict or type(right) is not dict:
            return left is right
        _descend(run, left, 0)
        if len(left) != len(right):
            return False
        return all(
            (other := right.get(key, ABSENT)) is not ABSENT and self._same(run, key, value, other)
            for key, value in left.items()
        )

    def _same(self, run: Run, key: str, left: Value, right: Value) -> bool:
        reader, equality = self._content(key)
        if reader is not None:
            left, right = reader.convert(run, left), reader.convert(run, right)
        return equality(run, left, right)

    def _content(self, key: str) -> tuple[Reader | None, Equality]:
        declared = self.declared
        if not isinstance(declared, ObjectType):
            key = ""  # all elements of a list and all values of a map have one type
        found = self._contents.get(key)
        if found is None:
            of_field = declared.field(key) or DYN if isinstance(declared, ObjectType) else None
            inner = of_field or declared.parameters[-1]
            # Containers take what they are given; only scalars may be written in several ways.
            scalar = not isinstance(inner, ListType | MapType | ObjectType)
            found = self._contents[key] = (reader_of(inner) if scalar else None, equality_of(inner))
        return found

    def _unordered(self, run: Run, declared: ListType, left: list[Value], right: list[Value]) -> bool:
        if declared.kind == "set":
            known = {identity(declared, item) for item in left}
            return all(identity(declared, item) in known for item in right)
        by_key = {identity(declared, item): item for item in left}
        return all(
            (own := by_key.get(identity(declared, item), ABSENT)) is not ABSENT
            and self._same(run, "", own, item)
            for item in right
        )


def identity(declared: ListType, item: Value) -> object:
    """Return what makes an element of a set or of a list of type map the same as another."""
    if declared.kind == "map":
        return tuple(_hashable(item.get(key)) for key in declared.keys) if isinstance(item, dict) else None
    return _hashable(item)


def _hashable(value: Value) -> object:
    if isinstance(value, list):
        return ("list", *map(_hashable, value))
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return (type(value) is bool, value)


def concatenation_of(declared: CelType) -> Callable[[Run, list[Value], list[Value]], list[Value]]:
    """Return what `+` does for a list type: append, or for sets and maps merge."""
    if isinstance(declared, ListType) and declared.kind != "atomic":
        return lambda run, left, right: _merged(run, declared, left, right)
    return append_lists


def _merged(run: Run, declared: ListType, left: list[Value], right: list[Value]) -> list[Value]:
    run.work(len(left) + len(right))
    merged = {identity(declared, item): item for item in left}
    for item in right:
        key = identity(declared, item)
        if declared.kind == "map" or key not in merged:
            merged[key] = item
    return list(merged.values())
