"""Ways in and out over unix sockets."""

import asyncio
import contextlib
import stat

import pytest

from kubereef.node.network.forward import Gate, LoopbackPort, open_through
from kubereef.node.network.relay import NotForwarded, Relay, connect_unix, listen_tcp, listen_unix
from tests.kubereef.node.network.peers import Server, asked, connected, listening_at


@contextlib.asynccontextmanager
async def closing(thing):
    try:
        yield thing
    finally:
        await thing.close()


@contextlib.asynccontextmanager
async def gate_to(path, *allowed):
    async with closing(Gate(listen_unix(path), lambda address, port: (address, port) in allowed)) as gate:
        yield gate


def server(name="a"):
    return Server(name, listening_at("127.0.0.1"))


async def test_a_loopback_port_leads_inside(tmp_path):
    path = tmp_path / "gate"
    async with (
        server() as inside,
        gate_to(path, inside.address),
        closing(LoopbackPort(path, *inside.address)) as port,
    ):
        assert await asked(("127.0.0.1", port.port)) == "a"
        reader, writer = await connected(("127.0.0.1", port.port))
        data = b"x" * 3_000_000
        writer.write(data)
        writer.write_eof()
        assert await reader.read() == b"a" + data
        writer.close()


async def test_what_is_not_allowed_is_refused_with_a_reason(tmp_path):
    path = tmp_path / "gate"
    async with server() as inside, gate_to(path):
        with pytest.raises(NotForwarded, match="is not open to callers from outside"):
            await open_through(path, *inside.address)
        assert inside.connections == 0


async def test_what_is_not_there_is_told(tmp_path):
    path = tmp_path / "gate"
    with listening_at("127.0.0.1") as gone:
        nobody = gone.getsockname()[:2]
    async with gate_to(path, nobody):
        with pytest.raises(NotForwarded, match="Errno 111"):
            await open_through(path, *nobody)


async def test_a_node_that_is_not_there_is_told(tmp_path):
    with pytest.raises(NotForwarded, match="cannot be reached at"):
        await open_through(tmp_path / "nothing", "127.0.0.1", 1)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"GET / HTTP/1.1\n", id="another protocol"),
        pytest.param(b"CONNECT localhost 80\n", id="a name"),
        pytest.param(b"CONNECT 127.0.0.1 99999\n", id="no port"),
        pytest.param(b"x" * 1000, id="a line without end"),
    ],
)
async def test_a_bad_request_is_refused(tmp_path, line):
    path = tmp_path / "gate"
    async with gate_to(path, ("127.0.0.1", 80)):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(line)
        async with asyncio.timeout(2):
            with contextlib.suppress(ConnectionError):
                assert (await reader.read()).startswith(b"NO ")
        writer.close()


async def test_only_the_own_user_can_open_the_gate(tmp_path):
    path = tmp_path / "gate"
    async with gate_to(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_bytes_that_follow_the_request_at_once_are_not_lost(tmp_path):
    path = tmp_path / "gate"
    async with server() as inside, gate_to(path, inside.address):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(f"CONNECT {inside.address[0]} {inside.address[1]}\nhello".encode())
        writer.write_eof()
        assert await reader.read() == b"OK\nahello"
        writer.close()


async def test_a_relay_carries_connections_to_a_unix_socket(tmp_path):
    path = tmp_path / "api"
    async with Server("api", listen_unix(path)):
        relay = Relay.to(listen_tcp("127.0.0.1", 0), lambda: connect_unix(path))
        async with closing(relay):
            address = relay._listening.getsockname()
            assert await asyncio.gather(*(asked(address) for _ in range(20))) == ["api"] * 20


async def test_a_relay_to_nobody_resets(tmp_path):
    relay = Relay.to(listen_tcp("127.0.0.1", 0), lambda: connect_unix(tmp_path / "nothing"))
    async with closing(relay):
        with pytest.raises(ConnectionResetError):
            await asked(relay._listening.getsockname())


async def test_a_relay_carries_no_more_connections_than_it_may(tmp_path):
    path = tmp_path / "api"
    async with Server("api", listen_unix(path)):
        relay = Relay(listen_tcp("127.0.0.1", 0), lambda _: connect_unix(path), most=1)
        async with closing(relay):
            address = relay._listening.getsockname()
            reader, writer = await connected(address)
            assert await reader.readexactly(3) == b"api"
            with pytest.raises(ConnectionResetError):
                await asked(address)
            writer.close()
