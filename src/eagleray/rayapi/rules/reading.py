"""Reading an object that may lack anything: what is absent, null or of another type reads as nothing."""

from collections.abc import Mapping, Sequence

Object = Mapping[str, object]

_NOTHING: Object = {}


def mapping(parent: Object, *keys: str) -> Object:
    """Return the mapping under the keys, one inside the other; an empty one if there is none."""
    for key in keys:
        child = parent.get(key)
        if not isinstance(child, dict):
            return _NOTHING
        parent = child
    return parent


def mappings(parent: Object, key: str) -> Sequence[Object]:
    """Return the list under the key; an item that is no mapping reads as empty, so that positions hold."""
    children = parent.get(key)
    if not isinstance(children, list):
        return ()
    return [child if isinstance(child, dict) else _NOTHING for child in children]


def text(parent: Object, key: str) -> str:
    """Return the text under the key; empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def integer(parent: Object, key: str) -> int | None:
    """Return the integer under the key, if there is one."""
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_true(parent: Object, key: str) -> bool:
    return parent.get(key) is True


def is_set(parent: Object, key: str) -> bool:
    """Return whether the key has a value at all; an empty text, list or mapping is one, null is none."""
    return parent.get(key) is not None


def named(entries: Sequence[Object], name: str) -> int | None:
    """Return the position of the first entry of that name, such as an environment variable's."""
    for position, entry in enumerate(entries):
        if entry.get("name") == name:
            return position
    return None
