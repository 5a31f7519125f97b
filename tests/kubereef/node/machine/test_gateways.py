"""A Gateway on a real node, under load, while weights move and Pods are deleted."""

import asyncio
import base64
import os
import socket
import ssl
import threading

import pytest
import yaml

from kubereef.controllers.following import Sink, follow
from kubereef.controllers.resources import ENDPOINT_SLICES, SERVICES, Resource
from kubereef.gateway.dataplane import GatewayPlane
from kubereef.gateway.proxy.wire import Wire
from kubereef.node.machine.client import HttpsClient
from kubereef.node.machine.following import service_sinks
from kubereef.node.machine.settings import GATE_SOCKET, socket_path
from kubereef.node.network import NoClaims, open_through
from kubewire.sources import SystemClock
from tests.kubereef.gateway import making
from tests.kubereef.gateway.loopback import Client
from tests.kubereef.gateway.making import backend, gateway, route, rule
from tests.kubereef.node.machine.realnode import PODS, NodeReef, require_node, until

# Requests take a while, and a server that is told to end does so at once, with whatever it has in hand.
SERVER = """
import http.server, os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.1)
        body = (self.headers["X-Forwarded-For"] if self.path == "/from" else os.environ["WHO"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("", 8000), Handler).serve_forever()
"""
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICAS = 3
CLIENTS = 10
EACH_PER_SECOND = 5
SECONDS = 10


def deployment(name):
    container = {
        "name": "app",
        "image": "python:3.11",
        "command": ["python3", "-c", SERVER],
        "env": [{"name": "WHO", "value": name}],
        # On a busy machine a probe may be late; only Pods that are deleted are to leave.
        "readinessProbe": {
            "tcpSocket": {"port": 8000},
            "periodSeconds": 1,
            "timeoutSeconds": 10,
            "failureThreshold": 30,
        },
    }
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 5},
    }
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def reef(tmp_path_factory):
    directory = tmp_path_factory.mktemp("gateways")
    require_node(directory)
    with NodeReef(directory, "--in-memory") as reef:
        for name in ("a", "b"):
            reef.send("POST", DEPLOYMENTS, deployment(name))
            spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}]}
            reef.send("POST", making.SERVICES, {"metadata": {"name": name}, "spec": spec})
        reef.send("POST", making.GATEWAYS, gateway())
        reef.send("POST", making.ROUTES, weighted(100, 0))
        yield reef
        assert reef.stop() == ""


def weighted(a, b):
    return route(rule(backend("a", a), backend("b", b)))


def whole(reef):
    """Tell whether all Pods are ready."""
    found = [reef.send("GET", f"{DEPLOYMENTS}/{name}")["status"] for name in ("a", "b")]
    return all(one.get("readyReplicas") == one.get("replicas") == REPLICAS for one in found)


def address_of(reef):
    def programmed():
        status = reef.send("GET", f"{making.GATEWAYS}/gate").get("status") or {}
        conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
        return conditions.get("Programmed") == "True" and status["addresses"][0]["value"]

    return until(programmed)


@pytest.fixture
def gate(reef):
    """The node's socket, by which the addresses inside are reached."""
    directory = os.open(reef.directory / "node", os.O_RDONLY | os.O_DIRECTORY)
    yield socket_path(directory, GATE_SOCKET)
    os.close(directory)


@pytest.mark.heavy
def test_pods_reach_a_gateway_by_name_and_backends_see_who_they_are(reef):
    address_of(reef)
    until(lambda: whole(reef))
    ask = (
        "import time, urllib.request as u\n"
        "for _ in range(100):\n"
        "    try: print(u.urlopen('http://gate-kubereef.default/from').read().decode()); break\n"
        "    except OSError: time.sleep(0.1)\n"
    )
    said = reef.result("asks", "python3", "-c", ask, container={"image": "python:3.11"})
    assert said.strip() == reef.pod("asks")["status"]["podIP"]


class Load:
    """Clients that ask at a steady rate, each over a connection of its own that it keeps while it can."""

    def __init__(self, connect):
        self.answers = []
        self.failures = []
        self._connect = connect

    async def run(self):
        async with asyncio.TaskGroup() as together:
            for _ in range(CLIENTS):
                together.create_task(self._client())

    async def _client(self):
        client = await self._connect()
        begin = asyncio.get_running_loop().time()
        for number in range(SECONDS * EACH_PER_SECOND):
            due = begin + number / EACH_PER_SECOND
            await asyncio.sleep(max(0, due - asyncio.get_running_loop().time()))
            try:
                status, _, body = await client.ask()
            except (OSError, asyncio.IncompleteReadError) as broken:
                self.failures.append(repr(broken))
                client.close()
                client = await self._connect()
                continue
            if status == 200:
                self.answers.append(body.decode())
            else:
                self.failures.append(f"{status} {body!r}")
        client.close()
        await asyncio.sleep(0)


