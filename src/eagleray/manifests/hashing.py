"""The hash of a cluster's spec, byte for byte that of the reference.

The hash decides whether a spec has changed in a way that needs new Pods, and it stands on objects that the reference
made, so an adopted cluster is recognised only if our bytes equal Go's: fields in the order of their declaration, empty
values left out where Go leaves them out, quantities in canonical form, and Go's escapes.
"""

import base64
import hashlib
import json
from typing import Any

from eagleray.rayapi.declarations import raycluster
from eagleray.rayapi.declare import Field, KubernetesType, ListOf, MapOf, Scalar, Struct, Type
from kubewire.gotypes.facts import fields_of
from kubewire.quantity import Quantity

Object = dict[str, Any]

# Go escapes these in JSON so that it can stand inside HTML and JavaScript.
_GO_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)

_MASKED_IN_TEMPLATES = ("tolerations", "schedulingGates")


def recreate_hash(spec: Object) -> str:
    """Return the hash of a RayClusterSpec that decides about recreating a cluster.

    The spec is the stored one, with its defaults. Changes of what the autoscaler or an admission controller writes
    (replica counts, workersToDelete, tolerations, scheduling gates) and of the upgrade strategy leave it the same.
    """
    masked = _masked({**spec, "headGroupSpec": _with_start_params(spec.get("headGroupSpec") or {})})
    masked["workerGroupSpecs"] = [_with_start_params(group) for group in masked.get("workerGroupSpecs") or []]
    return _digest(masked)


def is_current(stamp: str, spec: Object) -> bool:
    """Tell whether a stamped hash is still that of the spec.

    `suspend` counts in the hash as it does in the reference, but switching it must not replace Pods, so the hash may
    be that of the spec with any value of it.
    """
    bare = {field: value for field, value in spec.items() if field != "suspend"}
    return any(
        stamp == recreate_hash(variant)
        for variant in (spec, bare, {**bare, "suspend": False}, {**bare, "suspend": True})
    )


def service_hash(spec: Object) -> str:
    """Return the hash with which a RayService tells its clusters apart; `suspend` does not count in it."""
    return _digest(_masked({field: value for field, value in spec.items() if field != "suspend"}))


def _digest(spec: Object) -> str:
    encoded = json.dumps(_struct(raycluster.SPEC, spec), ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha1(encoded.translate(_GO_ESCAPES).encode(), usedforsecurity=False).digest()
    return base64.b32hexencode(digest).decode()


def _masked(spec: Object) -> Object:
    masked = {field: value for field, value in spec.items() if field != "upgradeStrategy"}
    masked["headGroupSpec"] = _without_masked_pod_fields(spec.get("headGroupSpec") or {})
    masked["workerGroupSpecs"] = [_masked_group(group) for group in spec.get("workerGroupSpecs") or []]
    return masked


def _masked_group(group: Object) -> Object:
    masked = _without_masked_pod_fields(group)
    for field in ("replicas", "minReplicas", "maxReplicas"):
        masked.pop(field, None)
    strategy = masked.get("scaleStrategy") or {}
    masked["scaleStrategy"] = {
        field: value for field, value in strategy.items() if field != "workersToDelete"
    }
    return masked


def _without_masked_pod_fields(group: Object) -> Object:
    template = group.get("template") or {}
    pod = {
        name: value
        for name, value in (template.get("spec") or {}).items()
        if name not in _MASKED_IN_TEMPLATES
    }
    return {**group, "template": {**template, "spec": pod}}


def _with_start_params(group: Object) -> Object:
    return {**group, "rayStartParams": group.get("rayStartParams") or {}}


def _struct(declared: Struct, obj: Object) -> Object:
    """Return a struct as Go encodes it: its fields in order, without those that are empty."""
    written: Object = {}
    for field in declared.fields:
        value = obj.get(field.name)
        if _is_written(field, value):
            written[field.name] = None if value is None and _is_nilable(field) else _value(field.type, value)
    return written


def _is_written(field: Field, value: object) -> bool:
    if field.always or field.required:
        return True
    if field.pointer:
        return value is not None
    if isinstance(field.type, Struct | KubernetesType):
        return True
    return bool(value)


def _is_nilable(field: Field) -> bool:
    return field.pointer or isinstance(field.type, ListOf | MapOf)


def _value(declared: Type, value: Any) -> Any:
    if isinstance(declared, Struct):
        return _struct(declared, value or {})
    if isinstance(declared, KubernetesType):
        return _published_struct(declared.definition, value or {})
    if isinstance(declared, ListOf):
        return [_value(declared.items, item) for item in value]
    if isinstance(declared, MapOf):
        return {key: _value(declared.values, value[key]) for key in sorted(value)}
    return _scalar(declared, value)


def _scalar(declared: Scalar, value: Any) -> Any:
    if declared.shown == "quantity":
        return str(Quantity.of(value))
    if value is None:
        return {"string": "", "boolean": False}.get(str(declared.openapi.get("type")), 0)
    return value


def _published_struct(definition: str, obj: Object) -> Object:
    """Return a struct of Kubernetes' own as Go encodes it."""
    written: Object = {}
    for field in fields_of(definition):
        value = obj.get(field.name)
        if value is None and field.omission == "omitzero":
            continue
        if (
            value
            or not field.omission
            or _never_omitted(field.type)
            or (value is not None and field.type[0] == "*")
        ):
            written[field.name] = _published(field.type, value)
    return written


# Values that Go keeps in a struct of their own, which `omitempty` never leaves out, and what they are when unset.
_STRUCT_VALUES: dict[str, object] = {"quantity": "0", "intstr": 0}


def _never_omitted(notation: str) -> bool:
    return notation in _STRUCT_VALUES or notation.startswith("io.k8s.")


def _published(notation: str, value: Any) -> Any:
    kind = notation.rpartition("=")[2]
    if kind[0] == "*":
        return None if value is None else _published(kind[1:], value)
    if kind.startswith("[]"):
        return None if value is None else [_published(kind[2:], item) for item in value]
    if kind[0] == "{":
        inner = kind.partition("}")[2]
        return None if value is None else {key: _published(inner, value[key]) for key in sorted(value)}
    if kind.startswith("io.k8s."):
        return _published_struct(kind, value or {})
    if value is None:
        return _STRUCT_VALUES.get(kind, {"string": "", "bool": False}.get(kind, 0))
    return str(Quantity.of(value)) if kind == "quantity" else value
