"""What a scalar means: the choices of kubectl's YAML library, observed on kubectl itself."""

import re

import yaml

from kubewire.yamltext.events import error_at

_TAG = "tag:yaml.org,2002:"
_RESOLVED_TAGS: dict[str, tuple[type, ...]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}

_INTEGER = re.compile(r"[-+]?(?:0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[1-9][0-9_]*|0)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
}
_INFINITE = frozenset(
    (".nan", ".NaN", ".NAN", *(s + i for s in ("", "+", "-") for i in (".inf", ".Inf", ".INF")))
)
_NUMBER_STARTS = frozenset("0123456789+-.")

# Above this a float is written with an exponent, so kubectl passes it on as a float.
_WHOLE_BELOW = 1e21


def scalar_value(event: yaml.ScalarEvent) -> object:
    """Return the value of a scalar: plain text is resolved, quoted text and unknown tags are strings."""
    text: str = event.value
    tag: str | None = event.tag
    if tag is None:
        return _plain(text, event) if event.implicit[0] else text
    if tag in _RESOLVED_TAGS:
        value = _plain(text, event)
        if not isinstance(value, _RESOLVED_TAGS[tag]):
            raise error_at(event, f"{text!r} is no !!{tag.removeprefix(_TAG)}")
        return value
    if tag == f"{_TAG}binary":
        return _binary(text, event)
    return text


def key_text(event: yaml.Event, value: object) -> str:
    """Return a key as the string it becomes in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise error_at(event, "a key must be text, a number or a boolean")


def _plain(text: str, event: yaml.ScalarEvent) -> object:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INTEGER.match(text):
        return _integer(text.replace("_", "").lower())
    if text in _INFINITE:
        raise error_at(event, f"{text} cannot be written in JSON; use a finite number")
    if _FLOAT.match(text):
        return _float(text.replace("_", ""))
    return text


def _integer(digits: str) -> int | float | str:
    bare = digits.lstrip("+-")
    try:
        if bare[:2] in ("0b", "0x", "0o"):
            number = int(bare, 0)
        elif bare[0] == "0":
            number = int(bare, 8)
        elif len(bare) > 25:
            return _float(digits)
        else:
            number = int(bare)
    except ValueError:
        return digits  # `0x` alone: a word that only looks like a number
    if digits[0] == "-":
        number = -number
    if -(2**63) <= number < 2**64:
        return number
    try:
        return float(number)
    except OverflowError:
        return digits  # no number that JSON could carry


def _float(digits: str) -> int | float | str:
    number = float(digits)
    if abs(number) < _WHOLE_BELOW:
        return int(number) if number.is_integer() else number
    return number if abs(number) != float("inf") else digits


def _binary(text: str, event: yaml.ScalarEvent) -> str:
    import base64  # hardly any manifest has one

    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError:
        raise error_at(event, "!!binary wants base64 of UTF-8 text") from None
