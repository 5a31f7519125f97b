"""Two ways to the same server: calls within the process, and HTTPS."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, urlsplit

import aiohttp
import yarl

from kubereef.server.core import Server
from kubereef.server.requests import ADMINISTRATOR, Request
from kubewire.sources import Clock

# The server names the manager of fields after the client.
USER_AGENT = "replay/1.0"

Headers = Sequence[tuple[str, str]]


class Answer(NamedTuple):
    """What a client sees of one response."""

    status: int
    content_type: str
    warnings: list[str]
    body: Any
    received: datetime


class Stream:
    """An open watch that gathers events until it ends."""

    def __init__(self, status: int, content_type: str, warnings: list[str]) -> None:
        self.status = status
        self.content_type = content_type
        self.warnings = warnings
        self.events: list[Any] = []
        self.ended = False

    def take(self, lines: Iterable[bytes]) -> None:
        """Note events; a refusal in plain text holds none."""
        if "json" in self.content_type:
            self.events += map(json.loads, lines)


class Transport(Protocol):
    """A way to a server. Without an Authorization header the caller is anonymous, unless `as_admin`."""

    clock: Clock

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes | None, *, as_admin: bool
    ) -> Answer: ...

    def watch(self, url: str, headers: Headers, *, as_admin: bool) -> AbstractAsyncContextManager[Stream]: ...


class InProcess:
    """Speaks to a server of this process, which may live under virtual time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.clock = server.around.clock

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes | None, *, as_admin: bool
    ) -> Answer:
        response = await self._server.handle(self._request(method, url, headers, body or b"", as_admin))
        warnings = [value for name, value in response.headers if name == "Warning"]
        content = decoded(response.body, response.content_type)
        return Answer(response.status, response.content_type, warnings, content, self.clock.now())

    @asynccontextmanager
    async def watch(self, url: str, headers: Headers, *, as_admin: bool) -> AsyncIterator[Stream]:
        response = await self._server.handle(self._request("GET", url, headers, b"", as_admin))
        warnings = [value for name, value in response.headers if name == "Warning"]
        stream = Stream(response.status, response.content_type, warnings)
        chunks = response.stream
        if chunks is None:
            stream.take(response.body.splitlines())
            stream.ended = True
            yield stream
            return

        async def gather() -> None:
            async with aclosing(chunks):  # type: ignore[type-var]  # our streams are generators
                async for chunk in chunks:
                    stream.take(chunk.splitlines())
            stream.ended = True

        async with _in_background(gather()):
            yield stream

    def _request(self, method: str, url: str, headers: Headers, body: bytes, as_admin: bool) -> Request:
        parts = urlsplit(url)
        first: dict[str, str] = {}
        repeated: dict[str, list[str]] = {}
        for name, value in headers:
            repeated.setdefault(name.lower(), []).append(value)
            first.setdefault(name.lower(), value)
        query = parse_qs(parts.query, keep_blank_values=True)
        user = ADMINISTRATOR if as_admin else None
        return Request(method, parts.path, query, first, body, user, repeated)


class Https:
    """Speaks to a server over the wire; the administrator shows a token."""

    def __init__(self, url: str, token: str, trust: ssl.SSLContext, clock: Clock) -> None:
        self._url = url
        self._token = token
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust),
            skip_auto_headers=("Accept", "Content-Type", "Accept-Encoding"),
        )
        self.clock = clock

    async def close(self) -> None:
        await self._session.close()

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes | None, *, as_admin: bool
    ) -> Answer:
        async with self._session.request(
            method,
            self._address(url),
            headers=self._headers(headers, as_admin),
            data=None if body is None else BytesIO(body),
        ) as response:
            raw = await response.read()
            content_type = response.headers.get("Content-Type", "")
            warnings = response.headers.getall("Warning", [])
            return Answer(
                response.status, content_type, warnings, decoded(raw, content_type), self.clock.now()
            )

    @asynccontextmanager
    async def watch(self, url: str, headers: Headers, *, as_admin: bool) -> AsyncIterator[Stream]:
        async with self._session.get(
            self._address(url), headers=self._headers(headers, as_admin)
        ) as response:
            content_type = response.headers.get("Content-Type", "")
            stream = Stream(response.status, content_type, response.headers.getall("Warning", []))

            async def gather() -> None:
                async for line in response.content:
                    stream.take([line])
                stream.ended = True

            async with _in_background(gather()):
                yield stream

    def _address(self, url: str) -> yarl.URL:
        return yarl.URL(self._url + url, encoded=True)

    def _headers(self, headers: Headers, as_admin: bool) -> list[tuple[str, str]]:
        return [*headers, ("Authorization", f"Bearer {self._token}")] if as_admin else list(headers)


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something run until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def decoded(raw: bytes, content_type: str) -> Any:
    """Return a body as the value it holds, or as text."""
    if "json" in content_type:
        try:
            return json.loads(raw)
        except ValueError:
            pass  # shown as it is: the comparison says what is wrong with it
    return raw.decode(errors="replace")


def header_list(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return headers one by one; a list is a header that comes several times, None is none at all."""
    found = []
    for name, value in headers.items():
        if value is not None:
            found += [(name, str(one)) for one in (value if isinstance(value, list) else [value])]
    return found
