"""delete and deletecollection."""

from datetime import timedelta
from itertools import islice

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.admission import Attempt
from kubereef.server.answers import list_response, object_response, warning_headers
from kubereef.server.calls import Call
from kubereef.server.listing import number, selected_records
from kubereef.server.options import DeleteOptions
from kubereef.server.requests import Response, json_response
from kubereef.server.selection import Selection
from kubereef.server.webhooks.admitting import are_asked, mutated, validated
from kubereef.server.writing import is_over, missing
from kubereef.store.errors import Conflict
from kubereef.store.records import Key, Record, encode
from kubewire import errors
from kubewire.times import format_time, parse_time

# The longest time that Go has a number of nanoseconds for, 292 years: with it, dates stay dates.
_LONGEST = 2**63 // 10**9

# How often the deletion of one object of a collection is tried.
_TRIES = 6
_FINALIZERS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}


async def delete(call: Call) -> Response:
    """Delete an object, or begin to."""
    options = DeleteOptions.of(call.request)
    record = call.store.latest(call.key)
    if record is None:
        raise missing(call.resource_type, call.target.name)
    check_preconditions(call.resource_type, record.object(), options)
    kept = await delete_record(call, record, options)
    resource_type = call.resource_type
    headers = warning_headers(_warnings(resource_type, options))
    if kept is not None:
        return object_response(resource_type, kept, call.wish, 200, headers)
    details = {
        "name": record.key.name,
        "kind": resource_type.plural,
        "uid": record.object()["metadata"]["uid"],
    }
    if resource_type.group:
        details["group"] = resource_type.group
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return json_response(200, status, headers)


async def delete_collection(call: Call) -> Response:
    """Delete what is selected, and answer with it as it was."""
    options = DeleteOptions.of(call.request)
    selection = Selection.of(call.request, call.resource_type, call.namespace)
    limit = number(call.request, "limit") or 0
    records = list(islice(selected_records(call.store, selection), limit if limit > 0 else None))
    for record in records:
        await _delete_latest(call, record.key, options)
    return list_response(
        call.resource_type, records, {"resourceVersion": str(call.store.revision)}, call.wish
    )


async def _delete_latest(call: Call, key: Key, options: DeleteOptions) -> None:
    """Delete an object of a collection as it is by now, however often others change it meanwhile."""
    for _ in range(_TRIES):
        latest = call.store.latest(key)
        if latest is None:
            return
        check_preconditions(call.resource_type, latest.object(), options)
        try:
            await delete_record(call, latest, options)
        except Conflict:
            continue
        return
    raise errors.modified(call.resource_type.plural, key.name, group=call.resource_type.group)


async def delete_record(call: Call, record: Record, options: DeleteOptions) -> bytes | None:
    """Delete a record; what is returned is the object to answer with, if not a mere Status."""
    resource_type = call.resource_type
    old = resource_type.from_stored(record.object())
    attempt = Attempt(
        "DELETE",
        resource_type,
        record.key.namespace,
        record.key.name,
        old,
        old,
        call.user,
        "",
        options.dry_run,
    )
    call.around.admission.validate(call.store, attempt)
    # Of an object in a collection, webhooks are not told the name. Those who change objects are asked, too, though
    # there is nothing to be changed.
    if are_asked(call):
        shown = attempt._replace(name=call.target.name)
        await mutated(call, shown)
        await validated(call, shown)
    obj = resource_type.from_stored(record.object())
    _mark(call, obj, options)
    if is_over(resource_type, obj):
        gone = await _remove(call, record, obj, dry_run=options.dry_run)
        return gone if resource_type.behaviour.returns_deleted else None
    if obj == old:
        return record.data
    begins = "deletionTimestamp" not in old["metadata"]
    # Kinds that begin their deletion in a way of their own have no period of grace, and keep their generation.
    is_usual = "deletionGracePeriodSeconds" in obj["metadata"] and resource_type.behaviour.grace is None
    if begins and is_usual and resource_type.behaviour.counts_generations:
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    stored = resource_type.to_stored(obj)
    if options.dry_run:
        return encode(stored)
    return (await call.store.put(record.key, stored, record).done()).data


async def _remove(call: Call, record: Record, obj: Object, *, dry_run: bool) -> bytes:
    """Remove a record and return the object as it last was.

    What could have been given time shows that it got none: watchers see the deletion begin and then end.
    """
    if call.resource_type.behaviour.grace is None:
        obj = record.object()
    if dry_run:
        return encode(obj)
    if call.resource_type.behaviour.grace is None:
        return (await call.store.remove(record.key, obj, record).done()).data
    marked = call.store.put(record.key, obj, record).record
    await call.store.remove(marked.key, obj, marked).done()
    return marked.data


def _mark(call: Call, obj: Object, options: DeleteOptions) -> None:
    """Write into an object that it is to be deleted: when, and what is to happen to its dependents."""
    meta = obj["metadata"]
    behaviour = call.resource_type.behaviour
    begun = meta.get("deletionTimestamp")
    if behaviour.grace is None:
        _set_propagation(call.resource_type, meta, options)
        if begun:
            return
        grace, moment = 0, call.around.clock.now()
    else:
        # A negative period means the shortest one that is one.
        wish = 1 if options.grace is not None and options.grace < 0 else options.grace
        if begun:
            # A period can only be shortened; it began when the deletion did.
            period = meta.get("deletionGracePeriodSeconds") or 0
            if wish is None or wish >= period:
                return
            grace, moment = wish, parse_time(begun) - (_span(period) - _span(wish))
        else:
            grace = behaviour.grace(obj, wish)
            moment = call.around.clock.now() + _span(grace)
            if "generation" in meta:
                meta["generation"] += 1
        _set_propagation(call.resource_type, meta, options)
    meta["deletionTimestamp"] = format_time(moment)
    meta["deletionGracePeriodSeconds"] = grace
    behaviour.begin_deletion(obj)


def _span(seconds: int) -> timedelta:
    """Return how long a period is; one that no clock will see the end of, as long as Go can count."""
    return timedelta(seconds=min(seconds, _LONGEST))


def _set_propagation(resource_type: ResourceType, meta: Object, options: DeleteOptions) -> None:
    policy = options.propagation
    if not policy and options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
    given = [one for one in meta.get("finalizers") or [] if one in _FINALIZERS.values()]
    if not policy and given:
        return
    policy = policy or resource_type.behaviour.default_propagation
    finalizers = [one for one in meta.get("finalizers") or [] if one not in _FINALIZERS.values()]
    if policy in _FINALIZERS:
        finalizers.append(_FINALIZERS[policy])
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _warnings(resource_type: ResourceType, options: DeleteOptions) -> list[str]:
    if (
        resource_type.behaviour.default_propagation != "Orphan"
        or options.propagation
        or options.orphan is not None
    ):
        return []
    warning = (
        f"child pods are preserved by default when {resource_type.plural} are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
    )
    return [warning]


def check_preconditions(resource_type: ResourceType, obj: Object, options: DeleteOptions) -> None:
    """Refuse a deletion that is meant for another object, or for this one as it was before."""
    meta = obj["metadata"]
    because = ""
    if options.uid and options.uid != meta["uid"]:
        because = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
    elif options.resource_version and options.resource_version != meta["resourceVersion"]:
        because = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
        )
    if because:
        raise errors.conflict(resource_type.kind, meta["name"], because, group=resource_type.group)
