"""Which endpoint a request goes to, and when it goes to another one.

A request is sent once more where that cannot do any harm: always if no connection was made; and if the connection
broke before the first byte of an answer, when all of the request is still at hand and either its method may be
repeated, or the connection had been kept from an earlier request and was dead all along.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from kubereef.gateway.balance import Loads
from kubereef.gateway.proxy.answers import Refusal
from kubereef.gateway.proxy.exchange import Exchange, NoAnswer, Outgoing
from kubereef.gateway.proxy.heads import RequestHead, joined
from kubereef.gateway.proxy.pool import Endpoint, Pool
from kubereef.gateway.proxy.wire import Wire
from kubereef.gateway.reading import ServicePortRef
from kubereef.gateway.table import Asked, Site

log = logging.getLogger(__name__)

MOST_TRIES = 8

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))


class _NotTaken(Exception):
    """An endpoint took no connection."""


class Backends(Protocol):
    """Who is behind Services, at this very moment."""

    def endpoints(self, service: ServicePortRef) -> Sequence[Endpoint] | None:
        """Return the endpoints that may get requests; None if there is no such port of a Service."""
        ...


class Carrier:
    """Carries requests to endpoints.

    `careful=False` is for showing what the care is worth: nothing is sent twice, and what is under way to an endpoint
    that leaves is broken off.
    """

    def __init__(self, backends: Backends, pool: Pool, *, careful: bool = True) -> None:
        self.loads: Loads[Endpoint] = Loads()
        self._backends = backends
        self._pool = pool
        self._careful = careful
        self._under_way: dict[Wire, Endpoint] = {}

    async def carry(
        self, client: Wire, head: RequestHead, site: Site, is_closing: Callable[[], bool]
    ) -> bool:
        """Answer a request; return whether the client's connection can be used for another one.

        Refusal if nothing was answered yet; Broken if the answer cannot be finished.
        """
        found = site.find(Asked(head.method, head.host, head.path, head.query, joined(head.headers)))
        if found is None:
            raise Refusal(404, "no route is for this request")
        rule = found.rule.rule
        if (redirect := rule.filters.redirect) is not None:
            place = redirect.location(head.host, site.port, head.path, found.prefix, head.query)
            raise Refusal(redirect.status, "what was asked for is elsewhere", [("Location", place)])
        backend = found.rule.shares.next()
        if backend is None or backend.service is None:
            raise Refusal(500, "the backend of this route cannot be found")
        exchange = Exchange(client, head, found, backend, is_closing)
        seconds = rule.request_seconds or None
        try:
            async with asyncio.timeout(seconds) as exchange.deadline:
                return await self._deliver(exchange, backend.service, rule.backend_seconds or None)
        except TimeoutError:
            exchange.give_up(504, "the backend did not answer in time")

    def retain(self, present: Collection[Endpoint]) -> None:
        """Know that these endpoints are there and no others: those get no request more, and finish what they have."""
        self._pool.retain(present)
        if not self._careful:
            for wire in [wire for wire, endpoint in self._under_way.items() if endpoint not in present]:
                wire.abort()

    async def _deliver(self, exchange: Exchange, service: ServicePortRef, seconds: float | None) -> bool:
        outgoing = await exchange.outgoing()
        # What cannot be sent again must not meet a connection that has died unnoticed.
        may_reuse = outgoing.is_repeatable
        tried: set[Endpoint] = set()
        doubted: set[Endpoint] = set()
        problem = Refusal(503, "no endpoint of the backend is ready")
        for _ in range(MOST_TRIES if self._careful else 1):
            endpoints = self._backends.endpoints(service)
            if endpoints is None:
                raise Refusal(500, "the backend of this route cannot be found")
            left = [one for one in endpoints if one not in tried]
            choices = [one for one in left if one not in doubted] or left
            if not choices:
                break
            endpoint = self.loads.least(choices)
            kept = self._pool.take(endpoint) if may_reuse else None
            self.loads.begin(endpoint)
            try:
                wire = kept or await self._connect(endpoint)
                async with asyncio.timeout(seconds):
                    keeps, is_fit = await self._attempt(exchange, endpoint, wire, outgoing)
                if is_fit and endpoint in (self._backends.endpoints(service) or ()):
                    self._pool.keep(endpoint, wire)
                else:
                    wire.close()
                return keeps
            except _NotTaken:
                problem = Refusal(503, "no endpoint of the backend takes connections")
                tried.add(endpoint)
            except NoAnswer:
                problem = Refusal(502, "the backend broke the connection off")
                if not outgoing.is_repeatable or not (kept or exchange.head.method in _IDEMPOTENT):
                    break
                may_reuse = False
                # A kept connection may have been dead while its endpoint is well, so that one is the last resort.
                (doubted if kept else tried).add(endpoint)
            finally:
                self.loads.end(endpoint)
        raise problem

    async def _connect(self, endpoint: Endpoint) -> Wire:
        try:
            return await self._pool.open(endpoint)
        except (OSError, TimeoutError) as problem:
            log.debug("%s:%s took no connection: %s", *endpoint, problem)
            raise _NotTaken from problem

    async def _attempt(
        self, exchange: Exchange, endpoint: Endpoint, wire: Wire, outgoing: Outgoing
    ) -> tuple[bool, bool]:
        self._under_way[wire] = endpoint
        try:
            return await exchange.attempt(wire, outgoing)
        except BaseException:
            wire.abort()
            raise
        finally:
            del self._under_way[wire]
