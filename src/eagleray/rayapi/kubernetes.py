"""Kubernetes' own types as they stand in a CRD: Pod templates, Services, conditions and their parts.

The published definitions describe what the API server serves, not what a CRD may contain: they leave out
defaults and bounds that stand in the source of the types, and carry keys that CRDs refuse. `definition`
bridges the two, one type at a time, so that nobody pays for the types that an object does not use.
"""

from eagleray.rayapi.declare import INT_OR_STRING, QUANTITY, STRING, OpenAPI, list_of, map_of, type_openapi
from kubewire import builtin

_CORE = "io.k8s.api.core.v1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."

# Keys that only a built-in type may carry: how clients merge it, which kind it is, how its unions work.
_NOT_IN_CRDS = {
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
}

# Types that are one thing on the wire and another in the published definitions.
_REPLACED: dict[str, OpenAPI] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY.openapi,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING.openapi,
    # Metadata inside a custom resource is a template: the rest of it is the API server's to fill in.
    _META + "ObjectMeta": {
        "type": "object",
        "properties": {
            "name": type_openapi(STRING),
            "namespace": type_openapi(STRING),
            "labels": type_openapi(map_of(STRING)),
            "annotations": type_openapi(map_of(STRING)),
            "finalizers": type_openapi(list_of(STRING)),
        },
    },
}

_QUALIFIED_NAME = {
    "maxLength": 316,
    "pattern": (
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
    ),
}

# What the published definitions leave out, by definition and property.
_ADDED: dict[str, dict[str, OpenAPI]] = {
    # Part of the key of a list-map, and a key may be absent only if it has a default.
    _CORE + "ContainerPort": {"protocol": {"default": "TCP"}},
    _CORE + "ServicePort": {"protocol": {"default": "TCP"}},
    # Names that were once optional: an absent one means the empty string.
    _CORE + "LocalObjectReference": {"name": {"default": ""}},
    _CORE + "ConfigMapKeySelector": {"name": {"default": ""}},
    _CORE + "SecretKeySelector": {"name": {"default": ""}},
    _CORE + "ConfigMapEnvSource": {"name": {"default": ""}},
    _CORE + "SecretEnvSource": {"name": {"default": ""}},
    _CORE + "ConfigMapProjection": {"name": {"default": ""}},
    _CORE + "SecretProjection": {"name": {"default": ""}},
    _CORE + "ConfigMapVolumeSource": {"name": {"default": ""}},
    # Defaults that the types themselves declare, unlike those that the API server's code fills in.
    _CORE + "FileKeySelector": {"optional": {"default": False}},
    _CORE + "GRPCAction": {"service": {"default": ""}},
    _CORE + "AzureDiskVolumeSource": {"fsType": {"default": "ext4"}, "readOnly": {"default": False}},
    _CORE + "ISCSIVolumeSource": {"iscsiInterface": {"default": "default"}},
    _CORE + "RBDVolumeSource": {
        "keyring": {"default": "/etc/ceph/keyring"},
        "pool": {"default": "rbd"},
        "user": {"default": "admin"},
    },
    _CORE + "ScaleIOVolumeSource": {
        "fsType": {"default": "xfs"},
        "storageMode": {"default": "ThinProvisioned"},
    },
    # Bounds that the types declare and the API server checks by code.
    _META + "Condition": {
        "message": {"maxLength": 32768},
        "observedGeneration": {"minimum": 0},
        "reason": {
            "maxLength": 1024,
            "minLength": 1,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"enum": ["True", "False", "Unknown"]},
        "type": _QUALIFIED_NAME,
    },
    _CORE + "PortStatus": {"error": _QUALIFIED_NAME},
}

# References that embed a LocalObjectReference and are, like it, replaced as a whole.
_ATOMIC = {
    _CORE + "ConfigMapEnvSource",
    _CORE + "SecretEnvSource",
    _CORE + "ConfigMapProjection",
    _CORE + "SecretProjection",
    _CORE + "ConfigMapVolumeSource",
}

# Optional by its comment, but not by the marker that CRDs are generated from.
_REQUIRED = {_CORE + "PortStatus": ["error"]}

_definitions: dict[str, OpenAPI] = {}


def definition(name: str) -> OpenAPI:
    """Return the CRD form of a published definition; other types in it stay references. Not to be changed."""
    found = _definitions.get(name)
    if found is None:
        found = _definitions[name] = _crd_form(name)
    return found


def published(name: str) -> OpenAPI:
    """Return a definition as Kubernetes publishes it. Not to be changed."""
    return dict(builtin.definition(name))


def _crd_form(name: str) -> OpenAPI:
    if name in _REPLACED:
        return dict(_REPLACED[name])
    schema = _without_foreign_keys(published(name))
    for field, facts in _ADDED.get(name, {}).items():
        schema["properties"][field] |= facts
    if required := {*schema.get("required", []), *_REQUIRED.get(name, [])}:
        schema["required"] = sorted(required)
    if name in _ATOMIC:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _without_foreign_keys(node: OpenAPI) -> OpenAPI:
    kept: OpenAPI = {}
    for key, value in node.items():
        if key in _NOT_IN_CRDS:
            continue
        if key == "properties":
            kept[key] = {name: _without_foreign_keys(inner) for name, inner in value.items()}
        else:
            kept[key] = _without_foreign_keys(value) if isinstance(value, dict) else value
    return kept
