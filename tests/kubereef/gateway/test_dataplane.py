"""The data plane: objects of the API in, requests served. Addresses of Services are ones of the loopback network."""

import asyncio
import itertools

import pytest

from kubereef.controllers.resources import NAMESPACES
from kubereef.gateway import dataplane
from kubereef.gateway.dataplane import GatewayPlane
from kubereef.gateway.install import install
from kubereef.gateway.objects import GATEWAYS, HTTP_ROUTES
from kubereef.node.network.namespaces import SocketsHere
from kubereef.node.network.proxy.rules import service_rules
from kubereef.node.network.proxy.service import NoClaims
from kubereef.node.network.services import read_endpoints, read_service
from kubereef.simulation import settle
from kubewire.sources import SystemClock
from tests.kubereef.gateway.loopback import PATIENCE, Backend, Client, bound, plain
from tests.kubereef.gateway.making import GATEWAYS as URL
from tests.kubereef.gateway.making import (
    backend,
    endpoint,
    endpoint_slice,
    gateway,
    listener,
    route,
    rule,
    service,
)
from tests.kubereef.gateway.test_proxy import until

OURS = {"service.kubernetes.io/service-proxy-name": "kubereef-gateway"}
_revisions = itertools.count(1)


class Plane(GatewayPlane):
    """A data plane that is told of objects."""

    def tell(self, resource, obj, kind="MODIFIED"):
        self.sinks[resource].apply(kind, obj, next(_revisions))

    async def ask(self, port, method="GET"):
        client = await Client.of(port)
        try:
            return await client.ask(method=method)
        finally:
            client.close()
            await asyncio.sleep(0)


def free_port():
    with bound() as reserved:
        return reserved.getsockname()[1]


@pytest.fixture
async def plane():
    plane = Plane(SocketsHere(), NoClaims(), SystemClock())
    plane.start()
    yield plane
    await plane.close(0)
    await asyncio.sleep(0.01)


@pytest.fixture
async def site(plane):
    """The port of a Gateway that leads to Service web; the plane has heard of everything but the endpoints."""
    port = free_port()
    plane.tell(GATEWAYS, gateway(listener(port=port)), "ADDED")
    plane.tell(HTTP_ROUTES, route(), "ADDED")
    plane.apply_service(service("gate-kubereef", address="127.0.0.1", labels=OURS))
    plane.apply_service(service())
    async with asyncio.timeout(PATIENCE):
        await plane.settled()
    return port


@pytest.fixture
async def servers():
    """Start backends, each at an address of its own and all at one port: `await servers("127.0.0.2", "text")`."""
    started = []
    port = free_port()

    async def start(address, text):
        made = Backend(plain(text))
        made._server = await asyncio.start_server(made._serve, address, port)
        made.port = port
        started.append(made)
        return made

    yield start
    for one in started:
        await one.stop()
    await asyncio.sleep(0.01)


async def test_a_gateway_is_served_at_the_address_of_its_service(plane, site, servers):
    web = await servers("127.0.0.2", "hello")
    plane.apply_slice(endpoint_slice(endpoint("127.0.0.2"), port=web.port))
    assert plane.places == [("127.0.0.1", site)]
    assert (await plane.ask(site))[2] == b"hello"


async def test_a_gateway_whose_service_is_not_ours_is_not_served(plane):
    plane.tell(GATEWAYS, gateway(), "ADDED")
    plane.apply_service(service("gate-kubereef", address="127.0.0.1"))
    async with asyncio.timeout(PATIENCE):
        await plane.settled()
    assert plane.places == []


async def test_only_endpoints_that_are_ready_get_requests_and_at_once(plane, site, servers):
    old, new = await servers("127.0.0.2", "old"), await servers("127.0.0.3", "new")
    plane.apply_slice(endpoint_slice(endpoint("127.0.0.2"), port=old.port))
    assert (await plane.ask(site))[2] == b"old"
    leaving = endpoint("127.0.0.2", ready=False, serving=True, terminating=True)
    starting = endpoint("127.0.0.3", ready=False, serving=False)
    plane.apply_slice(endpoint_slice(leaving, starting, port=old.port))
    # Nobody is ready: the one that leaves still serves.
    assert (await plane.ask(site))[2] == b"old"
    plane.apply_slice(endpoint_slice(leaving, endpoint("127.0.0.3"), port=new.port))
    for _ in range(4):
        assert (await plane.ask(site))[2] == b"new"
    plane.remove_slice("default", f"web-{old.port}")
    assert (await plane.ask(site))[0] == 503
    plane.remove_service("default", "web")
    assert (await plane.ask(site))[0] == 500


