"""Who owns what: the entries of `metadata.managedFields`, and how writes change them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubewire.apply import merging
from kubewire.apply.comparing import Comparison, compare, owned
from kubewire.apply.fieldsets import (
    FieldSet,
    MalformedFields,
    difference,
    intersection,
    of_paths,
    ordered,
    parse,
    paths,
    union,
    without_all,
)
from kubewire.apply.kinds import Kind
from kubewire.apply.pruning import Pruning, fitted
from kubewire.fielderrors import as_json
from kubewire.gotext import quote

Entry = dict[str, Any]
Path = tuple[str, ...]

APPLY = "Apply"
UPDATE = "Update"

# How many managers that update get an entry of their own, and who stands for the others.
MAX_UPDATERS = 10
_OTHERS = "ancient-changes"
# Who owns what was there before anybody applied anything.
_EARLIER = "before-first-apply"

_META = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
)
# What nobody owns.
_UNOWNED = of_paths(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(("f:metadata", f"f:{name}") for name in (*_META, "resourceVersion")),
)


class Writer(NamedTuple):
    """Who writes, through which version and part of an object, and when."""

    manager: str
    api_version: str
    subresource: str
    now: str


class Conflict(NamedTuple):
    """A field that somebody else owns and that an applied configuration would change."""

    manager: str
    path: Path


class Conflicted(Exception):
    """An applied configuration would change what others own."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


class _Identity(NamedTuple):
    """What tells one entry from another. Who applies is the same in every version."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        """Return the identity as the server writes it internally, which decides the order of conflicts."""
        fields = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return ",".join(f'"{name}":{as_json(value)}' for name, value in fields.items() if value)

    @property
    def shown(self) -> str:
        """The manager as conflicts name it."""
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class _Owner(NamedTuple):
    """The fields of one manager, in the version in which they were written, and the entry that says so, if any."""

    fields: FieldSet
    api_version: str
    time: str
    entry: Entry | None = None


class Managers:
    """The managers of an object. Each write returns the entries that it leads to and changes nothing else."""

    def __init__(self, owners: Mapping[_Identity, _Owner]) -> None:
        self._owners = owners

    @classmethod
    def stored(cls, entries: list[Entry] | None) -> "Managers":
        """Return the managers that an object of the server's own names."""
        return cls({_identity(entry): _owner(entry, entry.get("fieldsV1") or {}) for entry in entries or ()})

    @classmethod
    def given(cls, entries: object) -> "Managers":
        """Return the managers that an object from outside names; MalformedFields if it does so badly."""
        owners = {}
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
                raise MalformedFields("operation must be `Apply` or `Update`")
            if not entry.get("apiVersion"):
                raise MalformedFields("apiVersion must not be empty")
            if entry.get("fieldsType") != "FieldsV1":
                raise MalformedFields("fieldsType must be FieldsV1")
            fields = ordered(parse(entry.get("fieldsV1") or {}))
            owners[_identity(entry)] = _owner({**entry, "fieldsV1": fields}, fields)
        return cls(owners)

    def __bool__(self) -> bool:
        return bool(self._owners)

    def updated(self, kind: Kind, old: dict[str, Any], new: dict[str, Any], writer: Writer) -> list[Entry]:
        """Return the entries after a write that replaced an object: who changes a field owns it from then on."""
        change = _Change(kind, old, new, writer.api_version)
        comparison = change.compared()
        owners = _after(self._owners, change, comparison)
        fields = difference(comparison.changed, _UNOWNED)
        if fields:
            identity = _identity_of(writer, UPDATE)
            if (before := self._owners.get(identity)) is not None:
                # What was written before and is written again need not be sorted again.
                left = owners[identity].fields if identity in owners else {}
                joined = union(left, fields)
                fields = before.fields if joined == before.fields else ordered(joined)
            owners[identity] = _Owner(fields, writer.api_version, writer.now)
            _cap(owners)
        return _entries(owners)

    def applied(
        self, kind: Kind, live: dict[str, Any], config: dict[str, Any], writer: Writer, *, force: bool
    ) -> tuple[dict[str, Any], list[Entry]]:
        """Return what an applied configuration makes of an object, and the entries after it.

        Raises Conflicted if it would change what others own, unless it may by force, and MergeFailed.
        """
        identity = _identity_of(writer, APPLY)
        owners = {who: _reconciled(kind, owner, writer.api_version) for who, owner in self._owners.items()}
        before = owners.get(identity)
        fields = without_all(owned(kind.shape, config), kind.resets)
        mine = _Owner(fields, writer.api_version, before.time if before else "")
        owners[identity] = mine
        new = merging.merge(kind.shape, live, config)
        if before is not None:
            new = Pruning(kind, writer.api_version).pruned(new, before, list(owners.values()))
        change = _Change(kind, live, new, writer.api_version)
        left = _after(owners, change, change.compared(), identity, force=force)
        left.pop(identity, None)
        if fields := difference(fields, _UNOWNED):
            time = mine.time if new == live else writer.now
            left[identity] = _Owner(ordered(fields), writer.api_version, time)
        return new, _entries(left)

    def with_earlier(
        self, kind: Kind, empty: dict[str, Any], live: dict[str, Any], writer: Writer
    ) -> "Managers":
        """Return managers that own what was there before ownership was known; these, if it was known."""
        if self._owners:
            return self
        return Managers.stored(self.updated(kind, empty, live, writer._replace(manager=_EARLIER)))


