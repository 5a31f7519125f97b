"""From a path and a method to what is asked for."""

from typing import NamedTuple

from kubereef.server.requests import Request


class Target(NamedTuple):
    """What a request is about, as authorisation and dispatch see it."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""  # what follows the subresource, for proxies
    is_resource: bool = False

    @property
    def resource(self) -> str:
        """Plural and group, the name a resource has in storage and in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_COLLECTION_VERBS = {"POST": "create", "DELETE": "deletecollection", "PUT": "update", "PATCH": "patch"}
_OBJECT_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}

# Parts of a namespace itself; any other word behind its name is a resource inside it.
_NAMESPACE_PARTS = frozenset(("status", "finalize"))


def target_of(request: Request) -> Target:
    """Return what a request is about; a path that names no resource is only itself."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Target(request.method.lower(), request.path)
    is_old_watch = rest[0] == "watch" and len(rest) >= 2 and request.method == "GET"
    if is_old_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 2:
        namespace = rest[1]
        if len(rest) >= 3 and not (rest[2] in _NAMESPACE_PARTS and not group):
            rest = rest[2:]
    name, subresource, tail = (*rest[1:3], "", "")[0], (*rest[2:3], "")[0], "/".join(rest[3:])
    if tail and request.path.endswith("/"):
        tail += "/"  # to a server behind a proxy this is another path
    if len(rest) == 1:
        name = ""
    verb = "watch" if is_old_watch else _verb(request, bool(name))
    if is_old_watch and name and not subresource:
        return Target(verb, request.path, group, version, namespace, rest[0], name, "", "", True)
    if not name and verb in ("list", "watch"):
        name = _selected_name(request)
        return Target(verb, request.path, group, version, namespace, rest[0], name, "", "", True)
    return Target(verb, request.path, group, version, namespace, rest[0], name, subresource, tail, True)


def _verb(request: Request, named: bool) -> str:
    if named:
        return _OBJECT_VERBS.get(request.method, request.method.lower())
    if request.method in ("GET", "HEAD"):
        return "watch" if request.flag("watch") else "list"
    return _COLLECTION_VERBS.get(request.method, request.method.lower())


def _selected_name(request: Request) -> str:
    """Return the only name that a list or watch can give, since a role may allow just that one."""
    selector = request.parameter("fieldSelector")
    if selector.startswith("metadata.name=") and "," not in selector:
        return selector.removeprefix("metadata.name=").removeprefix("=")
    return ""
