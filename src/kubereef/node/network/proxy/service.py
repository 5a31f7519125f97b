"""The Service proxy: follows Services and EndpointSlices and keeps a listener for each port that can be served."""

import asyncio
import logging
import socket
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple, Protocol

from kubereef.node.network.namespaces import Sockets, family_of
from kubereef.node.network.proxy.balance import Balancer
from kubereef.node.network.proxy.rules import Listener, Rules, Target, service_rules
from kubereef.node.network.proxy.tcp import BACKLOG, TcpConnections, TcpListener
from kubereef.node.network.proxy.udp import UdpListener
from kubereef.node.network.services import Object, ServiceKey, Services
from kubewire.sources import Clock, Entropy

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""How long after a failure a listener is tried again, and how often stale clients are looked for."""

MOST_CONNECTIONS = 20_000


class Claims(Protocol):
    """Who sees to it that an address of a Service can be listened at."""

    async def claim(self, address: str) -> None:
        """Make an address available."""
        ...

    async def release(self, address: str) -> None:
        """Undo one `claim`."""
        ...


class NoClaims:
    """For addresses that can be listened at anyway."""

    __slots__ = ()

    async def claim(self, address: str) -> None:
        """Do nothing."""

    async def release(self, address: str) -> None:
        """Do nothing."""


class Places(NamedTuple):
    """Where listeners live: sockets and addresses for those of Services, and sockets and addresses of the node."""

    service_sockets: Sockets
    claims: Claims
    node_sockets: Sockets
    node_addresses: tuple[str, ...] = ()


class ServiceProxy:
    """Serves the addresses of Services from their endpoints.

    News are taken in at once and acted on by a task, which tries again what failed. Connections to a backend that was
    removed live on until they are closed; new ones go elsewhere.
    """

    def __init__(
        self,
        places: Places,
        clock: Clock,
        entropy: Entropy,
        *,
        taken: Container[Listener] = (),
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        """Have a proxy that has not started; listeners that are `taken` are somebody else's, whatever Services say."""
        self._places = places
        self._clock = clock
        self._entropy = entropy
        self._taken = taken
        self._services = Services()
        self._connections = TcpConnections(most_connections)
        self._listeners: dict[Listener, TcpListener | UdpListener] = {}
        self._owners: dict[Listener, ServiceKey] = {}
        self._of_service: dict[ServiceKey, set[Listener]] = {}
        self._changed: dict[ServiceKey, None] = {}
        self._failed: dict[ServiceKey, dict[Listener, str]] = {}
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to serve."""
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._sweep())]

    async def close(self) -> None:
        """Serve nobody any more, and break what connections there are."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for place in tuple(self._listeners):
            await self._close(place)
        await self._connections.close()

    def replace(self, services: Iterable[Object], slices: Iterable[Object]) -> None:
        """Take in all Services and EndpointSlices there are, and forget all others."""
        self._note(self._services.replace(services, slices))

    def apply_service(self, service: Object) -> None:
        """Take in a Service that is new or changed."""
        self._note(self._services.apply_service(service))

    def remove_service(self, namespace: str, name: str) -> None:
        """Forget a Service."""
        self._note(self._services.remove_service(namespace, name))

    def apply_slice(self, endpoint_slice: Object) -> None:
        """Take in an EndpointSlice that is new or changed."""
        self._note(self._services.apply_slice(endpoint_slice))

    def remove_slice(self, namespace: str, name: str) -> None:
        """Forget an EndpointSlice."""
        self._note(self._services.remove_slice(namespace, name))

    async def settled(self) -> None:
        """Return once everything that was taken in has been acted on."""
        await self._settled.wait()

    @property
    def listeners(self) -> list[Listener]:
        """Where clients can connect at present."""
        return sorted(self._listeners)

    @property
    def problems(self) -> dict[Listener, str]:
        """Why a listener is not there though its Service could be served. They are tried again now and then."""
        return {place: why for failed in self._failed.values() for place, why in failed.items()}

    @property
    def open_connections(self) -> int:
        """How many TCP connections go through the proxy at present."""
        return len(self._connections)

    def _note(self, changed: Iterable[ServiceKey]) -> None:
        for key in sorted(changed):
            self._changed[key] = None
        if self._changed:
            self._settled.clear()
            self._news.set()

    async def _follow(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._changed:
                key = next(iter(self._changed))
                del self._changed[key]
                await self._serve(key)
            self._settled.set()

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(RETRY_SECONDS)
            for listener in tuple(self._listeners.values()):
                listener.sweep()
            self._note(self._failed)

    def _rules(self, key: ServiceKey) -> Rules:
        service = self._services.get(key)
        if service is None:
            return {}
        rules = service_rules(service, self._services.endpoints(key), self._places.node_addresses)
        return {place: target for place, target in rules.items() if place not in self._taken}

    async def _serve(self, key: ServiceKey) -> None:
        """Bring the listeners of one Service to what they shall be."""
        rules = self._rules(key)
        present = self._of_service.get(key, set())
        for place in sorted(present - rules.keys()):
            await self._close(place)
        before, failed = self._failed.pop(key, {}), {}
        for place, target in rules.items():
            if place in present:
                self._listeners[place].balancer.update(target)
                continue
            problem = await self._try_to_open(key, place, target)
            if problem:
                failed[place] = problem
                if place not in before:
                    log.warning(
                        "no listener at %s:%s/%s: %s", place.address, place.port, place.protocol, problem
                    )
        if failed:
            self._failed[key] = failed

    async def _try_to_open(self, key: ServiceKey, place: Listener, target: Target) -> str:
        """Open a listener; return why that was not possible."""
        if place in self._listeners:
            return f"Service {'/'.join(self._owners[place])} has it already"
        try:
            await self._open(place, target)
        except Exception as problem:  # noqa: BLE001 - one Service that cannot be served must not stop the others
            return str(problem) or type(problem).__name__
        self._owners[place] = key
        self._of_service.setdefault(key, set()).add(place)
        return ""

    async def _open(self, place: Listener, target: Target) -> None:
        balancer = Balancer(target, self._clock, int.from_bytes(self._entropy.token(2), "big"))
        places = self._places
        sockets = places.node_sockets if place.is_node_port else places.service_sockets
        kind = socket.SOCK_STREAM if place.protocol == "TCP" else socket.SOCK_DGRAM
        if not place.is_node_port:
            await places.claims.claim(place.address)
        try:
            made = await sockets.make(family_of(place.address), kind)
            try:
                if kind == socket.SOCK_STREAM:
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                made.bind((place.address, place.port))
                if kind == socket.SOCK_STREAM:
                    made.listen(BACKLOG)
                    self._listeners[place] = TcpListener(made, balancer, self._connections)
                else:
                    self._listeners[place] = UdpListener(made, balancer, self._clock)
            except BaseException:
                made.close()
                raise
        except BaseException:
            if not place.is_node_port:
                await places.claims.release(place.address)
            raise

    async def _close(self, place: Listener) -> None:
        self._listeners.pop(place).close()
        owner = self._owners.pop(place)
        siblings = self._of_service[owner]
        siblings.discard(place)
        if not siblings:
            del self._of_service[owner]
        if not place.is_node_port:
            await self._places.claims.release(place.address)


def node_places(sockets: Sockets, addresses: Sequence[str]) -> Places:
    """Return places that are all in one namespace where every address is already available."""
    return Places(sockets, NoClaims(), sockets, tuple(addresses))
