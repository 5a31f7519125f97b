"""Pruning: fields that a schema does not know are removed, or only named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire.schema.nodes import ANY_VALUE, MAX_DEPTH, TooDeep
from kubewire.schema.objectmeta import OBJECT_META

if TYPE_CHECKING:
    from kubewire.paths import FieldPath
    from kubewire.schema.nodes import Schema


def prune(schema: Schema, obj: object, *, resource: bool = True) -> list[FieldPath]:
    """Remove unknown fields in place and return their paths, in the order of the object.

    With `resource`, the object is a whole one: it has apiVersion, kind and the metadata of every object.
    """
    pruner = _Pruner(removes=True)
    pruner.visit(schema, obj, (), resource or schema.embedded)
    return pruner.unknown


def unknown_fields(schema: Schema, obj: object, *, resource: bool = True) -> list[FieldPath]:
    """Return the paths of the fields that `prune` would remove."""
    pruner = _Pruner(removes=False)
    pruner.visit(schema, obj, (), resource or schema.embedded)
    return pruner.unknown


class _Pruner:
    __slots__ = ("removes", "unknown")

    def __init__(self, *, removes: bool) -> None:
        self.removes = removes
        self.unknown: list[FieldPath] = []

    def visit(
        self, node: Schema, value: object, path: FieldPath, resource: bool, preserved: bool = False
    ) -> None:
        """Go through a value; with `preserved`, it stands in a list whose unknown fields are kept."""
        if len(path) > MAX_DEPTH:
            raise TooDeep
        preserved = preserved or node.preserves_unknown
        if isinstance(value, dict):
            self._visit_fields(node, value, path, resource, preserved)
        elif isinstance(value, list):
            self._visit_items(node, value, path, preserved)

    def _visit_fields(
        self, node: Schema, value: dict[str, object], path: FieldPath, resource: bool, preserved: bool
    ) -> None:
        removed = []
        for key, field in value.items():
            if resource and key in _OF_EVERY_RESOURCE:
                if key == "metadata":
                    self.visit(OBJECT_META, field, (*path, key), resource=False)
                continue
            child = node.child(key)
            if child is not None:
                if isinstance(field, (dict, list)):
                    self.visit(child, field, (*path, key), child.embedded)
            elif not preserved:
                self.unknown.append((*path, key))
                removed.append(key)
        if self.removes:
            for key in removed:
                del value[key]

    def _visit_items(self, node: Schema, value: list[object], path: FieldPath, preserved: bool) -> None:
        items = node.items
        if items is None:
            if preserved:
                return
            items = ANY_VALUE  # nothing is known of the items, so of their fields none is kept
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                self.visit(items, item, (*path, index), items.embedded, preserved)


_OF_EVERY_RESOURCE = frozenset(("apiVersion", "kind", "metadata"))
