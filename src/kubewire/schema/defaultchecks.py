"""Whether the defaults of a schema fit the schema they stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubewire.fielderrors import OMITTED
from kubewire.jsonpatch import is_deeper_than
from kubewire.schema.nodes import MAX_DEPTH, TooDeep, compile_schema
from kubewire.schema.pruning import unknown_fields
from kubewire.schema.validation import structure_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubewire.fielderrors import FieldError
    from kubewire.schema.places import Place


def default_problems(raw: Mapping[str, Any], place: Place) -> list[FieldError]:
    """Return the defaults that are too deep, or that their own schema would prune or refuse."""
    if _lists_schemas(raw):
        return []  # the schema is refused for that, and cannot be held against a value
    return list(_too_deep(raw, place, MAX_DEPTH)) or list(_unfit(raw, place))


def _lists_schemas(raw: Mapping[str, Any]) -> bool:
    """Tell whether somewhere in a schema `items` are a list of schemas."""
    items = raw.get("items")
    below = (items, raw.get("additionalProperties"), *(raw.get("properties") or {}).values())
    return isinstance(items, list) or any(_lists_schemas(one) for one in below if isinstance(one, dict))


def _too_deep(raw: Mapping[str, Any], place: Place, room: int) -> Iterator[FieldError]:
    """Yield the defaults with which an object would be too deep to be written, or to be read if it is there already."""
    default = raw.get("default")
    if default is not None and is_deeper_than(default, room):
        yield place.child("default").invalid(OMITTED, str(TooDeep()))
    for part in ("items", "additionalProperties"):
        if isinstance(raw.get(part), dict):
            yield from _too_deep(raw[part], place.child(part), room - 1)
    for name, below in (raw.get("properties") or {}).items():
        yield from _too_deep(below, place.property(name), room - 1)


def _unfit(raw: Mapping[str, Any], place: Place) -> Iterator[FieldError]:
    """Yield the defaults that do not fit, in this part of a schema and below.

    Values of maps are left out: Kubernetes does not look at defaults there.
    """
    default = raw.get("default")
    if default is not None:
        node = compile_schema(raw)
        at = place.child("default")
        if unknown_fields(node, default, resource=node.embedded):
            yield at.invalid(default, "must not have unknown fields")
        yield from structure_errors(node, default, base=at.path, base_text=at.text)
    if isinstance(raw.get("items"), dict):
        yield from _unfit(raw["items"], place.child("items"))
    for name, below in (raw.get("properties") or {}).items():
        yield from _unfit(below, place.property(name))
