"""The options that writes take in their query or body."""

from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.server.listing import number
from kubereef.server.media import decoded
from kubereef.server.requests import Request
from kubewire import errors, fielderrors, gotypes
from kubewire.fielderrors import FieldError

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_POLICIES = ("Foreground", "Background", "Orphan")

# How many bytes the name of a field manager may have.
MAX_MANAGER_NAME = 128
_APPLY = "application/apply-patch+yaml"


class WriteOptions(NamedTuple):
    """Options of create, update and patch."""

    dry_run: bool
    validation: str  # Ignore, Warn or Strict

    @classmethod
    def of(cls, request: Request, kind: str, patch: str = "") -> "WriteOptions":
        """Return the options of a request; `patch` is the language of a patch."""
        problems = _manager_problems(request, patch) if "fieldManager" in request.query or patch else []
        problems += _dry_run_problems(request.query.get("dryRun", ["All"]))
        validation = request.parameter("fieldValidation")
        if validation not in _VALIDATIONS:
            problems.append(fielderrors.not_supported(("fieldValidation",), validation, _VALIDATIONS))
        if problems:
            raise errors.invalid(kind, "", problems, group="meta.k8s.io")
        return cls("dryRun" in request.query, validation or "Warn")


class DeleteOptions(NamedTuple):
    """Options of delete and deletecollection."""

    dry_run: bool = False
    grace: int | None = None
    propagation: str = ""
    orphan: bool | None = None
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, request: Request) -> "DeleteOptions":
        """Return the options of a request; a body is all that counts, and the query is not looked at beside it."""
        body = _options_body(request) if request.body else _options_query(request)
        problems = _dry_run_problems(body.get("dryRun") or ["All"])
        preconditions = body.get("preconditions") or {}
        dry_run = bool(body.get("dryRun"))
        grace = body.get("gracePeriodSeconds")
        propagation = body.get("propagationPolicy") or ""
        orphan = body.get("orphanDependents")
        at = ("propagationPolicy",)
        if propagation and orphan is not None:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            problems.append(fielderrors.invalid(at, propagation, detail))
        if propagation and propagation not in _POLICIES:
            problems.append(fielderrors.not_supported(at, propagation, (*_POLICIES, "nil")))
        if problems:
            raise errors.invalid("DeleteOptions", "", problems, group="meta.k8s.io")
        return cls(
            dry_run,
            grace,
            propagation,
            orphan,
            str(preconditions.get("uid") or ""),
            str(preconditions.get("resourceVersion") or ""),
        )


def _options_query(request: Request) -> Object:
    return {
        "dryRun": request.query.get("dryRun"),
        "gracePeriodSeconds": number(request, "gracePeriodSeconds"),
        "propagationPolicy": request.parameter("propagationPolicy"),
        "orphanDependents": (
            request.flag("orphanDependents") if "orphanDependents" in request.query else None
        ),
    }


def _options_body(request: Request) -> Object:
    try:
        body = decoded(request).value
    except ValueError:
        message = "couldn't get version/kind; json parse error: unexpected end of JSON input"
        raise errors.bad_request(message) from None
    if not isinstance(body, dict):
        raise errors.bad_request("couldn't get version/kind; json parse error: not an object")
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "v1"
    if kind != "DeleteOptions":
        raise errors.bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    try:
        gotypes.read(_DELETE_OPTIONS, body)
    except gotypes.DecodeError as bad:
        opening = 'DeleteOptions in version "v1" cannot be handled as a DeleteOptions'
        raise errors.bad_request(f"{opening}: {bad}") from None
    return body


def _manager_problems(request: Request, patch: str) -> list[FieldError]:
    problems = []
    at = ("fieldManager",)
    manager = request.parameter("fieldManager")
    if patch and patch != _APPLY and "force" in request.query:
        problems.append(fielderrors.forbidden(("force",), "may not be specified for non-apply patch"))
    if patch == _APPLY and not manager:
        problems.append(fielderrors.required(at, "is required for apply patch"))
    if len(manager.encode()) > MAX_MANAGER_NAME:
        problems.append(fielderrors.too_long(at, MAX_MANAGER_NAME))
    if not manager.isprintable():
        position = 0
        for character in manager:
            if not character.isprintable():
                shown = f"invalid character U+{ord(character):04X} (at position {position})"
                problems.append(fielderrors.invalid(at, manager, shown))
            position += len(character.encode())
    return problems


def _dry_run_problems(values: list[str]) -> list[FieldError]:
    if set(values) == {"All"}:
        return []
    return [fielderrors.not_supported(("dryRun",), values, ("All",))]
