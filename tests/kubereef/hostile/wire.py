"""Attacks over HTTPS, written byte by byte: no client library would send them."""

import asyncio
import ssl
import time
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import msgspec

from tests.kubereef.hostile.aims import Attack
from tests.kubereef.hostile.judging import PATIENCE, Answer

# How much of a stream is waited for.
STREAM_SECONDS = 0.05
_LIMIT = 64 * 1024 * 1024


class Address(NamedTuple):
    """Where a server listens, how to believe it, and how to be believed."""

    port: int
    trust: ssl.SSLContext
    token: str


class Cut(Exception):
    """The server ended the connection without an answer."""


class Connection:
    """One connection at a time: it is kept for the next request as long as the server keeps it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_why: object) -> None:
        self.drop()

    def drop(self) -> None:
        """End the connection without a word."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def get(self, path: str) -> dict[str, Any]:
        """Return an object; AssertionError if there is none."""
        answer = await self.ask(Attack("reading", "GET", path))
        assert answer.status == 200, answer
        value: dict[str, Any] = msgspec.json.decode(answer.body)
        return value

    async def ask(self, attack: Attack) -> Answer:
        """Send a request and return the answer; of a stream, what was asked for."""
        began = time.monotonic()
        is_kept = self._writer is not None
        try:
            status, media_type, body, is_stream = await self._exchange(attack)
        except (OSError, EOFError, asyncio.IncompleteReadError) as bad:
            self.drop()
            if is_kept:  # the server may end a kept connection whenever it likes, even now
                return await self.ask(attack)
            raise Cut(f"no answer: {bad!r}") from None
        return Answer(status, media_type, body, time.monotonic() - began, is_stream)

    async def raw(self, portions: Iterable[bytes | float], *, ends: bool = False) -> bytes:
        """Send bytes as they are on a connection of their own, with pauses, and return what comes back in a moment."""
        self.drop()
        _, writer = await self._opened()
        for portion in portions:
            if isinstance(portion, float):
                await asyncio.sleep(portion)
                continue
            writer.write(portion)
        came = b""
        try:
            if ends:
                writer.write_eof() if writer.can_write_eof() else writer.close()
            assert self._reader is not None
            async with asyncio.timeout(STREAM_SECONDS * 4):
                came = await self._reader.read(65536)
        except (OSError, TimeoutError):
            pass  # the server may well have had enough
        self.drop()
        return came

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None:
            async with asyncio.timeout(PATIENCE):
                self._reader, self._writer = await asyncio.open_connection(
                    "127.0.0.1",
                    self._address.port,
                    ssl=self._address.trust,
                    server_hostname="127.0.0.1",
                    limit=_LIMIT,
                )
        return self._reader, self._writer

    async def _exchange(self, attack: Attack) -> tuple[int, str, bytes, bool]:
        reader, writer = await self._opened()
        writer.write(self.head(attack) + attack.body)
        async with asyncio.timeout(PATIENCE * 2):
            status, headers = await _head(reader)
            while status == 100:
                status, headers = await _head(reader)
            if attack.method == "HEAD" or status in (204, 304):
                body = b""
            elif headers.get("transfer-encoding") == "chunked":
                body = await _chunks(reader, attack.until)
            else:
                body = await reader.readexactly(int(headers.get("content-length", "0")))
        is_stream = headers.get("transfer-encoding") == "chunked"
        if status == 101 or is_stream or headers.get("connection", "").lower() == "close":
            self.drop()
        return status, headers.get("content-type", ""), body, is_stream

    def head(self, attack: Attack) -> bytes:
        """Return the first lines of a request as they go over the wire."""
        lines = [f"{attack.method} {attack.target} HTTP/1.1", "Host: localhost"]
        if not any(name == "Authorization" for name, _ in attack.headers):
            lines.append(f"Authorization: Bearer {self._address.token}")
        lines += [f"{name}: {value}" for name, value in attack.headers]
        if attack.body or attack.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(attack.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8", "replace").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return int(first.split(" ", 2)[1]), headers


async def _chunks(reader: asyncio.StreamReader, until: bytes) -> bytes:
    """Return what a stream brings until something has come, or until nothing has come for a moment."""
    came: list[bytes] = []
    try:
        while True:
            async with asyncio.timeout(PATIENCE if until else STREAM_SECONDS):
                size = int(await reader.readuntil(b"\r\n"), 16)
                chunk = await reader.readexactly(size + 2)
            came.append(chunk[:-2])
            if not size or (until and until in chunk):
                break
    except TimeoutError:
        pass  # it goes on; this was enough
    return b"".join(came)
