"""Calls to the server from inside its process: the same requests and answers, without a wire."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubereef.server.core import Server
from kubereef.server.requests import ADMINISTRATOR, Request, Response, User
from kubereef.store.records import decode, encode
from kubewire import errors

_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

# Who owns the fields that are written from inside.
_PROGRAM = {"user-agent": "kubereef"}


class LocalClient:
    """Speaks to a server of this process as one user."""

    def __init__(self, server: Server, user: User = ADMINISTRATOR) -> None:
        self._server = server
        self._user = user

    async def send(
        self, method: str, url: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request and return the answer, whatever it is."""
        parts = urlsplit(url)
        raw = b"" if body is None else body if isinstance(body, bytes) else encode(body)
        query = parse_qs(parts.query, keep_blank_values=True)
        sent = {**_PROGRAM, **headers} if headers else _PROGRAM
        return await self._server.handle(Request(method, parts.path, query, sent, raw, self._user))

    async def call(
        self, method: str, url: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send a request and return the decoded answer; a refusal is raised as the error it stands for."""
        response = await self.send(method, url, body, headers)
        if response.status >= 400:
            raise _refusal(response)
        value: dict[str, Any] = decode(response.body)
        return value

    async def get(self, url: str) -> dict[str, Any]:
        return await self.call("GET", url)

    async def create(self, url: str, body: object) -> dict[str, Any]:
        return await self.call("POST", url, body)

    async def replace(self, url: str, body: object) -> dict[str, Any]:
        return await self.call("PUT", url, body)

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]:
        return await self.call("PATCH", url, body, {"content-type": _PATCHES[kind]})

    async def delete(self, url: str, body: object = None) -> dict[str, Any]:
        return await self.call("DELETE", url, body)

    async def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of a watch until it ends; the address carries the options, `watch=true` is added."""
        response = await self.send("GET", f"{url}{'&' if '?' in url else '?'}watch=true")
        if response.stream is None:
            raise _refusal(response)
        try:
            async for chunk in response.stream:
                for line in chunk.splitlines():
                    yield decode(line)
        finally:
            await response.stream.aclose()  # type: ignore[attr-defined]  # our streams are generators


def _refusal(response: Response) -> errors.ApiError:
    """Return the error that an answer stands for; a page of text, as for unknown groups, says only its code."""
    is_status = response.content_type.startswith("application/json")
    return errors.from_status(decode(response.body) if is_status else None, response.status)
