"""Clients' connections: requests one after the other, for as long as both sides want, and an end in good order."""

import asyncio
import logging
import socket

from kubereef.gateway.proxy.answers import Broken, Refusal, refusal
from kubereef.gateway.proxy.carrier import Carrier
from kubereef.gateway.proxy.heads import MOST_HEAD, BadMessage, Framing, RequestHead, read_request
from kubereef.gateway.proxy.wire import TooLong, Wire
from kubereef.gateway.table import Site

log = logging.getLogger(__name__)

BACKLOG = 4096
MOST_CONNECTIONS = 20_000
IDLE_SECONDS = 300.0
"""How long a client may keep a connection that it does not use."""

HEAD_SECONDS = 30.0
"""How long the head of a request may take from its first byte to its last."""

LINGER_SECONDS = 2.0
"""How long a client that was refused in the middle of its request may take to read why."""


class Door:
    """A socket at which clients connect for the routes of one site, which may change at any time."""

    def __init__(self, carrier: Carrier, site: Site, *, most: int = MOST_CONNECTIONS) -> None:
        self.site = site
        self._carrier = carrier
        self._most = most
        self._server: asyncio.Server | None = None
        self._clients: dict[Wire, asyncio.Task[None]] = {}
        self._idle: set[Wire] = set()
        self._is_closing = False

    async def open(self, listening: socket.socket) -> None:
        """Begin to accept; the socket is bound and belongs to this object from now on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Wire(self._welcome), sock=listening, backlog=BACKLOG)

    def __len__(self) -> int:
        return len(self._clients)

    async def close(self, seconds: float) -> None:
        """Accept nobody more, let requests under way finish for so long, and break off what is left then."""
        self._is_closing = True
        if self._server is not None:
            self._server.close()
        for wire in tuple(self._idle):
            wire.close()
        try:
            if tasks := tuple(self._clients.values()):
                await asyncio.wait(tasks, timeout=seconds)
        finally:
            left = tuple(self._clients.items())
            for wire, task in left:
                wire.abort()
                task.cancel()
            await asyncio.gather(*(task for _, task in left), return_exceptions=True)

    def _welcome(self, client: Wire) -> None:
        if len(self._clients) >= self._most or self._is_closing:
            client.abort()
            return
        task = asyncio.create_task(self._serve(client))
        self._clients[client] = task
        task.add_done_callback(lambda _: self._clients.pop(client))

    async def _serve(self, client: Wire) -> None:
        try:
            while await self._next(client):
                pass
        except (Broken, ConnectionError) as problem:
            log.debug("a client's connection broke: %s", problem)
            client.abort()
        except Exception:
            log.exception("a request failed")
            client.abort()
        except asyncio.CancelledError:
            client.abort()  # the client has gone, or the proxy goes
        else:
            client.close()

    async def _next(self, client: Wire) -> bool:
        """Answer one request; return whether the connection can be used for another one."""
        head: RequestHead | None = None
        try:
            head = await self._read_head(client)
            if head is None:
                return False
            keeps = await self._while_there(client, head)
        except (Refusal, BadMessage) as problem:
            answer = problem if isinstance(problem, Refusal) else Refusal(problem.status, str(problem))
            return await self._refuse(client, head, answer)
        if not keeps and head.body.framing is not Framing.NONE:
            await _linger(client)  # the answer may have come before the end of the request
        return keeps

    async def _read_head(self, client: Wire) -> RequestHead | None:
        """Return the head of the next request; None if there is no next one."""
        self._idle.add(client)
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                if self._is_closing or not await client.has_more():
                    return None
        except TimeoutError:
            return None
        finally:
            self._idle.discard(client)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                client.skip(b"\r\n")  # some clients send an empty line after a body
                raw = await client.read_until(b"\r\n\r\n", MOST_HEAD)
        except TimeoutError:
            raise Refusal(408, "the head of the request took too long") from None
        except TooLong:
            raise Refusal(431, "the head of the request is too long") from None
        return None if raw is None else read_request(raw)

    async def _while_there(self, client: Wire, head: RequestHead) -> bool:
        """Carry a request for as long as its client is there; whoever has hung up wants no answer."""
        if client.has_ended:
            return False
        task = asyncio.current_task()
        assert task is not None
        client.on_gone = task.cancel
        try:
            return await self._carrier.carry(client, head, self.site, lambda: self._is_closing)
        finally:
            client.on_gone = None

    async def _refuse(self, client: Wire, head: RequestHead | None, problem: Refusal) -> bool:
        keeps = (
            head is not None
            and head.body.framing is Framing.NONE
            and not head.wants_close
            and head.is_modern
            and not self._is_closing
        )
        client.write(refusal(problem, has_body=head is None or head.method != "HEAD", keeps=keeps))
        if not keeps:
            await _linger(client)
        return keeps


async def _linger(client: Wire) -> None:
    """Read on for a moment: a connection that is closed with unread bytes is reset, and the answer lost with it."""
    client.end()
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while await client.read():
                pass
    except TimeoutError:
        return
