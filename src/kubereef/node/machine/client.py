"""A client of the API server over HTTPS, with the calls that controllers and kubelets make."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from kubewire import errors
from kubewire.sources import Clock

_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_SECONDS = 30.0
_MOST_EVENT = 16 * 1024 * 1024
_TOKEN_SECONDS = 60.0


class TokenFile:
    """A token in a file that somebody else keeps fresh: it is read again once a minute."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._headers: dict[str, str] = {}
        self._read_again_at = 0.0

    def headers(self) -> dict[str, str]:
        """Return what a request says to be let in. A file that cannot be read leaves the last token in use."""
        now = self._clock.monotonic()
        if not self._headers or now >= self._read_again_at:
            try:
                token = self._path.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as problem:
                if not self._headers:
                    raise errors.unauthorized(
                        f"the token in {self._path} cannot be read: {problem}"
                    ) from problem
            else:
                self._headers = {"Authorization": f"Bearer {token}"}
            self._read_again_at = now + _TOKEN_SECONDS
        return self._headers


class HttpsClient:
    """Speaks to the server at an address. Refusals and failures are raised as `kubewire.errors`.

    `server_name` is the one that the server's certificate has to have, if it is not that of the address.
    """

    def __init__(
        self, url: str, tls: ssl.SSLContext, *, server_name: str = "", token: TokenFile | None = None
    ) -> None:
        self._url = url
        self._server_name = server_name or None
        self._token = token
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def get(self, url: str) -> dict[str, Any]:
        return await self._call("GET", url)

    async def create(self, url: str, body: object) -> dict[str, Any]:
        return await self._call("POST", url, body)

    async def replace(self, url: str, body: object) -> dict[str, Any]:
        return await self._call("PUT", url, body)

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]:
        return await self._call("PATCH", url, body, _PATCHES[kind])

    async def delete(self, url: str, body: object = None) -> dict[str, Any]:
        return await self._call("DELETE", url, body)

    async def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of a watch until it ends; the address carries the options, `watch=true` is added."""
        whole = f"{self._url}{url}{'&' if '?' in url else '?'}watch=true"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS)
        try:
            async with self._session.get(
                whole, timeout=timeout, headers=self._credentials(), server_hostname=self._server_name
            ) as answer:
                if answer.status >= 400:
                    raise errors.from_status(_decoded(await answer.read()), answer.status)
                async for line in _lines(answer.content):
                    yield msgspec.json.decode(line)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as problem:
            raise _unreachable(problem) from problem

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    def _credentials(self) -> dict[str, str]:
        return self._token.headers() if self._token is not None else {}

    async def _call(
        self, method: str, url: str, body: object = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        data = None if body is None else msgspec.json.encode(body)
        headers = self._credentials() | ({"Content-Type": content_type} if data is not None else {})
        try:
            async with self._session.request(
                method, self._url + url, data=data, headers=headers, server_hostname=self._server_name
            ) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise _unreachable(problem) from problem
        value = _decoded(content)
        if answer.status >= 400:
            raise errors.from_status(value, answer.status)
        if value is None:
            raise errors.ApiError(f"the API server's answer to {method} {url} is not JSON")
        return value


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of an answer as they come; a longer one than any event is breaks off the watch."""
    parts: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        for other in others:
            yield b"".join(parts)
            parts, size = [other], len(other)
        if size > _MOST_EVENT:
            raise errors.ApiError(f"an event of a watch has more than {_MOST_EVENT} bytes")


def _decoded(content: bytes) -> dict[str, Any] | None:
    """Return what is in an answer; a page of text, as for unknown groups, is nothing."""
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


def _unreachable(problem: BaseException) -> errors.ApiError:
    reason = str(problem) or type(problem).__name__
    return errors.service_unavailable(f"the API server cannot be reached: {reason}")
