"""The server on the wire: HTTPS with keep-alive, streams for watches, and bounds on what a client may cost."""

import asyncio
import logging
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from weakref import WeakKeyDictionary

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict

from kubereef.server.core import Server
from kubereef.server.peers import Peer, peer_of
from kubereef.server.requests import Request, Response, json_response
from kubereef.server.tunnels import Incoming, Outgoing, Tunnel
from kubewire import errors
from kubewire.sources import Clock

log = logging.getLogger(f"{__name__}.connections")


def _is_our_fault(record: logging.LogRecord) -> bool:
    """Keep out of the log what clients did: the text of a bad request may hold a secret, and anybody may go away."""
    return record.exc_info is None or not isinstance(
        record.exc_info[1], HttpProcessingError | ConnectionResetError
    )


log.addFilter(_is_our_fault)

# How long a client may take to send a body, and to take in one portion of an answer.
BODY_TIMEOUT = 60.0
WRITE_TIMEOUT = 30.0
# How long to go on reading a body that has been refused, so that the client gets to see why.
LINGER_TIME = 5.0
# Long enough for clients that keep connections, such as Go's, to be the ones who close them.
KEEPALIVE_TIMEOUT = 150.0
HANDSHAKE_TIMEOUT = 10.0
MAX_HEADER_LINE = 64 * 1024
MAX_PARAMETERS = 1000

# From this size on an answer is compressed for those who accept it.
COMPRESS_FROM = 128 * 1024
_PORTION = 256 * 1024
# Level 1 is a quarter of the time of the default for nearly the same size.
_LEVEL = 1
_GZIP_WINDOW = 31

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Limits(NamedTuple):
    """How much patience the server has with its clients, in seconds."""

    body: float = BODY_TIMEOUT
    write: float = WRITE_TIMEOUT
    idle: float = KEEPALIVE_TIMEOUT
    linger: float = LINGER_TIME


