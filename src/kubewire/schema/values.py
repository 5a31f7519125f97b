"""JSON values as Kubernetes sees them: their types, equality that tells 1 from 1.0 and true, deep copies."""

from __future__ import annotations

from kubewire.gotext import INT64_MAX, INT64_MIN
from kubewire.schema.nodes import MAX_DEPTH, TooDeep

# Above this a float no longer holds every integer, so Kubernetes does not take it for one.
_MAX_EXACT_FLOAT = 2**53 - 1
_NEARLY = 1e-9


def type_of(value: object) -> tuple[str, str]:
    """Return a value's JSON type and, for numbers, its format: `("integer", "int64")`, `("string", "")`."""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int):
        # Kubernetes reads integers into 64 bits and whatever is larger into a float.
        return ("integer", "int64") if INT64_MIN <= value <= INT64_MAX else ("number", "float64")
    if isinstance(value, float):
        return "number", "float64"
    if isinstance(value, dict):
        return "object", ""
    if isinstance(value, (list, tuple)):
        return "array", ""
    return "null", ""


def is_whole(number: float) -> bool:
    """Whether a float stands for an integer: `1.0` does, `1.5` and `1e300` do not."""
    if not -_MAX_EXACT_FLOAT <= number <= _MAX_EXACT_FLOAT:
        return False
    difference = abs(number - int(number))
    return difference == 0 or difference / (abs(number) + abs(int(number))) < _NEARLY


def same(one: object, other: object, depth: int = 0) -> bool:
    """Whether two values are the same JSON; unlike `==`, 1 is neither 1.0 nor true.

    Values nested too deep to compare are not the same.
    """
    if one is other:
        return True
    if type(one) is not type(other) or depth > MAX_DEPTH:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            key in other and same(value, other[key], depth + 1) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, [depth + 1] * len(one)))
    return one == other


def frozen(value: object, depth: int = 0) -> object:
    """Return something hashable that is equal for two values exactly if they are the same JSON."""
    if depth > MAX_DEPTH:
        raise TooDeep
    if isinstance(value, dict):
        return frozenset((key, frozen(item, depth + 1)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item, depth + 1) for item in value)
    return type(value), value
