"""Who owns which field of an object: `metadata.managedFields`, as every write leaves it."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.calls import Call
from kubereef.server.options import MAX_MANAGER_NAME
from kubereef.server.requests import Request
from kubereef.store.records import decode, encode
from kubewire import apply, gotypes
from kubewire.apply.fieldsets import FieldSet, of_paths
from kubewire.times import format_time

# What a client writes to have ownership forgotten.
_FORGET: list[Object] = [{}]

# All of an entry but its time, what changes most often first.
_UNTIMED = ("fieldsV1", "manager", "operation", "subresource", "apiVersion")

# What writing a part leaves alone, where it is not just the other half of the object.
_STATUS_RESETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "deployments.apps": (("spec",), ("metadata", "labels")),
    "pods": (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
}


def manager_of(request: Request) -> str:
    """Return who writes: as the request says, else as the name of its program does."""
    manager = request.parameter("fieldManager")
    if manager:
        return manager
    program = request.headers.get("user-agent", "").partition("/")[0]
    is_plain = program.isascii() and program.isprintable() and len(program) <= MAX_MANAGER_NAME
    return program if is_plain else _printable(program)


def _printable(text: str) -> str:
    """Return the characters of a text that can be printed, as many as a manager's name may have bytes."""
    kept = "".join(filter(str.isprintable, text)).encode()[:MAX_MANAGER_NAME]
    return kept.decode(errors="ignore")


def created(call: Call, obj: Object) -> list[apply.Entry]:
    """Return the managers of an object that is about to be created, which has its defaults and nothing else yet."""
    given = obj["metadata"].pop("managedFields", None)
    managers = apply.Managers({}) if not given or given == _FORGET else _given(given, [])
    return managers.updated(kind_of(call), empty(call.resource_type), obj, writer(call))


def updated(call: Call, obj: Object, old: Object) -> list[apply.Entry]:
    """Return the managers of an object that is about to replace another, before anything is carried over."""
    given = obj["metadata"].pop("managedFields", None)
    entries: list[apply.Entry] = old["metadata"].get("managedFields") or []
    if not entries and given is None:
        return []
    if given is not None and given != entries and not call.target.subresource:
        if given == _FORGET:
            return []
        managers = _given(given, entries)
    else:
        managers = apply.Managers.stored(entries)
    # Ownership that was forgotten is not tracked again until somebody applies.
    return managers.updated(kind_of(call), old, obj, writer(call)) if managers else []


def put(obj: Object, entries: list[apply.Entry]) -> None:
    """Write the managers into an object."""
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def is_only_restamped(obj: Object, old: Object) -> bool:
    """Tell whether an object differs from another in nothing but when its managers wrote."""
    entries, before = (one["metadata"].get("managedFields") or [] for one in (obj, old))
    if len(entries) != len(before) or entries == before:
        return False
    is_same = all(
        one.get(field) == other.get(field)
        for one, other in zip(entries, before, strict=True)
        for field in _UNTIMED
    )
    return is_same and _unmanaged(obj) == _unmanaged(old)


def kind_of(call: Call) -> apply.Kind:
    """Return what the rules of ownership need to know about the object of a call."""
    resource_type, subresource = call.resource_type, call.target.subresource
    key = ("resets", subresource)
    resets = resource_type.cache.get(key)
    if resets is None:
        resets = resource_type.cache[key] = resets_of(resource_type, subresource)
    return apply.Kind(shape_of(resource_type), resets, Versions(call.around.registry, resource_type))


def writer(call: Call) -> apply.Writer:
    """Return who writes, in which version and part, and when."""
    api_version, subresource = call.resource_type.api_version, call.target.subresource
    return apply.Writer(manager_of(call.request), api_version, subresource, _stamp(int(call.wish.moment.now)))


@lru_cache(2)
def _stamp(second: int) -> str:
    return format_time(datetime.fromtimestamp(second, UTC))


def empty(resource_type: ResourceType) -> Object:
    """Return an object of a kind in which nothing is set."""
    definition = resource_type.definition
    return gotypes.empty(definition) if gotypes.is_known(definition) else {"metadata": {}}


def shape_of(resource_type: ResourceType) -> apply.Shape:
    """Return what the schema of a kind says about ownership."""
    found: apply.Shape | None = resource_type.cache.get("shape")
    if found is None:
        if resource_type.custom:
            found = apply.custom_shape(resource_type.schema)
        else:
            found = apply.definition_shape(resource_type.definition)
        resource_type.cache["shape"] = found
    return found


class Versions:
    """The versions of a resource that are served."""

    def __init__(self, registry: Registry, resource_type: ResourceType) -> None:
        self._registry = registry
        self._resource_type = resource_type

    def converted(self, obj: Object, source: str, target: str) -> apply.Converted | None:
        """Return an object of one version in another; None if that is not served."""
        before, after = self._find(source), self._find(target)
        if before is None or after is None:
            return None
        shown = after.from_stored(_copied(before.to_stored(_copied(obj))))
        return apply.Converted(shape_of(after), shown)

    def _find(self, api_version: str) -> ResourceType | None:
        storage = self._resource_type.storage
        return next(
            (one for one in self._registry if one.storage == storage and one.api_version == api_version), None
        )


def resets_of(resource_type: ResourceType, subresource: str) -> FieldSet:
    """Return the fields that a write of a resource or of a part of it never changes."""
    paths: tuple[tuple[str, ...], ...] = ()
    if subresource == "status":
        usual = (("metadata",), ("spec",)) if resource_type.custom else (("spec",),)
        paths = _STATUS_RESETS.get(resource_type.resource, usual)
    elif "status" in resource_type.subresources:
        paths = (("status",),)
    return of_paths(*(tuple(f"f:{name}" for name in path) for path in paths))


def _given(entries: Any, instead: list[apply.Entry]) -> apply.Managers:
    """Return the managers that a client wrote; those there were if it did so badly or named none."""
    try:
        managers = apply.Managers.given(entries)
    except apply.MalformedFields:
        managers = apply.Managers({})
    return managers or apply.Managers.stored(instead)


def _copied(obj: Object) -> Object:
    copy: Object = decode(encode(obj))
    return copy


def _unmanaged(obj: Object) -> Object:
    metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
    return {**obj, "metadata": metadata}