class HttpsServer:
    """Carries requests from sockets to a server and its answers back."""

    def __init__(
        self, server: Server, context: ssl.SSLContext, clock: Clock, limits: Limits | None = None
    ) -> None:
        self._server = server
        self._context = context
        self._clock = clock
        self._limits = limits or Limits()
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._peers: WeakKeyDictionary[asyncio.BaseTransport, Peer] = WeakKeyDictionary()

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes any free one."""
        self._web = web.Server(
            self._handle,
            # A watch whose client has gone should end at once and not with the next event.
            handler_cancellation=True,
            access_log=None,
            logger=log,
            keepalive_timeout=self._limits.idle,
            lingering_time=self._limits.linger,
            max_line_size=MAX_HEADER_LINE,
            max_field_size=MAX_HEADER_LINE,
            auto_decompress=False,
        )
        self._listener = await asyncio.get_running_loop().create_server(
            self._web,
            host,
            port,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT,
            backlog=512,
        )

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens."""
        assert self._listener is not None
        name = self._listener.sockets[0].getsockname()
        return name[0], name[1]

    async def stop(self, end_streams: Callable[[], None], grace: float = 5.0) -> None:
        """Take no more requests, finish those under way, and close every connection within the grace period."""
        if self._listener is None or self._web is None:
            return
        self._listener.close()
        self._web.pre_shutdown()
        end_streams()
        await self._web.shutdown(grace)

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        accepts_gzip = _accepts_gzip(http.headers.get("Accept-Encoding", ""))
        try:
            request = await self._request(http)
        except errors.ApiError as refusal:
            answer = json_response(refusal.code, refusal.status())
            response = await self._sent(http, answer, accepts_gzip=False)
            # What is left of the body is not worth reading.
            response.force_close()
            return response
        answer = await self._server.handle(request)
        if answer.tunnel is not None:
            return await self._tunnelled(http, answer.tunnel)
        if answer.stream is not None:
            return await self._streamed(http, answer, answer.stream)
        return await self._sent(http, answer, accepts_gzip=accepts_gzip)

    async def _request(self, http: web.BaseRequest) -> Request:
        path, query = _split(http.raw_path)
        headers, repeated = _headers(http)
        request = Request(http.method, path, query, headers, b"", self._peer(http).user, repeated)
        if http.can_read_body:
            request = request._replace(body=await self._body(http, headers, self._server.body_limit(request)))
        return request

    def _peer(self, http: web.BaseRequest) -> Peer:
        """Return who is at the other end, as far as its certificate tells; it is read once per connection."""
        transport = http.transport
        if transport is None:
            raise ConnectionResetError("the client has gone")
        peer = self._peers.get(transport)
        if peer is None:
            peer = self._peers[transport] = peer_of(transport.get_extra_info("ssl_object"))
        if peer.user is not None and self._clock.now().timestamp() >= peer.expires:
            raise errors.unauthorized()
        return peer

    async def _body(self, http: web.BaseRequest, headers: dict[str, str], limit: int) -> bytes:
        too_large = errors.request_entity_too_large(f"limit is {limit}")
        if (http.content_length or 0) > limit:
            raise too_large
        if headers.get("expect", "").lower() == "100-continue" and http.transport is not None:
            http.transport.write(_CONTINUE)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body):
                while chunk := await http.content.readany():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > limit:
                        raise too_large
        except TimeoutError:
            raise errors.ApiError("the body did not come in time", code=408, reason="Timeout") from None
        except web.RequestPayloadError as bad:
            raise errors.bad_request(f"the body cannot be read: {bad}") from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _sent(
        self, http: web.BaseRequest, answer: Response, *, accepts_gzip: bool
    ) -> web.StreamResponse:
        headers = _answer_headers(answer)
        body = answer.body
        if len(body) < COMPRESS_FROM:
            return web.Response(status=answer.status, body=body, headers=headers)
        if accepts_gzip:
            body = await asyncio.get_running_loop().run_in_executor(None, _compressed, body)
            headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.content_length = len(body)
        await response.prepare(http)
        if http.method != "HEAD":
            view = memoryview(body)
            for start in range(0, len(body), _PORTION):
                await self._write(http, response, view[start : start + _PORTION])
        return response

    async def _streamed(
        self, http: web.BaseRequest, answer: Response, stream: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_answer_headers(answer))
        response.enable_chunked_encoding()
        try:
            await response.prepare(http)
            if http.method != "HEAD":
                async for chunk in stream:
                    await self._write(http, response, chunk)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]  # our streams are generators
        return response

    async def _tunnelled(self, http: web.BaseRequest, tunnel: Tunnel) -> web.StreamResponse:
        """Take the connection out of HTTP and carry its bytes until either side ends."""
        transport, protocol = http.transport, http.protocol
        if transport is None or not isinstance(transport, asyncio.Transport):
            await tunnel.close()
            raise ConnectionResetError("the client has gone")
        incoming = Incoming(transport)
        # The way by which aiohttp's own WebSockets get at the bytes that follow an upgrade.
        protocol.set_parser(incoming)  # type: ignore[arg-type]  # it only feeds
        protocol.keep_alive(False)
        transport.write(tunnel.head)
        await tunnel.carry(incoming, Outgoing(transport, protocol._drain_helper))  # noqa: SLF001 - as its writers do
        return _Taken()

    async def _write(
        self, http: web.BaseRequest, response: web.StreamResponse, data: bytes | memoryview
    ) -> None:
        """Send a portion; a client that does not take it in time is dropped, so that it holds no memory."""
        try:
            async with asyncio.timeout(self._limits.write):
                await response.write(data)
        except TimeoutError:
            if http.transport is not None:
                http.transport.abort()
            raise ConnectionResetError("the client reads too slowly") from None


class _Taken(web.StreamResponse):
    """Stands for the answer on a connection that has been taken out of HTTP: nothing more is written."""

    async def prepare(self, _request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, _data: bytes = b"") -> None:
        return None


def _split(raw: str) -> tuple[str, dict[str, list[str]]]:
    """Return path and parameters of what stands in the request line."""
    if not raw.startswith("/"):
        raw = urlsplit(raw)._replace(scheme="", netloc="").geturl()
    path, _, query = raw.partition("?")
    if "%" in path:
        path = _unescaped(path)
    if not query:
        return path, {}
    try:
        return path, parse_qs(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise errors.bad_request("the query has too many parameters") from None


def _unescaped(path: str) -> str:
    for escape in path.split("%")[1:]:
        if len(escape) < 2 or not all(digit in "0123456789abcdefABCDEF" for digit in escape[:2]):
            raise errors.bad_request("the path has an invalid escape")
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise errors.bad_request("the path is not UTF-8") from None


def _headers(http: web.BaseRequest) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the first value of each header, and all values of those that came more than once."""
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for spelled, value in http.headers.items():
        name = spelled.lower()
        if name in headers:
            repeated.setdefault(name, [headers[name]]).append(value)
        else:
            headers[name] = value
    return headers, repeated


def _answer_headers(answer: Response) -> CIMultiDict[str]:
    headers = CIMultiDict(
        {
            "Content-Type": answer.content_type,
            "Cache-Control": "no-cache, private",
            "Server": "kubereef",
        }
    )
    headers.extend(answer.headers)
    return headers


def _accepts_gzip(header: str) -> bool:
    for accepted in header.split(","):
        coding, _, quality = accepted.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return quality.rstrip("0.") != "" if quality else True
    return False


def _compressed(body: bytes) -> bytes:
    writer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return writer.compress(body) + writer.flush()
