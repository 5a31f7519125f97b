"""Server-side apply: a client sends the fields that it cares about, and owns them from then on."""

from typing import Any

from kubereef.kinds.resource import Object
from kubereef.server import ownership
from kubereef.server.calls import Call
from kubereef.server.incoming import well_formed
from kubereef.server.media import Body, decoded_json_or_yaml
from kubereef.server.options import WriteOptions
from kubereef.server.requests import Response
from kubereef.server.writing import check_name, check_namespace, create_object, missing, replace_object
from kubewire import apply as rules
from kubewire import errors
from kubewire.apply import lastapplied, validating
from kubewire.apply.fieldsets import has, show_path
from kubewire.jsonpatch import cannot_unmarshal

APPLY = "application/apply-patch+yaml"


async def apply(call: Call) -> Response:
    """Merge the configuration in the body into an object, or create the object that it describes."""
    options = WriteOptions.of(call.request, "PatchOptions", APPLY)
    body = apply_body(call)
    record = call.store.latest(call.key)
    if record is None and call.target.subresource:
        raise missing(call.resource_type, call.target.name)
    live = {} if record is None else call.resource_type.from_stored(record.object())
    config = configuration(call, body)
    obj, entries = merged(call, live, config)
    warnings = _repeated(body, options)
    obj = _read(call, config, obj)
    check_name(call, obj)
    check_namespace(call, obj)
    if record is not None:
        return await replace_object(call, record, obj, options, warnings, entries)
    if uid := obj["metadata"].get("uid"):
        because = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(
            call.resource_type.plural, call.target.name, because, group=call.resource_type.group
        )
    call.around.authorize(call.user, call.target._replace(verb="create"))
    obj["metadata"].pop("resourceVersion", None)
    return await create_object(call, obj, options, warnings, entries)


def merged(call: Call, live: Object, config: Object) -> tuple[Object, list[rules.Entry]]:
    """Return what a configuration makes of an object, which is empty if there is none yet, and its managers."""
    resource_type = call.resource_type
    kind, writer = ownership.kind_of(call), ownership.writer(call)
    empty = ownership.empty(resource_type)
    managers = rules.Managers.stored(live.get("metadata", {}).get("managedFields"))
    if live:
        managers = managers.with_earlier(kind, empty, live, writer)
    present = live or empty
    force = call.request.flag("force")
    try:
        try:
            obj, entries = managers.applied(kind, present, config, writer, force=force)
        except rules.Conflicted as conflicted:
            _allow_kubectl(call, kind, present, conflicted)
            obj, entries = managers.applied(kind, present, config, writer, force=True)
    except rules.MergeFailed as bad:
        raise errors.ApiError(f"failed to merge config: {bad}") from None
    if writer.manager == lastapplied.KUBECTL:
        identity = {"apiVersion": resource_type.api_version, "kind": resource_type.kind}
        lastapplied.keep_annotation(obj, {**identity, **config})
    return obj, entries


def _allow_kubectl(call: Call, kind: rules.Kind, live: Object, conflicted: rules.Conflicted) -> None:
    """Refuse conflicts, except those of kubectl with what it applied by itself before."""
    conflicts = conflicted.conflicts
    if call.request.parameter("fieldManager") == lastapplied.KUBECTL:
        allowed = lastapplied.still_kubectls(kind.shape, live, call.resource_type.api_version)
        conflicts = [conflict for conflict in conflicts if not has(allowed, conflict.path)]
    if conflicts:
        raise _conflict(conflicts)


def _conflict(conflicts: list[rules.Conflict]) -> errors.Conflict:
    causes = [
        errors.Cause("FieldManagerConflict", f"conflict with {one.manager}", show_path(one.path))
        for one in conflicts
    ]
    if len(conflicts) == 1:
        told = f"1 conflict: conflict with {conflicts[0].manager}: {causes[0].field}"
        return errors.apply_conflict(f"Apply failed with {told}", causes)
    lines: list[str] = []
    for manager in dict.fromkeys(conflict.manager for conflict in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {show_path(conflict.path)}" for conflict in conflicts if conflict.manager == manager]
    listed = "\n".join(lines)
    return errors.apply_conflict(f"Apply failed with {len(conflicts)} conflicts: {listed}", causes)


def configuration(call: Call, body: Body) -> Object:
    """Return the configuration in a body without apiVersion and kind, refused if it is not of the right kind."""
    value = {} if body.value is None else body.value
    if not isinstance(value, dict):
        because = cannot_unmarshal(value, "Go value of type map[string]interface {}")
        raise errors.bad_request(
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {because}"
        )
    config: dict[str, Any] = dict(value)
    resource_type = call.resource_type
    version, kind = _text(config.pop("apiVersion", "")), _text(config.pop("kind", ""))
    if version != resource_type.api_version or kind != resource_type.kind:
        raise errors.bad_request(f"invalid object type: {_shown_kind(version, kind)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    if found := validating.problems(ownership.shape_of(resource_type), config):
        because = f"failed to create typed patch object ({_shown_object(call, config)})"
        raise errors.ApiError(f"{because}: {validating.summary(found)}")
    return config


def _read(call: Call, config: Object, obj: Object) -> Object:
    """Return a merged object as its kind reads it."""
    try:
        read, _ = well_formed(call.resource_type, obj, [], "Ignore")
    except ValueError as bad:
        because = f"failed to convert new typed object ({_shown_object(call, config)}) to object: {bad}"
        raise errors.ApiError(because) from None
    return read


def _repeated(body: Body, options: WriteOptions) -> list[str]:
    """Return the warnings about keys that a body gives twice, or refuse them, as the validation asks for."""
    told = list(body.repetitions)
    if told and options.validation == "Strict":
        listed = "\n  ".join(("yaml: unmarshal errors:", *told))
        raise errors.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {listed}")
    return told if options.validation == "Warn" else []


def apply_body(call: Call) -> Body:
    """Return the decoded body of an apply, which is YAML or JSON."""
    try:
        return decoded_json_or_yaml(call.request.body)
    except ValueError as bad:
        raise errors.bad_request(f"error decoding YAML: error converting YAML to JSON: {bad}") from None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _shown_kind(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _shown_object(call: Call, config: Object) -> str:
    metadata = config.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    place = f"{_text(named.get('namespace'))}/{_text(named.get('name'))}"
    return f"{place}; {_shown_kind(call.resource_type.api_version, call.resource_type.kind)}"