async def test_connections_to_backends_are_kept_also_when_their_neighbours_change(plane, site, servers):
    web = await servers("127.0.0.2", "hello")
    for neighbours in ((), (endpoint("127.0.0.9", ready=False, serving=False),)):
        plane.apply_slice(endpoint_slice(endpoint("127.0.0.2"), *neighbours, port=web.port))
        for _ in range(3):
            assert (await plane.ask(site))[2] == b"hello"
    assert web.connections == 1


async def test_kept_connections_to_an_endpoint_that_leaves_are_ended_at_once(plane, site, servers):
    web = await servers("127.0.0.2", "hello")
    plane.apply_slice(endpoint_slice(endpoint("127.0.0.2"), port=web.port))
    await plane.ask(site)
    assert len(plane._pool) == 1
    plane.remove_slice("default", f"web-{web.port}")
    assert len(plane._pool) == 0


async def test_another_weight_holds_as_soon_as_it_is_told(plane, site, servers):
    a, b = await servers("127.0.0.2", "a"), await servers("127.0.0.3", "b")
    plane.apply_service(service("b"))
    plane.apply_slice(endpoint_slice(endpoint("127.0.0.2"), port=a.port))
    plane.apply_slice(endpoint_slice(endpoint("127.0.0.3"), of="b", port=b.port))
    assert (await plane.ask(site))[2] == b"a"
    plane.tell(HTTP_ROUTES, route(rule(backend(weight=0), backend("b", 1))))
    await asyncio.sleep(0)
    assert (await plane.ask(site))[2] == b"b"
    plane.tell(HTTP_ROUTES, route(), "DELETED")
    await asyncio.sleep(0)
    assert (await plane.ask(site))[0] == 404


async def test_a_status_alone_does_not_make_the_table_anew(plane, site, monkeypatch):
    made = []

    def build(*_):
        made.append(1)
        return {}, {}

    monkeypatch.setattr(dataplane, "build_table", build)
    plane.tell(HTTP_ROUTES, {**route(), "status": {"parents": []}})
    plane.tell(GATEWAYS, {**gateway(listener(port=site)), "status": {"addresses": []}})
    await asyncio.sleep(0.01)
    assert made == []
    plane.tell(NAMESPACES, {"metadata": {"name": "new"}}, "ADDED")
    await asyncio.sleep(0.01)
    assert made == [1]


async def test_a_gateway_that_goes_lets_requests_finish(plane, site, servers):
    release = asyncio.Event()

    async def slow(backend, reader, writer, head):
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")

    web = await servers("127.0.0.2", "")
    web._answer = slow
    plane.apply_slice(endpoint_slice(endpoint("127.0.0.2"), port=web.port))
    asking = asyncio.create_task(plane.ask(site))
    await until(lambda: web.heads)
    plane.tell(GATEWAYS, gateway(listener(port=site)), "DELETED")
    await until(lambda: plane.places == [])
    with pytest.raises(ConnectionError):
        await plane.ask(site)
    release.set()
    assert (await asking)[2] == b"last"


async def test_a_place_that_is_taken_is_tried_again(plane, monkeypatch):
    monkeypatch.setattr(dataplane, "RETRY_SECONDS", 0.05)
    plane._tasks.append(asyncio.create_task(plane._sweep()))
    with bound() as taken:
        taken.listen()
        port = taken.getsockname()[1]
        plane.tell(GATEWAYS, gateway(listener(port=port)), "ADDED")
        plane.apply_service(service("gate-kubereef", address="127.0.0.1", labels=OURS))
        async with asyncio.timeout(PATIENCE):
            await plane.settled()
        assert plane.places == []
    await until(lambda: plane.places == [("127.0.0.1", port)])


async def test_a_list_replaces_all_that_was_known(plane, site):
    plane.sinks[GATEWAYS].replace([], next(_revisions))
    await until(lambda: plane.places == [])


async def test_a_kind_that_goes_and_comes_again_is_followed_again(simulated_cluster):
    held = dataplane.Held(lambda: None)
    client = simulated_cluster.client
    await install(client)
    await client.create(URL, gateway())
    clock = simulated_cluster.clock
    following = asyncio.create_task(dataplane.follow_while_served(client, GATEWAYS, held, clock))
    await settle()
    assert held.objects
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gateways.gateway.networking.k8s.io"
    await client.delete(definition)
    await settle()
    assert not held.objects
    await install(client)
    await client.create(URL, gateway())
    await simulated_cluster.pass_time(60)
    assert held.objects
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def test_the_ordinary_proxy_leaves_services_of_gateways_alone():
    ready = read_service(service("gate-kubereef", labels=OURS))
    one = endpoint_slice(endpoint("127.0.0.2"))
    assert service_rules(read_service(service()), read_endpoints(one)) != {}
    assert service_rules(ready, read_endpoints(one)) == {}
