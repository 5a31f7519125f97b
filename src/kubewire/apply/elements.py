"""The steps of a field path, in their wire form: `f:name`, `k:{"name":"a"}`, `v:"x"` and `i:0`."""

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from kubewire.fielderrors import as_json, printed

T = TypeVar("T")

# Kubernetes sorts steps by their kind first.
_RANKS = {"f": 0, "k": 1, "v": 2, "i": 3}
# How Kubernetes sorts values of different types.
_TYPE_RANKS: dict[type, int] = {int: 0, float: 0, str: 1, bool: 2, list: 3, dict: 4, type(None): 5}

# Steps are few and short, but a client may send long ones, which must not fill the memory.
_REMEMBERED = 4096
_SHORT = 256

# Tells texts that JSON writes as they are, as almost all keys are.
is_plain = re.compile(r"[A-Za-z0-9_./:@=+, -]*").fullmatch


def _remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return a function of a step that remembers its answers about short ones."""
    quick = lru_cache(_REMEMBERED)(function)
    return lambda element: quick(element) if len(element) <= _SHORT else function(element)


class MalformedElement(ValueError):
    """A step of a field path that cannot be read."""


class UnknownElement(MalformedElement):
    """A step of a kind that is not known; newer servers may have more."""


def field_element(name: str) -> str:
    """Return the step to a field of an object."""
    return f"f:{name}"


def key_element(names: Sequence[str], values: Sequence[object]) -> str:
    """Return the step to the item of a list whose keys, in the order of their names, have these values."""
    pairs = ",".join(f"{as_json(name)}:{_json(value)}" for name, value in zip(names, values, strict=True))
    return f"k:{{{pairs}}}"


def value_element(value: object) -> str:
    """Return the step to a member of a set."""
    return f"v:{_json(value)}"


@_remembered
def parsed(element: str) -> object:
    """Return what a step says: a name, the pairs of a key, a value or an index."""
    kind, content = element[:2], element[2:]
    if len(element) < 2 or element[1] != ":":
        raise MalformedElement(
            f"a step of a field path has a letter, a colon and a value, unlike {element!r}"
        )
    if kind == "f:":
        return content
    if kind == "i:":
        if not content.removeprefix("-").isdecimal() or len(content) > 18:
            raise MalformedElement(f"an index is a number, unlike {element!r}")
        return int(content)
    if kind not in ("k:", "v:"):
        raise UnknownElement(element)
    try:
        value = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as bad:
        raise MalformedElement(f"{element!r}: {bad}") from None
    if kind == "v:":
        return value
    if not isinstance(value, dict):
        raise MalformedElement(f"a key has fields, unlike {element!r}")
    return tuple(sorted(value.items(), key=lambda pair: pair[0]))


@_remembered
def canonical(element: str) -> str:
    """Return a step in the one spelling that the server uses; MalformedElement if it is none."""
    found = parsed(element)
    if element[0] == "k":
        assert isinstance(found, tuple)
        return key_element([name for name, _ in found], [value for _, value in found])
    return value_element(found) if element[0] == "v" else element


@_remembered
def sort_key(element: str) -> tuple[Any, ...]:
    """Return a key by which steps sort as the server sorts them; what a set owns itself comes first."""
    if element == ".":
        return (-1,)
    found = parsed(element)
    rank = _RANKS[element[0]]
    if element[0] == "k":
        assert isinstance(found, tuple)
        return (rank, tuple((name, _value_key(value)) for name, value in found))
    return (rank, _value_key(found) if element[0] == "v" else found)


@_remembered
def shown(element: str) -> str:
    """Return a step as messages show it: `.spec`, `[name="a"]`, `[="x"]` or `[0]`."""
    found = parsed(element)
    if element[0] == "f":
        return f".{found}"
    if element[0] == "k":
        assert isinstance(found, tuple)
        return "[" + ",".join(f"{name}={printed(value)}" for name, value in found) + "]"
    return f"[={printed(found)}]" if element[0] == "v" else f"[{found}]"


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def _value_key(value: object) -> tuple[Any, ...]:
    rank = _TYPE_RANKS[type(value)]
    # What is no plain value cannot be a key or a member of a set; any fixed order does.
    return (rank, value) if rank < 3 else (rank, as_json(value))


def _json(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) and is_plain(value) else as_json(value)
