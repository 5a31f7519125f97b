"""What can be wrong with a strategic merge patch, in the API server's words."""

from decimal import Decimal
from typing import Any, Final

from kubewire.gotext import INT64_MAX, INT64_MIN
from kubewire.jsonpatch import MalformedPatch, PatchError, PatchFailed

# The names of Go's types for decoded JSON, as they stand in messages.
OBJECT: Final = "map[string]interface {}"
LIST: Final = "[]interface {}"
NULL: Final = "%!s(<nil>)"

_GO_TYPES: Final[dict[type, str]] = {
    dict: OBJECT,
    list: LIST,
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}

# Deeper parts of a value are left out of messages: nobody reads them, and a document may be very deep.
_SHOWN_DEPTH: Final = 50
_FLOAT_BITS: Final = 1023


class PatchNotApplicable(PatchError):
    """The patch does not fit the document or its type; the API server answers 500 with the bare message."""


def bad_format(directive: str) -> MalformedPatch:
    return MalformedPatch(f"invalid patch format of {directive}")


def list_of_lists() -> PatchFailed:
    return PatchFailed("lists of lists are not supported")


def wrong_type(expected: str, actual: object) -> PatchNotApplicable:
    return PatchNotApplicable(f"expected a {expected}, but received a {go_type(actual)}")


def no_merge_key(item: dict[str, Any], key: str) -> PatchNotApplicable:
    return PatchNotApplicable(f"map: {go_text(item)} does not contain declared merge key: {key}")


def unknown_directive(patch: dict[str, Any]) -> PatchNotApplicable:
    directive = patch["$patch"]
    shown = NULL if directive is None else go_text(directive, as_string=True)
    return PatchNotApplicable(f"unknown patch type: {shown} in map: {go_text(patch)}")


def mixed_elements(*lists: list[Any]) -> PatchNotApplicable:
    return PatchNotApplicable(f"list element types are not identical: {go_text(list(lists))}")


def other_order(patch: list[Any], order: list[Any]) -> PatchNotApplicable:
    return PatchNotApplicable(
        f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
    )


def go_type(value: object) -> str:
    """Return the Go type that the server decodes a JSON value to."""
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        return "float64"
    return _GO_TYPES.get(type(value), NULL)


def go_text(value: object, *, as_string: bool = False, depth: int = 0) -> str:
    """Return a JSON value as Go's `%v` prints it, or as `%s` does, which wants text and names other types."""
    if isinstance(value, dict | list) and depth == _SHOWN_DEPTH:
        return "..."
    if isinstance(value, dict):
        fields = (
            f"{key}:{go_text(value[key], as_string=as_string, depth=depth + 1)}" for key in sorted(value)
        )
        return f"map[{' '.join(fields)}]"
    if isinstance(value, list):
        items = (go_text(item, as_string=as_string, depth=depth + 1) for item in value)
        return f"[{' '.join(items)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return value
    shown = _go_scalar(value)
    return f"%!s({go_type(value)}={shown})" if as_string else shown


def _go_scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if INT64_MIN <= value <= INT64_MAX:
            return str(value)
        if value.bit_length() > _FLOAT_BITS:
            return "-Inf" if value < 0 else "+Inf"
        value = float(value)
    return _go_float(value) if isinstance(value, float) else str(value)


def _go_float(number: float) -> str:
    """Return the shortest text that reads back as the number, with an exponent below 1e-4 and from 1e6 on."""
    # Python's shortest text has the same digits; only the place of the point differs.
    digits = Decimal(repr(number)).normalize()
    if -5 < digits.adjusted() < 6:
        return f"{digits:f}"
    mantissa, _, exponent = f"{digits:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03}"
