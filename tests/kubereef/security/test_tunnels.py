"""exec, attach and port-forward: connections that both sides write to, through the server to a kubelet."""

import asyncio
import shutil
import ssl

import aiohttp
import pytest
import yaml
from aiohttp import web

from kubereef.cluster import Cluster
from kubereef.server.credentials import Credentials
from kubereef.server.http import HttpsServer
from kubereef.server.lines import DirectLines, Line
from kubereef.store.store import Store
from kubewire.sources import SystemClock, SystemEntropy

POD = "/api/v1/namespaces/default/pods/p"
CHANNELS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class Kubelet:
    """Answers upgrades as the test says, and remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.headers = {}
        self.talk = None
        self.gone = asyncio.Event()
        self.url = ""

    async def handle(self, request):
        self.asked.append(request.path_qs)
        self.headers = dict(request.headers)
        if self.talk is None:
            return web.Response(status=400, text="container is not running")
        socket = web.WebSocketResponse(protocols=CHANNELS, max_msg_size=0)
        await socket.prepare(request)
        try:
            await self.talk(socket)
        finally:
            self.gone.set()
        return socket


class ToKubelet(DirectLines):
    """Leads every node to the kubelet of the test."""

    def __init__(self, kubelet):
        super().__init__()
        self._kubelet = kubelet

    def to_node(self, node, port=0):
        return Line(super().to_node(node, port).session, self._kubelet.url)


@pytest.fixture
async def kubelet():
    kubelet = Kubelet()
    runner = web.ServerRunner(web.Server(kubelet.handle, handler_cancellation=True))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kubelet.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield kubelet
    await runner.cleanup()


class Wire:
    def __init__(self, credentials, https):
        self.host, self.port = https.address
        self.kubeconfig = credentials.write_kubeconfig(f"https://{self.host}:{self.port}")
        self._token = yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]["token"]
        self._tls = ssl.create_default_context(cafile=str(credentials.directory / "ca.crt"))

    def session(self):
        return aiohttp.ClientSession(
            f"https://127.0.0.1:{self.port}",
            connector=aiohttp.TCPConnector(ssl=self._tls),
            headers={"Authorization": f"Bearer {self._token}"},
        )


@pytest.fixture
async def wire(tmp_path, kubelet):
    clock, entropy = SystemClock(), SystemEntropy()
    credentials = Credentials(tmp_path / "data", (), clock, entropy)
    cluster = Cluster(
        Store(),
        clock=clock,
        entropy=entropy,
        tokens=credentials.tokens,
        signer=credentials.signer,
        lines=ToKubelet(kubelet),
    )
    https = HttpsServer(cluster.server, credentials.server_tls, clock)
    await https.start("127.0.0.1", 0)
    await cluster.start()
    client = cluster.client()
    await client.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await client.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    addresses = {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}}
    await client.patch("/api/v1/nodes/n/status", addresses)
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x:1"}]}
    await client.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
    await client.patch(f"{POD}/status", {"status": {"phase": "Running"}})
    yield Wire(credentials, https)
    await https.stop(cluster.drain, grace=1)
    await cluster.stop()


async def echo(socket):
    async for message in socket:
        await socket.send_bytes(message.data)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        pytest.param(
            f"{POD}/exec?command=echo&command=a%20b&stdin=true&stdout=1&tty=false",
            "/exec/default/p/c?input=1&output=1&command=echo&command=a+b",
            id="exec",
        ),
        pytest.param(
            f"{POD}/attach?container=c&stderr=true&tty=true", "/attach/default/p/c?error=1&tty=1", id="attach"
        ),
        pytest.param(
            f"{POD}/portforward?ports=80,81&ports=90",
            "/portForward/default/p?port=80&port=81&port=90",
            id="forward",
        ),
    ],
)
async def test_bytes_go_both_ways(wire, kubelet, url, asked):
    kubelet.talk = echo
    async with wire.session() as session, session.ws_connect(url, protocols=CHANNELS) as socket:
        assert socket.protocol == "v5.channel.k8s.io"
        for text in (b"one", b"two"):
            await socket.send_bytes(text)
            assert (await socket.receive(5)).data == text
    assert kubelet.asked == [asked]
    assert "Authorization" not in kubelet.headers


async def test_a_lot_of_bytes_arrive_whole(wire, kubelet):
    kubelet.talk = echo
    portion = bytes(range(256)) * 4096
    async with wire.session() as session, session.ws_connect(f"{POD}/exec?stdin=1", max_msg_size=0) as socket:
        for _ in range(4):
            await socket.send_bytes(portion)
        for _ in range(4):
            assert (await socket.receive(20)).data == portion


async def test_a_client_that_goes_ends_the_kubelets_side(wire, kubelet):
    kubelet.talk = echo
    async with wire.session() as session:
        socket = await session.ws_connect(f"{POD}/exec?stdin=1")
        await socket.send_bytes(b"x")
        await socket.receive(5)
        socket._response.connection.transport.abort()
    await asyncio.wait_for(kubelet.gone.wait(), 10)


async def test_a_kubelet_that_ends_ends_the_clients_side(wire, kubelet):
    async def goodbye(socket):
        await socket.send_bytes(b"bye")

    kubelet.talk = goodbye
    async with wire.session() as session, session.ws_connect(f"{POD}/exec?stdout=1") as socket:
        assert (await socket.receive(5)).data == b"bye"
        assert (await socket.receive(5)).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


async def test_a_kubelets_refusal_is_passed_on(wire, kubelet):
    async with wire.session() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
            await session.ws_connect(f"{POD}/exec?stdout=1")
        assert refusal.value.status == 400
        headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
        async with session.get(f"{POD}/exec?stdout=1", headers=headers) as answer:
            assert (await answer.json())["message"] == "container is not running"


async def test_a_kubelet_that_is_not_there_is_an_error_of_the_server(wire, kubelet):
    kubelet.url = "http://127.0.0.1:1"
    async with wire.session() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
            await session.ws_connect(f"{POD}/exec?stdout=1")
        assert refusal.value.status == 500


async def test_the_server_goes_on_after_a_tunnel(wire, kubelet):
    kubelet.talk = echo
    async with wire.session() as session:
        async with session.ws_connect(f"{POD}/exec?stdin=1") as socket:
            await socket.send_bytes(b"x")
            await socket.receive(5)
        async with session.get(POD) as answer:
            assert answer.status == 200


async def test_kubectl_runs_a_command(wire, kubelet, tmp_path):
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not on the PATH")

    async def hello(socket):
        await socket.send_bytes(b"\x01hello from the container\n")
        await socket.send_bytes(b'\x03{"metadata":{},"status":"Success"}')

    kubelet.talk = hello
    process = await asyncio.create_subprocess_exec(
        kubectl,
        *("--kubeconfig", str(wire.kubeconfig), "--cache-dir", str(tmp_path / "cache")),
        *("exec", "p", "--", "echo", "hello"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    assert (process.returncode, out) == (0, b"hello from the container\n"), err
    assert kubelet.asked == ["/exec/default/p/c?output=1&error=1&command=echo&command=hello"]
