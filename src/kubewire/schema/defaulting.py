"""Defaults: what an object is given where it says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire.objects import copied
from kubewire.schema.nodes import MAX_DEPTH, TooDeep

if TYPE_CHECKING:
    from kubewire.schema.nodes import Schema


def apply_defaults(schema: Schema, obj: object) -> None:
    """Fill in defaults in place, as the API server does when it reads an object.

    A default is given to a property that is missing, or null where null is not allowed, of an object that is
    there; what the default brings gets its own defaults in turn. Nulls that are neither allowed nor defaulted
    are dropped. Raises TooDeep before anything nested too deep is touched further.
    """
    _fill(schema, obj, 0)


def _fill(node: Schema, value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise TooDeep
    if isinstance(value, dict):
        for name, default, nullable in node.defaults:
            if name not in value or (value[name] is None and not nullable):
                value[name] = copied(default)
        _fill_entries(node, value, depth)
    elif isinstance(value, list):
        items = node.items
        if items is not None:
            _fill_items(items, value, depth)


def _fill_entries(node: Schema, value: dict[str, object], depth: int) -> None:
    dropped = []
    for key, entry in value.items():
        if entry is None:
            child = node.child(key)
            if child is None or child.nullable:
                continue
            default = child.raw.get("default")
            if default is None:
                dropped.append(key)
                continue
            entry = value[key] = copied(default)  # noqa: PLW2901 - a map's default stands in for its null entry
        if isinstance(entry, (dict, list)):
            child = node.child(key)
            if child is not None:
                _fill(child, entry, depth + 1)
    for key in dropped:
        del value[key]


def _fill_items(items: Schema, value: list[object], depth: int) -> None:
    default = None if items.nullable else items.raw.get("default")
    for index, entry in enumerate(value):
        if entry is None and default is not None:
            value[index] = copied(default)
        if isinstance(value[index], (dict, list)):
            _fill(items, value[index], depth + 1)
