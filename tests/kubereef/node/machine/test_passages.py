"""How the API server reaches a node that its own network does not lead to."""

import asyncio
import socket
import ssl

import aiohttp
import pytest
from aiohttp import web

from kubereef.server.certificates import Certificates, Identity, write_private
from kubereef.server.lines import DirectLines
from kubereef.server.tunnels import Tunnel, opened
from kubewire.sources import SystemClock, SystemEntropy

NODE = {"status": {"addresses": [{"type": "Hostname", "address": "inside"}]}}


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """An authority, with a certificate for the node that is called `inside`."""
    certificates = Certificates(tmp_path_factory.mktemp("pki"), (), SystemClock(), SystemEntropy())
    certificates.refresh()
    pair = certificates.serving(certificates.pair("ca"), Identity("system:node:inside"), ("inside",))
    write_private(certificates.directory / "node.crt", pair.certificate_pem)
    write_private(certificates.directory / "node.key", pair.key_pem)
    return certificates.directory


class Inside:
    """A kubelet that only a unix socket leads to, and the passage there."""

    def __init__(self, path):
        self.path = path
        self.asked = []

    def covers(self, host):
        return host in ("inside", "10.244.0.9")

    async def dial(self, host, port):
        self.asked.append((host, port))
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, str(self.path))
        except OSError:
            connection.close()
            raise
        return connection


@pytest.fixture
async def inside(pki, tmp_path):
    async def answer(request):
        if request.headers.get("Upgrade"):
            websocket = web.WebSocketResponse(protocols=["echo"])
            await websocket.prepare(request)
            async for message in websocket:
                await websocket.send_str(message.data.upper())
            return websocket
        return web.Response(text=f"{request.scheme} {request.path}")

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki / "node.crt", pki / "node.key")
    server = web.Server(answer)
    loop = asyncio.get_running_loop()
    secure = await loop.create_unix_server(server, tmp_path / "tls.sock", ssl=tls)
    plain = await loop.create_unix_server(server, tmp_path / "plain.sock")
    yield Inside(tmp_path / "tls.sock")
    for listener in (secure, plain):
        listener.close()
    await server.shutdown(0)


@pytest.fixture
async def lines(inside, pki):
    lines = DirectLines(ssl.create_default_context(cafile=pki / "ca.crt"))
    lines.passages.append(inside)
    yield lines
    await lines.close()


async def test_requests_to_a_node_go_through_its_passage_and_its_certificate_is_checked(lines, inside):
    line = lines.to_node(NODE)
    async with line.session.get(f"{line.url}/healthz") as answer:
        assert await answer.text() == "https /healthz"
    assert inside.asked == [("inside", 10250)]


async def test_a_node_that_shows_the_certificate_of_another_is_not_believed(lines, inside):
    other = {"status": {"addresses": [{"type": "InternalIP", "address": "10.244.0.9"}]}}
    line = lines.to_node(other)
    with pytest.raises(aiohttp.ClientError, match="certificate"):
        await line.session.get(f"{line.url}/healthz")


async def test_requests_to_pods_go_through_the_passage_too(lines, inside):
    inside.path = inside.path.with_name("plain.sock")
    line = lines.to_address("http", "10.244.0.9", 8080)
    async with line.session.get(f"{line.url}/page") as answer:
        assert await answer.text() == "http /page"
    assert inside.asked == [("10.244.0.9", 8080)]


async def test_upgraded_connections_go_through_the_passage(lines, inside):
    headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ]
    tunnel = await opened(lines.to_node(NODE), "GET", "/exec", headers)
    assert isinstance(tunnel, Tunnel)
    assert tunnel.head.startswith(b"HTTP/1.1 101 ")
    assert inside.asked == [("inside", 10250)]
    await tunnel.close()


async def test_a_passage_that_leads_nowhere_is_told_as_a_failed_connection(lines, inside):
    inside.path = inside.path.with_name("nothing.sock")
    line = lines.to_node(NODE)
    with pytest.raises(aiohttp.ClientConnectionError, match="dial tcp inside:10250"):
        await line.session.get(f"{line.url}/healthz")


async def test_what_no_passage_covers_is_reached_directly(lines, inside):
    line = lines.to_address("http", "127.0.0.1", 1)
    assert (
        lines.to_node({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}}).dial
        is None
    )
    with pytest.raises(aiohttp.ClientConnectorError):
        await line.session.get(f"{line.url}/")
    assert inside.asked == []
