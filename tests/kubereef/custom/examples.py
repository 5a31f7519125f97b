"""Definitions and objects to begin with."""

import copy

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOXES = "/apis/example.com/v1/namespaces/default/boxes"

_SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "default": 5},
        "color": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "color is immutable"}],
        },
        "replicas": {"type": "integer"},
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}


def version(name="v1", *, storage=True, spec=None, **more):
    """A version of a definition with a spec and a status."""
    schema = {
        "type": "object",
        "properties": {"spec": copy.deepcopy(spec or _SPEC), "status": copy.deepcopy(_STATUS)},
    }
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions, plural="boxes", kind="Box", group="example.com", scope="Namespaced", **names):
    """A definition that any server takes."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions or [version()]),
        },
    }


def box(name="b", api_version="example.com/v1", **fields):
    """An object of the kind that `definition` defines."""
    return {"apiVersion": api_version, "kind": "Box", "metadata": {"name": name}, **fields}


def conditions(obj):
    """The conditions of a definition: status and reason by type."""
    return {one["type"]: (one["status"], one["reason"]) for one in obj["status"]["conditions"]}
