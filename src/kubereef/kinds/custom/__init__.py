"""Custom resources: what a CustomResourceDefinition makes the server offer."""

from collections.abc import Mapping
from typing import Any

from kubereef.kinds.custom.conditions import is_true
from kubereef.kinds.custom.objects import Judge, behaviour_of, conversion_between
from kubereef.kinds.custom.scales import scale_paths
from kubereef.kinds.custom.versions import deprecation, rank
from kubereef.kinds.resource import Object, ResourceType, Subresource
from kubewire.schema import Schema, compile_schema

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

# In the order of discovery. What is about to go can still be changed, so that it can go, but clients need not know.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS_AT_THE_END = ("delete", "deletecollection", "get", "list", "watch")
_PART_VERBS = frozenset(("get", "patch", "update"))


def is_served(definition: Object) -> bool:
    """Tell whether the objects of a definition can be reached: its names are accepted, or once were."""
    return is_true(definition, "NamesAccepted") or is_true(definition, "Established")


def custom_types(definition: Object, changed_at: int = 0) -> list[ResourceType]:
    """Return the resources of a definition, one for each served version, the preferred first.

    `changed_at` is the revision of the last change that objects may be older than; 0 means that there is none.
    """
    if not is_served(definition):
        return []
    spec = definition["spec"]
    versions = sorted(spec["versions"], key=lambda version: rank(version["name"]))
    schemas = {version["name"]: _schema_of(version) for version in versions}
    stored = next(version["name"] for version in versions if version["storage"])
    return [
        _type_of(definition, version, schemas[version["name"]], schemas[stored], changed_at)
        for version in versions
        if version["served"]
    ]


def stored_type(definition: Object, changed_at: int = 0) -> ResourceType:
    """Return the resource of the version in which objects are kept, served or not."""
    version = next(version for version in definition["spec"]["versions"] if version["storage"])
    schema = _schema_of(version)
    return _type_of(definition, version, schema, schema, changed_at)


def _schema_of(version: Mapping[str, Any]) -> Schema:
    return compile_schema((version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"})


def _type_of(
    definition: Object, version: Mapping[str, Any], shown: Schema, stored: Schema, changed_at: int
) -> ResourceType:
    spec = definition["spec"]
    accepted = definition["status"]["acceptedNames"]
    group, plural, kind = spec["group"], accepted["plural"], accepted["kind"]
    declared = version.get("subresources") or {}
    scale = scale_paths(declared["scale"]) if declared.get("scale") else None
    judge = Judge(f"{group}/{version['name']}", kind, shown, scale)
    conversion = conversion_between(shown, stored, same=bool(version["storage"]), changed_at=changed_at)
    terminating = is_true(definition, "Terminating")
    return ResourceType(
        group=group,
        version=version["name"],
        kind=kind,
        plural=plural,
        singular=accepted.get("singular") or kind.lower(),
        namespaced=spec["scope"] == "Namespaced",
        verbs=frozenset(_VERBS),
        short_names=tuple(accepted.get("shortNames") or ()),
        categories=tuple(accepted.get("categories") or ()),
        subresources=_parts(group, version["name"], kind, declared),
        custom=True,
        conversion=conversion,
        behaviour=behaviour_of(judge, version, conversion, (plural, group), terminating=terminating),
        list_kind=accepted.get("listKind") or "",
        schema=shown.raw,
        scale=scale,
        deprecation=deprecation(spec, version),
        shown_verbs=_VERBS_AT_THE_END if terminating else _VERBS,
        kept_kind=_kept_kind(spec),
    )


def _kept_kind(spec: Mapping[str, Any]) -> str:
    """Return what objects are kept as, which is no secret if that version is served."""
    stored = next(version for version in spec["versions"] if version["storage"])
    return f"{spec['group']}/{stored['name']}/{spec['names']['kind']}" if stored["served"] else ""


def _parts(group: str, version: str, kind: str, declared: Mapping[str, Any]) -> dict[str, Subresource]:
    parts = {}
    if declared.get("status") is not None:
        parts["status"] = Subresource("status", _PART_VERBS, group, version, kind)
    if declared.get("scale") is not None:
        parts["scale"] = Subresource("scale", _PART_VERBS, "autoscaling", "v1", "Scale")
    return parts
