"""Port-forward: SPDY inside a WebSocket as kubectl has it, SPDY on the bare connection, and channels of a WebSocket."""

import asyncio

import pytest

from kubereef.node.kubelet.api import spdy
from kubereef.node.kubelet.api.portforward import read_ports
from tests.kubereef.node.api.spdyclient import SpdyClient

TUNNELLED = "SPDY/3.1+portforward.k8s.io"
PATH = "/portForward/default/web"


@pytest.fixture
async def echo():
    """A port that sends everything back in capitals, and ends when the client has ended."""

    serving: list[asyncio.Task[None]] = []

    async def serve(reader, writer):
        task = asyncio.current_task()
        assert task is not None
        serving.append(task)
        try:
            while data := await reader.read(1000):
                writer.write(data.upper())
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


@pytest.fixture
def nobody(unused_tcp_port):
    return unused_tcp_port


class Tunnel:
    """SPDY in the messages of a WebSocket."""

    def __init__(self, socket):
        self._socket = socket
        self._encoder = spdy.Encoder()
        self._decoder = spdy.Decoder()
        self._frames = []

    async def open(self, port, request):
        for number, kind in ((4 * request + 1, "error"), (4 * request + 3, "data")):
            headers = {"streamtype": kind, "port": str(port), "requestid": str(request)}
            await self._socket.send_bytes(self._encoder.syn_stream(number, headers, fin=kind == "error"))

    async def send(self, number, data, fin=False):
        await self._socket.send_bytes(self._encoder.data(number, data, fin=fin))

    async def frame(self, *kinds):
        """Return the next frame of these kinds."""
        async with asyncio.timeout(5):
            while True:
                while self._frames:
                    frame = self._frames.pop(0)
                    if isinstance(frame, kinds):
                        return frame
                self._frames += self._decoder.feed(await self._socket.receive_bytes())


async def test_kubectls_tunnel_carries_two_connections_at_once(client, echo):
    async with client.ws_connect(PATH, protocols=[TUNNELLED]) as socket:
        assert socket.protocol == TUNNELLED
        tunnel = Tunnel(socket)
        await tunnel.open(echo, 0)
        await tunnel.open(echo, 1)
        await tunnel.send(3, b"one")
        assert await tunnel.frame(spdy.Data) == spdy.Data(3, b"ONE")
        await tunnel.send(7, b"two", fin=True)
        assert await tunnel.frame(spdy.Data) == spdy.Data(7, b"TWO")
        assert {(await tunnel.frame(spdy.Data)).stream for _ in range(2)} == {5, 7}  # both ends of the second


async def test_a_port_where_nobody_listens_is_told_on_the_error_stream(client, nobody):
    async with client.ws_connect(PATH, protocols=[TUNNELLED]) as socket:
        tunnel = Tunnel(socket)
        await tunnel.open(nobody, 0)
        told = await tunnel.frame(spdy.Data)
        assert told.stream == 1
        assert f"error forwarding port {nobody} to pod default/web: ".encode() in told.data
        assert (await tunnel.frame(spdy.Reset)).stream == 3


async def test_spdy_on_the_bare_connection(url, keys, echo):
    spdy_client = await SpdyClient.open(url, keys.client("ann"), PATH, "portforward.k8s.io")
    async with spdy_client:
        await spdy_client.open_stream(1, {"streamType": "error", "port": str(echo)}, fin=True)
        await spdy_client.open_stream(3, {"streamType": "data", "port": str(echo)})
        await spdy_client.ping(7)
        await spdy_client.send(3, b"bare", fin=True)
        assert await spdy_client.read(3) == b"BARE"
        assert await spdy_client.read(1) == b""
        assert spdy.Ping(7) in spdy_client.frames


async def test_a_stream_without_a_port_is_reset(url, keys):
    spdy_client = await SpdyClient.open(url, keys.client("ann"), PATH, "portforward.k8s.io")
    async with spdy_client:
        await spdy_client.open_stream(1, {"streamType": "data", "port": "70000"})
        await spdy_client.read(1)
        assert any(isinstance(frame, spdy.Reset) for frame in spdy_client.frames)


@pytest.mark.parametrize(
    "protocols", [pytest.param(["v4.channel.k8s.io"], id="by name"), pytest.param([], id="by default")]
)
async def test_channels_carry_one_connection_for_each_port(client, echo, nobody, protocols):
    path = f"{PATH}?port={echo}&port={nobody}"
    async with client.ws_connect(path, protocols=protocols) as socket:
        greetings = [await socket.receive_bytes() for _ in range(4)]
        assert [message[0] for message in greetings] == [0, 1, 2, 3]
        assert int.from_bytes(greetings[0][1:], "little") == echo
        assert int.from_bytes(greetings[3][1:], "little") == nobody
        error = await socket.receive_bytes()
        assert error[0] == 3
        assert b"error forwarding port" in error
        await socket.send_bytes(b"\x00channel")
        assert await socket.receive_bytes() == b"\x00CHANNEL"


async def test_bytes_that_are_no_spdy_end_the_connection(client):
    async with client.ws_connect(PATH, protocols=[TUNNELLED]) as socket:
        await socket.send_bytes(b"\x80\x09" + b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(5):
            assert (await socket.receive()).type.name in ("CLOSE", "CLOSED")


async def test_a_pod_without_a_network_refuses(client, pods):
    pods.pods[0].network = None
    async with client.get(PATH, headers={"Upgrade": "SPDY/3.1", "Connection": "Upgrade"}) as answer:
        assert answer.status == 400


@pytest.mark.parametrize("words", [[], ["x"], ["0"], ["65536"], ["1,y"], ["1"] * 200])
def test_ports_that_are_none_are_refused(words):
    with pytest.raises(ValueError, match="port"):
        read_ports(words)


def test_ports_may_come_in_one_word_or_in_several():
    assert read_ports(["1,2", "3"]) == [1, 2, 3]
