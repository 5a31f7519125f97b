"""The scale subresource: the size of something, apart from what it is."""

from typing import Any

from kubereef.kinds.columns import AGE, NAME, number
from kubereef.kinds.resource import Behaviour, Object, ResourceType, ScalePaths
from kubereef.server import ownership
from kubereef.server.answers import object_response
from kubereef.server.applying import APPLY, apply_body, configuration, merged
from kubereef.server.calls import Call
from kubereef.server.incoming import check_kind, incoming_object, well_formed
from kubereef.server.media import content_type, decoded_json
from kubereef.server.options import WriteOptions
from kubereef.server.requests import Response
from kubereef.server.webhooks.admitting import admitted, unasked
from kubereef.server.writing import check_name, check_version, missing, replace_object
from kubereef.store.records import Record, encode
from kubewire import errors, fielderrors, gotypes, jsonpatch, mergepatch
from kubewire.apply import Entry
from kubewire.apply.scales import object_entries, scale_entries
from kubewire.gotext import quote
from kubewire.selectors import LabelSelector

_DEFINITION = "io.k8s.api.autoscaling.v1.Scale"
_UNSET = -(2**31)
SCALE = ResourceType(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    namespaced=True,
    verbs=frozenset(),
    definition=_DEFINITION,
    behaviour=Behaviour(
        read=lambda obj: gotypes.read(_DEFINITION, obj),
        columns=(
            NAME._replace(format=""),
            number("Desired", "spec", "replicas"),
            number("Available", "status", "replicas"),
            AGE,
        ),
    ),
)


async def scale(call: Call, paths: ScalePaths) -> Response:
    """Answer get, update and patch of a scale."""
    record = call.store.latest(call.key)
    if record is None:
        raise missing(call.resource_type, call.target.name)
    if call.target.verb == "get":
        return _answer(call, record, paths)
    is_patch = call.target.verb == "patch"
    language = content_type(call.request) if is_patch else ""
    options = WriteOptions.of(call.request, "PatchOptions" if is_patch else "UpdateOptions", language)
    obj = call.resource_type.from_stored(record.object())
    wanted, owners = _wanted_and_owners(call, obj, paths, options)
    before = scale_of(obj, paths)
    await admitted(call, SCALE, wanted, operation="UPDATE", old=before, dry_run=options.dry_run)
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas == _UNSET:
        raise errors.bad_request(f'the spec replicas field "{_written(paths.spec)}" cannot be empty')
    # A custom resource's own validation says what its size may be.
    if not isinstance(replicas, int) or (replicas < 0 and not paths.is_explicit):
        problem = fielderrors.invalid(("spec", "replicas"), replicas, "must be greater than or equal to 0")
        raise errors.invalid("Scale", call.target.name, [problem], group="autoscaling")
    check_version(call.resource_type, wanted, obj)
    _put(obj, paths.spec, replicas)
    main = unasked(call)._replace(target=call.target._replace(subresource=""))
    await replace_object(main, record, obj, options, [], owners)
    written = call.store.latest(call.key)
    if options.dry_run or written is None:
        written = Record(record.key, record.revision, encode(obj))
    return _answer(call, written, paths)


def _wanted_and_owners(
    call: Call, obj: Object, paths: ScalePaths, options: WriteOptions
) -> tuple[Object, list[Entry]]:
    """Return the scale that a write asks for, and who owns the fields of the object after it."""
    entries: list[Entry] = obj["metadata"].get("managedFields") or []
    size = tuple(f"f:{name}" for name in paths.spec)
    scaled = call._replace(resource_type=SCALE)
    present = _present(obj, paths)
    if of_scale := scale_entries(entries, size):
        present["metadata"]["managedFields"] = of_scale
    if content_type(call.request) == APPLY:
        wanted, of_scale = merged(scaled, present, configuration(scaled, apply_body(call)))
        wanted = _read(wanted)
        check_name(call, wanted)
    else:
        wanted = _wanted(call, obj, paths, options)
        # Ownership that is not tracked stays so.
        of_scale = (
            ownership.updated(scaled, {**wanted, "status": present["status"]}, present) if entries else []
        )
    return wanted, object_entries(entries, of_scale, size, call.resource_type.api_version)


def _wanted(call: Call, obj: Object, paths: ScalePaths, options: WriteOptions) -> Object:
    if call.target.verb == "update":
        given, warnings = incoming_object(call.request, SCALE, options.validation)
        call.warnings.extend(warnings)
        check_name(call, given)
        return given
    before = {"apiVersion": SCALE.api_version, "kind": SCALE.kind, **_present(obj, paths)}
    wanted: Any
    try:
        decoded = decoded_json(call.request.body)
        body = decoded.value
        if content_type(call.request) == "application/json-patch+json":
            wanted = jsonpatch.apply(before, jsonpatch.parse(body))
        else:
            wanted = mergepatch.apply(before, mergepatch.parse(body))
    except ValueError as bad:
        raise errors.bad_request(str(bad)) from None
    if not isinstance(wanted, dict):
        raise errors.bad_request("the patch leaves no object")
    check_kind(SCALE, wanted)
    repeated = [f"duplicate field {quote(path)}" for path in decoded.duplicates]
    try:
        found, warnings = well_formed(SCALE, wanted, repeated, options.validation)
    except ValueError as bad:
        shown = fielderrors.as_json({"apiVersion": SCALE.api_version, "kind": SCALE.kind, **wanted})
        problem = fielderrors.invalid(("patch",), shown, str(bad))
        raise errors.invalid("", "", [problem]) from None
    call.warnings.extend(warnings)
    check_name(call, found)
    return found


def _present(obj: Object, paths: ScalePaths) -> Object:
    """Return the scale that a write begins with; what has no size has one that tells whether the write set any."""
    present = scale_of(obj, paths)
    if paths.is_explicit and _at(obj, paths.spec) is None:
        present["spec"] = {"replicas": _UNSET}
    return present


def _read(wanted: Object) -> Object:
    """Return a scale as its type reads it, or refuse it."""
    try:
        return well_formed(SCALE, wanted, [], "Ignore")[0]
    except ValueError as bad:
        raise errors.bad_request(str(bad)) from None


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    """Return the scale of an object."""
    metadata = obj["metadata"]
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = _at(obj, paths.selector) if paths.selector else None
    if isinstance(selector, dict):
        selector = str(LabelSelector.of(selector))
    status: Object = {"replicas": _at(obj, paths.status) or 0}
    if selector:
        status["selector"] = selector
    return {
        "metadata": {field: metadata[field] for field in fields if field in metadata},
        "spec": {"replicas": replicas} if (replicas := _at(obj, paths.spec)) else {},
        "status": status,
    }


def _answer(call: Call, record: Record, paths: ScalePaths) -> Response:
    obj = call.resource_type.from_stored(record.object())
    if paths.is_explicit and _at(obj, paths.spec) is None:
        raise errors.internal_error(f'the spec replicas field "{_written(paths.spec)}" does not exist')
    return object_response(SCALE, encode(scale_of(obj, paths)), call.wish)


def _written(path: tuple[str, ...]) -> str:
    return f".{'.'.join(path)}"


def _at(obj: Object, path: tuple[str, ...]) -> object:
    value: object = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(obj: Object, path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        obj = obj.setdefault(step, {})
    obj[path[-1]] = value