def disturb(reef, ended):
    """Move all requests from one Deployment to the other and back, and delete Pods of both meanwhile."""
    for a, b in ((70, 30), (30, 70), (50, 50), (0, 100), (50, 50), (100, 0)):
        reef.send("PATCH", f"{making.ROUTES}/route", {"spec": weighted(a, b)["spec"]})
        for name in ("a", "b"):
            ready = [
                pod["metadata"]["name"]
                for pod in reef.send("GET", f"{PODS}?labelSelector=app%3D{name}")["items"]
                if not pod["metadata"].get("deletionTimestamp")
                and any(
                    one["type"] == "Ready" and one["status"] == "True"
                    for one in pod["status"].get("conditions") or ()
                )
            ]
            if len(ready) > 1:
                reef.send("DELETE", f"{PODS}/{ready[0]}")
        if ended.wait(SECONDS / 8):
            return


async def measured(reef, connect):
    load = Load(connect)
    ended = threading.Event()
    disturbing = asyncio.create_task(asyncio.to_thread(disturb, reef, ended))
    try:
        await load.run()
    finally:
        ended.set()
        await disturbing
    print(f"{len(load.answers)} answers, {len(load.failures)} failures: {load.failures[:5]}")
    return load


@pytest.mark.heavy
async def test_no_request_fails_while_weights_move_and_pods_are_deleted(reef, gate):
    address = address_of(reef)
    until(lambda: whole(reef))

    async def connect():
        connection = await open_through(gate, address, 80)
        return Client(*await asyncio.open_connection(sock=connection))

    load = await measured(reef, connect)
    assert load.failures == []
    assert len(load.answers) == CLIENTS * EACH_PER_SECOND * SECONDS
    assert set(load.answers) == {"a", "b"}


@pytest.mark.heavy
async def test_without_care_some_requests_do_fail(reef, gate, tmp_path):
    """The same load through a proxy that neither tries again nor lets requests finish: the measure bites."""
    until(lambda: whole(reef))
    reef.send("PATCH", f"{making.ROUTES}/route", {"spec": weighted(100, 0)["spec"]})
    async with CarelessPlane(reef, gate, tmp_path) as port:
        load = await measured(reef, lambda: Client.of(port))
    assert load.failures != []
    assert len(load.answers) > 100


class CarelessPlane:
    """The data plane outside of the node, without care, at a loopback port."""

    def __init__(self, reef, gate, directory):
        self._reef, self._gate, self._directory = reef, gate, directory
        self._bound = []

    async def __aenter__(self):
        self._client = HttpsClient(self._reef.url, self._tls())
        self._plane = GatewayPlane(self, NoClaims(), SystemClock(), connect=self._dial, careful=False)
        self._plane.start()
        services, slices = service_sinks(self._plane)
        followed: list[tuple[Resource, Sink]] = [
            *self._plane.sinks.items(),
            (SERVICES, services),
            (ENDPOINT_SLICES, slices),
        ]
        self._tasks = [asyncio.create_task(follow(self._client, one.url(), sink)) for one, sink in followed]
        async with asyncio.timeout(10):
            while not self._plane.places:  # noqa: ASYNC110 - what is waited for is told by nobody
                await asyncio.sleep(0.05)
        return self._bound[0].getsockname()[1]

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._plane.close(0)
        await self._client.close()
        await asyncio.sleep(0)

    async def make(self, family, kind):
        """Make a socket that listens at loopback, whatever address it is asked to."""
        made = LoopbackSocket(family, kind)
        made.setblocking(False)
        self._bound.append(made)
        return made

    async def _dial(self, endpoint):
        connection = await open_through(self._gate, *endpoint)
        _, wire = await asyncio.get_running_loop().create_connection(Wire, sock=connection)
        return wire

    def _tls(self):
        user = yaml.safe_load(self._reef.kubeconfig.read_text())["users"][0]["user"]
        for name in ("client-certificate", "client-key"):
            (self._directory / name).write_bytes(base64.b64decode(user[f"{name}-data"]))
        tls = ssl.create_default_context(cafile=self._reef.kubeconfig.parent / "ca.crt")
        tls.load_cert_chain(self._directory / "client-certificate", self._directory / "client-key")
        return tls


class LoopbackSocket(socket.socket):
    def bind(self, _address):
        super().bind(("127.0.0.1", 0))
