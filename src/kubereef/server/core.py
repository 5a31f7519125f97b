"""The server: who asks, whether they may, and which verb answers. It knows nothing of sockets."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from kubereef.kinds.resource import ResourceType, ScalePaths
from kubereef.server import deleting, listing, patching, watching, writing
from kubereef.server.answers import Wish, warning_headers
from kubereef.server.calls import Call, Surroundings
from kubereef.server.media import MAX_BODY, MAX_PROXIED_BODY
from kubereef.server.requests import Request, Response, User, json_response, text_response
from kubereef.server.routing import Target, target_of
from kubereef.server.scaling import scale
from kubereef.server.selection import Selection
from kubereef.store.errors import Conflict, WriteFailed
from kubewire import errors

log = logging.getLogger(__name__)

# Anybody can make up a method; only these get a count of their own.
_COUNTED_VERBS = frozenset(
    ("create", "delete", "deletecollection", "get", "head", "list", "patch", "post", "put", "update", "watch")
)

# How often a write is tried whose object another writer changes again and again; Kubernetes gives up as early.
_TRIES = 6

Handler = Callable[[Call], Awaitable[Response]]
Page = Callable[[Request, Target, User], Response | None]


class Gatekeeper(Protocol):
    """Says who asks, and refuses what they may not do."""

    def authenticate(self, request: Request) -> User: ...

    def authorize(self, user: User, target: Target) -> None: ...


class Server:
    """The API server. `pages` answer paths that name no resource; `subresources` those parts that behave specially."""

    def __init__(self, around: Surroundings, gatekeeper: Gatekeeper) -> None:
        self.around = around._replace(authorize=gatekeeper.authorize)
        self.gatekeeper = gatekeeper
        self.pages: list[Page] = []
        self.subresources: dict[tuple[str, str], Handler] = {}
        self.scales: dict[str, ScalePaths] = {}
        # Resources whose creation is an act, such as a review, and leaves no object behind.
        self.acts: dict[str, Handler] = {}
        # What has to follow a write of a resource before it is answered.
        self.consequences: dict[str, Callable[[], Awaitable[None]]] = {}
        # How many requests were answered, by verb and HTTP code.
        self.answered: Counter[tuple[str, int]] = Counter()

    async def handle(self, request: Request) -> Response:
        """Answer a request. Whatever goes wrong is an answer too."""
        target = target_of(request)
        warnings: list[str] = []
        response = await self._answer_or_refuse(request, target, warnings)
        if warnings:
            response = response._replace(headers=(*response.headers, *warning_headers(warnings)))
        if target.is_resource and response.status not in (401, 403):
            response = self._warned(target, response)
        verb = target.verb if target.verb in _COUNTED_VERBS else "other"
        self.answered[(verb, response.status)] += 1
        return response

    def body_limit(self, request: Request) -> int:
        """Return how long the body of a request may be that has not been read yet.

        Only what goes on to a Pod may be long, and only if whoever asks may send it there: raises ApiError if not.
        """
        target = target_of(request)
        if target.subresource != "proxy":
            return MAX_BODY
        self.gatekeeper.authorize(self.gatekeeper.authenticate(request), target)
        return MAX_PROXIED_BODY

    async def _answer_or_refuse(self, request: Request, target: Target, warnings: list[str]) -> Response:
        try:
            return await self._answer(request, target, warnings)
        except errors.ApiError as refusal:
            wait = refusal.retry_after_seconds
            headers = (("Retry-After", str(wait)),) if wait else ()
            return json_response(refusal.code, refusal.status(), headers)
        except WriteFailed as bad:
            failure = errors.internal_error(str(bad))
            return json_response(failure.code, failure.status())
        except Exception:
            # A fault of ours must not take the connection, let alone the server, with it. Bodies may hold secrets.
            log.exception("%s %s failed", request.method, request.path)
            failure = errors.internal_error("the server met an unexpected condition; its log tells more")
            return json_response(failure.code, failure.status())

    async def _answer(self, request: Request, target: Target, warnings: list[str]) -> Response:
        limit = MAX_PROXIED_BODY if target.subresource == "proxy" else MAX_BODY
        if len(request.body) > limit:
            raise errors.request_entity_too_large(f"limit is {limit}")
        user = self.gatekeeper.authenticate(request)
        self.gatekeeper.authorize(user, target)
        if not target.is_resource:
            for page in self.pages:
                response = page(request, target, user)
                if response is not None:
                    return response
            return text_response(404, "404 page not found\n")
        wish = Wish.of(request, self.around.clock.now().timestamp())
        for _ in range(_TRIES):
            resource_type = self._resource_type(target)
            if resource_type is None:
                # Where only definitions make resources, a path without one is no path of the server's.
                return text_response(404, "404 page not found\n")
            try:
                return await self._done(
                    Call(self.around, request, target, resource_type, user, wish, warnings)
                )
            except Conflict:
                # While webhooks were asked, somebody else was faster: the request begins anew with what there is now.
                continue
        raise errors.modified(target.plural, target.name, group=target.group)

    async def _done(self, call: Call) -> Response:
        """Answer a request about a resource, once what has to follow it has."""
        response = await self._dispatch(call)
        resource = call.resource_type.resource
        if call.target.verb in _WRITES and (follow := self.consequences.get(resource)) is not None:
            await follow()
        return response

    def _warned(self, target: Target, response: Response) -> Response:
        """Return an answer with the warning that a deprecated version carries."""
        found = self.around.registry.find(target.group, target.version, target.plural)
        if found is None or not found.deprecation:
            return response
        return response._replace(headers=(*warning_headers([found.deprecation]), *response.headers))

    def _resource_type(self, target: Target) -> ResourceType | None:
        registry = self.around.registry
        found = registry.find(target.group, target.version, target.plural)
        if found is None and not registry.is_builtin(target.group, target.version):
            return None
        if found is not None and not _is_path_of(found, target):
            if found.custom:
                return None
            found = None
        if found is None:
            raise _no_such_resource()
        return found

    async def _dispatch(self, call: Call) -> Response:
        target, resource_type = call.target, call.resource_type
        if target.subresource:
            return await self._subresource(call)
        verb = target.verb
        if verb not in resource_type.verbs or _misplaced(call) or call.request.method == "HEAD":
            raise not_allowed()
        if verb == "create" and (act := self.acts.get(resource_type.resource)) is not None:
            return await act(call)
        if verb == "get":
            return listing.get(call.store, resource_type, call.key, call.request, call.wish)
        if verb in ("list", "watch"):
            selection = Selection.of(call.request, resource_type, call.namespace, target.name)
            if verb == "list":
                return listing.list_objects(call.store, selection, call.request, call.wish)
            return watching.watch(call.store, selection, call.request, call.wish, self.around.entropy)
        return await _WRITES[verb](call)

    def offers(self, resource_type: ResourceType, subresource: str) -> bool:
        """Tell whether a part of a resource is served."""
        return (
            subresource in ("scale", "status")
            or subresource in resource_type.behaviour.parts
            or (resource_type.resource, subresource) in self.subresources
        )

    async def _subresource(self, call: Call) -> Response:
        target, resource_type = call.target, call.resource_type
        part = resource_type.subresources.get(target.subresource)
        if part is None and resource_type.custom:
            raise errors.not_found(resource_type.plural, target.name, group=resource_type.group)
        if part is None:
            raise _no_such_resource()
        if target.verb not in part.verbs:
            raise not_allowed()
        handler = self.subresources.get((resource_type.resource, target.subresource))
        if handler is not None:
            return await handler(call)
        if target.subresource == "scale":
            paths = resource_type.scale or self.scales.get(resource_type.resource, ScalePaths())
            return await scale(call, paths)
        if target.subresource == "status" or target.subresource in resource_type.behaviour.parts:
            if target.verb == "get":
                return listing.get(call.store, resource_type, call.key, call.request, call.wish)
            return await _WRITES[target.verb](call)
        raise _no_such_resource()


_WRITES: dict[str, Handler] = {
    "create": writing.create,
    "update": writing.update,
    "patch": patching.patch,
    "delete": deleting.delete,
    "deletecollection": deleting.delete_collection,
}


def _is_path_of(resource_type: ResourceType, target: Target) -> bool:
    """Tell whether there can be such a path: objects are in namespaces, or they are not."""
    if not resource_type.namespaced:
        is_itself = target.plural == "namespaces" and target.name == target.namespace
        return not target.namespace or is_itself
    if target.namespace or target.verb in ("list", "watch"):
        return True
    # What spans all namespaces can be listed; of built-in kinds, other methods are known there and not allowed.
    return not resource_type.custom and not target.name


def _misplaced(call: Call) -> bool:
    """Tell whether a verb needs a name or namespace that the path lacks, or has one it cannot use."""
    target = call.target
    if call.resource_type.namespaced and not target.namespace and target.verb not in ("list", "watch"):
        return True
    if target.verb == "create":
        return bool(target.name) and call.resource_type.plural != "namespaces"
    return target.verb in ("update", "patch") and not target.name


def _no_such_resource() -> errors.NotFound:
    return errors.NotFound("the server could not find the requested resource", details=errors.Details())


def not_allowed() -> errors.MethodNotAllowed:
    return errors.MethodNotAllowed(
        "the server does not allow this method on the requested resource", details=errors.Details()
    )