class _Change(NamedTuple):
    """An object before and after a write, in the version of the writer."""

    kind: Kind
    old: dict[str, Any]
    new: dict[str, Any]
    api_version: str

    def compared(self) -> Comparison:
        return compare(self.kind.shape, self.old, self.new).without(self.kind.resets)

    def compared_in(self, api_version: str) -> Comparison | None:
        """Return the change as another version sees it; None if that is no longer there."""
        old = self.kind.versions.converted(self.old, self.api_version, api_version)
        new = self.kind.versions.converted(self.new, self.api_version, api_version)
        if old is None or new is None:
            return None
        return compare(old.shape, old.obj, new.obj).without(self.kind.resets)


def _after(
    present: Mapping[_Identity, _Owner],
    change: _Change,
    comparison: Comparison,
    writer: _Identity | None = None,
    *,
    force: bool = True,
) -> dict[_Identity, _Owner]:
    """Return the owners after a change, without what the writer took from them; Conflicted if it may not."""
    owners = dict(present)
    conflicts: list[Conflict] = []
    # Most objects are written in one version only.
    compared: dict[str, Comparison | None] = {change.api_version: comparison}
    for identity in list(owners) if force else sorted(owners, key=str):
        if identity == writer:
            continue
        owner = owners[identity]
        if owner.api_version not in compared:
            compared[owner.api_version] = change.compared_in(owner.api_version)
        seen = compared[owner.api_version]
        if seen is None:
            del owners[identity]
            continue
        if not force:
            taken = intersection(owner.fields, seen.changed)
            conflicts += [Conflict(identity.shown, path) for path in paths(taken)]
        fields = difference(difference(owner.fields, seen.changed), seen.removed)
        if not fields:
            del owners[identity]
        elif fields is not owner.fields:
            owners[identity] = owner._replace(fields=fields, entry=None)
    if conflicts:
        raise Conflicted(conflicts)
    return owners


def _reconciled(kind: Kind, owner: _Owner, api_version: str) -> _Owner:
    """Return an owner whose fields fit the schema of today, where values may be whole that once had parts."""
    if owner.api_version != api_version:
        return owner
    fields = fitted(kind.shape, owner.fields)
    return owner if fields is owner.fields else owner._replace(fields=fields, entry=None)


# --- entries


def _identity(entry: Entry) -> _Identity:
    operation = entry["operation"]
    api_version = "" if operation == APPLY else entry["apiVersion"]
    return _Identity(entry.get("manager") or "", operation, api_version, entry.get("subresource") or "")


def _identity_of(writer: Writer, operation: str) -> _Identity:
    api_version = "" if operation == APPLY else writer.api_version
    return _Identity(writer.manager or "unknown", operation, api_version, writer.subresource)


def _owner(entry: Entry, fields: FieldSet) -> _Owner:
    return _Owner(fields, entry["apiVersion"], entry.get("time") or "", entry)


def _entry(identity: _Identity, owner: _Owner) -> Entry:
    if owner.entry is not None:
        return owner.entry
    entry: Entry = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": owner.api_version,
    }
    if owner.time:
        entry["time"] = owner.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owner.fields
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


def _entries(owners: Mapping[_Identity, _Owner]) -> list[Entry]:
    entries = [_entry(identity, owner) for identity, owner in owners.items() if owner.fields]
    return sorted(entries, key=_place) if len(entries) > 1 else entries


def _place(entry: Entry) -> tuple[str, str, str, str, str]:
    time, part = entry.get("time") or "", entry.get("subresource") or ""
    return (entry["operation"], time, entry.get("manager") or "", entry["apiVersion"], part)


def _cap(owners: dict[_Identity, _Owner]) -> None:
    """Put the oldest managers that update together until there are few enough."""
    updaters = [identity for identity in owners if identity.operation == UPDATE]
    if len(updaters) <= MAX_UPDATERS:
        return
    updaters.sort(key=lambda identity: (owners[identity].time, str(identity)))
    surplus = len(updaters) - MAX_UPDATERS
    first: dict[str, _Identity] = {}
    for identity in updaters:
        if not surplus:
            return
        owner = owners[identity]
        bucket = _Identity(_OTHERS, UPDATE, owner.api_version, "")
        if owner.api_version not in first:
            first[owner.api_version] = identity
            continue
        if bucket not in owners:
            owners[bucket] = owners.pop(first[owner.api_version])
        fields = ordered(union(owner.fields, owners[bucket].fields))
        owners[bucket] = _Owner(fields, owner.api_version, owner.time)
        del owners[identity]
        surplus -= 1
