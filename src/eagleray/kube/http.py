"""The way to an API server over HTTPS: pools of connections, credentials that change, proxies."""

import asyncio
import logging
import os
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from eagleray.kube.access import Access, ConfigError, Identity, Pair
from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, AnswerLost, NotSent, Stream, TransportError, nothing

log = logging.getLogger(__name__)

# For requests that are answered and done. Watches stay, one for each resource and namespace, and are not counted: with
# many namespaces they would take all connections, and no request would ever leave.
_CONNECTIONS = 64
# Two records of TLS; asyncio would set 256 KiB aside for each connection.
_TLS_BUFFER = 32 * 1024
_CONNECT_SECONDS = 10.0
_LONGEST_REFUSAL = 2**20
# Where the connection was never made: the request has not left.
_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)

# What a connection is for: one answer, or one that goes on.
_Use = Literal["answer", "stream"]


def spare_tls_buffers() -> None:
    """Have the TLS connections of this process that are made from now on take a little memory each."""
    sslproto.SSLProtocol.max_size = _TLS_BUFFER


class HttpTransport:
    """Carries requests over HTTPS. A token that is refused is replaced by a newer one, if there is one."""

    def __init__(self, access: Access) -> None:
        self._access = access
        # Told how long it took to find an address, whenever one was looked up.
        self.on_resolved: Callable[[str, float], None] | None = None
        self._host = urlsplit(access.server).netloc.rpartition("@")[2]
        self._proxy = access.proxy or _usual_proxy(access.server)
        self._sessions: dict[_Use, aiohttp.ClientSession] = {}
        self._tls: tuple[tuple[bytes, Pair | None], ssl.SSLContext] | None = None

    @property
    def host(self) -> str:
        return self._host

    async def send(self, request: Request) -> Answer:
        async with self._respond(request, "answer") as (response, headers):
            return Answer(response.status, await response.read(), headers)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._respond(request, "stream") as (response, headers):
            answer = Answer(response.status, headers=headers)
            if answer.is_success:
                yield Stream(answer, _chunks(response, request))
            else:
                # A refusal is short; whatever goes on for longer comes from something behind the server's proxy.
                yield Stream(answer._replace(body=await response.content.read(_LONGEST_REFUSAL)), nothing())

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    @asynccontextmanager
    async def _respond(
        self, request: Request, use: _Use
    ) -> AsyncIterator[tuple[aiohttp.ClientResponse, Mapping[str, str]]]:
        """Give the response to a request; failures on the way are told as a TransportError."""
        with _told_as_transport_errors(request):
            response = await self._open(request, use)
            try:
                yield response, {name.lower(): value for name, value in response.headers.items()}
            finally:
                response.release()

    async def _open(self, request: Request, use: _Use) -> aiohttp.ClientResponse:
        """Send a request as whoever we are now; if that is refused, once more as whoever we are by then.

        Nothing has been done for a stranger, so that sending it twice is safe for every request.
        """
        credentials = self._access.credentials
        identity = await credentials.current()
        response = await self._send_as(identity, request, use)
        if response.status == 401 and credentials.refused(identity):
            response.release()
            response = await self._send_as(await credentials.current(), request, use)
        return response

    async def _send_as(self, identity: Identity, request: Request, use: _Use) -> aiohttp.ClientResponse:
        access = self._access
        return await self._pool(use).request(
            request.method,
            URL(f"{access.server}{request.target}", encoded=True),
            headers=[*request.headers, *identity.headers, *access.impersonation.headers],
            data=request.body or None,
            ssl=self._context(identity.pair),
            server_hostname=access.server_name or None,
            proxy=self._proxy or None,
            allow_redirects=False,
        )

    def _pool(self, use: _Use) -> aiohttp.ClientSession:
        session = self._sessions.get(use)
        if session is None:
            session = self._sessions[use] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS if use == "answer" else 0),
                trace_configs=[self._trace()],
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            # aiohttp sends PUT and DELETE again by itself when a connection breaks; only the client knows what is safe.
            session._retry_connection = False  # noqa: SLF001 - there is no public way to say so
        return session

    def _trace(self) -> aiohttp.TraceConfig:
        """Return what has looked-up addresses timed."""
        trace = aiohttp.TraceConfig()
        loop = asyncio.get_running_loop()

        async def started(_session: object, context: SimpleNamespace, _params: object) -> None:
            context.asked_at = loop.time()

        async def ended(_session: object, context: SimpleNamespace, _params: object) -> None:
            if self.on_resolved is not None:
                self.on_resolved(self._host, loop.time() - context.asked_at)

        trace.on_dns_resolvehost_start.append(started)
        trace.on_dns_resolvehost_end.append(ended)
        return trace

    def _context(self, pair: Pair | None) -> ssl.SSLContext:
        """Return the settings of TLS; renewed certificates make new ones, and with them new connections."""
        authority = self._access.authority.read() if self._access.authority is not None else b""
        wanted = (authority, pair)
        if self._tls is not None and self._tls[0] == wanted:
            return self._tls[1]
        try:
            self._tls = (wanted, tls_context(authority, pair, insecure=self._access.insecure))
        except ConfigError as bad:
            if self._tls is None:
                raise
            # Files are renewed one after the other; in between they do not fit together.
            log.warning("%s: renewed certificates cannot be used yet: %s", self._host, bad)
        return self._tls[1]


def tls_context(
    authority: bytes = b"", pair: Pair | None = None, *, insecure: bool = False
) -> ssl.SSLContext:
    """Return settings that trust an authority (PEM; the machine's own ones if empty) and show a certificate."""
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    except (ssl.SSLError, UnicodeDecodeError) as bad:
        raise ConfigError(f"certificate-authority: this is no certificate in PEM form ({bad})") from bad
    # Newer Pythons refuse certificates that lack what clusters' own authorities have never put in.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        try:
            load_pair(context, pair)
        except ssl.SSLError as bad:
            told = f"client-certificate, client-key: they cannot be used together ({bad})"
            raise ConfigError(told) from bad
    return context


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a certificate and its key, which Python can do from files only; this one is never on a disk."""
    descriptor = os.memfd_create("certificate")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(pair.certificate + b"\n" + pair.key)
        # An empty password keeps OpenSSL from asking for one on a terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    finally:
        os.close(descriptor)


def _usual_proxy(server: str) -> str:
    """Return the proxy that the environment asks for (HTTPS_PROXY, NO_PROXY)."""
    parts = urlsplit(server)
    if proxy_bypass(parts.hostname or ""):
        return ""
    return getproxies().get(parts.scheme, "")


class _told_as_transport_errors:  # noqa: N801 - reads as the statement that it is
    """Tell what goes wrong on the way by whether the request can have arrived."""

    def __init__(self, request: Request) -> None:
        self._what = f"{request.method} {request.path}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> None:
        if isinstance(failure, TransportError):
            return  # it is told already
        if isinstance(failure, _NOT_CONNECTED):
            raise NotSent(f"{self._what}: {failure}") from failure
        if isinstance(failure, (aiohttp.ClientError, OSError)):
            raise AnswerLost(f"{self._what}: {str(failure) or type(failure).__name__}") from failure


async def _chunks(response: aiohttp.ClientResponse, request: Request) -> AsyncIterator[bytes]:
    with _told_as_transport_errors(request):
        async for chunk in response.content.iter_any():
            yield chunk
