"""AdmissionReview: what a webhook is asked, and what it may answer."""

from base64 import b64decode
from typing import Any, NamedTuple

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.incoming import IDENTITY
from kubereef.server.media import decoded_json, decoded_json_or_yaml
from kubereef.server.requests import user_info
from kubereef.server.webhooks.subjects import Subject
from kubereef.store.records import encode
from kubewire import errors
from kubewire.gotext import quote
from kubewire.gotypes import kind_of

_GROUP = "admission.k8s.io"
_REVIEW = "AdmissionReview"
_NO_KIND = "couldn't get version/kind; json parse error"
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
# The fields of a response, and what Go calls their types.
_TYPES: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "warnings": (list, "[]string"),
}


class BadAnswer(Exception):
    """An answer that is none; the message is the API server's."""


def _unreadable(because: str) -> BadAnswer:
    return BadAnswer(f"failed to call webhook: {because}")


def _mistyped(value: object, field: str, wanted: str) -> BadAnswer:
    return _unreadable(
        f"json: cannot unmarshal {kind_of(value)} into Go struct field {field} of type {wanted}"
    )


def _invalid(because: str) -> BadAnswer:
    return BadAnswer(f"received invalid webhook response: {because}")


class Verdict(NamedTuple):
    """What a webhook has answered."""

    allowed: bool
    status: Object | None
    patch: bytes
    patch_type: str
    warnings: tuple[str, ...]


def question(uid: str, review_version: str, resource_version: ResourceType, subject: Subject) -> bytes:
    """Return the review that a webhook is sent."""
    review = {
        "kind": _REVIEW,
        "apiVersion": f"{_GROUP}/{review_version}",
        "request": request_of(uid, resource_version, subject),
    }
    return encode(review)


def request_of(uid: str, version: ResourceType, subject: Subject) -> Object:
    """Return the request of a review, in the version of the resource that the webhook knows."""
    own = subject.resource_type
    object_type = version if subject.is_whole else subject.object_type
    request: Object = {
        "uid": uid,
        "kind": _kind(object_type),
        "resource": _resource(version),
        "subResource": subject.subresource,
        "requestKind": _kind(subject.object_type),
        "requestResource": _resource(own),
        "requestSubResource": subject.subresource,
        "name": subject.name,
        "namespace": subject.namespace,
        "operation": subject.operation,
    }
    request = {field: value for field, value in request.items() if value}
    return request | {
        "userInfo": user_info(subject.user),
        "object": subject.shown(subject.obj, object_type),
        "oldObject": subject.shown(subject.old, object_type),
        "dryRun": subject.dry_run,
        "options": subject.options,
    }


def verdict(raw: bytes, uid: str, review_version: str, *, mutating: bool) -> Verdict:
    """Return the answer in the body of a response, or raise BadAnswer."""
    review = _decoded(raw, review_version)
    response = review.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    _check_types(response)
    patch, patch_type = _bytes(response.get("patch")), response.get("patchType")
    if review_version == "v1":
        _check_identity(review, response, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"  # which this version does not insist on
    return Verdict(
        response.get("allowed") is True,
        response.get("status"),
        patch if mutating else b"",
        str(patch_type or ""),
        tuple(map(str, response.get("warnings") or ())),
    )


def denial(hook_name: str, status: Object | None) -> errors.ApiError:
    """Return the refusal of a request that a webhook has denied, with what the webhook says of it."""
    given = status or {}
    opening = f"admission webhook {quote(hook_name)} denied the request"
    reason, message, code = given.get("reason"), given.get("message"), given.get("code")
    reason = reason if isinstance(reason, str) else ""
    because = message if isinstance(message, str) and message else reason
    told = f"{opening}: {because}" if because else f"{opening} without explanation"
    # A refusal is never told as a success.
    is_refusal = isinstance(code, int) and 400 <= code < 600
    details = errors.Details.of(given.get("details"))
    return errors.ApiError(told, code=code if is_refusal else 400, reason=reason, details=details)


def _decoded(raw: bytes, review_version: str) -> dict[str, Any]:
    try:
        # What does not look like JSON is read as YAML, as Kubernetes' own decoder does.
        is_json = raw.lstrip().startswith(b"{")
        review = (decoded_json(raw) if is_json else decoded_json_or_yaml(raw)).value
    except ValueError as bad:
        raise _unreadable(f"{_NO_KIND}: {bad}") from None
    if not isinstance(review, dict):
        because = f"json: cannot unmarshal {kind_of(review)} into Go value of type {IDENTITY}"
        raise _unreadable(f"{_NO_KIND}: {because}")
    kind, api_version = review.get("kind"), review.get("apiVersion")
    expected = f"{_GROUP}/{review_version}"
    if not kind or (api_version or expected, kind) == (expected, _REVIEW):
        return review
    group, _, version = str(api_version or expected).rpartition("/")
    if group == _GROUP and version in ("v1", "v1beta1") and kind == _REVIEW:
        known = f"({version}.{_REVIEW}) to ({review_version}.{_REVIEW})"
        raise _unreadable(f"converting {known}: unknown conversion")
    unknown = f'no kind "{kind}" is registered for version "{api_version or expected}"'
    raise _unreadable(f'{unknown} in scheme "pkg/runtime/scheme.go:111"')


def _check_types(response: object) -> None:
    if not isinstance(response, dict):
        raise _mistyped(response, "AdmissionReview.response", "v1.AdmissionResponse")
    for field, (wanted, name) in _TYPES.items():
        value = response.get(field)
        if value is not None and not isinstance(value, wanted):
            raise _mistyped(value, f"AdmissionResponse.response.{field}", name)


def _check_identity(review: Object, response: Object, uid: str) -> None:
    given = response.get("uid")
    if given != uid:
        raise _invalid(f"expected response.uid={quote(uid)}, got {quote(given or '')}")
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if (api_version, kind) != (f"{_GROUP}/v1", _REVIEW):
        group, _, version = str(api_version).rpartition("/")
        raise _invalid(
            f"expected webhook response of {_GROUP}/v1, Kind={_REVIEW}, got {group}/{version}, Kind={kind}"
        )


def _check_patch(patch: bytes, patch_type: object, *, mutating: bool) -> None:
    if not mutating:
        for given, field in ((bool(patch), "patch"), (patch_type is not None, "patchType")):
            if given:
                raise _invalid(f"validating webhook may not return response.{field}")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _bytes(encoded: str | None) -> bytes:
    try:
        return b64decode(encoded or "", validate=True)
    except ValueError:
        outside = (index for index, letter in enumerate(encoded or "") if letter not in _BASE64)
        raise _unreadable(f"illegal base64 data at input byte {next(outside, len(encoded or ''))}") from None


def _kind(version: ResourceType) -> Object:
    return {"group": version.group, "version": version.version, "kind": version.kind}


def _resource(version: ResourceType) -> Object:
    return {"group": version.group, "version": version.version, "resource": version.plural}
