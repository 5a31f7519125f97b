"""An HTTP proxy: CONNECT for anything, and plain requests for `http:` addresses, one per connection."""

import asyncio
import socket
from typing import NamedTuple, Protocol

from kubereef.node.network.outside import NotReached
from kubereef.node.network.relay import NotForwarded, Relay

MOST_HEAD = 64 * 1024
HEAD_SECONDS = 30.0
_END_OF_HEAD = b"\r\n\r\n"
# These speak about the connection to the proxy, not about the request.
_HOP_HEADERS = {b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive"}


class Request(NamedTuple):
    """What a client wants of the proxy: where to, and what to send there first."""

    host: str
    port: int
    first: bytes
    is_tunnel: bool


class BadRequest(Exception):
    """A head that is no request to a proxy."""


def read_request(head: bytes) -> Request:
    """Return what the head of a request asks for; raises BadRequest."""
    line, _, headers = head.removesuffix(_END_OF_HEAD).partition(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        raise BadRequest("not a request of HTTP/1")
    method, target, version = words
    if method == b"CONNECT":
        host, port = _authority(target, None)
        return Request(host, port, b"", is_tunnel=True)
    if not target.lower().startswith(b"http://"):
        raise BadRequest("only CONNECT and addresses that begin with http:// are served")
    authority, slash, path = target[len(b"http://") :].partition(b"/")
    host, port = _authority(authority.rpartition(b"@")[2], 80)
    kept = [
        one for one in headers.split(b"\r\n") if one and one.partition(b":")[0].lower() not in _HOP_HEADERS
    ]
    # One request per connection: the next one may want to go elsewhere, and answers are not read here.
    lines = [b" ".join((method, (slash or b"/") + path, version)), *kept, b"Connection: close"]
    return Request(host, port, b"\r\n".join(lines) + _END_OF_HEAD, is_tunnel=False)


def _authority(text: bytes, default_port: int | None) -> tuple[str, int]:
    host, colon, port = text.rpartition(b":")
    if not colon or port.endswith(b"]"):  # no port, perhaps an address with colons in brackets
        host, port = text, b"" if default_port is None else str(default_port).encode()
    name = host.strip(b"[]").decode("ascii", "replace")
    if not name or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadRequest("no host and port to go to")
    return name, int(port)


class Reaches(Protocol):
    """Where a proxy leads: `Outside`, or into a node."""

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection to a host, given by name or address; raises NotReached."""
        ...


class HttpProxy:
    """Serves a listening socket as a proxy to wherever `there` reaches."""

    def __init__(self, listening: socket.socket, there: Reaches) -> None:
        """Begin to serve; the socket belongs to this object from now on."""
        self._there = there
        self._relay = Relay(listening, self._greet)

    async def _greet(self, client: socket.socket) -> socket.socket:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head, rest = await _read_head(client)
            request = read_request(head)
            connection = await self._there.connect(request.host, request.port)
        except BadRequest as problem:
            await _refuse(client, "400 Bad Request", str(problem))
            raise NotForwarded(str(problem)) from problem
        except NotReached as problem:
            await _refuse(client, "502 Bad Gateway", str(problem))
            raise NotForwarded(str(problem)) from problem
        try:
            if request.is_tunnel:
                await loop.sock_sendall(client, b"HTTP/1.1 200 Connection established\r\n\r\n")
            await loop.sock_sendall(connection, request.first + rest)
        except BaseException:
            connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Serve nobody any more."""
        await self._relay.close()


async def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request, and what of the rest has come with it."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    while (end := received.find(_END_OF_HEAD)) < 0:
        if len(received) > MOST_HEAD:
            raise BadRequest("the head is too long")
        more = await loop.sock_recv(client, 65536)
        if not more:
            raise ConnectionError("the client hung up")
        received += more
    end += len(_END_OF_HEAD)
    return bytes(received[:end]), bytes(received[end:])


async def _refuse(client: socket.socket, status: str, reason: str) -> None:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    await asyncio.get_running_loop().sock_sendall(client, head.encode() + body)
