"""What comes in and what goes out, whatever carries it."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kubereef.store.records import encode

if TYPE_CHECKING:
    from kubereef.server.tunnels import Tunnel


class User(NamedTuple):
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


def user_info(user: User) -> dict[str, Any]:
    """Return a user as reviews show it."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in info.items() if value}


MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

ADMINISTRATOR = User("kubernetes-admin", (MASTERS, AUTHENTICATED))
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


class Request(NamedTuple):
    """One request. Header names are in lower case; a query parameter may come several times.

    `user` is set where the transport knows who asks: by a client certificate, or because the caller is part of this
    process. Otherwise the headers tell. `repeated` has all values of the headers that came more than once.
    """

    method: str
    path: str
    query: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User | None = None
    repeated: Mapping[str, list[str]] = {}

    def header_values(self, name: str) -> list[str]:
        """Return every value of a header, in the order in which they came."""
        if name in self.repeated:
            return self.repeated[name]
        return [self.headers[name]] if name in self.headers else []

    def parameter(self, name: str) -> str:
        """Return the first value of a query parameter, or nothing."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Tell whether a query parameter is set as Kubernetes reads booleans: given, and neither 0 nor false."""
        return name in self.query and self.parameter(name).lower() not in ("false", "0")


class Response(NamedTuple):
    """One answer: a body, a stream of chunks that ends when it likes, or a connection that both sides write to."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None
    tunnel: "Tunnel | None" = None


def json_response(status: int, value: object, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Return an answer that holds a value as JSON."""
    return Response(status, encode(value), headers=headers)


def text_response(status: int, text: str) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8")
