"""What a schema asks of a value besides its type, compiled into one small function per kind of value.

The order of the tests and which of them are left out after a failure are those of Kubernetes' validator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubewire.fielderrors import printed_float
from kubewire.gotext import INT64_MAX, INT64_MIN, quote
from kubewire.schema.findings import dotted
from kubewire.schema.values import is_whole, same, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kubewire.paths import FieldPath
    from kubewire.schema.findings import Findings
    from kubewire.schema.nodes import Schema

    Check = Callable[[Any, FieldPath, Findings], None]

_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (INT64_MIN, INT64_MAX)}
_MAX_FLOAT32 = 3.4028235677973366e38  # what rounds to more than the largest 32-bit float

_TEXT_KEYWORDS = ("maxLength", "minLength", "pattern")
_NUMBER_KEYWORDS = ("multipleOf", "minimum", "maximum")


def checks_of(node: Schema) -> tuple[Check, ...]:
    """Return the functions that a value of this node has to pass."""
    raw = node.raw
    checks: list[Check] = []
    if any(raw.get(keyword) is not None for keyword in _TEXT_KEYWORDS):
        checks.append(_text_check(raw))
    if node.format:
        check = _format_check(node)
        if check is not None:
            checks.append(check)
    if node.type in {"integer", "number"} or any(
        raw.get(keyword) is not None for keyword in _NUMBER_KEYWORDS
    ):
        checks.append(_number_check(node))
    if raw.get("enum"):
        checks.append(_enum_check(raw["enum"]))
    return tuple(checks)


def numeric_format(node: Schema) -> str:
    """Return the format of a number if it is one that Kubernetes enforces."""
    if node.int_or_string:
        return ""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(node.type, ())
    return node.format if node.format in known else ""


def _text_check(raw: Mapping[str, Any]) -> Check:
    longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")

    def check(value: object, path: FieldPath, findings: Findings) -> None:
        if not isinstance(value, str):
            return
        if longest is not None and len(value) > longest:
            findings.too_long(path, longest)
        elif shortest is not None and len(value) < shortest:
            findings.invalid(path, value, f"should be at least {shortest} chars long")
        elif pattern:
            _check_pattern(pattern, value, path, findings)

    return check


def _check_pattern(pattern: str, value: str, path: FieldPath, findings: Findings) -> None:
    from kubewire.schema.patterns import TooMuchEffort, matches, pattern_problem  # few objects meet a pattern

    if problem := pattern_problem(pattern):
        findings.invalid(path, value, f"should match '{pattern}, but pattern is invalid: {problem}'")
        return
    try:
        if not matches(pattern, value):
            findings.invalid(path, value, f"should match '{pattern}'")
    except TooMuchEffort:
        findings.invalid(path, value, f"is too long to be matched with '{pattern}'")


def _format_check(node: Schema) -> Check | None:
    if "string" not in node.types or node.int_or_string:
        return None
    from kubewire.formats import format_test  # few schemas have formats

    name = node.format
    test = format_test(name)
    if test is None:
        return None  # Kubernetes ignores formats it does not know

    def check(value: object, path: FieldPath, findings: Findings) -> None:
        if isinstance(value, str) and not test(value):
            findings.wrong_type(path, name, value)

    return check


def _enum_check(values: Sequence[object]) -> Check:
    def check(value: object, path: FieldPath, findings: Findings) -> None:
        if not any(_is_member(value, one) for one in values):
            findings.not_supported(path, value, values)

    return check


def _is_member(value: object, one: object) -> bool:
    if one is None:
        return False  # null is let in by nullable, never by a list of values
    if type(value) in (int, float) and type(one) in (int, float):
        return value == one
    return same(value, one)


def _number_check(node: Schema) -> Check:
    raw, type_name, format_name = node.raw, node.type, numeric_format(node)
    multiple = raw.get("multipleOf")
    least, most = raw.get("minimum"), raw.get("maximum")
    above_least = "greater than" if raw.get("exclusiveMinimum") else "greater than or equal to"
    below_most = "less than" if raw.get("exclusiveMaximum") else "less than or equal to"

    def check(value: Any, path: FieldPath, findings: Findings) -> None:
        if type(value) not in (int, float):
            return
        if not _in_range(value, type_name, format_name):
            with_format = f"with format {format_name}" if format_name else "(default format)"
            whole = f"Checked value must be of type {type_name} {with_format} in {dotted(path)}"
            findings.general(path, whole)
        if multiple is not None and not _is_multiple(value, multiple):
            findings.invalid(path, value, f"should be a multiple of {_bound(multiple, value)}")
        if least is not None and (value <= least if raw.get("exclusiveMinimum") else value < least):
            findings.invalid(path, value, f"should be {above_least} {_bound(least, value)}")
        if most is not None and (value >= most if raw.get("exclusiveMaximum") else value > most):
            findings.invalid(path, value, f"should be {below_most} {_bound(most, value)}")

    return check


def _in_range(value: float, type_name: str, format_name: str) -> bool:
    if type_name == "integer":
        if type(value) is float and not is_whole(value):
            return False
        smallest, largest = _RANGES.get(format_name, _RANGES["int64"])
        return smallest <= value <= largest
    return format_name != "float" or abs(value) < _MAX_FLOAT32


def _is_multiple(value: float, factor: float) -> bool:
    if factor <= 0:
        return False
    if type(value) is int and factor == int(factor):
        return value % int(factor) == 0
    return is_whole(value / factor if factor >= 1 else 1 / factor * value)


def _bound(bound: float, value: float) -> str:
    """Return a bound as the server prints it, which compares integers as integers and floats as floats."""
    if type_of(value)[0] == "integer" and bound == int(bound):
        return str(int(bound))
    return printed_float(float(bound))


def type_problem(node: Schema, value: object) -> tuple[str, str] | None:
    """Return which type was wanted and which was found, or None if the value's type is right."""
    types = node.types
    if not types:
        return None
    if value is None:
        return None if node.nullable else (",".join(types), "null")
    found, found_format = type_of(value)
    if found in types:
        return None
    if found == "integer" and "number" in types:
        return None
    if found == "number" and "integer" in types and is_whole(value):  # type: ignore[arg-type] # a number is a float
        return None
    wanted_format = enforced_format(node)
    # With a format in the schema the server speaks of formats instead of types, except to texts.
    if wanted_format and found != "string":
        return wanted_format, found_format
    return ",".join(types), found


def enforced_format(node: Schema) -> str:
    """Return the node's format if Kubernetes knows it for the node's type, else an empty text."""
    if not node.format or node.int_or_string:
        return ""
    if node.type == "string":
        from kubewire.formats import format_test  # only wrong objects come here

        return node.format if format_test(node.format) is not None else ""
    return numeric_format(node)


def quoted_path(path: FieldPath) -> str:
    """Return the path in quotes, as messages about combined schemas have it."""
    return quote(dotted(path))
