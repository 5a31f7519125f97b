"""The Service proxy with real sockets, on loopback addresses."""

import asyncio
import contextlib
import os
import socket

import pytest

from kubereef.node.network.namespaces import SocketsHere
from kubereef.node.network.proxy.rules import Listener
from kubereef.node.network.proxy.service import NoClaims, Places, ServiceProxy
from kubereef.node.network.proxy.udp import IDLE_SECONDS
from kubewire.sources import ManualClock, SeededEntropy
from tests.kubereef.node.network.manifests import endpoint, endpoint_slice, service
from tests.kubereef.node.network.peers import Server, asked, connected, listening_at

# Addresses of this process alone, as tests may run in several at once.
ADDRESS = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
NODE_ADDRESS = ADDRESS.replace("127.77", "127.78")
PORT = 18080
WEB = (ADDRESS, PORT)


@contextlib.asynccontextmanager
async def proxying(*, clock=None, **options):
    places = Places(SocketsHere(), NoClaims(), SocketsHere(), (NODE_ADDRESS,))
    proxy = ServiceProxy(places, clock or ManualClock(), SeededEntropy(1), **options)
    proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


def server(name):
    return Server(name, listening_at("127.0.0.1"))


def web(port=PORT, **spec):
    return service(ip=ADDRESS, ports=[{"port": port} | spec.pop("port_extra", {})], **spec)


def behind(*servers, of="web"):
    """Slices for servers, which differ in their ports."""
    return [
        endpoint_slice(
            of,
            one if isinstance(one, dict) else one.address[0],
            name=f"{of}-{number}",
            ports=[{"port": port}],
        )
        for number, (one, port) in enumerate(
            (s if isinstance(s, tuple) else (s, s.address[1])) for s in servers
        )
    ]


async def test_connections_take_turns_among_the_endpoints():
    async with server("a") as a, server("b") as b, proxying() as proxy:
        proxy.replace([web()], behind(a, b))
        await proxy.settled()
        assert sorted([await asked(WEB) for _ in range(4)]) == ["a", "a", "b", "b"]


async def test_a_place_that_somebody_else_serves_is_left_to_them():
    names = web(port=53, port_extra={"protocol": "TCP"})
    taken = [Listener(ADDRESS, 53, "TCP")]
    async with server("a") as a, proxying(taken=taken) as proxy:
        proxy.replace([names, service("other", ip=ADDRESS, ports=[{"port": PORT}])], [])
        for one in (*behind(a), *behind(a, of="other")):
            proxy.apply_slice(one)
        await proxy.settled()
        assert (proxy.listeners, proxy.problems) == ([Listener(ADDRESS, PORT, "TCP")], {})


async def test_without_endpoints_a_client_is_refused_at_once():
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web()], [])
        await proxy.settled()
        with pytest.raises(ConnectionRefusedError):
            await asked(WEB)
        proxy.replace([web()], behind(a))
        await proxy.settled()
        assert await asked(WEB) == "a"
        proxy.replace([web()], [])
        await proxy.settled()
        with pytest.raises(ConnectionRefusedError):
            await asked(WEB)


async def test_a_backend_that_refuses_is_passed_over():
    with listening_at("127.0.0.1") as gone:
        nobody = gone.getsockname()[1]
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web()], behind((endpoint("127.0.0.1"), nobody), a))
        await proxy.settled()
        assert [await asked(WEB) for _ in range(4)] == ["a"] * 4


async def test_a_client_of_backends_that_all_refuse_is_reset():
    with listening_at("127.0.0.1") as gone:
        nobody = gone.getsockname()[1]
    async with proxying() as proxy:
        proxy.replace([web()], behind((endpoint("127.0.0.1"), nobody)))
        await proxy.settled()
        with pytest.raises(ConnectionResetError):
            await asked(WEB)


