"""From the bytes of a request to an object of the right kind."""

from kubereef.kinds.builtin import is_builtin_kind
from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.media import YAML, content_type, decoded
from kubereef.server.requests import Request
from kubewire import errors, fielderrors
from kubewire.gotext import quote
from kubewire.gotypes import kind_of

# How much of a body that makes no sense is shown.
_SHOWN_BYTES = 30

# The package of Go's internal types, where it is not the beginning of the group's name.
_PACKAGES = {"": "core", "events.k8s.io": "core"}


def incoming_object(
    request: Request, resource_type: ResourceType, validation: str
) -> tuple[Object, list[str]]:
    """Return the object in a body, without apiVersion and kind, and the warnings about it."""
    try:
        body = decoded(request)
    except ValueError as bad:
        because = str(bad) if content_type(request) == YAML else f"{_NO_KIND}: {bad}"
        raise _unrecognized(request, resource_type, because) from None
    # Go decodes null into the empty object.
    obj = {} if body.value is None else body.value
    if not isinstance(obj, dict):
        because = f"json: cannot unmarshal {kind_of(obj)} into Go value of type {IDENTITY}"
        raise _unrecognized(request, resource_type, f"{_NO_KIND}: {because}")
    _check_identity(request, resource_type, obj)
    if resource_type.behaviour.needs_kind and not obj.get("kind"):
        raise _unfit(resource_type, f"Object 'Kind' is missing in '{request.body.decode(errors='replace')}'")
    check_kind(resource_type, obj)
    repeated = body.repetitions or tuple(f"duplicate field {quote(path)}" for path in body.duplicates)
    try:
        return well_formed(resource_type, obj, list(repeated), validation, in_yaml=bool(body.repetitions))
    except ValueError as bad:
        raise _unfit(resource_type, str(bad)) from None


def _unfit(resource_type: ResourceType, because: str) -> errors.BadRequest:
    kind = resource_type.kind
    opening = f'{kind} in version "{resource_type.version}" cannot be handled as a {kind}'
    return errors.bad_request(f"{opening}: {because}")


def check_kind(resource_type: ResourceType, obj: Object) -> None:
    """Take apiVersion and kind off an object, refusing it if they are not those of the resource."""
    silent = "" if resource_type.behaviour.needs_kind else resource_type.api_version
    version = str(obj.pop("apiVersion", None) or silent)
    kind = str(obj.pop("kind", None) or resource_type.kind)
    if kind == resource_type.kind and version == resource_type.api_version:
        return
    if resource_type.custom:
        raise _foreign(resource_type, version, kind, obj)
    short = version.rpartition("/")[2]
    if is_builtin_kind(version, kind):
        package = _PACKAGES.get(resource_type.group) or resource_type.group.split(".")[0]
        because = f"converting ({short}.{kind}) to ({package}.{resource_type.kind}): unknown conversion"
    else:
        because = (
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    raise errors.bad_request(
        f'{kind} in version "{short}" cannot be handled as a {resource_type.kind}: {because}'
    )


def _foreign(resource_type: ResourceType, version: str, kind: str, obj: Object) -> errors.ApiError:
    """Return the refusal of an object that is not of the custom kind it was sent to."""
    if version != resource_type.api_version:
        return errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource_type.api_version})"
        )
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    problem = fielderrors.invalid(("kind",), kind, f"must be {resource_type.kind}")
    return errors.invalid(kind, str(name or ""), [problem], group=resource_type.group)


def well_formed(
    resource_type: ResourceType,
    obj: Object,
    complaints: list[str],
    validation: str,
    *,
    in_yaml: bool = False,
) -> tuple[Object, list[str]]:
    """Return an object without what its kind does not know, and the warnings that the field validation asks for.

    ValueError says what keeps it from being one of its kind, or with strict validation, what is too much about it.
    """
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    if resource_type.custom and not isinstance(obj["metadata"], dict):
        raise ValueError(
            f"json: cannot unmarshal {kind_of(obj['metadata'])} into Go struct field .metadata of type v1.ObjectMeta"
        )
    if isinstance(obj["metadata"], dict) and obj["metadata"].get("managedFields") == []:
        obj["metadata"]["managedFields"] = [{}]  # means the same, and reading does not drop it
    unknown = resource_type.behaviour.read(obj)
    unknown = [f"unknown field {quote(path)}" for path in unknown]
    if (complaints or unknown) and validation == "Strict":
        if in_yaml:
            complaints = ["\n  ".join(("yaml: unmarshal errors:", *complaints))]
        raise ValueError(f"strict decoding error: {', '.join((*complaints, *unknown))}")
    return obj, [*complaints, *unknown] if validation == "Warn" else []


_NO_KIND = "couldn't get version/kind; json parse error"
IDENTITY = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def _check_identity(request: Request, resource_type: ResourceType, obj: Object) -> None:
    """Refuse an object that does not even say properly what it is."""
    for field in ("apiVersion", "kind"):
        given = obj.get(field)
        if given is not None and not isinstance(given, str):
            because = f"json: cannot unmarshal {kind_of(given)} into Go struct field .{field} of type string"
            raise _unrecognized(request, resource_type, f"{_NO_KIND}: {because}")
    version = obj.get("apiVersion") or ""
    if version.count("/") > 1:
        raise _unrecognized(request, resource_type, f"unexpected GroupVersion string: {version}")


def _unrecognized(request: Request, resource_type: ResourceType, because: str) -> errors.BadRequest:
    """Return the refusal of a body that could be anything, with its beginning: as text if it looks like JSON."""
    raw = request.body
    start = raw[:_SHOWN_BYTES]
    shown = start.decode(errors="replace") if raw.startswith(b"{") else start.hex()
    if len(raw) > _SHOWN_BYTES:
        shown += " ..."
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {resource_type.kind}): "
        f"{because} ({shown or '<empty>'})"
    )
