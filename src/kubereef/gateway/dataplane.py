"""The data plane of Gateways, inside the node: follows the API and listens at the addresses of Gateways.

What it knows comes from the same watches by which the node follows Services, so an endpoint that leaves gets no
request more as soon as the API server has told of it; nothing else has to agree first. It serves the Gateways whose
Service says so (see `controller`), at the very address of that Service.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kubereef.controllers.following import Reader, follow
from kubereef.controllers.resources import NAMESPACES, Resource
from kubereef.gateway.objects import GATEWAYS, HTTP_ROUTES, PROXY_LABEL, PROXY_NAME, service_name
from kubereef.gateway.proxy.carrier import Carrier
from kubereef.gateway.proxy.pool import Connect, Endpoint, Pool, connect
from kubereef.gateway.proxy.server import Door
from kubereef.gateway.reading import Object, ServicePortRef, read_gateway, read_route
from kubereef.gateway.table import LiveRule, RuleKey, Site, Table, build_table
from kubereef.node.network.namespaces import Sockets, family_of
from kubereef.node.network.proxy.rules import port_backends
from kubereef.node.network.proxy.service import Claims
from kubereef.node.network.services import ServiceKey, Services
from kubewire.sources import Clock

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""How long after a failure an address is tried again, and how often idle connections are looked for."""

DRAIN_SECONDS = 30.0
"""How long requests have to finish when their Gateway goes."""

FOLLOWED = (GATEWAYS, HTTP_ROUTES, NAMESPACES)
"""What is to be followed besides Services and EndpointSlices."""


class _Place(NamedTuple):
    address: str
    port: int


class ServiceBackends:
    """Who is behind Services, kept up to date one object at a time."""

    def __init__(self) -> None:
        self.services = Services()
        self._found: dict[ServicePortRef, tuple[Endpoint, ...] | None] = {}

    def endpoints(self, service: ServicePortRef) -> Sequence[Endpoint] | None:
        """Return those that are ready; if none is, those that still serve while they terminate."""
        if service not in self._found:
            self._found[service] = self._look(service)
        return self._found[service]

    def changed(self, keys: set[ServiceKey]) -> None:
        """Look anew at Services that have changed."""
        for service in self._found:
            if (service.namespace, service.name) in keys:
                self._found[service] = self._look(service)

    def forget_all_but(self, rules: Iterable[LiveRule]) -> None:
        """Remember nothing of Services that no rule leads to."""
        wanted = {backend.service for live in rules for backend in live.rule.backends}
        self._found = {service: found for service, found in self._found.items() if service in wanted}

    def present(self) -> set[Endpoint]:
        """Return all endpoints of the Services that were asked for."""
        return {one for found in self._found.values() for one in found or ()}

    def _look(self, wanted: ServicePortRef) -> tuple[Endpoint, ...] | None:
        key = ServiceKey(wanted.namespace, wanted.name)
        service = self.services.get(key)
        ports = service.ports if service is not None and not service.external_name else ()
        port = next((one for one in ports if (one.port, one.protocol) == (wanted.port, "TCP")), None)
        if port is None:
            return None
        return tuple(Endpoint(*one) for one in port_backends(port, self.services.endpoints(key)))


