"""The compiled schema of each Ray kind, for defaulting, pruning and validation."""

from functools import cache
from typing import TYPE_CHECKING

from eagleray.rayapi import kubernetes
from eagleray.rayapi.declare import STRING, OpenAPI, Version, reference_to, struct_openapi, type_openapi
from eagleray.rayapi.kinds import kind_for, struct_for
from kubewire.schema import compile_schema

if TYPE_CHECKING:
    from kubewire.schema import Schema


@cache
def schema_for(api_version: str, kind: str) -> "Schema":
    """Return the schema of a Ray kind; a KeyError if there is no such kind and version."""
    version = kind_for(api_version, kind)
    if version is None:
        raise KeyError(f"{api_version} {kind} is not one of Ray's kinds")
    return compile_schema(openapi_of(version), definition)


def openapi_of(version: Version) -> OpenAPI:
    """Return the OpenAPI of whole objects of a kind; spec and status are references to `definition`."""
    return {
        "type": "object",
        "properties": {
            "apiVersion": type_openapi(STRING),
            "kind": type_openapi(STRING),
            "metadata": {"type": "object"},
            "spec": reference_to(version.spec.definition),
            "status": reference_to(version.status.definition),
        },
    }


def definition(name: str) -> OpenAPI:
    """Return the OpenAPI of one of Ray's structs or of Kubernetes' types, by the name that references use."""
    declared = struct_for(name)
    return kubernetes.definition(name) if declared is None else struct_openapi(declared)
