"""CustomResourceDefinitions: the kinds as a Kubernetes API server wants to be told about them."""

from eagleray.rayapi import kubernetes
from eagleray.rayapi.declare import (
    GROUP,
    STRING,
    Column,
    Kind,
    OpenAPI,
    Version,
    struct_openapi,
    type_openapi,
)
from eagleray.rayapi.kinds import struct_for

_API_VERSION_DOC = "The group and version this object is written in, such as `ray.io/v1`."
_KIND_DOC = "The kind of this object, such as `RayCluster`."


def crd(kind: Kind) -> OpenAPI:
    """Return the CustomResourceDefinition of a kind; equal parts are the same objects, so copy to change."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "labels": {"app.kubernetes.io/part-of": "eagleray"},
            "name": f"{kind.plural}.{GROUP}",
        },
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["all"],
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.singular,
            },
            "scope": "Namespaced",
            "versions": [_version(version) for version in kind.versions],
        },
    }


def expanded_openapi(version: Version) -> OpenAPI:
    """Return the schema of a version without references, with the descriptions of our own fields."""
    expansion = _Expansion()
    return {
        "type": "object",
        "description": version.doc,
        "properties": {
            "apiVersion": {**type_openapi(STRING), "description": _API_VERSION_DOC},
            "kind": {**type_openapi(STRING), "description": _KIND_DOC},
            "metadata": {"type": "object"},
            "spec": expansion.definition(version.spec.definition),
            "status": expansion.definition(version.status.definition),
        },
    }


def _version(version: Version) -> OpenAPI:
    described: OpenAPI = {
        "name": version.name,
        "served": True,
        "storage": version.storage,
        "schema": {"openAPIV3Schema": expanded_openapi(version)},
        "subresources": {"status": {}},
    }
    if version.columns:
        described["additionalPrinterColumns"] = [_column(column) for column in version.columns]
    if version.deprecation is not None:
        described |= {"deprecated": True, "deprecationWarning": version.deprecation}
    return described


def _column(column: Column) -> OpenAPI:
    described: OpenAPI = {"jsonPath": column.path, "name": column.name, "type": column.type}
    if column.priority:
        described["priority"] = column.priority
    return described


class _Expansion:
    """Writes definitions out where they are referred to, each built once and shared."""

    def __init__(self) -> None:
        self._done: dict[str, OpenAPI] = {}

    def definition(self, name: str) -> OpenAPI:
        found = self._done.get(name)
        if found is None:
            declared = struct_for(name)
            brief = struct_openapi(declared, documented=True) if declared else kubernetes.definition(name)
            found = self._done[name] = self._expanded(brief)
        return found

    def _expanded(self, node: OpenAPI) -> OpenAPI:
        if isinstance(target := node.get("$ref"), str):
            # A field's own description stands beside the reference and wins over the type's.
            beside = {key: value for key, value in node.items() if key != "$ref"}
            full = self.definition(target.removeprefix("#/definitions/"))
            return {**full, **beside} if beside else full
        expanded = dict(node)
        for key in ("items", "additionalProperties"):
            if key in node:
                expanded[key] = self._expanded(node[key])
        if "properties" in node:
            expanded["properties"] = {
                name: self._expanded(inner) for name, inner in node["properties"].items()
            }
        return expanded
