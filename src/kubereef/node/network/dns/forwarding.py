"""Questions that the cluster cannot answer, asked of other servers."""

import asyncio
import logging
from collections.abc import Sequence
from socket import SOCK_DGRAM, SOCK_STREAM
from typing import NamedTuple

from kubereef.node.network.dns import wire
from kubereef.node.network.namespaces import Sockets, family_of
from kubewire.sources import Entropy

log = logging.getLogger(__name__)

MOST_AT_ONCE = 256
"""Questions under way. More are refused rather than queued: their clients ask again anyway."""


class Upstream(NamedTuple):
    """A DNS server."""

    address: str
    port: int = 53


class Forwarder:
    """Asks other servers, each in turn until one answers.

    The sockets may live in another namespace, such as the host's. Every question has a socket, and so a port, of its
    own and a new id, which makes answers hard to forge.
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        sockets: Sockets,
        entropy: Entropy,
        *,
        seconds: float = 2.0,
        rounds: int = 2,
    ) -> None:
        self.upstreams = tuple(upstreams)
        self._sockets = sockets
        self._entropy = entropy
        self._seconds = seconds
        self._rounds = rounds
        self._under_way = 0

    async def ask(self, query: bytes, *, by_tcp: bool) -> bytes | None:
        """Return the answer to a query under the query's own id, or None if nobody gave one in time."""
        if not self.upstreams or self._under_way >= MOST_AT_ONCE:
            return None
        self._under_way += 1
        try:
            return await self._ask_in_turn(query, by_tcp=by_tcp)
        finally:
            self._under_way -= 1

    async def _ask_in_turn(self, query: bytes, *, by_tcp: bool) -> bytes | None:
        own_id = int.from_bytes(query[:2], "big")
        asked = wire.with_id(query, int.from_bytes(self._entropy.token(2), "big"))
        exchange = self._exchange_tcp if by_tcp else self._exchange_udp
        for upstream in self.upstreams * self._rounds:
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await exchange(asked, upstream)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as problem:
                log.debug("DNS server %s gave no answer: %s", upstream.address, problem)
                continue
            return wire.with_id(answer, own_id)
        return None

    async def _exchange_udp(self, query: bytes, upstream: Upstream) -> bytes:
        loop = asyncio.get_running_loop()
        with await self._sockets.make(family_of(upstream.address), SOCK_DGRAM) as channel:
            await loop.sock_connect(channel, tuple(upstream))
            await loop.sock_sendall(channel, query)
            while True:
                answer = await loop.sock_recv(channel, wire.MOST_TCP)
                if _is_answer(answer, query):
                    return answer

    async def _exchange_tcp(self, query: bytes, upstream: Upstream) -> bytes:
        loop = asyncio.get_running_loop()
        channel = await self._sockets.make(family_of(upstream.address), SOCK_STREAM)
        try:
            await loop.sock_connect(channel, tuple(upstream))
            reader, writer = await asyncio.open_connection(sock=channel)
        except BaseException:
            channel.close()
            raise
        try:
            writer.write(len(query).to_bytes(2, "big") + query)
            answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        finally:
            writer.close()
        if not _is_answer(answer, query):
            raise OSError(f"{upstream.address} answered something else")
        return answer


def _is_answer(answer: bytes, query: bytes) -> bool:
    return (
        len(answer) >= 12
        and answer[:2] == query[:2]
        and bool(answer[2] & 0x80)
        and wire.question_bytes(answer) == wire.question_bytes(query)
    )
