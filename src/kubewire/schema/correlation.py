"""Which part of an old object a part of its successor was: by key in maps and in lists of type map, else not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire.schema.nodes import MAX_DEPTH
from kubewire.schema.values import frozen, same

if TYPE_CHECKING:
    from kubewire.paths import FieldPath
    from kubewire.schema.nodes import Schema

# Stands for the old value of what is new, or of which nobody can tell what it was.
UNRELATED = object()

# Both objects are converted to one version first, so a change of these could not be seen.
_OF_THE_ROOT = frozenset(("apiVersion", "kind"))


def old_entry(old: object, key: str, path: FieldPath) -> object:
    """Return the old value of the entry `key` of the object at `path`."""
    if not isinstance(old, dict) or key not in old or (not path and key in _OF_THE_ROOT):
        return UNRELATED
    return old[key]


def unchanged(node: Schema, value: object, old: object, depth: int = 0) -> bool:
    """Tell whether a value is what it was: the items of a list of type map may have changed their places.

    Values that the schema does not describe, or that are nested too deep, are taken for changed.
    """
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, dict) and isinstance(old, dict):
        return len(value) == len(old) and all(
            key in old
            and (child := node.child(key)) is not None
            and unchanged(child, entry, old[key], depth + 1)
            for key, entry in value.items()
        )
    if (
        isinstance(value, list)
        and isinstance(old, list)
        and node.list_type == "map"
        and node.items is not None
    ):
        items, olds = node.items, OldItems(node, old)
        return len(value) == len(old) and all(
            (was := olds.like(item)) is not UNRELATED and unchanged(items, item, was, depth + 1)
            for item in value
        )
    return same(value, old)


class OldItems:
    """The old items of a list, to be found by their keys if the list is a map."""

    __slots__ = ("_by_key", "_keys", "_old")

    def __init__(self, node: Schema, old: object) -> None:
        self._keys = node.map_keys if node.list_type == "map" else ()
        self._old = old if self._keys and isinstance(old, list) else ()
        self._by_key: dict[object, object] | None = None

    def like(self, item: object) -> object:
        """Return the old item with the same keys as this one."""
        if not self._old or not isinstance(item, dict):
            return UNRELATED
        if self._by_key is None:
            self._by_key = {}
            for candidate in self._old:
                if isinstance(candidate, dict):
                    self._by_key.setdefault(self._key_of(candidate), candidate)
        return self._by_key.get(self._key_of(item), UNRELATED)

    def _key_of(self, item: dict[str, object]) -> object:
        return tuple((key in item, frozen(item.get(key))) for key in self._keys)
