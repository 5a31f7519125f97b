"""Strategic merge patch as the API server applies it to built-in kinds.

Objects are merged key by key and null removes a key. Lists are replaced, unless the published type says
that they are merged: items by their merge key, plain values as a set. Directives in the patch override this:

- `$patch: replace` or `delete` on an object, or on an item of a merged list;
- `$retainKeys`: the keys of the object that survive;
- `$deleteFromPrimitiveList/<field>`: plain values to take out of a list;
- `$setElementOrder/<field>`: the order of a list's items.

The quirks of the server's implementation are kept, because clients see them. It leaves one thing to the
decoding that follows: new items of a merged list, and whatever is replaced as a whole, are taken from the
patch as they stand, with the nulls and directives that they contain.
"""

from typing import Any

from kubewire.jsonpatch import (
    MAX_DEPTH,
    MalformedPatch,
    PatchError,
    PatchFailed,
    cannot_unmarshal,
    is_deeper_than,
)
from kubewire.strategicpatch.merging import merge_object
from kubewire.strategicpatch.problems import OBJECT, PatchNotApplicable
from kubewire.strategicpatch.shapes import Shape, shape_of

__all__ = [
    "MalformedPatch",
    "PatchError",
    "PatchFailed",
    "PatchNotApplicable",
    "Shape",
    "apply",
    "parse",
    "shape_of",
]


def parse(patch: object) -> dict[str, Any]:
    """Return the decoded patch if it is an object; null stands for one that changes nothing."""
    if patch is None:
        return {}
    if not isinstance(patch, dict):
        raise MalformedPatch(cannot_unmarshal(patch, f"Go value of type {OBJECT}"))
    return patch


def apply(document: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Return the patched document. Neither argument is changed; the result shares parts with both.

    Raises MalformedPatch (the API server answers 400), PatchFailed (422) or PatchNotApplicable (500).
    """
    if is_deeper_than(patch, MAX_DEPTH):
        raise PatchFailed(f"the patch is nested more than {MAX_DEPTH} levels deep")
    return merge_object(document, patch, shape)
