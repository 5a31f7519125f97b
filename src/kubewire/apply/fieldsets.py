"""Sets of field paths, kept in their wire form.

A set is a JSON object whose keys are steps and whose values are the sets below them. A step that leads to nothing
(`{}`) is itself a member; one that leads further is a member too if it holds `.`:

    {"f:data": {".": {}, "f:a": {}}}        data itself, and data.a

So what is stored needs neither parsing nor printing, and operations share with their arguments what they leave alone.
No function changes a set that it is given.
"""

from collections.abc import Iterator
from typing import Any

from kubewire.apply.elements import MalformedElement, UnknownElement, canonical, shown, sort_key

FieldSet = dict[str, Any]

# A member that nothing is below. It is shared, so nobody may add to it.
LEAF: FieldSet = {}

# What lies deeper in an object is owned as a whole, so that no set is deeper and walking one is safe.
MAX_DEPTH = 100


class MalformedFields(ValueError):
    """Something that is no set of field paths."""


def parse(value: object, depth: int = 0) -> FieldSet:
    """Return a set that a client wrote, every step in its one spelling; MalformedFields if it is none.

    Steps of an unknown kind are left out, as a newer server may have written them.
    """
    if not isinstance(value, dict):
        raise MalformedFields("a set of fields is an object of objects")
    if depth > MAX_DEPTH:
        raise MalformedFields(f"a set of fields is at most {MAX_DEPTH} steps deep")
    found: FieldSet = {}
    for element, below in value.items():
        if element == ".":
            found["."] = LEAF
            continue
        try:
            step = canonical(element)
        except UnknownElement:
            continue
        except MalformedElement as bad:
            raise MalformedFields(str(bad)) from None
        child = parse(below, depth + 1)
        found[step] = union_below(found[step], child) if step in found else child
    if depth == 0:
        found.pop(".", None)
    return LEAF if len(found) == 1 and "." in found else found


def ordered(fields: FieldSet) -> FieldSet:
    """Return a set with its steps in the order in which the server writes them."""
    if not fields:
        return fields
    found: FieldSet = {}
    for element in _in_order(fields):
        below = fields[element]
        found[element] = ordered(below) if below else below
    return found


def in_order(fields: FieldSet) -> FieldSet:
    """Return a set with its first steps in the server's order; those below stay as they are."""
    return fields if len(fields) == 1 else {element: fields[element] for element in _in_order(fields)}


def _in_order(fields: FieldSet) -> list[str]:
    if len(fields) == 1:
        return list(fields)
    if len(fields) == 2 and "." in fields:
        return [".", *(element for element in fields if element != ".")]
    # Almost always all steps lead to fields, which sort as plain text, behind the point.
    elements = sorted(fields)
    return elements if elements[-1][0] == "f" else sorted(elements, key=sort_key)


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in one set or the other."""
    if not one or not other:
        return one or other
    merged = None
    for element, below in other.items():
        mine = one.get(element)
        if mine is None:
            joined = below
        else:
            joined = union_below(mine, below)
            if joined is mine:
                continue
        if merged is None:
            merged = dict(one)
        merged[element] = joined
    return one if merged is None else merged


def union_below(mine: FieldSet, below: FieldSet) -> FieldSet:
    """Return the union of what two sets have below the same step, where nothing below means the step itself."""
    if mine == below:
        return mine
    if not mine:
        return below if "." in below else {".": LEAF, **below}
    if not below:
        return mine if "." in mine else {".": LEAF, **mine}
    return union(mine, below)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in both sets."""
    if len(other) < len(one):
        one, other = other, one
    found: FieldSet = {}
    for element, mine in one.items():
        theirs = other.get(element)
        if theirs is None:
            continue
        if element == ".":
            found["."] = LEAF
            continue
        both_are_members = (not mine or "." in mine) and (not theirs or "." in theirs)
        below = intersection(mine, theirs) if mine and theirs else LEAF
        if both_are_members:
            found[element] = LEAF if not below or below.keys() == {"."} else below
        elif below:
            found[element] = below
    return found


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in the first set and not in the second; the first set itself if that is all of it."""
    left = None
    for element, theirs in other.items():
        mine = one.get(element)
        if mine is None:
            continue
        if element == ".":
            rest = None
        else:
            rest = _without(mine, theirs)
            if rest is mine:
                continue
        if left is None:
            left = dict(one)
        if rest is None:
            del left[element]
        else:
            left[element] = rest
    return one if left is None else left


def _without(mine: FieldSet, theirs: FieldSet) -> FieldSet | None:
    """Return what a set still has below a step; None if nothing, not even the step itself."""
    takes_step = not theirs or "." in theirs
    if not mine:
        return None if takes_step else mine
    if theirs:
        mine = difference(mine, theirs)
    elif "." in mine:
        mine = {element: below for element, below in mine.items() if element != "."}
    if not mine:
        return None
    # What has lost everything below it is a member like any other.
    return LEAF if len(mine) == 1 and "." in mine else mine


def without_all(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return a set without the members of another and without everything below them."""
    left = None
    for element, theirs in other.items():
        mine = one.get(element)
        if mine is None or element == ".":
            continue
        takes_step = not theirs or "." in theirs
        rest = None if takes_step else (without_all(mine, theirs) if mine else mine)
        if rest is mine:
            continue
        if left is None:
            left = dict(one)
        if not rest:
            del left[element]
        else:
            left[element] = LEAF if rest.keys() == {"."} else rest
    return one if left is None else left


def has(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Tell whether a path is a member of a set."""
    below: FieldSet | None = fields
    for element in path:
        below = below.get(element) if below else None
        if below is None:
            return False
    return below is not None and (not below or "." in below) and bool(path)


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the members of a set in the server's order: at each place those that are there, then those below."""
    elements = [element for element in _in_order(fields) if element != "."] if fields else []
    for element in elements:
        below = fields[element]
        if not below or "." in below:
            yield (*prefix, element)
    for element in elements:
        yield from paths(fields[element], (*prefix, element))


def of_paths(*members: tuple[str, ...]) -> FieldSet:
    """Return the set of some paths."""
    found: FieldSet = {}
    for path in members:
        one: FieldSet = LEAF
        for element in reversed(path):
            one = {element: one}
        found = union(found, one)
    return found


def show_path(path: tuple[str, ...]) -> str:
    """Return a path as messages show it, such as `.spec.ports[port=53,protocol="UDP"].name`."""
    return "".join(map(shown, path))
