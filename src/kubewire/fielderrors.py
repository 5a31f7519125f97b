"""One wrong field: what a validation says of it, in the words of Kubernetes' Status causes.

The functions below are the kinds of wrongness Kubernetes knows, each with its reason and the opening of its
message, so that no validation spells these itself: `invalid(("spec", "size"), 0, "must be positive")` says
`spec.size: Invalid value: 0: must be positive`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubewire.gotext import quote
from kubewire.paths import FieldPath, show

if TYPE_CHECKING:
    from collections.abc import Iterable

# Stands for a value that the message leaves out, as Kubernetes does for objects and lists that break a rule.
OMITTED = object()


class Verbatim(str):
    """A value that messages show as it is, without quotes: a text that already is what is to be printed."""

    __slots__ = ()


class FieldError(NamedTuple):
    """A field that a validation refuses.

    `reason` is the cause's reason (`FieldValueRequired`, `FieldValueInvalid`, `FieldValueTypeInvalid`,
    `FieldValueNotSupported`, `FieldValueDuplicate`, `FieldValueTooLong`, `FieldValueTooMany`, …) and
    `message` its message, such as `Required value` or `Invalid value: "x": must be of type integer`.
    `path` leads to the value; `written` is set where Kubernetes spells that path in another way than `show`.
    What is `tolerated` was wrong before already, so it is only warned about.
    """

    reason: str
    path: FieldPath
    message: str
    written: str = ""
    tolerated: bool = False

    @property
    def field(self) -> str:
        return self.written or show(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def invalid(path: FieldPath, value: object, detail: str, written: str = "") -> FieldError:
    """A value of the right type that may not be."""
    return FieldError("FieldValueInvalid", path, _about("Invalid value", value, detail), written)


def type_invalid(path: FieldPath, value: object, detail: str, written: str = "") -> FieldError:
    """A value of the wrong type."""
    return FieldError("FieldValueTypeInvalid", path, _about("Invalid value", value, detail), written)


def required(path: FieldPath, detail: str = "", written: str = "") -> FieldError:
    """A value that is missing."""
    return FieldError("FieldValueRequired", path, _with_detail("Required value", detail), written)


def forbidden(path: FieldPath, detail: str, written: str = "") -> FieldError:
    """A value that may not be given at all."""
    return FieldError("FieldValueForbidden", path, _with_detail("Forbidden", detail), written)


def duplicate(path: FieldPath, value: object, written: str = "") -> FieldError:
    """A value that stands a second time where each may stand once."""
    return FieldError("FieldValueDuplicate", path, _about("Duplicate value", value, ""), written)


def not_found(path: FieldPath, value: object, detail: str = "", written: str = "") -> FieldError:
    """A value that names something which is not there."""
    return FieldError("FieldValueNotFound", path, _about("Not found", value, detail), written)


def not_supported(
    path: FieldPath, value: object, supported: Iterable[object], written: str = ""
) -> FieldError:
    """A value outside of a list of possible ones."""
    listed = ", ".join(quote(one if isinstance(one, str) else as_json(one)) for one in supported)
    detail = f"supported values: {listed}" if listed else ""
    return FieldError("FieldValueNotSupported", path, _about("Unsupported value", value, detail), written)


def too_long(path: FieldPath, maximum: int, written: str = "") -> FieldError:
    """A text above its longest length."""
    return FieldError("FieldValueTooLong", path, f"Too long: may not be more than {maximum} bytes", written)


def too_many(path: FieldPath, actual: int, maximum: int, written: str = "") -> FieldError:
    """A list or map with more entries than allowed."""
    message = f"Too many: {actual}: must have at most {maximum} {'item' if maximum == 1 else 'items'}"
    return FieldError("FieldValueTooMany", path, message, written)


def _about(opening: str, value: object, detail: str) -> str:
    if value is not OMITTED:
        opening = f"{opening}: {printed(value)}"
    return _with_detail(opening, detail)


def _with_detail(opening: str, detail: str) -> str:
    return f"{opening}: {detail}" if detail else opening


def printed(value: object) -> str:
    """Return the value as Kubernetes prints it in a message: quoted text, plain numbers, JSON for the rest."""
    if isinstance(value, str):
        return value if isinstance(value, Verbatim) else quote(value)
    if isinstance(value, float):
        return printed_float(value)
    return as_json(value)


def printed_float(value: float) -> str:
    """Return the number as Go's %v prints it: `0.5`, `100000`, `1e+06`, `+Inf`."""
    return _float_text(value, smallest=-4, above=6)


def as_json(value: object, depth: int = 0) -> str:
    """Return the value as Go writes JSON: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    if depth > _MAX_JSON_DEPTH:
        return '"…"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float_text(value, smallest=-6, above=21)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(as_json(item, depth + 1) for item in value) + "]"
    if isinstance(value, dict):
        pairs = sorted((str(key), item) for key, item in value.items())
        return "{" + ",".join(f"{_json_text(key)}:{as_json(item, depth + 1)}" for key, item in pairs) + "}"
    return _json_text(str(value))


# What is nested deeper than this is cut short: messages are for people.
_MAX_JSON_DEPTH = 64


def _json_text(text: str) -> str:
    if text.isprintable() and not any(character in text for character in '"\\<>&'):
        return f'"{text}"'
    return '"' + "".join(_json_escaped(character) for character in text) + '"'


def _json_escaped(character: str) -> str:
    if character in _JSON_ESCAPES:
        return _JSON_ESCAPES[character]
    if character < " " or character in "<>&\u2028\u2029":
        return f"\\u{ord(character):04x}"
    return character


_JSON_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def _float_text(value: float, smallest: int, above: int) -> str:
    """Return the shortest text of a number, with an exponent below `smallest` and from `above` on."""
    text = repr(value)
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    significant = (whole + fraction).lstrip("0")
    point = len(significant) - len(fraction) + int(power or 0)
    digits = significant.rstrip("0")
    if not digits:
        return f"{sign}0"
    exponent = point - 1
    if not smallest <= exponent < above:
        mantissa = f"{digits[0]}.{digits[1:]}" if digits[1:] else digits
        return f"{sign}{mantissa}e{exponent:+03d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return f"{sign}{digits.ljust(point, '0')}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


_NOT_FINITE = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}
