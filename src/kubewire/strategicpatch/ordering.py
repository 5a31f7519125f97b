"""The order of a list after a patch: what the patch mentions in the patch's order, the rest where it was."""

from typing import Any, TypeAlias

from kubewire.strategicpatch.problems import (
    OBJECT,
    PatchNotApplicable,
    go_type,
    no_merge_key,
    other_order,
    wrong_type,
)

Identity: TypeAlias = tuple[type, object]


def identity(value: object) -> Identity:
    """Return what a plain value equals: unlike in Python, 1 is neither 1.0 nor true."""
    if isinstance(value, (dict, list)):
        raise PatchNotApplicable(f"a {go_type(value)} cannot be compared to find an element of a list")
    return type(value), value


def element_identity(element: object, merge_key: str) -> Identity:
    """Return what tells an element from others: its merge key if it has to have one, else itself."""
    return identity(_telling(element, merge_key))


def arranged(items: list[Any], wanted: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """Return the items in order; `wanted` and `live` only say which order.

    Items that `wanted` mentions come as there, the others as in `live`. Where the two may be mixed, an item
    that is not mentioned stays in front of those that it preceded in `live`.
    """
    mentioned, others = _split(items, wanted, merge_key)
    wanted_ranks = _ranks(wanted, merge_key)
    live_ranks = _ranks(live, merge_key)

    mentioned.sort(key=lambda entry: wanted_ranks[entry[0]])
    # Only an order without entries leaves items that neither list knows. The server's sort, whose comparison
    # contradicts itself then, puts them in front of what it knew already, the last one foremost.
    unknown = [entry for entry in others if entry[0] not in live_ranks]
    known = [entry for entry in others if entry[0] in live_ranks]
    known.sort(key=lambda entry: live_ranks[entry[0]])
    others = unknown[::-1] + known

    result = []
    placed = 0
    for key, item in mentioned:
        rank = live_ranks.get(key, -1)
        while placed < len(others) and live_ranks.get(others[placed][0], rank) < rank:
            result.append(others[placed][1])
            placed += 1
        result.append(item)
    result += [item for _, item in others[placed:]]
    return result


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Raise unless the items of a patch stand in `order` and in that order.

    Items to delete need not be there, nor do other directives, except at the end of the patch.
    """
    if not patch or not order:
        return
    if merge_key:
        for item in patch:
            if not isinstance(item, dict):
                raise wrong_type(OBJECT, item)
    items = [item for item in patch if not (isinstance(item, dict) and item.get("$patch") == "delete")]
    matched = 0
    for entry in order:
        while matched < len(items) and isinstance(items[matched], dict) and "$patch" in items[matched]:
            matched += 1
        if matched == len(items):
            return
        if _are_same(items[matched], entry, merge_key):
            matched += 1
    if matched < len(items):
        raise other_order(patch, order)


def _split(
    items: list[Any], wanted: list[Any], merge_key: str
) -> tuple[list[tuple[Identity, Any]], list[tuple[Identity, Any]]]:
    """Return the items that `wanted` mentions and those that it does not, each with its identity."""
    keys = set()
    stray = None
    for index, entry in enumerate(wanted):
        if not merge_key:
            keys.add(identity(entry))
        elif not isinstance(entry, dict):
            stray = index
            break
        elif merge_key in entry:
            keys.add(identity(entry[merge_key]))

    mentioned, others = [], []
    for item in items:
        key = element_identity(item, merge_key)
        if key in keys:
            mentioned.append((key, item))
        elif stray is not None:
            raise PatchNotApplicable(f"value for key {stray} is not a map")
        else:
            others.append((key, item))
    return mentioned, others


def _ranks(elements: list[Any], merge_key: str) -> dict[Identity, int]:
    """Return where each element first stands; raises if one lacks the merge key."""
    ranks: dict[Identity, int] = {}
    for index, element in enumerate(elements):
        ranks.setdefault(element_identity(element, merge_key), index)
    return ranks


def _are_same(one: object, other: object, merge_key: str) -> bool:
    one, other = _telling(one, merge_key), _telling(other, merge_key)
    return type(one) is type(other) and identity(one) == identity(other)


def _telling(element: object, merge_key: str) -> object:
    """Return the value that tells an element from others."""
    if not merge_key:
        return element
    if not isinstance(element, dict):
        raise wrong_type(OBJECT, element)
    if merge_key not in element:
        raise no_merge_key(element, merge_key)
    return element[merge_key]
