"""CustomResourceDefinitions: what is filled in, carried over and refused when they are written."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubereef.kinds.behaviours.definitions.validation import problems, status_problems, update_problems
from kubereef.kinds.columns import CREATED_AT, NAME
from kubereef.kinds.custom.conditions import set_condition
from kubereef.kinds.resource import Behaviour, Object
from kubewire.formats import format_test

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"

_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def _fill_in(obj: Object) -> None:
    spec = obj["spec"]
    given = spec["names"]
    if not given.get("singular"):
        given["singular"] = given["kind"].lower()
    if not given.get("listKind") and given["kind"]:
        given["listKind"] = f"{given['kind']}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    client = (spec["conversion"].get("webhook") or {}).get("clientConfig") or {}
    if client.get("service") is not None:
        client["service"].setdefault("port", 443)


def _prepare_create(obj: Object) -> None:
    obj["status"]["storedVersions"] = None
    _remember_storage(obj)


def _prepare_update(new: Object, _old: Object) -> None:
    _remember_storage(new)


def _remember_storage(obj: Object) -> None:
    """Note in which version objects are kept from now on; those kept in others stay as they are."""
    status = obj["status"] = dict(obj["status"])
    stored = status.get("storedVersions") or []
    for version in obj["spec"].get("versions") or ():
        if version.get("storage"):
            if version["name"] not in stored:
                status["storedVersions"] = [*stored, version["name"]]
            return


def _begin_deletion(obj: Object) -> None:
    meta = obj["metadata"]
    meta.pop("deletionGracePeriodSeconds", None)
    finalizers = meta.get("finalizers") or []
    if CLEANUP not in finalizers:
        meta["finalizers"] = [*finalizers, CLEANUP]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(obj, "Terminating", "True", "InstanceDeletionPending", message, meta["deletionTimestamp"])


def _prepare_status(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]


def _warnings(obj: Object) -> list[str]:
    return [f'unrecognized format "{name}"' for name in _unknown_formats(obj)]


def _update_warnings(new: Object, old: Object) -> list[str]:
    known = set(_warnings(old))
    return [warning for warning in _warnings(new) if warning not in known]


def _unknown_formats(obj: Object) -> Iterator[str]:
    for version in obj["spec"].get("versions") or ():
        waiting = [(version.get("schema") or {}).get("openAPIV3Schema") or {}]
        while waiting:
            raw = waiting.pop()
            if raw.get("format") and not _is_known_format(raw.get("type") or "", raw["format"]):
                yield raw["format"]
            waiting.extend(_below(raw))


def _below(raw: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (raw.get("properties") or {}).values()
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(raw.get(keyword), dict):
            yield raw[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from raw.get(keyword) or ()


def _is_known_format(type_name: str, name: str) -> bool:
    if type_name in ("", "string"):
        return format_test(name) is not None
    return name in _NUMBER_FORMATS.get(type_name, ())


DEFINITIONS = Behaviour(
    defaults=_fill_in,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    validate_create=problems,
    validate_update=update_problems,
    validate_status=status_problems,
    warnings=_warnings,
    update_warnings=_update_warnings,
    columns=(NAME, CREATED_AT),
    counts_generations=True,
    needs_version=True,
    begin_deletion=_begin_deletion,
)
