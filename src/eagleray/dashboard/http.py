"""The direct way to dashboards over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from yarl import URL

from eagleray.dashboard.address import Address
from eagleray.dashboard.carriers import ConnectTimedOut, HandshakeRefused, TooLong, gathered, headers_of
from eagleray.dashboard.tokens import Token
from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, AnswerLost, NotSent, TransportError

# Longer than the pause between two questions, also where nothing changes, so that asking again needs no new connection.
_KEEP_ALIVE: Final = 70.0
_HEARTBEAT: Final = 30.0
_CHUNK: Final = 64 * 1024


class HttpCarrier:
    """Carries requests to dashboards over HTTP. Redirects are not followed and no proxy is used: heads are near.

    With `tls`, as for a dashboard behind an ingress, the machine's own authorities vouch for it.
    """

    def __init__(self, *, tls: bool = False) -> None:
        self._s = "s" if tls else ""
        self._reading: aiohttp.ClientSession | None = None
        self._writing: aiohttp.ClientSession | None = None

    async def send(
        self, address: Address, request: Request, token: Token | None, *, connect_seconds: float, longest: int
    ) -> Answer:
        try:
            async with self._session(request).request(
                request.method,
                _url(f"http{self._s}", address, request),
                headers=headers_of(request, token),
                data=request.body or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=connect_seconds),
            ) as response:
                body = await gathered(response.content.iter_chunked(_CHUNK), longest)
                return Answer(response.status, body, {k.lower(): v for k, v in response.headers.items()})
        except TransportError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            raise _told(failure, address, request) from failure

    @asynccontextmanager
    async def listen(
        self, address: Address, request: Request, token: Token | None, *, longest: int
    ) -> AsyncIterator[AsyncIterator[str]]:
        """Give the text messages of a WebSocket until the other side has no more."""
        try:
            socket = await self._session(request).ws_connect(
                _url(f"ws{self._s}", address, request),
                headers=headers_of(request, token),
                max_msg_size=longest,
                heartbeat=_HEARTBEAT,
            )
        except aiohttp.WSServerHandshakeError as refused:
            raise HandshakeRefused(refused.status, f"{address}{request.path}: {refused.status}") from refused
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            raise _told(failure, address, request) from failure
        async with socket:
            yield _texts(socket, address)

    async def close(self) -> None:
        for session in (self._reading, self._writing):
            if session is not None:
                await session.close()
        self._reading = self._writing = None

    def _session(self, request: Request) -> aiohttp.ClientSession:
        """Return connections to be used again for reading, and a new one for whatever changes something.

        A connection that the other side has just closed would leave open whether a submission has arrived.
        """
        if request.repeatable == "read":
            if self._reading is None:
                self._reading = _pool(aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE))
            return self._reading
        if self._writing is None:
            self._writing = _pool(aiohttp.TCPConnector(limit=0, force_close=True))
        return self._writing


def _pool(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        # A small answer that unpacks into a huge one would pass the bound on its length.
        auto_decompress=False,
        headers={"accept-encoding": "identity"},
    )
    # aiohttp sends PUT and DELETE again by itself when a connection breaks; only the caller knows what is safe.
    session._retry_connection = False  # noqa: SLF001 - there is no public way to say so
    return session


def _url(scheme: str, address: Address, request: Request) -> URL:
    return URL(f"{scheme}://{address.host}{request.target}", encoded=True)


def _told(failure: Exception, address: Address, request: Request) -> TransportError:
    """Tell what went wrong by whether the request can have arrived."""
    what = f"{request.method} {address}{request.path}: {str(failure) or type(failure).__name__}"
    if isinstance(failure, aiohttp.ConnectionTimeoutError):
        return ConnectTimedOut(what)
    if isinstance(failure, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return NotSent(what)
    return AnswerLost(what)


async def _texts(socket: aiohttp.ClientWebSocketResponse, address: Address) -> AsyncIterator[str]:
    async for message in socket:
        if message.type is aiohttp.WSMsgType.ERROR:
            raise AnswerLost(f"{address}: {message.data}")
        if message.type is aiohttp.WSMsgType.TEXT:
            yield message.data
    if socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
        raise TooLong(f"{address}: a message is too long")
    if socket.close_code not in {aiohttp.WSCloseCode.OK, aiohttp.WSCloseCode.GOING_AWAY}:
        raise AnswerLost(f"{address}: hung up with code {socket.close_code}")
