"""Whether a schema is made of the right things at all, so that the other checks need not ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubewire.schema.nodes import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubewire.fielderrors import FieldError
    from kubewire.schema.places import Place

_TEXTS = ("type", "format", "pattern", "title", "description", "$ref", "$schema", "id")
_FLAGS = ("nullable", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems")
_KUBERNETES_FLAGS = ("preserve-unknown-fields", "embedded-resource", "int-or-string")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "multipleOf")

_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys((*_TEXTS, "x-kubernetes-list-type", "x-kubernetes-map-type"), (str, "a string")),
    **dict.fromkeys((*_FLAGS, *(f"x-kubernetes-{flag}" for flag in _KUBERNETES_FLAGS)), (bool, "a boolean")),
    **dict.fromkeys(_COUNTS, (int, "an integer")),
    **dict.fromkeys(_NUMBERS, ((int, float), "a number")),
    "enum": (list, "a list"),
    "required": (list, "a list"),
    "x-kubernetes-list-map-keys": (list, "a list"),
    "properties": (dict, "an object"),
    "definitions": (dict, "an object"),
    "patternProperties": (dict, "an object"),
    "items": ((dict, list), "an object"),
    "additionalProperties": ((dict, bool), "an object or a boolean"),
    "not": (dict, "an object"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "x-kubernetes-validations"), (list, "a list")),
}
_LISTS_OF_TEXTS = ("required", "x-kubernetes-list-map-keys")
_RULE_TEXTS = ("rule", "message", "messageExpression", "reason", "fieldPath")


def shape_problems(raw: object, place: Place) -> list[FieldError]:
    """Return which parts of a schema cannot be read; empty for a schema that is only wrong in meaning."""
    return list(_problems(raw, place))


def _problems(raw: object, place: Place) -> Iterator[FieldError]:
    if not isinstance(raw, dict):
        yield place.invalid(raw, "must be an object")
        return
    if len(place.path) > MAX_DEPTH:
        yield place.forbidden(f"must not be nested deeper than {MAX_DEPTH} levels")
        return
    readable: dict[str, Any] = {}
    for keyword, value in raw.items():
        if value is None:
            continue
        if _fits(keyword, value):
            readable[keyword] = value
        else:
            yield place.child(keyword).invalid(value, f"must be {_KINDS[keyword][1]}")
    for keyword in _LISTS_OF_TEXTS:
        for number, name in enumerate(readable.get(keyword, ())):
            if not isinstance(name, str):
                yield place.child(keyword).index(number).invalid(name, "must be a string")
    for below, below_place in _parts(readable, place):
        yield from _problems(below, below_place)
    for number, rule in enumerate(readable.get("x-kubernetes-validations", ())):
        yield from _rule_problems(rule, place.child("x-kubernetes-validations").index(number))


def _fits(keyword: str, value: object) -> bool:
    if keyword not in _KINDS:
        return True
    kinds = _KINDS[keyword][0]
    if isinstance(value, bool):  # which Python takes for a number
        return kinds in (bool, (dict, bool))
    return isinstance(value, kinds)


def _parts(readable: dict[str, Any], place: Place) -> Iterator[tuple[object, Place]]:
    """Yield the schemas inside of a schema."""
    for keyword in ("properties", "definitions", "patternProperties"):
        for name, below in readable.get(keyword, {}).items():
            yield below, place.child(keyword).key(str(name))
    for keyword in ("items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"):
        below = readable.get(keyword)
        if isinstance(below, dict):
            yield below, place.child(keyword)
        elif isinstance(below, list):
            for number, branch in enumerate(below):
                yield branch, place.child(keyword).index(number)


def _rule_problems(rule: object, place: Place) -> Iterator[FieldError]:
    if not isinstance(rule, dict):
        yield place.invalid(rule, "must be an object")
        return
    for keyword in _RULE_TEXTS:
        if rule.get(keyword) is not None and not isinstance(rule[keyword], str):
            yield place.child(keyword).invalid(rule[keyword], "must be a string")
    if not isinstance(rule.get("optionalOldSelf", False), bool | None):
        yield place.child("optionalOldSelf").invalid(rule["optionalOldSelf"], "must be a boolean")
