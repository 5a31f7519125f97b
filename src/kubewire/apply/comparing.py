"""Which fields an object has, and which ones two objects differ in, as sets of field paths."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kubewire.apply.fieldsets import LEAF, MAX_DEPTH, FieldSet, in_order, union_below, without_all
from kubewire.apply.shapes import ListShape, MapShape, NoElement, Shape


class Comparison(NamedTuple):
    """What became of an object: the fields that are new or changed, in the server's order, and those that went."""

    changed: FieldSet
    removed: FieldSet

    def without(self, fields: FieldSet) -> "Comparison":
        """Return the comparison of what is not below some fields."""
        return Comparison(without_all(self.changed, fields), without_all(self.removed, fields))


# What a comparison finds at one place: what changed, and what went; None stands for nothing, a leaf for the place.
Found = tuple[FieldSet | None, FieldSet | None]

_COMPOUND = (dict, list)

_SAME: Found = (None, None)
_CHANGED: Found = (LEAF, None)


def compare(shape: Shape, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Return how an object differs from what it was."""
    changed, removed = _compared(shape, old, new, 0)
    return Comparison(changed or LEAF, removed or LEAF)


def owned(shape: Shape, config: dict[str, Any]) -> FieldSet:
    """Return the fields that an applied configuration sets, and whoever applies it therefore owns."""
    return _owned(shape, config, 0)


# --- two objects


def _compared(shape: Shape, old: object, new: object, depth: int) -> Found:
    if old == new:
        return _SAME
    kind, before = shape.of(new), shape.of(old)
    if kind is not before and new is not None and old is not None:
        return _retyped(shape, old, new, depth)
    if kind is None or kind.is_atomic or depth >= MAX_DEPTH:
        return _CHANGED
    if kind.__class__ is MapShape:
        return _maps(kind, old, new, depth)
    return _lists(kind, old, new, depth)  # type: ignore[arg-type]  # it is no map


def _maps(shape: MapShape, old: object, new: object, depth: int) -> Found:
    before: dict[str, Any] = old if isinstance(old, dict) else {}
    after: dict[str, Any] = new if isinstance(new, dict) else {}
    if not before and not after:
        return _CHANGED  # one is empty and the other null
    changed: FieldSet = {}
    removed: FieldSet = {}
    depth += 1
    steps = shape.steps
    for name, value in after.items():
        if name not in before:
            element, below = steps[name]
            changed[element] = _all_of(below, value, depth) if value else LEAF
            continue
        was = before[name]
        if was == value:
            continue
        element, below = steps[name]
        now, gone = _compared(below, was, value, depth)
        if now is not None:
            changed[element] = now
        if gone is not None:
            removed[element] = gone
    for name, value in before.items():
        if name not in after:
            element, below = steps[name]
            removed[element] = _all_of(below, value, depth)
    return (in_order(changed) if changed else None), removed or None


def _lists(shape: ListShape, old: object, new: object, depth: int) -> Found:
    before = _indexed(shape, old)
    after = _indexed(shape, new)
    if not before and not after:
        return _CHANGED
    changed: FieldSet = {}
    removed: FieldSet = {}
    for element in before | after:
        now, gone = _items(shape.items, before.get(element, ()), after.get(element, ()), depth + 1)
        if now is not None:
            changed[element] = now
        if gone is not None:
            removed[element] = gone
    return (in_order(changed) if changed else None), removed or None


def _items(shape: Shape, old: Sequence[Any], new: Sequence[Any], depth: int) -> Found:
    """Compare what a step leads to in two lists. Several items at one step cannot be told apart: they are one."""
    if len(old) == len(new) == 1:
        return _compared(shape, old[0], new[0], depth)
    if len(old) > 1 and len(new) > 1:
        return _SAME if old == new else _CHANGED
    if len(old) > 1:
        return _all_of(shape, new[0], depth) if new else None, LEAF
    if len(new) > 1:
        return LEAF, _all_of(shape, old[0], depth) if old else None
    if new:
        return _all_of(shape, new[0], depth), None
    return None, _all_of(shape, old[0], depth)


def _retyped(shape: Shape, old: object, new: object, depth: int) -> Found:
    """Compare values of different types, where the schema allows for both: the place, and all that is below it."""
    gone = _all_of(shape, old, depth)
    return _all_of(shape, new, depth), {step: gone[step] for step in gone if step != "."} or None


# --- one object


def _all_of(shape: Shape, value: object, depth: int) -> FieldSet:
    """Return everything from a place on, the place included."""
    if not value or depth >= MAX_DEPTH:
        return LEAF
    if isinstance(value, dict):
        fields = shape.map
        if fields is None or fields.is_atomic:
            return LEAF
        found: FieldSet = {".": LEAF}
        steps = fields.steps
        depth += 1
        for name in sorted(value):
            below = value[name]
            element, inner = steps[name]
            has_parts = below and below.__class__ in _COMPOUND
            found[element] = _all_of(inner, below, depth) if has_parts else LEAF
        return found
    if not isinstance(value, list) or shape.list is None or shape.list.is_atomic:
        return LEAF
    found = {".": LEAF}
    items = shape.list.items
    for element, members in _indexed(shape.list, value).items():
        found[element] = _all_of(items, members[0], depth + 1) if len(members) == 1 else LEAF
    return in_order(found) if len(found) > 1 else LEAF


def _owned(shape: Shape, value: object, depth: int) -> FieldSet:
    """Return what a configuration sets below a place; a leaf if it is the place itself or nothing at all."""
    kind = shape.of(value)
    found: FieldSet = {}
    if kind is None or kind.is_atomic or depth >= MAX_DEPTH:
        return found
    depth += 1
    if isinstance(kind, MapShape):
        for name, below in value.items() if isinstance(value, dict) else ():
            element, inner = kind.steps[name]
            inside = _owned(inner, below, depth)
            if inside:
                # An entry of a map is owned with what it holds; a declared field only by what it holds.
                found[element] = inside if name in kind.declared else union_below(LEAF, inside)
            elif (
                not _is_granular(inner, below, depth)
                or below is None
                or below == {}
                or name not in kind.declared
            ):
                found[element] = LEAF
        return found
    items = kind.items
    for element, members in _indexed(kind, value).items():
        inside = _owned(items, members[0], depth) if len(members) == 1 else LEAF
        found[element] = union_below(LEAF, inside) if inside else LEAF
    return found


def _is_granular(shape: Shape, value: object, depth: int) -> bool:
    """Tell whether a value has parts that are owned by themselves."""
    kind = shape.of(value)
    return kind is not None and not kind.is_atomic and depth < MAX_DEPTH


def _indexed(shape: ListShape, value: object) -> dict[str, list[Any]]:
    """Return the items of a list by their steps; items that have none are left out."""
    found: dict[str, list[Any]] = {}
    if isinstance(value, list):
        for item in value:
            try:
                element = shape.element(item)
            except NoElement:
                continue
            if element in found:
                found[element].append(item)
            else:
                found[element] = [item]
    return found
