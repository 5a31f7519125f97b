"""create, update and patch."""

from typing import Any

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server import metadata, ownership
from kubereef.server.admission import Attempt, namespace_lifecycle
from kubereef.server.answers import object_response
from kubereef.server.calls import Call
from kubereef.server.incoming import incoming_object
from kubereef.server.options import WriteOptions
from kubereef.server.requests import Response
from kubereef.server.webhooks.admitting import are_asked, mutated, validated
from kubereef.store.errors import Conflict
from kubereef.store.records import Key, Record, encode
from kubewire import errors, fielderrors, names
from kubewire.apply import Entry
from kubewire.gotext import quote

# How often a taken name that the server made itself is made anew.
_NAME_TRIES = 8


async def create(call: Call) -> Response:
    """Create the object in the body."""
    options = WriteOptions.of(call.request, "CreateOptions")
    obj, warnings = incoming_object(call.request, call.resource_type, options.validation)
    return await create_object(call, obj, options, warnings)


async def create_object(
    call: Call, obj: Object, options: WriteOptions, warnings: list[str], owners: list[Entry] | None = None
) -> Response:
    """Create an object that has been read. Its `owners` are found out unless they are known."""
    resource_type = call.resource_type
    behaviour = resource_type.behaviour
    call.warnings.extend(warnings)
    check_namespace(call, obj)
    if obj["metadata"].get("resourceVersion") not in (None, "", "0"):
        raise errors.ApiError("resourceVersion should not be set on objects to be created")
    obj["metadata"].pop("resourceVersion", None)
    call.warnings.extend(metadata.without_double_owners(obj))
    behaviour.defaults(obj)
    if owners is None and call.around.tracks:
        owners = ownership.created(call, obj)
    ownership.put(obj, owners or [])
    is_named = bool(obj["metadata"].get("name"))
    metadata.begin(resource_type, obj, call.namespace, call.around.clock, call.around.entropy)
    attempt = Attempt(
        "CREATE",
        resource_type,
        call.namespace,
        obj["metadata"].get("name", ""),
        obj,
        None,
        call.user,
        "",
        options.dry_run,
    )
    admission = call.around.admission
    await admission.wait(call.store, attempt)
    call.warnings.extend(admission.mutate(call.store, attempt))
    if asked := are_asked(call):
        await _changed_by_others(call, attempt, is_named=is_named)
        ownership.put(obj, owners or [])
    if not is_named:
        _settle_name(call, obj)
    attempt = attempt._replace(name=obj["metadata"].get("name", ""))
    if "status" in resource_type.subresources:
        _set(obj, "status", behaviour.first_status(obj))
    behaviour.prepare_create(obj)
    found = [*behaviour.validate(obj), *behaviour.validate_create(obj)]
    refuse(resource_type, obj, [*metadata.problems(resource_type, obj), *found])
    call.warnings.extend(behaviour.warnings(obj))
    call.warnings.extend(admission.validate(call.store, attempt))
    if asked:
        await validated(call, attempt)
        # While they thought about it, the namespace may have gone.
        check_unmoved(call)
        namespace_lifecycle(call.store, attempt)
    # From here on nothing waits, so that a name that is free stays free.
    call.warnings.extend(admission.settle(call.store, attempt))
    key = _free_key(call, obj)
    if options.dry_run:
        data = encode(resource_type.to_stored(obj))
        return object_response(resource_type, data, call.wish, 201)
    record = await call.store.put(key, resource_type.to_stored(obj), None).done()
    return object_response(resource_type, record.data, call.wish, 201)


async def _changed_by_others(call: Call, attempt: Attempt, *, is_named: bool) -> None:
    """Let webhooks change a new object, which to them has nothing yet that the server makes, such as a uid."""
    obj = attempt.obj
    filled_in = metadata.hide(obj, name=not is_named)
    shown = attempt if is_named else attempt._replace(name="")

    def again() -> None:
        call.around.admission.mutate(call.store, attempt)

    await mutated(call, shown, again)
    if obj["metadata"].get("name"):
        filled_in.pop("name", None)  # they have chosen one
    metadata.hide(obj, name=False)
    obj["metadata"].update(filled_in)
    check_namespace(call, obj)


