"""The DNS server: messages in and out, by UDP and TCP."""

import asyncio
import logging
from collections.abc import Sequence
from socket import SO_REUSEADDR, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET, socket
from typing import Self, cast

from kubereef.node.network.dns import wire
from kubereef.node.network.dns.answers import Answers
from kubereef.node.network.namespaces import Sockets, family_of

log = logging.getLogger(__name__)

MOST_UDP_QUERIES = 1024
"""Queries by UDP under way. Beyond it they are dropped, as a network may drop them."""

MOST_CONNECTIONS = 256
IDLE_SECONDS = 10.0
"""How long a connection may say nothing."""


class DnsServer:
    """Answers at some addresses, until closed."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._udp: list[asyncio.DatagramTransport] = []
        self._tcp: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.StreamWriter] = set()

    @classmethod
    async def start(
        cls, answers: Answers, sockets: Sockets, addresses: Sequence[str], port: int = 53
    ) -> Self:
        """Return a server that answers at a port of each address; the sockets may live in another namespace."""
        server = cls(answers)
        try:
            for address in addresses:
                await server._listen(sockets, address, port)
        except BaseException:
            await server.close()
            raise
        return server

    async def _listen(self, sockets: Sockets, address: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        family = family_of(address)
        stream = await sockets.make(family, SOCK_STREAM)
        try:
            stream.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            stream.bind((address, port))
            self._tcp.append(await asyncio.start_server(self._converse, sock=stream, limit=wire.MOST_TCP + 2))
        except BaseException:
            stream.close()
            raise
        datagrams: socket = await sockets.make(family, SOCK_DGRAM)
        try:
            datagrams.bind(
                (address, stream.getsockname()[1])
            )  # the same port, also where it was left to the system
            transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=datagrams)
        except BaseException:
            datagrams.close()
            raise
        self._udp.append(transport)

    @property
    def ports(self) -> list[int]:
        """The port at each address, in their order."""
        return [server.sockets[0].getsockname()[1] for server in self._tcp]

    def received(
        self, message: bytes, client: tuple[object, ...], transport: asyncio.DatagramTransport
    ) -> None:
        """Answer a message that came by UDP."""
        if len(self._tasks) < MOST_UDP_QUERIES:
            task = asyncio.create_task(self._answer_datagram(message, client, transport))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer_datagram(
        self, message: bytes, client: tuple[object, ...], transport: asyncio.DatagramTransport
    ) -> None:
        answer = await self._answer(message, by_tcp=False)
        if answer is not None and not transport.is_closing():
            transport.sendto(answer, client)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the queries of one connection, one after the other, until it ends or falls silent."""
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(writer)
        try:
            while True:
                async with asyncio.timeout(IDLE_SECONDS):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    message = await reader.readexactly(length)
                answer = await self._answer(message, by_tcp=True)
                if answer is None:
                    break
                writer.write(len(answer).to_bytes(2, "big") + answer)
                async with asyncio.timeout(IDLE_SECONDS):
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError, TimeoutError):
            pass  # the client left, or fell silent: nobody is there to be told
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, message: bytes, *, by_tcp: bool) -> bytes | None:
        try:
            return await self._answers.answer(message, by_tcp=by_tcp)
        except Exception:
            log.exception("a DNS query could not be answered")
            return wire.failure(int.from_bytes(message[:2], "big"), wire.SERVER_FAILURE)

    async def close(self) -> None:
        """Answer nobody any more."""
        for transport in self._udp:
            transport.close()
        for server in self._tcp:
            server.close()
        for writer in tuple(self._connections):
            writer.transport.abort()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in self._tcp:
            await server.wait_closed()


class _Datagrams(asyncio.DatagramProtocol):
    """The side of a UDP socket that asyncio calls."""

    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Python 3.11's own datagram transport does not derive from the class that it implements.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[object, ...]) -> None:
        if self._transport is not None:
            self._server.received(data, addr, self._transport)

    def error_received(self, exc: Exception) -> None:
        log.debug("a DNS answer did not arrive: %s", exc)  # its client has gone away
