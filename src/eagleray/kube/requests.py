"""Requests to the API server as values: pure functions say what is sent, and why sending it twice would be safe."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec

from eagleray.kube.resources import Object, Ref, Resource

PatchKind = Literal["json", "merge", "strategic", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]

# Why a request may be sent again when nobody knows what became of it: it changes nothing (`read`), a second one
# would be refused (`name`, `precondition`), or it declares a state that the first one reached already (`apply`).
# Nothing at all makes the others safe.
Repeatable = Literal["", "read", "name", "precondition", "apply"]

_JSON: Final = "application/json"
_PATCH_TYPES: Final[Mapping[PatchKind, str]] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Request(NamedTuple):
    """One request; whatever carries it adds who asks."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = (("accept", _JSON),)
    body: bytes = b""
    repeatable: Repeatable = ""
    # For limits, metrics and messages.
    verb: str = "get"
    resource: str = ""

    @property
    def target(self) -> str:
        """The address with its query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Selection(NamedTuple):
    """Which objects of a resource, in the API server's own words."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        return _given(labelSelector=self.labels, fieldSelector=self.fields)


EVERYTHING: Final = Selection()


def get(resource: Resource, namespace: str, name: str, *, part: str = "") -> Request:
    """Ask for one object, or for a part of it such as `status`."""
    path = resource.path(namespace, name, part)
    return Request("GET", path, repeatable="read", verb="get", resource=str(resource))


def list_page(resource: Resource, selection: Selection, *, limit: int = 0, proceed: str = "") -> Request:
    """Ask for objects; `proceed` is the token of the page before."""
    query = (*selection.query, *_given(limit=str(limit) if limit else "", **{"continue": proceed}))
    path = resource.path(selection.namespace)
    return Request("GET", path, query, repeatable="read", verb="list", resource=str(resource))


def watch(
    resource: Resource,
    selection: Selection,
    *,
    version: str = "",
    seconds: int = 0,
    with_present: bool = False,
) -> Request:
    """Ask for what happens from a version on, with bookmarks; `with_present` begins with all that there is."""
    options = _given(resourceVersion=version, timeoutSeconds=str(seconds) if seconds else "")
    if with_present:
        options += (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
    query = (("watch", "true"), ("allowWatchBookmarks", "true"), *selection.query, *options)
    path = resource.path(selection.namespace)
    return Request("GET", path, query, repeatable="read", verb="watch", resource=str(resource))


def create(
    resource: Resource, obj: Mapping[str, Any], *, manager: str = "", dry_run: bool = False
) -> Request:
    """Ask for a new object. A name makes it safe to repeat: the second one already exists."""
    metadata = obj.get("metadata") or {}
    body = msgspec.json.encode({**obj, "apiVersion": resource.api_version, "kind": resource.kind})
    safe: Repeatable = "read" if dry_run else "name" if metadata.get("name") else ""
    path = resource.path(metadata.get("namespace", ""))
    return _write("POST", path, "create", resource, body, safe, manager=manager, dry_run=dry_run)


def replace(
    resource: Resource,
    obj: Mapping[str, Any],
    *,
    part: str = "",
    manager: str = "",
    dry_run: bool = False,
) -> Request:
    """Ask to have an object as a whole, or a part of it, become this. Its resourceVersion is the precondition."""
    ref = Ref.of(obj)
    body = msgspec.json.encode({**obj, "apiVersion": resource.api_version, "kind": resource.kind})
    safe: Repeatable = "read" if dry_run else "precondition" if ref.version else ""
    path = resource.path(ref.namespace, ref.name, part)
    return _write("PUT", path, "update", resource, body, safe, manager=manager, dry_run=dry_run)


def patch(
    resource: Resource,
    ref: Ref,
    change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    kind: PatchKind = "merge",
    *,
    part: str = "",
    manager: str = "",
    force: bool = False,
    dry_run: bool = False,
) -> Request:
    """Ask for a change. A version in the reference makes it a change of what was observed and of nothing later."""
    body = msgspec.json.encode(_observed(resource, ref, change, kind))
    safe: Repeatable = (
        "read" if dry_run else "precondition" if ref.version else "apply" if kind == "apply" else ""
    )
    path = resource.path(ref.namespace, ref.name, part)
    return _write(
        "PATCH",
        path,
        "apply" if kind == "apply" else "patch",
        resource,
        body,
        safe,
        manager=manager,
        dry_run=dry_run,
        content=_PATCH_TYPES[kind],
        force=force,
    )


def delete(
    resource: Resource,
    ref: Ref,
    *,
    propagation: Propagation | None = None,
    grace_seconds: int | None = None,
    dry_run: bool = False,
) -> Request:
    """Ask to delete this very object: what the reference knows of uid and version must still be so.

    Without either, a repeat might delete a successor of the same name.
    """
    preconditions = dict(_given(uid=ref.uid, resourceVersion=ref.version))
    safe: Repeatable = "read" if dry_run else "precondition" if preconditions else ""
    body = msgspec.json.encode(_delete_options(preconditions, propagation, grace_seconds))
    path = resource.path(ref.namespace, ref.name)
    return _write("DELETE", path, "delete", resource, body, safe, dry_run=dry_run)


def delete_collection(
    resource: Resource, selection: Selection, *, propagation: Propagation | None = None
) -> Request:
    """Ask to delete whatever is selected at that moment."""
    body = msgspec.json.encode(_delete_options({}, propagation, None))
    request = _write("DELETE", resource.path(selection.namespace), "deletecollection", resource, body, "")
    return request._replace(query=selection.query)


def _observed(
    resource: Resource, ref: Ref, change: Mapping[str, Any] | Sequence[Mapping[str, Any]], kind: PatchKind
) -> Object | list[Mapping[str, Any]]:
    """Return the patch with the version that it is a change of, in the form that fails as a conflict."""
    if kind == "json":
        if isinstance(change, Mapping):
            raise TypeError("a JSON patch is a list of operations")
        # A `test` that fails is answered as an invalid request; an object of another version is a conflict.
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": ref.version}
        return [*([version] if ref.version else []), *change]
    if not isinstance(change, Mapping):
        raise TypeError(f"a patch of type {kind} is an object")
    whole = dict(change)
    if kind == "apply":
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **whole}
        whole["metadata"] = {"name": ref.name, **(whole.get("metadata") or {})}
    if ref.version:
        whole["metadata"] = {**(whole.get("metadata") or {}), "resourceVersion": ref.version}
    return whole


def _delete_options(
    preconditions: Mapping[str, str], propagation: Propagation | None, grace_seconds: int | None
) -> Object:
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def _write(
    method: str,
    path: str,
    verb: str,
    resource: Resource,
    body: bytes,
    safe: Repeatable,
    *,
    manager: str = "",
    dry_run: bool = False,
    content: str = _JSON,
    force: bool = False,
) -> Request:
    query = _given(fieldManager=manager, dryRun="All" if dry_run else "", force="true" if force else "")
    headers = (("accept", _JSON), ("content-type", content))
    return Request(method, path, query, headers, body, safe, verb, str(resource))


def _given(**options: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in options.items() if value)
