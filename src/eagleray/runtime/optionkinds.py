"""The kinds of values that options have: as a flag writes them and as the configuration file does."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Final, NamedTuple

from kubewire.fielderrors import printed
from kubewire.gotypes import DecodeError, read
from kubewire.times import SECOND, DurationError, parse_go_duration

_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INT64: Final = 2**63
_LONGEST_SHOWN: Final = 64


class OptionError(ValueError):
    """An option that cannot be: one sentence that names it and the way out. The process ends with `exit_code`."""

    exit_code = 1


class Wrong(ValueError):
    """A value that is none of its kind; the message says what is wanted. Whoever catches it knows the name.

    `place` leads from there to the part that is wrong: `[2].name`.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


class Kind(NamedTuple):
    """A kind of value. `is_switch` are flags that need no value."""

    name: str
    from_text: Callable[[str], object]
    from_json: Callable[[object], object]
    is_switch: bool = False


def shown(value: object) -> str:
    """Return a value as messages show it: quoted, and cut if it is long."""
    text = printed(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Wrong(f"{shown(value)} is not a string")
    return value


def _switch_text(text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise Wrong(f"{shown(text)} is neither true nor false")
    return text in _TRUE


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"{shown(value)} is neither true nor false")
    return value


def _count_text(text: str) -> int:
    digits = text.removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        raise Wrong(f"{shown(text)} is not a whole number")
    return _count(int(text))


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 <= value < _INT64:
        raise Wrong(f"{shown(value)} is not a whole number")
    return value


def _number_text(text: str) -> float:
    try:
        return _number(float(text))
    except ValueError:
        raise Wrong(f"{shown(text)} is not a number") from None


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise Wrong(f"{shown(value)} is not a number")
    return float(value)


def _seconds(value: object) -> float:
    try:
        return parse_go_duration(_text(value)) / SECOND
    except DurationError:
        raise Wrong(f"{shown(value)} is not a duration; write one such as 3s or 10m") from None


TEXT: Final = Kind("string", _text, _text)
SWITCH: Final = Kind("true or false", _switch_text, _switch, is_switch=True)
COUNT: Final = Kind("whole number", _count_text, _count)
NUMBER: Final = Kind("number", _number_text, _number)
SECONDS: Final = Kind("duration", _seconds, _seconds)


def _strings(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Wrong(f"{shown(value)} is not a map of strings")
    for key, item in value.items():
        if not isinstance(item, str):
            raise Wrong(f"{shown(item)} is not a string; put it in quotes", f"[{key}]")
    return dict(value)


def _objects_of(definition: str) -> Callable[[object], tuple[dict[str, object], ...]]:
    """Return a reader of lists of a Kubernetes type whose items have names."""

    def objects(value: object) -> tuple[dict[str, object], ...]:
        if not isinstance(value, list):
            raise Wrong(f"{shown(value)} is not a list")
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                raise Wrong(f"{shown(item)} is not an object", f"[{index}]")
            try:
                read(definition, deepcopy(item))
            except DecodeError as bad:
                raise Wrong(str(bad), f"[{index}]") from None
            if not item.get("name"):
                raise Wrong("is missing", f"[{index}].name")
        return tuple(value)

    return objects


def _in_file_only(_text: str) -> object:
    raise Wrong("can be given in the configuration file only")


STRINGS: Final = Kind("map of strings", _in_file_only, _strings)
CONTAINERS: Final = Kind("containers", _in_file_only, _objects_of("io.k8s.api.core.v1.Container"))
ENVIRONMENT: Final = Kind("variables", _in_file_only, _objects_of("io.k8s.api.core.v1.EnvVar"))