class Held:
    """All objects of one resource, as last heard of. A `following.Sink`."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self._on_change = on_change

    def replace(self, objects: Sequence[Object], revision: int) -> None:  # noqa: ARG002 - every sink is told the revision
        self.objects = {_key(obj): obj for obj in objects}
        self._on_change()

    def apply(self, kind: str, obj: Object, revision: int) -> None:  # noqa: ARG002 - as above
        old = self.objects.pop(_key(obj), None)
        if kind != "DELETED":
            self.objects[_key(obj)] = obj
        if kind == "DELETED" or old is None or _substance(old) != _substance(obj):
            self._on_change()


class GatewayPlane:
    """Serves Gateways. News are taken in at once; listening at new addresses is done by a task, which tries again."""

    def __init__(
        self,
        sockets: Sockets,
        claims: Claims,
        clock: Clock,
        *,
        connect: Connect = connect,
        careful: bool = True,
    ) -> None:
        self._sockets = sockets
        self._claims = claims
        self._clock = clock
        self._backends = ServiceBackends()
        self._pool = Pool(clock, connect)
        self._carrier = Carrier(self._backends, self._pool, careful=careful)
        self._addresses: dict[ServiceKey, str] = {}
        self._doors: dict[_Place, Door] = {}
        self._sites: dict[_Place, Site] = {}
        self._rules: dict[RuleKey, LiveRule] = {}
        self._problems: dict[_Place, str] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._is_stale = False
        self._gateways, self._routes, self._namespaces = (Held(self._table_changed) for _ in FOLLOWED)
        self.sinks = dict(zip(FOLLOWED, (self._gateways, self._routes, self._namespaces), strict=True))
        """Who is to be told of what is followed."""

    def start(self) -> None:
        """Begin to serve."""
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._sweep())]

    async def close(self, seconds: float = DRAIN_SECONDS) -> None:
        """Accept nobody more, and let requests under way finish for so long."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        leaving = tuple(self._leaving)
        await asyncio.gather(*(door.close(seconds) for door in self._doors.values()))
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        self._pool.close()

    async def settled(self) -> None:
        """Return once everything that was taken in has been acted on."""
        await self._settled.wait()

    @property
    def places(self) -> list[tuple[str, int]]:
        """Where clients can connect at present."""
        return sorted((place.address, place.port) for place in self._doors)

    # --- news (see following.ListensToServices)

    def apply_service(self, service: Object) -> None:
        """Take in a Service that is new or changed."""
        self._note(self._backends.services.apply_service(service))
        meta = service["metadata"]
        is_ours = (meta.get("labels") or {}).get(PROXY_LABEL) == PROXY_NAME
        address = (service.get("spec") or {}).get("clusterIP") or "" if is_ours else ""
        self._set_address(ServiceKey(meta["namespace"], meta["name"]), address)

    def remove_service(self, namespace: str, name: str) -> None:
        """Forget a Service."""
        self._note(self._backends.services.remove_service(namespace, name))
        self._set_address(ServiceKey(namespace, name), "")

    def apply_slice(self, endpoint_slice: Object) -> None:
        """Take in an EndpointSlice that is new or changed."""
        self._note(self._backends.services.apply_slice(endpoint_slice))

    def remove_slice(self, namespace: str, name: str) -> None:
        """Forget an EndpointSlice."""
        self._note(self._backends.services.remove_slice(namespace, name))

    def _note(self, changed: set[ServiceKey]) -> None:
        if changed:
            self._backends.changed(changed)
            self._carrier.retain(self._backends.present())

    def _set_address(self, key: ServiceKey, address: str) -> None:
        if self._addresses.get(key, "") != address:
            if address:
                self._addresses[key] = address
            else:
                del self._addresses[key]
            self._table_changed()

    # --- the table

    def _table_changed(self) -> None:
        """Make the table anew, once for all news that come together."""
        self._settled.clear()
        if not self._is_stale:
            self._is_stale = True
            asyncio.get_running_loop().call_soon(self._make_table)

    def _make_table(self) -> None:
        self._is_stale = False
        namespaces = {
            name: obj["metadata"].get("labels") or {} for (_, name), obj in self._namespaces.objects.items()
        }
        gateways = map(read_gateway, self._gateways.objects.values())
        routes = map(read_route, self._routes.objects.values())
        table, self._rules = build_table(gateways, routes, namespaces, self._rules)
        self._backends.forget_all_but(self._rules.values())
        self._carrier.retain(self._backends.present())
        self._sites = self._placed(table)
        for place, site in self._sites.items():
            if place in self._doors:
                self._doors[place].site = site
        self._news.set()

    def _placed(self, table: Table) -> dict[_Place, Site]:
        return {
            _Place(address, port): site
            for (namespace, name), sites in table.items()
            if (address := self._addresses.get(ServiceKey(namespace, service_name(name)), ""))
            for port, site in sites.items()
        }

    # --- doors

    async def _follow(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            for place in [one for one in self._doors if one not in self._sites]:
                self._leave(place)
            for place in [one for one in self._sites if one not in self._doors]:
                await self._try_to_open(place)
            if not self._news.is_set() and not self._is_stale:
                self._settled.set()

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(RETRY_SECONDS)
            self._pool.sweep()
            if self._problems:
                self._news.set()

    async def _try_to_open(self, place: _Place) -> None:
        try:
            await self._open(place)
        except Exception as problem:  # noqa: BLE001 - one Gateway that cannot be served must not stop the others
            why = str(problem) or type(problem).__name__
            if self._problems.get(place) != why:
                log.warning("no Gateway at %s:%s: %s", *place, why)
            self._problems[place] = why
        else:
            self._problems.pop(place, None)

    async def _open(self, place: _Place) -> None:
        await self._claims.claim(place.address)
        try:
            listening = await self._sockets.make(family_of(place.address), socket.SOCK_STREAM)
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listening.bind(tuple(place))
                site = self._sites.get(place)
                if site is None:  # the Gateway went meanwhile
                    raise LookupError("it is wanted no longer")
                door = Door(self._carrier, site)
                await door.open(listening)
            except BaseException:
                listening.close()
                raise
        except BaseException:
            await self._claims.release(place.address)
            raise
        self._doors[place] = door

    def _leave(self, place: _Place) -> None:
        """Listen no longer at a place; whoever is being served there is served to the end."""
        door = self._doors.pop(place)
        task = asyncio.create_task(self._shut(door, place.address))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _shut(self, door: Door, address: str) -> None:
        try:
            await door.close(DRAIN_SECONDS)
        finally:
            await self._claims.release(address)


async def follow_while_served(client: Reader, resource: Resource, held: Held, clock: Clock) -> None:
    """Tell of the objects of a kind for ever, also when its definition goes and comes again."""
    while True:
        await follow(client, resource.url(), held)
        held.replace([], 0)  # what is not served has no objects
        await clock.sleep(RETRY_SECONDS)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _substance(obj: Object) -> object:
    """Return what of an object decides anything here: not its status."""
    return obj.get("spec"), obj["metadata"].get("labels"), obj["metadata"].get("creationTimestamp")
