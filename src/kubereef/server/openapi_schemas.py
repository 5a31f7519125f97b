"""The schemas of OpenAPI documents: published definitions for built-in kinds, declared ones for custom kinds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubereef.kinds.resource import ResourceType, Subresource
from kubewire import builtin

Schemas = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_V2, _V3 = "#/definitions/", "#/components/schemas/"

_API_VERSION = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized"
    " schemas to the latest internal value, and may reject unrecognized values."
)
_KIND = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the"
    " endpoint the client submits requests to. Cannot be updated. In CamelCase."
)

# What version 2 of OpenAPI has no words for; clients of it would refuse the document.
_NOT_IN_V2 = frozenset(("allOf", "anyOf", "not", "nullable", "oneOf"))


def schema_name(resource_type: ResourceType) -> str:
    """Return the name under which the schema of a kind stands."""
    if resource_type.definition:
        return resource_type.definition
    group = ".".join(reversed(resource_type.group.split(".")))
    return f"{group}.{resource_type.version}.{resource_type.kind}"


def part_schema(resource_type: ResourceType, part: Subresource) -> str:
    """Return the name of the schema of a subresource that has a kind of its own; empty if it has none."""
    group = (part.group or resource_type.group).split(".")[0] or "core"
    name = f"io.k8s.api.{group}.{part.version or resource_type.version}.{part.kind}"
    return name if name in builtin.definitions() else ""


def gvk(resource_type: ResourceType) -> dict[str, str]:
    """Return group, version and kind as documents write them."""
    return {"group": resource_type.group, "kind": resource_type.kind, "version": resource_type.version}


def schemas_v3(types: Iterable[ResourceType]) -> Schemas:
    """Return the schemas that the kinds of some resources need, for an OpenAPI v3 document."""
    return _closed(_roots(types), _in_v3)


def schemas_v2(types: Iterable[ResourceType]) -> Schemas:
    """Return the schemas that the kinds of some resources need, for an OpenAPI v2 document."""
    return _closed(_roots(types), _in_v2)


def _roots(types: Iterable[ResourceType]) -> Schemas:
    published = builtin.definitions()
    names = [f"{META}.{name}" for name in ("DeleteOptions", "Patch", "Status")]
    roots: Schemas = {}
    for one in types:
        if one.definition:
            names += [one.definition, f"{one.definition}List"]
        else:
            roots[schema_name(one)] = _custom(one)
            roots[f"{schema_name(one)}List"] = _custom_list(one)
        names += [name for part in one.subresources.values() if (name := part_schema(one, part))]
    roots.update((name, published[name]) for name in names if name in published)
    return roots


def _closed(roots: Schemas, convert: Callable[[Any], Any]) -> Schemas:
    """Return schemas with all that they refer to, in the words of a document's version."""
    published = builtin.definitions()
    found: Schemas = {}
    waiting = sorted(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        raw = roots.get(name) or published[name]
        found[name] = convert(raw)
        waiting.extend(set(_references(raw)) - found.keys())
    return dict(sorted(found.items()))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_V2):
            yield reference.removeprefix(_V2)
        for below in value.values():
            yield from _references(below)
    elif isinstance(value, list):
        for below in value:
            yield from _references(below)


def _in_v3(value: Any) -> Any:
    """Return a schema with references as version 3 writes them: nothing may stand beside one."""
    if isinstance(value, list):
        return [_in_v3(one) for one in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if not isinstance(reference, str):
        return {key: _in_v3(one) for key, one in value.items()}
    target = {"$ref": reference.replace(_V2, _V3)}
    beside = {key: _in_v3(one) for key, one in value.items() if key != "$ref"}
    return {**beside, "allOf": [target]} if beside else target


def _in_v2(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_v2(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key not in _NOT_IN_V2}
    for keyword in ("properties", "definitions"):
        if isinstance(kept.get(keyword), dict):
            kept[keyword] = {name: _in_v2(one) for name, one in kept[keyword].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in kept:
            kept[keyword] = _in_v2(kept[keyword])
    return kept


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"{_V2}{name}"}


def _custom(one: ResourceType) -> Mapping[str, Any]:
    """Return the schema of a custom kind with the fields that every object has."""
    declared: Mapping[str, Any] = one.schema or {}
    metadata = {
        **_reference(f"{META}.ObjectMeta"),
        "description": "Standard object's metadata.",
    }
    properties = {
        **(declared.get("properties") or {}),
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": metadata,
    }
    return {
        "type": "object",
        **declared,
        "properties": dict(sorted(properties.items())),
        "x-kubernetes-group-version-kind": [gvk(one)],
    }


def _custom_list(one: ResourceType) -> Mapping[str, Any]:
    return {
        "type": "object",
        "description": f"{one.list_kind} is a list of {one.kind}",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": _API_VERSION},
            "items": {
                "type": "array",
                "description": f"List of {one.plural}.",
                "items": _reference(schema_name(one)),
            },
            "kind": {"type": "string", "description": _KIND},
            "metadata": {**_reference(f"{META}.ListMeta"), "description": "Standard list metadata."},
        },
        "x-kubernetes-group-version-kind": [{**gvk(one), "kind": one.list_kind}],
    }
