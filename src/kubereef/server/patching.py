"""patch, in Kubernetes' four languages; apply has a module of its own."""

from collections.abc import Callable

from kubereef.kinds.resource import Object
from kubereef.server.applying import APPLY, apply
from kubereef.server.calls import Call
from kubereef.server.incoming import check_kind, well_formed
from kubereef.server.media import Body, content_type, decoded_json
from kubereef.server.options import WriteOptions
from kubereef.server.requests import Response
from kubereef.server.writing import check_name, check_namespace, missing, replace_object
from kubewire import errors, fielderrors, gotypes, jsonpatch, mergepatch, strategicpatch
from kubewire.gotext import quote
from kubewire.strategicpatch.problems import go_text

Language = Callable[[Object, object], object]

_STRATEGIC = "application/strategic-merge-patch+json"
_OF_CUSTOM_KINDS = (
    "application/json-patch+json",
    "application/merge-patch+json",
    APPLY,
)


async def patch(call: Call) -> Response:
    """Change an object as the body says."""
    media_type = content_type(call.request)
    if media_type == APPLY:
        return await apply(call)
    language = _language(call)
    options = WriteOptions.of(call.request, "PatchOptions", media_type)
    record = call.store.latest(call.key)
    body = _patch_body(call)
    if record is None:
        raise missing(call.resource_type, call.target.name)
    before = {
        "apiVersion": call.resource_type.api_version,
        "kind": call.resource_type.kind,
        **call.resource_type.from_stored(record.object()),
    }
    if b"managedFields" not in call.request.body:
        # Nobody looks at them, and patching and reading all of them takes long.
        before["metadata"].pop("managedFields", None)
    after = _patched(call, language, before, body.value)
    _check_same_kind(call, body.value, after)
    repeated = [f"duplicate field {quote(path)}" for path in body.duplicates]
    try:
        obj, warnings = well_formed(call.resource_type, after, repeated, options.validation)
    except ValueError as bad:
        raise _unreadable(call, body.value, after, bad) from None
    check_name(call, obj)
    check_namespace(call, obj)
    return await replace_object(call, record, obj, options, warnings)


def _language(call: Call) -> Language:
    media_type = content_type(call.request)
    if media_type == "application/json-patch+json":
        return lambda before, wanted: jsonpatch.apply(before, jsonpatch.parse(wanted))
    if media_type == "application/merge-patch+json":
        return lambda before, wanted: mergepatch.apply(before, mergepatch.parse(wanted))
    if media_type == _STRATEGIC and not call.resource_type.custom:
        shape = strategicpatch.shape_of(call.resource_type.definition)
        return lambda before, wanted: strategicpatch.apply(before, strategicpatch.parse(wanted), shape)
    if call.resource_type.custom:
        raise errors.unsupported_media_type(_OF_CUSTOM_KINDS)
    raise errors.UnsupportedMediaType("415: Unsupported Media Type", details=errors.Details())


def _check_same_kind(call: Call, wanted: object, after: Object) -> None:
    """Take apiVersion and kind off a patched object, refusing a patch that changed them."""
    patched = dict(after)
    try:
        check_kind(call.resource_type, after)
    except errors.BadRequest as bad:
        if call.resource_type.custom:
            raise
        because = ValueError(bad.message.partition(": ")[2])
        raise _unreadable(call, wanted, patched, because) from None


def _unreadable(call: Call, wanted: object, after: Object, bad: ValueError) -> errors.Invalid:
    """Return the refusal of a patch that leaves no object of the kind; the server names neither kind nor name."""
    is_strategic = content_type(call.request) == _STRATEGIC
    # A strategic merge is not decoded but converted, whose complaints are others.
    because = bad.conversion if is_strategic and isinstance(bad, gotypes.DecodeError) else str(bad)
    shown = go_text(wanted) if is_strategic else fielderrors.as_json(after)
    return errors.invalid("", "", [fielderrors.invalid(("patch",), shown, because)])


def _patch_body(call: Call) -> Body:
    try:
        return decoded_json(call.request.body)
    except ValueError as bad:
        raise _undecodable(call, bad) from None


def _undecodable(call: Call, bad: ValueError) -> errors.BadRequest:
    is_strategic = content_type(call.request) == _STRATEGIC
    return errors.bad_request(str(bad) if is_strategic else f"error decoding patch: {bad}")


def _patched(call: Call, language: Language, before: Object, wanted: object) -> Object:
    try:
        after = language(before, wanted)
    except (jsonpatch.PatchFailed, strategicpatch.PatchFailed):
        # Kubernetes does not say which operation it was.
        raise errors.Invalid(
            "the server rejected our request due to an error in our request", details=errors.Details()
        ) from None
    except jsonpatch.MalformedPatch as bad:
        # A patch that is null passes for one until it is carried out.
        raise (_undecodable(call, bad) if wanted is not None else errors.bad_request(str(bad))) from None
    except strategicpatch.PatchNotApplicable as bad:
        # The fault is the client's, but Kubernetes takes it for its own.
        raise errors.ApiError(str(bad), code=500, reason="") from None
    except jsonpatch.PatchTooLarge as bad:
        raise errors.RequestEntityTooLarge(str(bad)) from None
    except (jsonpatch.PatchError, strategicpatch.PatchError) as bad:
        raise errors.bad_request(str(bad)) from None
    if not isinstance(after, dict):
        raise errors.bad_request("the patch leaves no object")
    return after
