"""A Pod's spec as Kubernetes sees it inside: messages show some values by Go's names, every field of them.

`data/podspec-internal-1.36.json` lists the fields of each struct in order: the name that is shown, the path to the
value in a manifest, the type, and whether an empty value is left out.
"""

import difflib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from kubereef.kinds.resource import Object
from kubewire.fielderrors import Verbatim

# What a Pod shares with its host stands in the security context inside, and beside it in manifests.
_SHARED_WITH_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
# Comparing takes time that grows faster than the texts do.
_MOST_LINES = 5000
_ZERO: dict[str, object] = {"string": "", "bool": False, "intstr": 0, "quantity": "0"}


def shown(struct: str, value: Object) -> Verbatim:
    """Return a value as messages about it show it, on one line."""
    return Verbatim(_escaped(json.dumps(_struct(struct, value), separators=(",", ":"), ensure_ascii=False)))


def spec_difference(old: Object, new: Object) -> str:
    """Return how two specs differ, as the lines of their inside forms that do, with those around them."""
    return _difference(_struct("PodSpec", _host_inside(old)), _struct("PodSpec", _host_inside(new)))


def ephemeral_container_difference(old: Object, new: Object) -> str:
    """Return how two ephemeral containers differ."""
    return _difference(_struct("EphemeralContainer", old), _struct("EphemeralContainer", new))


def struct_difference(struct: str, old: Object, new: Object) -> str:
    """Return how two values of a struct differ, as the lines of their inside forms that do, with those around them."""
    return _difference(_struct(struct, old), _struct(struct, new))


def _difference(old: Object, new: Object) -> str:
    before, after = _lines(old), _lines(new)
    if len(before) + len(after) > _MOST_LINES:
        return "the specs are too long to be compared here\n"
    # The first two lines would name files.
    return "".join(list(difflib.unified_diff(before, after))[2:])


def _lines(value: Object) -> list[str]:
    text = _escaped(json.dumps(value, indent=1, ensure_ascii=False))
    return [f"{line}\n" for line in text.split("\n")]


def _escaped(text: str) -> str:
    """Return JSON as Go writes it, so that it could stand in a web page."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _host_inside(spec: Object) -> Object:
    shared = {field: spec[field] for field in _SHARED_WITH_HOST if field in spec}
    return {**spec, "securityContext": {**(spec.get("securityContext") or {}), **shared}}


def _struct(name: str, value: Object) -> Object:
    """Return the fields of a struct in Go's order; those that are empty stand there as Go's zero values."""
    result: Object = {}
    for field_name, path, field_type, *omit in _facts()[name]:
        found: Any = value
        for step in path.split("."):
            found = None if found is None else found.get(step)
        if found or not omit:
            result[field_name] = _value(field_type, found)
    return result


def _value(kind: str, value: Any) -> object:
    if kind.startswith("*"):
        return None if value is None else _value(kind[1:], value)
    if kind.startswith("[]"):
        return [_value(kind[2:], item) for item in value] if value else None
    if kind.startswith("{}"):
        return {key: _value(kind[2:], value[key]) for key in sorted(value)} if value else None
    if kind in _facts():
        return _struct(kind, value or {})
    return _ZERO.get(kind, 0) if value is None else value


@cache
def _facts() -> dict[str, list[list[str]]]:
    text = files("kubereef").joinpath("data", "podspec-internal-1.36.json").read_bytes()
    facts: dict[str, list[list[str]]] = json.loads(text)
    return facts
