"""Connections that both sides write to: exec, attach and port-forward, once a kubelet has agreed to them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from kubereef.server.lines import Line, unchecked_tls

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_MAX_HEAD = 64 * 1024
_MAX_REFUSAL = 8 * 1024
_PORTION = 64 * 1024

# What the two ends agree about; all else in a request is the API server's own business.
_PASSED_ON = ("connection", "upgrade", "origin", "x-stream-protocol-version")


Read = Callable[[], Awaitable[bytes]]
Send = Callable[[bytes], Awaitable[None]]


class Tunnel(NamedTuple):
    """The other end of an upgraded connection, and the words in which it agreed."""

    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def carry(self, reader: "Incoming", writer: "Outgoing") -> None:
        """Carry bytes both ways until one side has ended; then both are closed."""
        ways = [
            asyncio.create_task(_carried(reader.read, self._send)),
            asyncio.create_task(_carried(lambda: self.reader.read(_PORTION), writer.send)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await self.close()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def _send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


class Refusal(NamedTuple):
    """A kubelet's word that it will not."""

    status: int
    text: str


class Incoming:
    """Bytes that a client sends, handed over by whoever reads its socket; a full one makes the client wait."""

    _LIMIT = 256 * 1024

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._data = bytearray()
        self._ended = False
        self._paused = False
        self._news = asyncio.Event()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._data += data
        self._news.set()
        if len(self._data) > self._LIMIT and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        return False, b""

    def feed_eof(self) -> None:
        self._ended = True
        self._news.set()

    async def read(self) -> bytes:
        """Return what has come, waiting for it; nothing once the client has ended."""
        while not self._data and not self._ended:
            self._news.clear()
            await self._news.wait()
        data = bytes(self._data)
        self._data.clear()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data


class Outgoing:
    """Bytes to a client, sent no faster than it takes them; `drain` waits until it has."""

    def __init__(self, transport: asyncio.Transport, drain: Callable[[], Awaitable[None]]) -> None:
        self._transport = transport
        self._drain = drain

    async def send(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self._transport.write(data)
        await self._drain()


async def opened(line: Line, method: str, path: str, headers: Iterable[tuple[str, str]]) -> Tunnel | Refusal:
    """Ask for an upgraded connection; OSError or TimeoutError if nobody answers."""
    parts = urlsplit(line.url)
    async with asyncio.timeout(_CONNECT_SECONDS):
        reader, writer = await _connected(line)
    try:
        passed = [(name, value) for name, value in headers if _is_passed_on(name)]
        lines = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {value}" for name, value in passed]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        await writer.drain()
        async with asyncio.timeout(_ANSWER_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        status = _status(head)
        if status == 101:
            return Tunnel(head, reader, writer)
        async with asyncio.timeout(_ANSWER_SECONDS):
            text = await _refusal_text(reader, head)
    except asyncio.LimitOverrunError:
        raise ConnectionResetError("the node's answer cannot be understood") from None
    except BaseException:
        writer.close()
        raise
    writer.close()
    return Refusal(status, text)


async def _connected(line: Line) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(line.url)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    # Where nothing is known of the other end's certificate, it is not checked.
    tls = (line.tls or unchecked_tls()) if is_tls else None
    if line.dial is None:
        return await asyncio.open_connection(host, port, ssl=tls, limit=_MAX_HEAD)
    connection = await line.dial(host, port)
    name = host if is_tls else None
    return await asyncio.open_connection(sock=connection, ssl=tls, server_hostname=name, limit=_MAX_HEAD)


def _is_passed_on(name: str) -> bool:
    return name.lower() in _PASSED_ON or name.lower().startswith("sec-websocket-")


def _status(head: bytes) -> int:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ConnectionResetError("the node's answer cannot be understood")
    return int(words[1])


async def _refusal_text(reader: asyncio.StreamReader, head: bytes) -> str:
    length = _MAX_REFUSAL
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            length = min(int(value), _MAX_REFUSAL)
    try:
        body = await reader.readexactly(length)
    except asyncio.IncompleteReadError as ended:
        body = ended.partial
    return body.decode(errors="replace").strip()


async def _carried(read: Read, send: Send) -> None:
    with contextlib.suppress(OSError):
        while data := await read():
            await send(data)
