"""Whole objects inside of objects: each needs an apiVersion, a kind and metadata that make sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire import fielderrors
from kubewire.names import dns1035_label
from kubewire.schema.objectmeta import OBJECT_META
from kubewire.schema.values import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubewire.fielderrors import FieldError
    from kubewire.paths import FieldPath
    from kubewire.schema.uniqueness import Maker


def resource_problems(value: dict[str, object]) -> Iterator[tuple[str, Maker]]:
    """Yield the field of an embedded resource that is wrong, with the error it makes."""
    for name in ("apiVersion", "kind"):
        given = value.get(name)
        if name not in value or given == "":
            yield name, _required
        elif not isinstance(given, str):
            yield name, _invalid(given, "must be a string")
        elif name == "apiVersion" and given.count("/") > 1:
            yield name, _invalid(given, f"unexpected GroupVersion string: {given}")
        elif name == "kind" and (problems := dns1035_label(given.lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(problems)
            yield name, _invalid(given, detail)
    if "metadata" in value:
        problem = metadata_problem(value["metadata"])
        if problem:
            yield "metadata", _invalid(value["metadata"], problem)


def metadata_problem(metadata: object) -> str:
    """Return why this cannot be read as metadata, in the words of Go's JSON reader, or an empty text."""
    if metadata is None:
        return ""
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {_go_kind(metadata)} into Go value of type v1.ObjectMeta"
    for name, given in metadata.items():
        node = OBJECT_META.field(name)
        if node is None:
            continue
        entries = given.values() if isinstance(given, dict) else given if isinstance(given, list) else ()
        for wanted, one in ((node, given), *((node.additional or node.items, entry) for entry in entries)):
            if wanted is not None and one is not None and wanted.type != type_of(one)[0]:
                go_type = _GO_TYPES.get(name, wanted.type) if wanted is node else wanted.type
                field = f"Go struct field ObjectMeta.{name} of type {go_type}"
                return f"json: cannot unmarshal {_go_kind(one)} into {field}"
    return ""


def _required(path: FieldPath, written: str) -> FieldError:
    return fielderrors.required(path, "", written)


def _invalid(value: object, detail: str) -> Maker:
    return lambda path, written: fielderrors.invalid(path, value, detail, written)


def _go_kind(value: object) -> str:
    name = type_of(value)[0]
    return {"boolean": "bool", "integer": "number"}.get(name, name)


_GO_TYPES = {
    "annotations": "map[string]string",
    "deletionGracePeriodSeconds": "int64",
    "finalizers": "[]string",
    "generation": "int64",
    "labels": "map[string]string",
    "managedFields": "[]v1.ManagedFieldsEntry",
    "ownerReferences": "[]v1.OwnerReference",
}
