"""JSON Merge Patch (RFC 7386) as the API server applies it, and the making of such patches."""

from typing import Any

from kubewire.jsonpatch import (
    MAX_DEPTH,
    Json,
    MalformedPatch,
    PatchFailed,
    cannot_unmarshal,
    equal,
    is_deeper_than,
)


def parse(patch: object) -> dict[str, Any]:
    """Return the decoded patch if it is an object, the only kind that the API server takes."""
    if patch is None:
        raise MalformedPatch("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise MalformedPatch(cannot_unmarshal(patch, "Go value of type map[string]interface {}"))
    return patch


def apply(document: Any, patch: Any) -> Any:
    """Return the patched document; the given one stays as it is and shares what was not touched.

    Objects are merged key by key, null removes a key, and everything else replaces what was there.
    As on the server, nulls are also left out of objects that are new in the document.
    """
    if is_deeper_than(patch, MAX_DEPTH):
        raise PatchFailed(f"the patch is nested more than {MAX_DEPTH} levels deep")
    return _merged(document, patch)


def create(old: Any, new: Any) -> Any:
    """Return the smallest patch that turns one document into the other.

    A merge patch cannot write null: a null in the new document means the same as its absence.
    """
    if is_deeper_than(old, MAX_DEPTH) or is_deeper_than(new, MAX_DEPTH):
        raise PatchFailed(f"a document is nested more than {MAX_DEPTH} levels deep")
    return _difference(old, new) if isinstance(old, dict) and isinstance(new, dict) else new


def _merged(document: Json, patch: Json) -> Json:
    if not isinstance(patch, dict) or not isinstance(document, dict):
        return _without_nulls(patch)
    merged = document.copy()
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def _without_nulls(value: Json) -> Json:
    """Return the value with no null in any of its objects; nulls in arrays stay, as positions matter."""
    # Plain loops: a comprehension would take a second frame per level of the nesting that is allowed.
    if isinstance(value, dict):
        kept: dict[str, Json] = {}
        for key, child in value.items():
            if child is not None:
                kept[key] = _without_nulls(child)
        return kept
    if isinstance(value, list):
        items: list[Json] = []
        for child in value:
            items.append(_without_nulls(child))  # noqa: PERF401 - see above
        return items
    return value


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {
        key: None for key, value in old.items() if value is not None and new.get(key) is None
    }
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            if changes := _difference(before, value):
                patch[key] = changes
        elif value is not None and not equal(before, value):
            patch[key] = value
    return patch
