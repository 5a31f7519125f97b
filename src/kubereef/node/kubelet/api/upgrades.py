"""Connections that leave HTTP behind: WebSockets, and SPDY on the bare connection."""

import asyncio
from collections.abc import Sequence

import aiohttp
from aiohttp import web

from kubereef.server.tunnels import Incoming, Outgoing

_MOST_MESSAGE = 16 * 1024 * 1024


class CannotUpgrade(Exception):
    """The client asks for no protocol that is spoken here."""


def offered_protocols(request: web.BaseRequest, header: str) -> list[str]:
    """Return the protocols that a client offers, in its order."""
    return [word.strip() for line in request.headers.getall(header, []) for word in line.split(",")]


def is_websocket(request: web.BaseRequest) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


def chosen(request: web.BaseRequest, header: str, spoken: Sequence[str]) -> str:
    """Return the first protocol of ours that the client offers too, the nameless one if it offers none.

    Raises CannotUpgrade.
    """
    offered = offered_protocols(request, header)
    for protocol in spoken:
        if protocol in (offered or [""]):
            return protocol
    raise CannotUpgrade(
        f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server accepts {list(spoken)}"
    )


async def open_websocket(request: web.BaseRequest, protocol: str) -> web.WebSocketResponse:
    """Return a WebSocket on which both sides speak a protocol."""
    protocols = (protocol,) if protocol else ()
    socket = web.WebSocketResponse(protocols=protocols, compress=False, max_msg_size=_MOST_MESSAGE)
    await socket.prepare(request)
    return socket


class MessagePipe:
    """A WebSocket as a pipe of bytes: where messages begin and end has no meaning."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                if message.data:
                    return bytes(message.data)
            elif message.type is not aiohttp.WSMsgType.TEXT:
                return b""

    async def send(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class BarePipe:
    """The connection of a request, taken out of HTTP."""

    def __init__(self, incoming: Incoming, outgoing: Outgoing) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def read(self) -> bytes:
        return await self._incoming.read()

    async def send(self, data: bytes) -> None:
        await self._outgoing.send(data)


def take_over(request: web.BaseRequest, protocol: str) -> BarePipe:
    """Agree to speak SPDY on the bare connection from now on; the answer to the request is then a `Taken`."""
    transport, connection = request.transport, request.protocol
    if not isinstance(transport, asyncio.Transport):
        raise ConnectionResetError("the client has gone")
    incoming = Incoming(transport)
    # The way by which aiohttp's own WebSockets get at the bytes that follow an upgrade.
    connection.set_parser(incoming)  # type: ignore[arg-type]  # it only feeds
    connection.keep_alive(False)
    lines = (
        "HTTP/1.1 101 Switching Protocols",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        f"X-Stream-Protocol-Version: {protocol}",
    )
    transport.write("\r\n".join((*lines, "", "")).encode())
    return BarePipe(incoming, Outgoing(transport, connection._drain_helper))  # noqa: SLF001 - as its writers do


class Taken(web.StreamResponse):
    """Stands for the answer on a connection that has been taken out of HTTP: nothing more is written."""

    async def prepare(self, _request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, _data: bytes = b"") -> None:
        return None