async def update(call: Call) -> Response:
    """Replace an object by the one in the body."""
    options = WriteOptions.of(call.request, "UpdateOptions")
    obj, warnings = incoming_object(call.request, call.resource_type, options.validation)
    check_name(call, obj)
    check_namespace(call, obj)
    record = call.store.latest(call.key)
    if record is None:
        if call.resource_type.behaviour.put_creates and not obj["metadata"].get("resourceVersion"):
            return await create_object(call, obj, options, warnings)
        raise missing(call.resource_type, call.target.name)
    replaced = obj["metadata"].get("resourceVersion") or "0"
    if replaced == "0" and call.resource_type.behaviour.needs_version:
        raise _unconditional(call)
    return await replace_object(call, record, obj, options, warnings)


def _unconditional(call: Call) -> errors.Invalid:
    """Return the refusal of an update that does not say what it replaces; it names the resource, not the kind."""
    problem = fielderrors.invalid(("metadata", "resourceVersion"), 0, "must be specified for an update")
    resource_type = call.resource_type
    return errors.invalid(resource_type.plural, call.target.name, [problem], group=resource_type.group)


async def replace_object(
    call: Call,
    record: Record,
    obj: Object,
    options: WriteOptions,
    warnings: list[str],
    owners: list[Entry] | None = None,
) -> Response:
    """Put an object that has been read in the place of a record, if it may be.

    Its `owners` are found out unless they are known.
    """
    resource_type = call.resource_type
    behaviour = resource_type.behaviour
    call.warnings.extend(warnings)
    old = resource_type.from_stored(record.object())
    check_version(resource_type, obj, old)
    call.warnings.extend(metadata.without_double_owners(obj))
    behaviour.defaults(obj)
    if owners is None:
        owners = ownership.updated(call, obj, old)
    metadata.carry_over(obj, old)
    subresource = call.target.subresource
    attempt = Attempt(
        "UPDATE",
        resource_type,
        call.namespace,
        record.key.name,
        obj,
        old,
        call.user,
        subresource,
        options.dry_run,
    )
    admission = call.around.admission
    call.warnings.extend(admission.mutate(call.store, attempt))
    ownership.put(obj, owners)
    if asked := are_asked(call):
        await mutated(call, attempt, lambda: admission.mutate(call.store, attempt))
        metadata.carry_over(obj, old)
    part = behaviour.parts.get(subresource)
    if part is not None:
        part.prepare(obj, old)
        found = part.validate(obj, old)
    elif subresource == "status":
        behaviour.prepare_status(obj, old)
        found = behaviour.validate_status(obj, old)
    else:
        if "status" in resource_type.subresources:
            _set(obj, "status", old.get("status"))
        behaviour.prepare_update(obj, old)
        found = [*behaviour.validate(obj), *behaviour.validate_update(obj, old)]
    ownership.put(obj, owners)
    metadata.count_generation(resource_type, obj, old)
    # These reach the client even if other problems refuse the update.
    call.warnings.extend(str(problem) for problem in found if problem.tolerated)
    found = [problem for problem in found if not problem.tolerated]
    refuse(
        resource_type,
        obj,
        [*metadata.update_problems(resource_type, obj, old, subresource), *found],
    )
    warn = behaviour.update_warnings
    call.warnings.extend(behaviour.warnings(obj) if warn is None else warn(obj, old))
    call.warnings.extend(admission.validate(call.store, attempt))
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if asked:
        await validated(call, attempt)
        check_unmoved(call, record)
    call.warnings.extend(admission.settle(call.store, attempt))
    data = await keep(call, record, obj, old, dry_run=options.dry_run)
    return object_response(resource_type, data, call.wish)


