"""OpenAPI: the schemas of everything that is served, as `kubectl explain` and validating clients read them."""

import hashlib
from typing import Any

from kubereef.kinds.resource import ResourceType
from kubereef.server import openapi_protobuf
from kubereef.server.core import Server
from kubereef.server.media import JSON
from kubereef.server.openapi_paths import paths_of
from kubereef.server.openapi_schemas import gvk, schemas_v2, schemas_v3
from kubereef.server.openapi_v2 import paths_v2
from kubereef.server.requests import Request, Response, User, json_response, text_response
from kubereef.server.routing import Target
from kubereef.store.records import encode
from kubewire import errors

_INFO = {"title": "Kubernetes", "version": "v1.36.3"}
# The older document in its other form, among the documents that were made.
_PROTOBUF = "openapi/v2 in protobuf"
_BEARER = {
    "type": "apiKey",
    "description": "Bearer Token authentication",
    "name": "authorization",
    "in": "header",
}


class OpenApi:
    """Answers `/openapi/v2` and everything under `/openapi/v3`; documents are made when somebody asks for them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._registry = server.around.registry
        self._groups: dict[str, list[ResourceType]] = {}
        self._hashes: dict[str, str] = {}
        # Documents by what they are of; each is good as long as its hash is.
        self._made: dict[str, tuple[str, bytes]] = {}
        self._registry.on_change(self._forget)

    def page(self, request: Request, target: Target, _user: User) -> Response | None:
        """Answer a path of OpenAPI; None if it is none."""
        path = target.path.rstrip("/")
        if path != "/openapi/v2" and path != "/openapi/v3" and not path.startswith("/openapi/v3/"):
            return None
        if request.method not in ("GET", "HEAD"):
            return text_response(405, "405: Method Not Allowed")
        in_protobuf = path == "/openapi/v2" and openapi_protobuf.is_wanted(request)
        if not in_protobuf:
            _check_accepted(request)
        self._gather()
        if path == "/openapi/v3":
            return json_response(200, {"paths": {name: self._entry(name) for name in self._groups}})
        name = path.removeprefix("/openapi/v3/") if path != "/openapi/v2" else ""
        if name and name not in self._groups:
            return None
        tag = self._hashes[name] if name else self._hash_of_all()
        if in_protobuf:
            tag += "-PB"  # another text of the same facts
        headers = (("ETag", f'"{tag}"'), ("Vary", "Accept"))
        if request.headers.get("if-none-match") == f'"{tag}"':
            return Response(304, headers=headers)
        if in_protobuf:
            return Response(200, self._in_protobuf(tag), openapi_protobuf.MEDIA_TYPE, headers)
        return Response(200, self._document(name, tag), JSON, headers)

    def _forget(self) -> None:
        self._groups = {}

    def _gather(self) -> None:
        """Sort the resources by the documents they belong to."""
        if self._groups:
            return
        found: dict[str, list[ResourceType]] = {}
        for one in self._registry:
            found.setdefault(f"{'apis' if one.group else 'api'}/{one.api_version}", []).append(one)
        self._groups = dict(sorted(found.items()))
        self._hashes = {name: _hash(types) for name, types in self._groups.items()}
        self._made = {name: made for name, made in self._made.items() if self._hashes.get(name) == made[0]}

    def _entry(self, name: str) -> dict[str, str]:
        return {"serverRelativeURL": f"/openapi/v3/{name}?hash={self._hashes[name]}"}

    def _hash_of_all(self) -> str:
        return hashlib.sha256("".join(self._hashes.values()).encode()).hexdigest().upper()

    def _document(self, name: str, tag: str) -> bytes:
        made = self._made.get(name)
        if made is None or made[0] != tag:
            document = self._v3(self._groups[name]) if name else self._v2()
            made = self._made[name] = (tag, encode(document))
        return made[1]

    def _in_protobuf(self, tag: str) -> bytes:
        made = self._made.get(_PROTOBUF)
        if made is None or made[0] != tag:
            types = list(self._registry)
            paths = paths_of(types, self._server.offers)
            made = self._made[_PROTOBUF] = (tag, openapi_protobuf.document(_INFO, paths, schemas_v2(types)))
        return made[1]

    def _v3(self, types: list[ResourceType]) -> dict[str, Any]:
        return {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": paths_of(types, self._server.offers),
            "components": {
                "schemas": schemas_v3(types),
                "securitySchemes": {"BearerToken": _BEARER},
            },
        }

    def _v2(self) -> dict[str, Any]:
        """Return the older document: the same paths and schemas, in its words."""
        types = list(self._registry)
        return {
            "swagger": "2.0",
            "info": _INFO,
            "paths": paths_v2(paths_of(types, self._server.offers)),
            "definitions": schemas_v2(types),
            "securityDefinitions": {"BearerToken": _BEARER},
            "security": [{"BearerToken": []}],
        }


def _hash(types: list[ResourceType]) -> str:
    """Return what changes whenever a document would: the facts that it is made of."""
    facts = [
        [
            gvk(one),
            one.plural,
            one.namespaced,
            sorted(one.verbs),
            sorted(one.subresources),
            one.definition,
            one.schema,
        ]
        for one in types
    ]
    return hashlib.sha256(encode([_INFO, facts])).hexdigest().upper()


def _check_accepted(request: Request) -> None:
    """Refuse who takes no JSON; clients that ask for protobuf alone ask again."""
    for wanted in request.headers.get("accept", "*/*").split(","):
        if wanted.partition(";")[0].strip() in ("*/*", "application/*", "", JSON):
            return
    raise errors.NotAcceptable(f"only the following media types are accepted: {JSON}")
