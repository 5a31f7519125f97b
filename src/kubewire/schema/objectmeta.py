"""The metadata that every object has, whatever its own schema says of it."""

from __future__ import annotations

from typing import Any

from kubewire.schema.nodes import compile_schema

_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time", "nullable": True}
_NUMBER = {"type": "integer", "format": "int64"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_OWNER = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "blockOwnerDeletion": {"type": "boolean"},
        "controller": {"type": "boolean"},
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
    },
}

_MANAGED_FIELDS = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "fieldsType": _TEXT,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "manager": _TEXT,
        "operation": _TEXT,
        "subresource": _TEXT,
        "time": _TIME,
    },
}

OBJECT_META = compile_schema(
    {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "creationTimestamp": _TIME,
            "deletionGracePeriodSeconds": _NUMBER,
            "deletionTimestamp": _TIME,
            "finalizers": _list_of(_TEXT),
            "generateName": _TEXT,
            "generation": _NUMBER,
            "labels": _TEXTS,
            "managedFields": _list_of(_MANAGED_FIELDS),
            "name": _TEXT,
            "namespace": _TEXT,
            "ownerReferences": _list_of(_OWNER),
            "resourceVersion": _TEXT,
            "selfLink": _TEXT,
            "uid": _TEXT,
        },
    }
)