async def keep(call: Call, record: Record, obj: Object, old: Object, *, dry_run: bool) -> bytes:
    """Store what an object has become and return it; nothing is written if it is what it was."""
    if obj == old or ownership.is_only_restamped(obj, old):
        return record.data
    stored = call.resource_type.to_stored(obj)
    if dry_run:
        return encode(stored)
    if is_over(call.resource_type, obj):
        # The answer shows the version that the object last had, as Kubernetes does.
        answer = encode(stored)
        # Those who watch see it as it was before it lost what held it.
        await call.store.remove(record.key, record.object(), record).done()
        return answer
    return (await call.store.put(record.key, stored, record).done()).data


def is_over(resource_type: ResourceType, obj: Object) -> bool:
    """Tell whether a deletion that has begun has nothing left to wait for."""
    meta = obj["metadata"]
    return (
        bool(meta.get("deletionTimestamp"))
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not resource_type.behaviour.held(obj)
    )


def check_unmoved(call: Call, record: Record | None = None) -> None:
    """Refuse to go on where the world has, while webhooks were asked: a request that meets Conflict begins anew."""
    if record is not None and call.store.latest(record.key) is not record:
        raise Conflict("the object has been changed by another writer")
    kind = call.resource_type
    if call.around.registry.find(kind.group, kind.version, kind.plural) is not kind:
        raise Conflict("the definition of the resource has been changed")


def check_version(resource_type: ResourceType, obj: Object, old: Object) -> None:
    """Refuse a write that names another version or another object than the present one."""
    wanted = obj["metadata"].get("resourceVersion")
    name, group = old["metadata"]["name"], resource_type.group
    if wanted and not wanted.isdigit():
        raise errors.ApiError(f"strconv.ParseUint: parsing {quote(wanted)}: invalid syntax")
    if wanted and wanted != "0" and wanted != old["metadata"]["resourceVersion"]:
        raise errors.modified(resource_type.plural, name, group=group)
    uid = obj["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"] and wanted in (None, "", "0"):
        because = (
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        )
        raise errors.conflict(resource_type.plural, name, because, group=group)


def check_name(call: Call, obj: Object) -> None:
    """Refuse an object whose name is not the one in the path."""
    name = obj["metadata"].get("name")
    if not name:
        because = "was undeterminable: name must be provided"
        raise errors.bad_request(f"the name of the object ({call.target.name} based on URL) {because}")
    if name != call.target.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.target.name})"
        )


def check_namespace(call: Call, obj: Object) -> None:
    """Refuse an object whose namespace is not the one in the path."""
    if not call.namespace:
        obj["metadata"].pop("namespace", None)  # it means nothing where there are none
    given = obj["metadata"].get("namespace") or ""
    if given and given != call.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def refuse(resource_type: ResourceType, obj: Object, problems: list[Any]) -> None:
    """Raise Invalid if there is any problem."""
    if problems:
        name = obj["metadata"].get("name", "")
        # What is kept as another kind is refused in the name of that one.
        group = resource_type.storage.partition(".")[2]
        raise errors.invalid(resource_type.kind, name, problems, group=group)


def missing(resource_type: ResourceType, name: str) -> errors.NotFound:
    return errors.not_found(resource_type.plural, name, group=resource_type.group)


def _settle_name(call: Call, obj: Object) -> None:
    """Make a name that the server made anew while it is taken; one that a client chose is its own affair."""
    meta = obj["metadata"]
    if not meta.get("generateName"):
        return
    for _ in range(_NAME_TRIES):
        if call.store.latest(call.key_of(meta["name"])) is None:
            return
        meta["name"] = names.generate_name(meta["generateName"], call.around.entropy)
    resource_type = call.resource_type
    raise errors.generated_name_taken(resource_type.plural, meta["name"], group=resource_type.group)


def _free_key(call: Call, obj: Object) -> Key:
    """Return the key of a new object, unless there is one under it."""
    key = call.key_of(obj["metadata"]["name"])
    taken = call.store.latest(key)
    if taken is None:
        return key
    refusal = errors.already_exists(call.resource_type.plural, key.name, group=call.resource_type.group)
    if taken.object()["metadata"].get("deletionTimestamp"):
        refusal.message = f"object is being deleted: {refusal.message}"
    raise refusal


def _set(obj: Object, field: str, value: object) -> None:
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = value
