"""A client of the API server over HTTPS, with the calls that controllers and kubelets make."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import msgspec

from kubewire import errors

_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_SECONDS = 30.0
_MOST_EVENT = 16 * 1024 * 1024


class HttpsClient:
    """Speaks to the server at an address. Refusals and failures are raised as `kubewire.errors`."""

    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        self._url = url
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def get(self, url: str) -> dict[str, Any]:
        return await self._call("GET", url)

    async def create(self, url: str, body: object) -> dict[str, Any]:
        return await self._call("POST", url, body)

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]:
        return await self._call("PATCH", url, body, _PATCHES[kind])

    async def delete(self, url: str, body: object = None) -> dict[str, Any]:
        return await self._call("DELETE", url, body)

    async def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of a watch until it ends; the address carries the options, `watch=true` is added."""
        whole = f"{self._url}{url}{'&' if '?' in url else '?'}watch=true"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS)
        try:
            async with self._session.get(whole, timeout=timeout) as answer:
                if answer.status >= 400:
                    raise errors.from_status(_decoded(await answer.read()), answer.status)
                async for line in _lines(answer.content):
                    yield msgspec.json.decode(line)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as problem:
            raise _unreachable(problem) from problem

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    async def _call(
        self, method: str, url: str, body: object = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        try:
            async with self._session.request(method, self._url + url, data=data, headers=headers) as answer:
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
