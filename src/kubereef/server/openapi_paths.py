"""The paths of OpenAPI documents: where each resource is, and what can be done there."""

from collections.abc import Callable, Iterable
from typing import Any

from kubereef.kinds.resource import ResourceType, Subresource
from kubereef.server.media import JSON
from kubereef.server.openapi_schemas import META, gvk, part_schema, schema_name

Paths = dict[str, Any]
Offers = Callable[[ResourceType, str], bool]
# Method, verb, action as documents name it, and query parameters.
Entry = tuple[str, str, str, dict[str, str]]

_STRATEGIC = "application/strategic-merge-patch+json"
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
)
# How a write may be answered, besides with 200.
_ALSO = {
    "create": {"201": "Created", "202": "Accepted"},
    "update": {"201": "Created"},
    "patch": {"201": "Created"},
    "delete": {"202": "Accepted"},
}

# Query parameters by action, as clients look for them: `kubectl apply` asks whether a patch takes fieldValidation.
_WRITE = {
    "dryRun": "When present, indicates that modifications should not be persisted.",
    "fieldManager": "A name associated with the actor or entity that is making these changes.",
    "fieldValidation": "How to handle objects with unknown or duplicate fields: Ignore, Warn or Strict.",
}
_DELETE = {
    "dryRun": _WRITE["dryRun"],
    "gracePeriodSeconds": "The duration in seconds before the object should be deleted.",
    "propagationPolicy": "Whether and how garbage collection will be performed.",
}
_LIST = {
    "allowWatchBookmarks": "Requests watch events with type BOOKMARK.",
    "continue": "Where a list goes on that was cut short by a limit.",
    "fieldSelector": "Restricts the list by fields.",
    "labelSelector": "Restricts the list by labels.",
    "limit": "The maximum number of objects to return.",
    "resourceVersion": "The version that an answer may or must be of.",
    "resourceVersionMatch": "How resourceVersion is applied.",
    "sendInitialEvents": "Begins a watch with what there is.",
    "timeoutSeconds": "Limits the duration of the call.",
    "watch": "Watches for changes instead of listing.",
}
_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}

_COLLECTION: tuple[Entry, ...] = (
    ("get", "list", "list", _LIST),
    ("post", "create", "post", _WRITE),
    ("delete", "deletecollection", "deletecollection", {**_LIST, **_DELETE}),
)
_OBJECT: tuple[Entry, ...] = (
    ("get", "get", "get", {}),
    ("put", "update", "put", _WRITE),
    ("post", "create", "post", _WRITE),
    ("patch", "patch", "patch", {**_WRITE, "force": "Takes fields over from other managers."}),
    ("delete", "delete", "delete", _DELETE),
)


def paths_of(types: Iterable[ResourceType], offers: Offers) -> Paths:
    """Return the paths of some resources, in the words of OpenAPI v3."""
    paths: Paths = {}
    for one in types:
        root = f"/apis/{one.group}/{one.version}" if one.group else f"/api/{one.version}"
        scope = "/namespaces/{namespace}" if one.namespaced else ""
        collection = f"{root}{scope}/{one.plural}"
        add_operations(paths, collection, one, _COLLECTION, None)
        if one.namespaced and "list" in one.verbs:
            listing = tuple(entry for entry in _COLLECTION if entry[1] == "list")
            add_operations(paths, f"{root}/{one.plural}", one, listing, None)
        if "get" in one.verbs:
            entries = tuple(entry for entry in _OBJECT if entry[1] != "create")
            add_operations(paths, f"{collection}/{{name}}", one, entries, None)
        for part in one.subresources.values():
            if offers(one, part.name):
                add_operations(paths, f"{collection}/{{name}}/{part.name}", one, _OBJECT, part)
    return dict(sorted(paths.items()))


def add_operations(
    paths: Paths,
    path: str,
    one: ResourceType,
    entries: Iterable[Entry],
    part: Subresource | None,
) -> None:
    """Add what can be done under a path."""
    verbs = one.verbs if part is None else part.verbs
    operations: dict[str, Any] = {
        method: _operation(path, one, verb, action, parameters, part)
        for method, verb, action, parameters in entries
        if verb in verbs
    }
    if not operations:
        return
    names = [name for name in ("name", "namespace") if f"{{{name}}}" in path]
    operations["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in names
    ]
    paths[path] = operations


def _operation(
    path: str, one: ResourceType, verb: str, action: str, parameters: dict[str, str], part: Subresource | None
) -> dict[str, Any]:
    kind = gvk(one)
    if part is not None and part.kind != one.kind:
        kind = {
            "group": part.group,
            "kind": part.kind,
            "version": part.version or one.version,
        }
    answered = _answered(one, verb, part)
    operation: dict[str, Any] = {
        "description": f"{verb} {one.kind}" + (f" {part.name}" if part else ""),
        "operationId": _operation_id(path, one, verb, part),
        "tags": [f"{one.group.split('.')[0] or 'core'}_{one.version}"],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
        "responses": {
            **{
                code: {"description": text, "content": {JSON: _schema(answered)}}
                for code, text in ({"200": "OK"} | _ALSO.get(verb, {})).items()
            },
            "401": {"description": "Unauthorized"},
        },
    }
    if parameters:
        operation["parameters"] = [
            {
                "name": name,
                "in": "query",
                "description": text,
                "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True},
            }
            for name, text in sorted(parameters.items())
        ]
    body = _body(one, verb, part)
    if body:
        operation["requestBody"] = {"required": verb != "delete", "content": body}
    return operation


def _answered(one: ResourceType, verb: str, part: Subresource | None) -> str:
    if verb in ("delete", "deletecollection"):
        return f"{META}.Status"
    if part is not None and part.kind != one.kind:
        return part_schema(one, part)
    return f"{schema_name(one)}List" if verb == "list" else schema_name(one)


def _body(one: ResourceType, verb: str, part: Subresource | None) -> dict[str, Any]:
    if verb == "patch":
        languages = (language for language in _PATCHES if language != _STRATEGIC or not one.custom)
        return {language: _schema(f"{META}.Patch") for language in languages}
    if verb in ("create", "update"):
        return {"*/*": _schema(_answered(one, "get", part))}
    if verb in ("delete", "deletecollection"):
        return {"*/*": _schema(f"{META}.DeleteOptions")}
    return {}


def _operation_id(path: str, one: ResourceType, verb: str, part: Subresource | None) -> str:
    words = {"create": "create", "update": "replace", "get": "read", "deletecollection": "deleteCollection"}
    group = one.group.removesuffix(".k8s.io") or "core"
    camel = "".join(word.capitalize() for word in group.replace("-", ".").split("."))
    scope = "Namespaced" if "{namespace}" in path else ""
    ending = "ForAllNamespaces" if one.namespaced and not scope else ""
    of_part = part.name.capitalize() if part else ""
    return f"{words.get(verb, verb)}{camel}{one.version.capitalize()}{scope}{one.kind}{of_part}{ending}"


def _schema(name: str) -> dict[str, Any]:
    """Return what stands for a body of a kind; options and streams have no schema."""
    return {"schema": {"$ref": f"#/components/schemas/{name}"}} if name else {}
