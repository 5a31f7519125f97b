"""What goes of an object when its applier no longer mentions it: what it set before and nobody owns now."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from kubewire.apply import merging
from kubewire.apply.comparing import owned
from kubewire.apply.fieldsets import LEAF, FieldSet, difference, intersection, union
from kubewire.apply.kinds import Kind
from kubewire.apply.shapes import Shape


class _Owner(Protocol):
    @property
    def fields(self) -> FieldSet: ...

    @property
    def api_version(self) -> str: ...


class Pruning(NamedTuple):
    """The removal of dropped fields, for an object in one version."""

    kind: Kind
    api_version: str

    def pruned(self, merged: dict[str, Any], before: _Owner, owners: Sequence[_Owner]) -> dict[str, Any]:
        """Return a merged object without what its applier owned before, unless anybody owns it now."""
        converted = self.kind.versions.converted
        version = before.api_version
        if version == self.api_version:
            return _without_dropped(self.kind, self.kind.shape, merged, version, before.fields, owners)
        seen = converted(merged, self.api_version, version)
        if seen is None:
            return merged
        left = _without_dropped(self.kind, seen.shape, seen.obj, version, before.fields, owners)
        back = converted(left, version, self.api_version)
        return merged if back is None else back.obj


def _without_dropped(
    kind: Kind,
    shape: Shape,
    merged: dict[str, Any],
    version: str,
    last: FieldSet,
    owners: Sequence[_Owner],
) -> dict[str, Any]:
    last = with_declared(shape, last)
    left = merging.without(shape, merged, last)
    others = sorted({owner.api_version for owner in owners} - {version})
    for other in (version, *others):
        managed: FieldSet = {}
        for owner in owners:
            if owner.api_version == other:
                managed = union(managed, owner.fields)
        left = _with_owned(kind, shape, merged, left, version, other, managed)
    # Not all that is missing now goes: defaults that nobody owns stay.
    missing = difference(_all_fields(shape, merged), _all_fields(shape, left))
    gone = intersection(missing, last)
    return merging.without(shape, merged, gone) if gone else merged


def _with_owned(
    kind: Kind,
    shape: Shape,
    merged: dict[str, Any],
    left: dict[str, Any],
    version: str,
    other: str,
    managed: FieldSet,
) -> dict[str, Any]:
    """Return what is left of an object, with what is owned in another version added back."""
    whole = merged
    if other != version:
        seen, remains = (kind.versions.converted(obj, version, other) for obj in (merged, left))
        if seen is None or remains is None:
            return left
        shape, whole, left = seen.shape, seen.obj, remains.obj
    kept = union(_all_fields(shape, left), with_declared(shape, managed))
    left = merging.without(shape, whole, difference(_all_fields(shape, whole), kept))
    if other == version:
        return left
    back = kind.versions.converted(left, other, version)
    return left if back is None else back.obj


def _all_fields(shape: Shape, obj: dict[str, Any]) -> FieldSet:
    return with_declared(shape, owned(shape, obj))


def with_declared(shape: Shape | None, fields: FieldSet) -> FieldSet:
    """Return a set that also has the declared fields on the way to its members, which owners leave out."""
    found: FieldSet = {}
    for element, below in fields.items():
        if not below:
            found[element] = below
            continue
        inner, is_declared = _below(shape, element)
        deeper = with_declared(inner, below)
        found[element] = {".": LEAF, **deeper} if is_declared else deeper
    return found


def fitted(shape: Shape | None, fields: FieldSet) -> FieldSet:
    """Return a set in which values that are whole by the schema have no parts; the set itself if that is so."""
    left = None
    for element, below in fields.items():
        if not below:
            continue
        inner, _ = _below(shape, element)
        parts = () if inner is None else (inner.map, inner.list)
        is_whole = inner is not None and all(part is None or part.is_atomic for part in parts)
        deeper = LEAF if is_whole else fitted(inner, below)
        if deeper is not below:
            left = left or dict(fields)
            left[element] = deeper
    return fields if left is None else left


def _below(shape: Shape | None, element: str) -> tuple[Shape | None, bool]:
    """Return the shape that a step leads to, if it is known, and whether that is a declared field."""
    if shape is None:
        return None, False
    if element[0] == "f" and shape.map is not None:
        name = element[2:]
        return shape.map.steps[name][1], name in shape.map.declared
    if element[0] in "kv" and shape.list is not None:
        return shape.list.items, False
    return None, False
