"""Discovery: which groups, versions and resources there are, in the plain and the aggregated form."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from kubereef.kinds.custom.versions import rank
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object, ResourceType, Subresource
from kubereef.server.core import Server, not_allowed
from kubereef.server.media import JSON, YAML, Form, written
from kubereef.server.requests import Request, Response, User
from kubereef.server.routing import Target
from kubereef.store.records import encode
from kubewire import errors

_AGGREGATED = {"v2": "apidiscovery.k8s.io/v2", "v2beta1": "apidiscovery.k8s.io/v2beta1"}
_OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"

Versions = dict[str, list[ResourceType]]
Made = TypeVar("Made")


class Discovery:
    """Answers what clients ask first: everything under `/api` and `/apis` that names no resource."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._registry: Registry = server.around.registry
        self._documents: dict[object, Any] = {}
        self._bytes: dict[object, bytes] = {}
        self._registry.on_change(self._forget)

    def page(self, request: Request, target: Target, _user: User) -> Response | None:
        """Answer a path of discovery; None if it is none."""
        parts = target.path.strip("/").split("/")
        if parts[0] not in ("api", "apis"):
            return None
        # The lists of groups answer whoever comes; all else can only be read.
        is_of_groups = parts[0] == "apis" and len(parts) < 3
        if request.method != "GET" and not is_of_groups:
            raise not_allowed()
        if len(parts) == 1:
            return self._root(request, parts[0])
        groups = self._groups()
        group = "" if parts[0] == "api" else parts[1]
        if group not in groups:
            return None
        if parts[0] == "apis" and len(parts) == 2:
            return _answer(request, self._document(("group", group), lambda: _group(group, groups[group])))
        version = parts[-1]
        if version not in groups[group]:
            raise errors.NotFound(
                "the server could not find the requested resource", details=errors.Details()
            )
        types = groups[group][version]
        return _answer(
            request,
            self._document(("version", group, version), lambda: self._resources(group, version, types)),
        )

    def _root(self, request: Request, root: str) -> Response:
        version = _aggregated_version(request)
        if version:
            return self._aggregated(request, root, version)
        if root == "apis":
            return _answer(request, self._document("apis", self._group_list))
        host = request.headers.get("host", "")
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": host}
        return _answer(
            request,
            {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]},
        )

    def _aggregated(self, request: Request, root: str, version: str) -> Response:
        key = (root, version)
        data = self._bytes.get(key)
        if data is None:
            data = self._bytes[key] = encode(self._everything(root, _AGGREGATED[version]))
        tag = f'"{hashlib.sha256(data).hexdigest().upper()}"'
        headers = (("ETag", tag), ("Vary", "Accept"))
        media_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        if request.headers.get("if-none-match") == tag:
            # Clients put the headers of this answer over those they remember, the type included.
            return Response(304, b"", media_type, headers)
        return Response(200, data, media_type, headers)

    # --- what there is

    def _forget(self) -> None:
        self._documents.clear()
        self._bytes.clear()

    def _document(self, key: object, make: Callable[[], Made]) -> Made:
        if key not in self._documents:
            self._documents[key] = make()
        made: Made = self._documents[key]
        return made

    def _groups(self) -> dict[str, Versions]:
        """Return the resources by group and version: built-in groups as published, then custom ones by name."""
        return self._document("groups", self._sorted_groups)

    def _sorted_groups(self) -> dict[str, Versions]:
        found: dict[str, Versions] = {}
        built_in = [one for one in self._registry if not one.custom]
        custom = sorted(
            (one for one in self._registry if one.custom), key=lambda one: (one.group, one.plural)
        )
        for one in (*built_in, *custom):
            found.setdefault(one.group, {}).setdefault(one.version, []).append(one)
        return {
            group: {version: versions[version] for version in sorted(versions, key=rank)}
            for group, versions in found.items()
        }

    def _group_list(self) -> Object:
        groups = [_group_facts(group, versions) for group, versions in self._groups().items() if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _everything(self, root: str, api_version: str) -> Object:
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None}
                if group
                else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "resources": [self._aggregated_resource(one) for one in types],
                        "freshness": "Current",
                    }
                    for version, types in versions.items()
                ],
            }
            for group, versions in self._groups().items()
            if bool(group) == (root == "apis")
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}

    def _aggregated_resource(self, one: ResourceType) -> Object:
        resource: Object = {
            "resource": one.plural,
            "responseKind": _response_kind(one),
            "scope": "Namespaced" if one.namespaced else "Cluster",
            "singularResource": one.singular,
            "verbs": list(one.shown_verbs),
        }
        _add_names(resource, one)
        parts = [
            {
                "subresource": part.name,
                "responseKind": {"group": part.group, "version": part.version, "kind": part.kind},
                "verbs": sorted(part.verbs),
            }
            for part in self._parts(one)
        ]
        if parts:
            resource["subresources"] = parts
        return resource

    def _resources(self, group: str, version: str, types: list[ResourceType]) -> Object:
        listed: list[Object] = []
        for one in types:
            resource: Object = {
                "name": one.plural,
                "singularName": one.singular,
                "namespaced": one.namespaced,
                "kind": one.kind,
                "verbs": list(one.shown_verbs),
            }
            _add_names(resource, one)
            if one.kept_kind:
                resource["storageVersionHash"] = _short_hash(one.kept_kind)
            listed.append(resource)
            listed += [_listed_part(one, part) for part in self._parts(one)]
        document: dict[str, Any] = {"kind": "APIResourceList"}
        if group:
            document["apiVersion"] = "v1"
        return {**document, "groupVersion": f"{group}/{version}" if group else version, "resources": listed}

    def _parts(self, one: ResourceType) -> list[Subresource]:
        """Return the subresources that are served; what is only published is not shown."""
        parts = [part for part in one.subresources.values() if self._server.offers(one, part.name)]
        return parts if one.custom else sorted(parts, key=lambda part: part.name)