async def test_a_connection_outlives_its_endpoint_and_its_service_while_new_ones_go_elsewhere():
    async with server("a") as a, server("b") as b, proxying() as proxy:
        proxy.replace([web()], behind(a))
        await proxy.settled()
        reader, writer = await connected(WEB)
        assert await reader.readexactly(1) == b"a"
        proxy.replace([web()], behind(b))
        await proxy.settled()
        assert await asked(WEB) == "b"
        proxy.remove_service("default", "web")
        await proxy.settled()
        writer.write(b"still there")
        assert await reader.readexactly(11) == b"still there"
        assert proxy.open_connections == 1
        writer.close()


async def test_a_client_may_end_its_side_and_still_hear_the_rest():
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web()], behind(a))
        await proxy.settled()
        reader, writer = await connected(WEB)
        data = bytes(range(256)) * 20_000
        sending = asyncio.create_task(send_and_end(writer, data))
        assert await reader.read(1) == b"a"
        assert await reader.read(-1) == data
        await sending
        writer.close()
        await asyncio.sleep(0.05)
        assert proxy.open_connections == 0


async def send_and_end(writer, data):
    writer.write(data)
    await writer.drain()
    writer.write_eof()


async def test_a_backend_that_breaks_off_breaks_the_client_off():
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web()], behind(a))
        await proxy.settled()
        reader, writer = await connected(WEB)
        assert await reader.readexactly(1) == b"a"
        (at_backend,) = a.clients
        from kubereef.node.network.streams import _RESET_ON_CLOSE

        at_backend.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        at_backend.transport.abort()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()


async def test_a_receiver_that_does_not_read_stops_its_sender():
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web()], behind(a))
        await proxy.settled()
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, WEB)
            sent = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while sent < 1 << 30:
                        sent += 65536
                        await loop.sock_sendall(client, bytes(65536))
            # What is sent is echoed and never read, so it fills the buffers of sockets on the way, and no more.
            assert sent < 64 << 20


async def test_a_node_port_is_served_at_the_nodes_address():
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web(port_extra={"nodePort": 30080})], behind(a))
        await proxy.settled()
        assert await asked((NODE_ADDRESS, 30080)) == "a"


async def test_a_client_with_affinity_stays_with_its_backend():
    async with server("a") as a, server("b") as b, proxying() as proxy:
        proxy.replace([web(sessionAffinity="ClientIP")], behind(a, b))
        await proxy.settled()
        assert len({await asked(WEB) for _ in range(4)}) == 1


async def test_a_port_that_is_taken_is_a_problem_of_its_own_and_tried_again():
    clock = ManualClock()
    async with server("a") as a, proxying(clock=clock) as proxy:
        with listening_at(ADDRESS, PORT):
            proxy.replace(
                [web(), service("other", ip=ADDRESS, ports=[{"port": 18081}])],
                behind(a) + behind(a, of="other"),
            )
            await proxy.settled()
            assert await asked((ADDRESS, 18081)) == "a"
            assert ["already in use" in why for why in proxy.problems.values()] == [True]
        clock.advance(5)
        await asyncio.sleep(0.01)
        await proxy.settled()
        assert proxy.problems == {}
        assert await asked(WEB) == "a"


async def test_two_services_with_the_same_place_do_not_take_it_from_each_other():
    async with server("a") as a, server("b") as b, proxying() as proxy:
        proxy.replace(
            [web(), service("other", ip=ADDRESS, ports=[{"port": PORT}])], behind(a, of="other") + behind(b)
        )
        await proxy.settled()
        assert ["default/other has it already" in why for why in proxy.problems.values()] == [True]
        proxy.remove_service("default", "web")
        await proxy.settled()
        assert (proxy.problems, await asked(WEB)) == ({}, "a")


async def test_more_connections_than_allowed_wait_for_their_turn():
    async with server("a") as a, proxying(most_connections=1) as proxy:
        proxy.replace([web()], behind(a))
        await proxy.settled()
        reader, writer = await connected(WEB)
        assert await reader.readexactly(1) == b"a"
        second_reader, second_writer = await connected(WEB)  # the kernel lets it in, the proxy does not
        await asyncio.sleep(0.05)
        assert (proxy.open_connections, a.connections) == (1, 1)
        writer.close()
        async with asyncio.timeout(5):
            assert await second_reader.readexactly(1) == b"a"
        second_writer.close()


