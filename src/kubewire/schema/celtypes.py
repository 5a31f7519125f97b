"""What rules see of a schema: its nodes as CEL types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kubewire.cel import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    ListType,
    MapType,
    ObjectType,
    escape_name,
)
from kubewire.schema.nodes import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubewire.cel import CelType
    from kubewire.schema.nodes import Schema

_SCALARS: dict[str, CelType] = {"boolean": BOOL, "integer": INT, "number": DOUBLE, "string": STRING}
_TEXT_FORMATS: dict[str, CelType] = {
    "byte": BYTES,
    "date": TIMESTAMP,
    "date-time": TIMESTAMP,
    "datetime": TIMESTAMP,
    "duration": DURATION,
}


def cel_type(schema: Schema, *, resource: bool = False) -> CelType:
    """Return the type of a schema's values; what has no type of its own is dynamic.

    With `resource`, the schema is that of a whole object, whose apiVersion, kind and metadata.name rules may read.
    Objects find out about their fields when an expression selects one, so a large schema costs little.
    """
    return _exposed(schema, "selfType", resource or schema.embedded, 0) or DYN


def _exposed(node: Schema, name: str, resource: bool, depth: int) -> CelType | None:
    """Return the type of a node, or None if rules cannot reach it: then nothing says what it holds."""
    if node.int_or_string or depth > MAX_DEPTH:
        return DYN
    if node.type == "array":
        items = node.items
        element = items and _exposed(items, f"{name}.@items", items.embedded, depth + 1)
        return ListType(element, _list_kind(node), tuple(node.map_keys)) if element else None
    if node.type == "object":
        return _object_type(node, name, resource, depth)
    if node.type == "string":
        return _TEXT_FORMATS.get(node.format, STRING)
    return _SCALARS.get(node.type)


def _list_kind(node: Schema) -> Literal["atomic", "set", "map"]:
    return "set" if node.list_type == "set" else "map" if node.list_type == "map" else "atomic"


def _object_type(node: Schema, name: str, resource: bool, depth: int) -> CelType | None:
    values = node.additional
    if values is not None and not node.fields:
        value = _exposed(values, f"{name}.@values", values.embedded, depth + 1)
        return MapType(STRING, value) if value else None
    return ObjectType(name, _fields_of(node, name, resource))


def _fields_of(node: Schema, name: str, resource: bool) -> Callable[[], dict[str, CelType]]:
    def fields() -> dict[str, CelType]:
        found: dict[str, CelType] = {}
        for field in node.fields:
            child = node.field(field)
            identifier = escape_name(field)
            if child is None or identifier is None:
                continue
            # Fields are made when their object is first looked into, so depth starts anew.
            exposed = _exposed(child, f"{name}.{field}", child.embedded, 0)
            if exposed is not None:
                found[identifier] = exposed
        if resource:
            found |= {"apiVersion": STRING, "kind": STRING, "metadata": _METADATA}
        return found

    return fields


_METADATA = ObjectType("selfType.metadata", {"name": STRING, "generateName": STRING})
