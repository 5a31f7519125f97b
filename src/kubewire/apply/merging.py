"""What an applied configuration makes of an object, and an object without some of its fields.

Results share what did not change with the objects they were made of, which stay as they are.
"""

from typing import Any

from kubewire.apply.elements import shown
from kubewire.apply.fieldsets import MAX_DEPTH, FieldSet
from kubewire.apply.shapes import ListShape, MapShape, NoElement, Shape

# Stands for a part that goes. What has lost all its parts stays as null, and whoever owns it still does.
_NOTHING: Any = object()


class MergeFailed(ValueError):
    """A list has items that nothing tells apart, so nothing can be merged into it."""


def merge(shape: Shape, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return an object with a configuration merged into it; MergeFailed if one of its lists does not allow that."""
    merged: dict[str, Any] = _merged(shape, live, config, 0)
    return merged


def without(shape: Shape, obj: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    """Return an object without some fields and everything below them."""
    left = _left(shape, obj, fields)
    return left if isinstance(left, dict) else {}


# --- merging


def _merged(shape: Shape, live: object, config: object, depth: int) -> Any:
    kind = shape.of(config)
    if live is not None and config is not None and kind is not shape.of(live):
        return config  # of another type: nothing of it can stay
    is_empty = not _has_parts(live) and not _has_parts(config)
    if kind is None or kind.is_atomic or is_empty or depth >= MAX_DEPTH:
        return config
    if isinstance(kind, MapShape):
        return _merged_maps(kind, live, config, depth + 1)
    return _merged_lists(kind, live, config, depth + 1)


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _merged_maps(shape: MapShape, live: object, config: object, depth: int) -> dict[str, Any]:
    merged: dict[str, Any] = dict(live) if isinstance(live, dict) else {}
    for name, wanted in config.items() if isinstance(config, dict) else ():
        if name in merged:
            _, below = shape.steps[name]
            merged[name] = _merged(below, merged[name], wanted, depth)
        else:
            merged[name] = wanted
    return merged


def _merged_lists(shape: ListShape, live: object, config: object, depth: int) -> list[Any]:
    """Merge two lists: the wanted items in their order, the others where they stood among the shared ones."""
    present, mine = _indexed(shape, live, may_repeat=True)
    wanted, theirs = _indexed(shape, config, may_repeat=False)
    # Shared items come in the order of the configuration, so a present one is passed over until it is its turn.
    turns = iter([element for element in wanted if element in mine])
    turn = next(turns, None)
    done: set[str] = set()
    merged: list[Any] = []
    at = ahead = 0
    while at < len(present) or ahead < len(wanted):
        meets = False
        if at < len(present):
            element = present[at]
            if element not in theirs:
                merged.append(live[at])  # type: ignore[index]  # only a list has items
                at += 1
                continue
            meets = ahead < len(wanted) and element == wanted[ahead]
            if not meets and ahead < len(wanted) and turn not in (None, element):
                at += 1
                continue
            if element in done:
                at += 1
        if ahead < len(wanted):
            element = wanted[ahead]
            item = theirs[element]
            merged.append(_merged(shape.items, mine[element], item, depth) if element in mine else item)
            done.add(element)
            ahead += 1
            at += meets
            if element == turn:
                turn = next(turns, None)
    return merged


def _indexed(shape: ListShape, value: object, *, may_repeat: bool) -> tuple[list[str], dict[str, Any]]:
    """Return the steps to a list's items in their order, and the items by these steps."""
    order: list[str] = []
    items: dict[str, Any] = {}
    for index, item in enumerate(value if isinstance(value, list) else ()):
        try:
            element = shape.element(item)
        except NoElement as bad:
            raise MergeFailed(f"element {index}: {bad}") from None
        if element not in items:
            items[element] = item
        elif may_repeat:
            items[element] = None  # what is there twice is merged with neither
        else:
            raise MergeFailed(f"duplicate entries for key {shown(element)}")
        order.append(element)
    return order, items


# --- removing


def _left(shape: Shape, value: object, fields: FieldSet) -> Any:
    """Return what is left of a value without some of its parts."""
    kind = shape.of(value)
    if kind is None:
        return value
    if kind.is_atomic or not _has_parts(value):
        return None
    if isinstance(kind, MapShape):
        return _left_of_map(kind, value, fields)
    return _left_of_list(kind, value, fields)


def _left_of_map(shape: MapShape, value: object, fields: FieldSet) -> Any:
    left: dict[str, Any] = {}
    for name, item in value.items() if isinstance(value, dict) else ():
        element, inner = shape.steps[name]
        rest = _rest(inner, item, fields.get(element))
        if rest is not _NOTHING:
            left[name] = rest
    return left or None


def _left_of_list(shape: ListShape, value: object, fields: FieldSet) -> Any:
    left = []
    for item in value if isinstance(value, list) else ():
        try:
            below = fields.get(shape.element(item))
        except NoElement:
            below = None
        rest = _rest(shape.items, item, below)
        if rest is not _NOTHING:
            left.append(rest)
    return left or None


def _rest(shape: Shape, item: object, below: FieldSet | None) -> Any:
    """Return what is left of an item if these fields below it go: all if none, nothing if it goes itself."""
    if below is None:
        return item
    is_member = not below or "." in below
    return _NOTHING if is_member else _left(shape, item, below)