async def test_endpoints_that_change_under_load_cost_no_connection():
    async with server("a") as a, server("b") as b, server("c") as c, proxying() as proxy:
        proxy.replace([web()], behind(a, b))
        await proxy.settled()
        is_over = False
        answers = []

        async def client():
            while not is_over:
                answers.append(await asked(WEB))

        clients = [asyncio.create_task(client()) for _ in range(16)]
        for chosen in [(a,), (b, c), (c,), (a, b, c), (b,), (a, c)] * 8:
            proxy.replace([web()], behind(*chosen))
            await asyncio.sleep(0.01)
        is_over = True
        await asyncio.gather(*clients)  # raises what any of them met
        assert len(answers) > 200
        assert set(answers) == {"a", "b", "c"}


async def test_hundreds_of_connections_at_once():
    async with server("a") as a, proxying() as proxy:
        proxy.replace([web()], behind(a))
        await proxy.settled()
        opened = await asyncio.gather(*(connected(WEB) for _ in range(300)))
        assert {await reader.readexactly(1) for reader, _ in opened} == {b"a"}
        assert proxy.open_connections == 300
        for _, writer in opened:
            writer.close()


class Echo(asyncio.DatagramProtocol):
    """A UDP server that answers with its name and what it got."""

    def __init__(self, name):
        self.name = name

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.transport.sendto(self.name + data, addr)


@contextlib.asynccontextmanager
async def echo(name):
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: Echo(name), local_addr=("127.0.0.1", 0))
    try:
        yield endpoint_slice(
            "web",
            "127.0.0.1",
            name=name.decode(),
            ports=[{"port": transport.get_extra_info("sockname")[1], "protocol": "UDP"}],
        )
    finally:
        transport.close()


@contextlib.asynccontextmanager
async def udp_client():
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(WEB)

        async def ask(message):
            async with asyncio.timeout(2):
                await loop.sock_sendall(client, message)
                return await loop.sock_recv(client, 65535)

        yield ask


def web_by_udp():
    return service(ip=ADDRESS, ports=[{"port": PORT, "protocol": "UDP"}])


async def test_datagrams_of_a_client_go_to_one_endpoint_and_their_answers_come_back():
    async with echo(b"a") as a, echo(b"b") as b, proxying() as proxy, udp_client() as x, udp_client() as y:
        proxy.replace([web_by_udp()], [a, b])
        await proxy.settled()
        first, second = [await x(b"1"), await x(b"2")], [await y(b"1"), await y(b"2")]
        assert sorted([first, second]) == [[b"a1", b"a2"], [b"b1", b"b2"]]


async def test_datagrams_to_a_removed_endpoint_go_elsewhere():
    async with echo(b"a") as a, echo(b"b") as b, proxying() as proxy, udp_client() as ask:
        proxy.replace([web_by_udp()], [a])
        await proxy.settled()
        assert await ask(b"1") == b"a1"
        proxy.replace([web_by_udp()], [b])
        await proxy.settled()
        assert await ask(b"2") == b"b2"


async def test_datagrams_without_endpoints_are_refused_at_once():
    async with proxying() as proxy, udp_client() as ask:
        proxy.replace([web_by_udp()], [])
        await proxy.settled()
        with pytest.raises(ConnectionRefusedError):
            await ask(b"1")


async def test_a_silent_client_is_forgotten():
    clock = ManualClock()
    async with echo(b"a") as a, proxying(clock=clock) as proxy, udp_client() as ask:
        proxy.replace([web_by_udp()], [a])
        await proxy.settled()
        await ask(b"1")
        (listener,) = proxy._listeners.values()
        assert len(listener) == 1
        clock.advance(IDLE_SECONDS + 1)
        await asyncio.sleep(0.01)
        assert len(listener) == 0
        assert await ask(b"2") == b"a2"
