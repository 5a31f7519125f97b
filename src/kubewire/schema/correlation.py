"""Which part of an old object a part of its successor was: by key in maps and in lists of type map, else not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire.schema.values import frozen

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
