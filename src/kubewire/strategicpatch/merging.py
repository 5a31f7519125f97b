"""The merge itself: a live object and a patch give a new object, following the shape of their type."""

from itertools import filterfalse
from typing import Any

from kubewire.strategicpatch.ordering import arranged, check_order, element_identity, identity
from kubewire.strategicpatch.problems import (
    LIST,
    PatchNotApplicable,
    bad_format,
    list_of_lists,
    mixed_elements,
    unknown_directive,
    wrong_type,
)
from kubewire.strategicpatch.shapes import Field, Shape

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ELEMENT_ORDER = "$setElementOrder"
_DELETIONS = "$deleteFromPrimitiveList"
_LIST_DIRECTIVES = (_ELEMENT_ORDER, _DELETIONS)


def merge_object(live: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Return the live object with the patch merged in; neither is changed."""
    if _DIRECTIVE in patch:
        return _replacement(patch)
    merged = _retained(live, patch) if _RETAIN_KEYS in patch else live.copy()
    changes = {key: value for key, value in patch.items() if key != _RETAIN_KEYS}
    for key in patch:
        if key.startswith(_ELEMENT_ORDER):
            _merge_in_order(merged, changes, key, shape)
    for name, value, deleting in _steps(changes):
        present = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif deleting and type(present) is not type(value):
            continue
        elif isinstance(present, dict) and isinstance(value, dict):
            field = shape.field(name)
            # Called from here and not from a helper, a deep patch stays within Python's stack.
            merged[name] = value if field.strategy == "replace" else merge_object(present, value, field.shape)
        elif isinstance(present, list) and isinstance(value, list):
            merged[name], _ = _merge_list(present, value, shape.list_field(name), deleting=deleting)
        else:
            _set(merged, name, value)
    return merged


def _replacement(patch: dict[str, Any]) -> dict[str, Any]:
    """Return what an object becomes by its `$patch` directive."""
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case _:
            raise unknown_directive(patch)


def _retained(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return what `$retainKeys` leaves of the live object; the patch may set nothing else."""
    names = patch[_RETAIN_KEYS]
    if not isinstance(names, list) or any(isinstance(name, (dict, list)) for name in names):
        raise bad_format("retainKeys")
    retained = set(names)
    for key, value in patch.items():
        is_field = value is not None and key != _RETAIN_KEYS and not key.startswith(_LIST_DIRECTIVES)
        if is_field and key not in retained:
            raise bad_format("retainKeys")
    return {key: value for key, value in live.items() if key in retained}


def _steps(changes: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return what to do field by field: name, value, and whether the value lists what to delete.

    The server takes them in any order; here deletions come last, as they do when an order is set.
    """
    steps = []
    deletions = []
    for key, value in changes.items():
        if key.startswith(_DELETIONS):
            deletions.append((_listed_field(key, _DELETIONS), value, True))
        else:
            steps.append((key, value, False))
    return steps + deletions


def _set(merged: dict[str, Any], name: str, value: object) -> None:
    """Put a value where nothing of its kind was: without nulls, and not at all if it is a directive."""
    value = _without_nulls(value)
    if _is_directive(value):
        merged.pop(name, None)
    else:
        merged[name] = _without_directives(value)


def _merge_in_order(merged: dict[str, Any], changes: dict[str, Any], key: str, shape: Shape) -> None:
    """Merge the list that a `$setElementOrder` directive names, and take both out of the changes."""
    order = changes.pop(key)
    if not isinstance(order, list):
        raise wrong_type(LIST, order)
    name = _listed_field(key, _ELEMENT_ORDER)
    live, patch = _list_at(merged, name), _list_at(changes, name)
    field = shape.list_field(name)
    check_order(patch or [], order, field.merge_key)
    if patch is not None and live is not None:
        items, places = _merge_list(live, patch, field)
    elif patch is not None:
        items, places = _without_directives(patch), []
    elif live is not None:
        items, places = live, live
    else:
        return
    _element_type(live or [], patch or [])
    merged[name] = arranged(items, order, places, field.merge_key)
    changes.pop(name, None)


def _merge_list(
    live: list[Any], patch: list[Any], field: Field, *, deleting: bool = False
) -> tuple[list[Any], list[Any]]:
    """Return the patched list, and the list whose order counts as the live one if an order is set."""
    if field.strategy != "merge" and not deleting:
        return patch, live
    if not live and not patch:
        return live, live
    if _element_type(live, patch) is dict:
        return _merge_items(live, patch, field)
    if deleting:
        deleted = set(map(identity, patch))
        return [value for value in live if identity(value) not in deleted], live
    distinct = {identity(value): value for value in [*live, *patch]}
    return arranged([*distinct.values()], patch, live, field.merge_key), live


def _merge_items(live: list[Any], patch: list[Any], field: Field) -> tuple[list[Any], list[Any]]:
    """Merge a list of objects by their merge key; returns what `_merge_list` does."""
    merge_key = field.merge_key
    if not merge_key:
        raise PatchNotApplicable(f"cannot merge lists without merge key for {field.shape.kind}")
    additions, deleted, replaced = _sorted_out(patch, merge_key)
    if replaced:
        return arranged(additions, [], additions, merge_key), live
    survivors = [item for item in live if merge_key not in item or identity(item[merge_key]) not in deleted]
    merged = survivors.copy()
    positions: dict[object, int] = {}
    for position, item in enumerate(merged):
        if merge_key in item:
            positions.setdefault(identity(item[merge_key]), position)
    for item in additions:
        position = positions.setdefault(element_identity(item, merge_key), len(merged))
        if position < len(merged):
            merged[position] = merge_object(merged[position], item, field.shape)
        else:
            merged.append(item)
    # New items take the places that deleted ones left, one by one, and with an order set they count as if
    # they had always been there: the server reuses the array of the live list.
    places = merged[: len(live)]
    return arranged(merged, additions, survivors, merge_key), places


def _sorted_out(patch: list[Any], merge_key: str) -> tuple[list[Any], set[object], bool]:
    """Return the items of a patch without directives, the keys to delete, and whether to drop all the rest."""
    additions: list[Any] = []
    deleted: set[object] = set()
    replaced = False
    for item in patch:
        if _DIRECTIVE not in item:
            additions.append(item)
            continue
        match item[_DIRECTIVE]:
            case "delete":
                deleted.add(element_identity(item, merge_key))
            case "replace":
                replaced = True
            case "merge":
                raise PatchNotApplicable("merging lists cannot yet be specified in the patch")
            case _:
                raise unknown_directive(item)
    return additions, deleted, replaced


def _element_type(*lists: list[Any]) -> type:
    """Return the one type of all elements; raises if there are several or none."""
    types = [type(element) for elements in lists for element in elements]
    if not types:
        raise PatchNotApplicable("no elements in any of the given slices")
    first = types[0]
    if first is list:
        raise list_of_lists()
    if first is type(None):
        raise PatchNotApplicable("lists with null elements cannot be merged")
    if types.count(first) != len(types):
        raise mixed_elements(*lists)
    return first


def _list_at(fields: dict[str, Any], name: str) -> list[Any] | None:
    if name not in fields:
        return None
    value = fields[name]
    if not isinstance(value, list):
        raise wrong_type(LIST, value)
    return value


def _listed_field(key: str, directive: str) -> str:
    """Return the field that a directive such as `$setElementOrder/containers` is about."""
    found, slash, name = key.partition("/")
    if found != directive or not slash:
        raise bad_format("setElementOrder list" if directive == _ELEMENT_ORDER else "primitive list")
    return name


def _is_directive(value: object) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _without_nulls(value: Any) -> Any:
    """Return the value with no null in any of its objects; nulls in lists stay."""
    if isinstance(value, dict):
        kept = {}
        for key, child in value.items():
            if child is not None:
                kept[key] = _without_nulls(child)
        return kept
    if isinstance(value, list):
        return list(map(_without_nulls, value))
    return value


def _without_directives(value: Any) -> Any:
    """Return the value without the objects in it that carry a `$patch` directive."""
    if isinstance(value, dict):
        fields = {}
        for key, child in value.items():
            if not _is_directive(child):
                fields[key] = _without_directives(child)
        return fields
    if isinstance(value, list):
        return list(map(_without_directives, filterfalse(_is_directive, value)))
    return value
