"""What a route does to requests and answers besides passing them on: headers, redirects, other paths and hosts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Object = Mapping[str, Any]
Headers = list[tuple[str, str]]

_WELL_KNOWN = {"http": 80, "https": 443}


class Unsupported(Exception):
    """A route asks for what is not to be had; the message says where and what."""


class HeaderChange(NamedTuple):
    """Headers to be set, added and removed; the names to be removed are in lower case."""

    replaced: tuple[tuple[str, str], ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    removed: frozenset[str] = frozenset()

    def apply(self, headers: Headers) -> Headers:
        """Return headers with the change made."""
        gone = self.removed | {name.lower() for name, _ in self.replaced}
        kept = [header for header in headers if header[0].lower() not in gone]
        return [*kept, *self.replaced, *self.added]


class PathChange(NamedTuple):
    """Another path in the place of the whole, or of the prefix that matched."""

    value: str
    is_whole: bool

    def apply(self, path: str, prefix: str) -> str:
        """Return the path of a request that matched a prefix, with the change made."""
        if self.is_whole:
            return self.value or "/"
        rest = path[len(prefix.rstrip("/")) :].lstrip("/")
        return f"{self.value.rstrip('/')}/{rest}" if rest else self.value or "/"


class Rewrite(NamedTuple):
    """Another host and path for a backend than the client asked for."""

    hostname: str = ""
    path: PathChange | None = None


class Redirect(NamedTuple):
    """The client is told to ask elsewhere."""

    scheme: str = ""
    hostname: str = ""
    port: int = 0
    path: PathChange | None = None
    status: int = 302

    def location(self, host: str, port: int, path: str, prefix: str, query: str) -> str:
        """Return where a request goes that came for a host and path to a listener's port."""
        scheme = self.scheme or "http"
        number = self.port or (_WELL_KNOWN[scheme] if self.scheme else port)
        place = f"{scheme}://{self.hostname or host}"
        if number != _WELL_KNOWN[scheme]:
            place += f":{number}"
        wanted = self.path.apply(path, prefix) if self.path is not None else path
        return f"{place}{wanted}{f'?{query}' if query else ''}"


class Filters(NamedTuple):
    """All that is done to the requests of a rule, or to those that go to one backend."""

    request: HeaderChange | None = None
    response: HeaderChange | None = None
    rewrite: Rewrite | None = None
    redirect: Redirect | None = None


NO_FILTERS = Filters()


def read_filters(filters: Sequence[Object], where: str) -> Filters:
    """Return the filters of a rule or backend; Unsupported if there is one that is not known here."""
    found = NO_FILTERS
    for number, one in enumerate(filters):
        kind = one.get("type") or ""
        field = f"{kind[:1].lower()}{kind[1:]}" if kind != "URLRewrite" else "urlRewrite"
        content = one.get(field) or {}
        match kind:
            case "RequestHeaderModifier":
                found = found._replace(request=_header_change(content))
            case "ResponseHeaderModifier":
                found = found._replace(response=_header_change(content))
            case "URLRewrite":
                path = _path_change(content.get("path"))
                found = found._replace(rewrite=Rewrite(content.get("hostname") or "", path))
            case "RequestRedirect":
                found = found._replace(redirect=_redirect(content, f"{where}.filters[{number}]"))
            case _:
                raise Unsupported(
                    f"{where}.filters[{number}]: {kind or 'a filter without type'} is not supported"
                )
    return found


def _header_change(content: Object) -> HeaderChange:
    return HeaderChange(
        replaced=tuple((one["name"], one["value"]) for one in content.get("set") or ()),
        added=tuple((one["name"], one["value"]) for one in content.get("add") or ()),
        removed=frozenset(name.lower() for name in content.get("remove") or ()),
    )


def _path_change(path: Object | None) -> PathChange | None:
    if not path:
        return None
    is_whole = path.get("type") == "ReplaceFullPath"
    return PathChange(path.get("replaceFullPath" if is_whole else "replacePrefixMatch") or "", is_whole)


def _redirect(content: Object, where: str) -> Redirect:
    scheme = content.get("scheme") or ""
    if scheme and scheme not in _WELL_KNOWN:
        raise Unsupported(f"{where}: redirects lead to http or https, not to {scheme}")
    return Redirect(
        scheme=scheme,
        hostname=content.get("hostname") or "",
        port=content.get("port") or 0,
        path=_path_change(content.get("path")),
        status=content.get("statusCode") or 302,
    )