def _short_hash(kind: str) -> str:
    """Return by what clients see that objects are kept in another version than before."""
    return base64.b64encode(hashlib.sha256(kind.encode()).digest()[:8]).decode()


def _response_kind(one: ResourceType) -> Object:
    """Return the kind of a resource's objects; Kubernetes spells group and version out for custom ones only."""
    if one.custom:
        return {"group": one.group, "version": one.version, "kind": one.kind}
    return {"group": "", "version": "", "kind": one.kind}


def _add_names(resource: Object, one: ResourceType) -> None:
    if one.short_names:
        resource["shortNames"] = list(one.short_names)
    if one.categories:
        resource["categories"] = list(one.categories)


def _listed_part(one: ResourceType, part: Subresource) -> Object:
    listed: Object = {
        "name": f"{one.plural}/{part.name}",
        "singularName": "",
        "namespaced": one.namespaced,
    }
    if (part.group or part.version) and (part.group, part.version) != (one.group, one.version):
        listed["group"], listed["version"] = part.group, part.version
    return {**listed, "kind": part.kind, "verbs": sorted(part.verbs)}


def _group(group: str, versions: Versions) -> Object:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group_facts(group, versions)}


def _group_facts(group: str, versions: Versions) -> Object:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _answer(request: Request, document: Object) -> Response:
    for wanted in request.headers.get("accept", "*/*").split(","):
        media_type, *parameters = (part.strip() for part in wanted.split(";"))
        if any(parameter.startswith("as=") for parameter in parameters):
            continue
        if media_type in ("*/*", "application/*", "", JSON, YAML):
            form = Form(YAML if media_type == YAML else JSON, "", request.flag("pretty"))
            return Response(200, written(document, form), form.media_type)
    raise errors.NotAcceptable(f"only the following media types are accepted: {_OFFERED}")


def _aggregated_version(request: Request) -> str:
    """Return the version of the aggregated form that a client takes; it is preferred whatever else it takes."""
    for wanted in request.headers.get("accept", "").split(","):
        media_type, *pairs = (part.strip() for part in wanted.split(";"))
        parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        fits = (
            parameters.get("g") == "apidiscovery.k8s.io" and parameters.get("as") == "APIGroupDiscoveryList"
        )
        if media_type == JSON and fits and parameters.get("v") in _AGGREGATED:
            return parameters["v"]
    return ""
