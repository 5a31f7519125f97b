"""Connections to endpoints, kept for the next request while the endpoint is there."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import NamedTuple

from kubereef.gateway.proxy.wire import Wire
from kubewire.sources import Clock

CONNECT_SECONDS = 3.0
"""How long an endpoint may take to accept before another one is tried: they are all on this machine or near."""

IDLE_SECONDS = 60.0
MOST_IDLE = 256
"""Connections that are kept for one endpoint."""


class Endpoint(NamedTuple):
    """Where a backend is reached."""

    address: str
    port: int


Connect = Callable[[Endpoint], Awaitable[Wire]]


async def connect(endpoint: Endpoint) -> Wire:
    """Return a new connection to an endpoint; raises OSError or TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(CONNECT_SECONDS):
        _, wire = await loop.create_connection(Wire, endpoint.address, endpoint.port)
    return wire


class Pool:
    """Connections that wait for requests, by endpoint."""

    def __init__(self, clock: Clock, connect: Connect = connect) -> None:
        self.open = connect
        self._clock = clock
        self._idle: dict[Endpoint, dict[Wire, float]] = {}

    def take(self, endpoint: Endpoint) -> Wire | None:
        """Return a kept connection to an endpoint, if there is one that still stands: the one used last."""
        kept = self._idle.get(endpoint)
        while kept:
            wire, _ = kept.popitem()
            wire.on_gone = None
            if wire.is_open and wire.is_quiet:
                return wire
            wire.abort()
        return None

    def keep(self, endpoint: Endpoint, wire: Wire) -> None:
        """Keep a connection for the next request, unless it is not fit for one."""
        kept = self._idle.setdefault(endpoint, {})
        if not wire.is_open or not wire.is_quiet or len(kept) >= MOST_IDLE:
            wire.close()
            return
        wire.on_gone = partial(self._drop, endpoint, wire)
        kept[wire] = self._clock.monotonic()

    def retain(self, present: Collection[Endpoint]) -> None:
        """End the connections that wait to all endpoints but these."""
        for endpoint in [one for one in self._idle if one not in present]:
            self._close(endpoint)

    def sweep(self) -> None:
        """End the connections that nobody has used for long."""
        oldest = self._clock.monotonic() - IDLE_SECONDS
        for endpoint, kept in list(self._idle.items()):
            for wire in [wire for wire, since in kept.items() if since < oldest]:
                self._drop(endpoint, wire)

    def close(self) -> None:
        """End all connections that wait."""
        for endpoint in list(self._idle):
            self._close(endpoint)

    def __len__(self) -> int:
        return sum(len(kept) for kept in self._idle.values())

    def _close(self, endpoint: Endpoint) -> None:
        for wire in self._idle.pop(endpoint):
            wire.on_gone = None
            wire.close()

    def _drop(self, endpoint: Endpoint, wire: Wire) -> None:
        wire.on_gone = None
        wire.close()
        kept = self._idle.get(endpoint)
        if kept is not None:
            kept.pop(wire, None)
            if not kept:
                del self._idle[endpoint]
