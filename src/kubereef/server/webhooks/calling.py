"""The way to webhooks: one POST over HTTPS, verified, bounded in time and size, and never redirected."""

import asyncio
import math
import ssl
from collections.abc import Callable
from errno import ECONNREFUSED
from socket import gaierror
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from kubereef.server.lines import Dial
from kubereef.server.media import MAX_BODY, decoded_json
from kubereef.server.webhooks.configurations import Address
from kubereef.server.webhooks.trust import BadAuthorities, trusting, words_of
from kubewire.errors import unexplained
from kubewire.gotext import quote

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

_HEADERS = {
    "Accept": "application/json, */*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}
_KEPT_SECONDS = 30.0
_PORTION = 64 * 1024
# How much of the text of a failure is told to whoever made the request.
_MAX_TOLD = 2048


class CallFailed(Exception):
    """A webhook that could not be asked, or gave no answer; the message is the API server's."""


class NoPlace(OSError):
    """There is nobody to connect to; the message says why."""


class Place(NamedTuple):
    """Where to connect to, and through what, if not directly."""

    host: str
    port: int
    dial: Dial | None = None


# Says where a host is, which may be the name of a Service; NoPlace if that is nowhere.
Find = Callable[[str, int], Place]


class Caller:
    """Asks webhooks. Connections are kept for a while."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, address: Address, body: bytes, seconds: float) -> bytes:
        """Return the body of a webhook's answer, or raise CallFailed."""
        try:
            tls = trusting(address.authorities)
        except BadAuthorities as bad:
            raise CallFailed(f"could not get REST client: {bad}") from None
        url = f"{address.url}?timeout={math.ceil(seconds)}s"
        try:
            async with asyncio.timeout(seconds):
                answer = await self._answer(url, tls, body)
        # A TimeoutError is an OSError; a ValueError comes of a host that can have no address.
        except (OSError, aiohttp.ClientError, ValueError) as bad:
            told = _words(bad, urlsplit(url).hostname or "")
            raise CallFailed(f"failed to call webhook: Post {quote(url)}: {told}") from None
        if problem := _problem(answer):
            raise CallFailed(f"failed to call webhook: {problem}")
        return answer.body

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()

    async def _answer(self, url: str, tls: ssl.SSLContext, body: bytes) -> "_Answer":
        note = SimpleNamespace(reused=False)
        try:
            return await self._sent(url, tls, body, note)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError):
            if not note.reused:
                raise
        # The webhook closed a kept connection just then. It is asked again, which is in the contract of webhooks.
        return await self._sent(url, tls, body, note)

    async def _sent(self, url: str, tls: ssl.SSLContext, body: bytes, note: SimpleNamespace) -> "_Answer":
        if self._session is None:
            self._session = _session(self._find)
        async with self._session.post(
            URL(url, encoded=True),
            data=body,
            headers=_HEADERS,
            ssl=tls,
            # A webhook must not be able to make the server send requests elsewhere.
            allow_redirects=False,
            trace_request_ctx=note,
        ) as response:
            return _Answer(response.status, response.headers.get("Content-Type", ""), await _read(response))


class _Answer(NamedTuple):
    status: int
    content_type: str
    body: bytes


class _Connector(aiohttp.TCPConnector):
    """Connects to where a host is found to be."""

    def __init__(self, find: Find) -> None:
        super().__init__(keepalive_timeout=_KEPT_SECONDS, limit=0)
        self._find = find

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        _traces: "list[Trace]",
        _timeout: aiohttp.ClientTimeout,
    ) -> "ResponseHandler":
        name = req.url.raw_host or ""
        place = self._find(name, req.url.port or 443)
        assert isinstance(req.ssl, ssl.SSLContext), "every request brings its own"
        try:
            if place.dial is None:
                _, protocol = await self._loop.create_connection(
                    self._factory, place.host, place.port, ssl=req.ssl, server_hostname=name
                )
            else:
                connection = await place.dial(place.host, place.port)
                _, protocol = await self._loop.create_connection(
                    self._factory, sock=connection, ssl=req.ssl, server_hostname=name
                )
        except (ssl.SSLError, NoPlace, ConnectionResetError):
            raise
        except OSError as bad:
            raise NoPlace(_undialled(bad, place)) from bad
        return protocol


def _session(find: Find) -> aiohttp.ClientSession:
    async def note_reuse(_session: object, context: SimpleNamespace, _details: object) -> None:
        context.trace_request_ctx.reused = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(note_reuse)
    return aiohttp.ClientSession(
        connector=_Connector(find),
        # Whoever asks keeps the time.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[trace],
    )


async def _read(response: aiohttp.ClientResponse) -> bytes:
    portions: list[bytes] = []
    left = MAX_BODY
    async for portion in response.content.iter_chunked(_PORTION):
        left -= len(portion)
        if left < 0:
            response.close()
            raise CallFailed(f"failed to call webhook: the answer is longer than {MAX_BODY} bytes")
        portions.append(portion)
    return b"".join(portions)


def _problem(answer: _Answer) -> str:
    """Return why an answer is no success, in the words of Kubernetes' own client; nothing if it is one."""
    status = answer.status
    if status in range(200, 207):
        described = f"status code: {status} and content type: {answer.content_type}"
        return "" if answer.body else f"0-length response with {described}"
    if told := _told(answer.body):
        return told
    text = answer.body[:_MAX_TOLD].decode(errors="replace").strip()
    if status == 403:
        return text or "unknown"
    if status < 500 or status in (503, 504):
        return unexplained(status).message
    return f"an error on the server ({quote(text or 'unknown')}) has prevented the request from succeeding"


def _told(body: bytes) -> str:
    """Return the message of a Status that says what went wrong."""
    try:
        status = decoded_json(body).value
    except ValueError:
        return ""
    is_failure = isinstance(status, dict) and status.get("kind") == "Status"
    return str(status.get("message") or "")[:_MAX_TOLD] if is_failure and isinstance(status, dict) else ""


def _words(bad: BaseException, host: str) -> str:
    if isinstance(bad, aiohttp.ClientOSError) and bad.__cause__ is not None:
        bad = bad.__cause__  # as it was before aiohttp gave it another class
    if isinstance(bad, TimeoutError):
        return "context deadline exceeded"
    if isinstance(bad, ssl.SSLError):
        return words_of(bad, host)
    if isinstance(bad, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(bad, ConnectionResetError):
        return "read: connection reset by peer"
    return str(bad) or type(bad).__name__


def _undialled(bad: OSError, place: Place) -> str:
    if isinstance(bad, gaierror):
        return f"dial tcp: lookup {place.host}: no such host"
    # Where a host has several addresses, the error is about all of them.
    if isinstance(bad, ConnectionRefusedError) or f"[Errno {ECONNREFUSED}]" in str(bad):
        reason = "connection refused"
    else:
        reason = (bad.strerror or str(bad) or "timed out").lower()
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"dial tcp {host}:{place.port}: connect: {reason}"
