"""Requests that go on to kubelets and Pods."""

import asyncio
import json
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from kubereef.cluster import Cluster
from kubereef.server.lines import DirectLines, Line, Unreachable
from kubereef.server.requests import Request, User
from kubereef.store.store import Store
from kubewire import errors
from kubewire.sources import SeededEntropy

CORE = "/api/v1/namespaces/default"


class Backend:
    """Stands for every kubelet and every Pod: answers what the test says, and remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.answer = lambda _request: web.Response(text="hello")
        self.url = ""

    async def handle(self, request):
        body = await request.read()
        self.asked.append((request.method, request.path_qs, dict(request.headers), body))
        answer = self.answer(request)
        return await answer if asyncio.iscoroutine(answer) else answer


class ToBackend(DirectLines):
    """Finds addresses as always, and then leads to the backend of the test."""

    def __init__(self, backend):
        super().__init__()
        self.backend = backend
        self.wanted = []

    def to_node(self, node, port=0):
        line = super().to_node(node, port)
        self.wanted.append(line.url)
        return Line(line.session, self.backend.url)

    def to_address(self, scheme, address, port):
        line = super().to_address(scheme, address, port)
        self.wanted.append(line.url)
        return Line(line.session, self.backend.url)


@pytest.fixture
async def backend():
    backend = Backend()
    runner = web.ServerRunner(web.Server(backend.handle, handler_cancellation=True))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    backend.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield backend
    await runner.cleanup()


@pytest.fixture
def lines(backend):
    return ToBackend(backend)


@pytest.fixture
async def cluster(clock, lines):
    cluster = Cluster(Store(), clock=clock, entropy=SeededEntropy(1), lines=lines)
    await cluster.start()
    client = cluster.client()
    await client.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    status = {
        "addresses": [{"type": "InternalIP", "address": "10.9.9.9"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10999}},
    }
    await client.patch("/api/v1/nodes/n/status", {"status": status})
    await add_pod(client, "p")
    yield cluster
    await cluster.stop()


async def add_pod(client, name, node="n", ip="10.1.1.1", **spec):
    containers = spec.pop("containers", [{"name": "c", "image": "x:1", "ports": [{"containerPort": 8080}]}])
    spec = {"containers": containers, **spec, **({"nodeName": node} if node else {})}
    await client.create(f"{CORE}/pods", {"metadata": {"name": name}, "spec": spec})
    if ip:
        await client.patch(f"{CORE}/pods/{name}/status", {"status": {"podIP": ip}})


async def fetched(cluster, url, method="GET", body=b"", **headers):
    path, _, query = url.partition("?")
    parameters = parse_qs(query, keep_blank_values=True)
    user = User("admin", ("system:masters",))
    request = Request(
        method, path, parameters, {k.replace("_", "-"): v for k, v in headers.items()}, body, user
    )
    answer = await cluster.server.handle(request)
    text = b"".join([chunk async for chunk in answer.stream]) if answer.stream else answer.body
    return answer, text.decode()


async def refused(cluster, url, **options):
    answer, text = await fetched(cluster, url, **options)
    return answer.status, errors.from_status(json.loads(text), answer.status).message


async def test_logs_come_from_the_kubelet_of_the_pods_node(cluster, backend, lines):
    answer, text = await fetched(cluster, f"{CORE}/pods/p/log?tailLines=5&follow=true&pretty=x&timestamps=")
    assert (answer.status, answer.content_type, text) == (200, "text/plain", "hello")
    assert lines.wanted == ["https://10.9.9.9:10999"]
    assert backend.asked[0][:2] == ("GET", "/containerLogs/default/p/c?follow=true&tailLines=5")


async def test_logs_are_passed_on_as_they_come_and_end_when_the_client_goes(cluster, backend):
    gone = asyncio.Event()

    async def trickle(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return response

    backend.answer = trickle
    user = User("admin", ("system:masters",))
    answer = await cluster.server.handle(
        Request("GET", f"{CORE}/pods/p/log", {"follow": ["true"]}, user=user)
    )
    assert await anext(answer.stream) == b"first\n"
    await answer.stream.aclose()
    await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.parametrize(
    ("pod", "url", "status", "message"),
    [
        pytest.param(None, "ghost/log", 404, 'pods "ghost" not found', id="no Pod"),
        pytest.param(
            {}, "q/log?container=x", 400, "container x is not valid for pod q", id="no such container"
        ),
        pytest.param(
            {
                "containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "x:1"}],
                "initContainers": [{"name": "i", "image": "x:1"}],
            },
            "q/log",
            400,
            "a container name must be specified for pod q, choose one of: [a b] or one of the init containers: [i]",
            id="several containers",
        ),
        pytest.param({}, "q/log?tailLines=-1", 422, None, id="fewer lines than none"),
        pytest.param({}, "q/log?limitBytes=0", 422, None, id="no bytes"),
        pytest.param(
            {}, "q/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", 422, None, id="two beginnings"
        ),
        pytest.param({}, "q/log?tailLines=many", 400, None, id="lines that are no number"),
        pytest.param({"node": "ghost"}, "q/log", 404, 'nodes "ghost" not found', id="no node"),
        pytest.param(
            {"node": None}, "q/exec", 400, "pod q does not have a host assigned", id="not on a node"
        ),
        pytest.param({}, "q/exec", 400, "Upgrade request required", id="exec without an upgrade"),
        pytest.param({"ip": "127.0.0.1"}, "q/proxy/", 400, "address not allowed", id="a Pod on loopback"),
        pytest.param({"ip": ""}, "q/proxy/", 400, "address not allowed", id="a Pod without an address"),
    ],
)
async def test_what_cannot_be_forwarded_is_refused_as_in_kubernetes(cluster, pod, url, status, message):
    if pod is not None:
        await add_pod(cluster.client(), "q", **pod)
    answered, text = await refused(cluster, f"{CORE}/pods/{url}")
    assert answered == status
    if message is not None:
        assert text == message


async def test_a_pod_that_is_on_no_node_has_no_log_yet(cluster):
    await add_pod(cluster.client(), "q", node="")
    answer, text = await fetched(cluster, f"{CORE}/pods/q/log")
    assert (answer.status, text) == (200, "")


async def test_a_node_without_addresses_cannot_be_reached(cluster):
    await cluster.client().patch("/api/v1/nodes/n/status", {"status": {"addresses": None}})
    status, message = await refused(cluster, f"{CORE}/pods/p/log")
    assert (status, message) == (500, "no preferred addresses found; known addresses: []")
    assert (await refused(cluster, f"{CORE}/pods/p/exec", upgrade="websocket"))[0] == 500


async def test_a_kubelet_that_is_not_there_is_an_error_of_the_server(cluster, backend):
    backend.url = "http://127.0.0.1:1"
    status, message = await refused(cluster, f"{CORE}/pods/p/log")
    assert status == 500
    assert "127.0.0.1:1" in message


@pytest.mark.parametrize(
    ("answered", "status", "message"),
    [
        (lambda: web.Response(status=404), 404, 'pods "p" not found'),
        (lambda: web.Response(status=400, text="container is waiting"), 400, "container is waiting"),
        (lambda: web.Response(status=503), 503, "the node answered with the status 503"),
        (lambda: web.Response(status=401, text="who?"), 500, "who?"),
    ],
)
async def test_a_kubelets_refusal_reaches_the_client(cluster, backend, answered, status, message):
    backend.answer = lambda _request: answered()
    assert await refused(cluster, f"{CORE}/pods/p/log") == (status, message)


async def test_a_proxied_request_reaches_the_pod_whole_but_without_credentials(cluster, backend, lines):
    backend.answer = lambda _request: web.Response(
        status=201, text="made", content_type="text/html", headers={"X-Mine": "1", "Set-Cookie": "a=b"}
    )
    url = f"{CORE}/pods/p/proxy/a b/c?x=1&x=2&y="
    headers = {"authorization": "Bearer secret", "x_their": "2", "host": "api"}
    headers |= {"impersonate_user": "root", "impersonate_group": "system:masters"}
    answer, text = await fetched(cluster, url, "POST", b"body", **headers)
    assert (answer.status, text) == (201, "made")
    assert answer.content_type.startswith("text/html")
    assert ("X-Mine", "1") in answer.headers
    assert lines.wanted == ["http://10.1.1.1:8080"]
    method, path, sent, body = backend.asked[0]
    assert (method, path, body) == ("POST", "/a%20b/c?x=1&x=2&y=", b"body")
    assert sent["x-their"] == "2"
    assert not {"authorization", "impersonate-user"} & {name.lower() for name in sent}
    assert "api" not in sent["Host"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("p:9090", "http://10.1.1.1:9090"),
        ("https:p:9443", "https://10.1.1.1:9443"),
        ("http:p:", "http://10.1.1.1:8080"),
    ],
)
async def test_a_proxy_path_may_name_scheme_and_port(cluster, lines, name, wanted):
    await fetched(cluster, f"{CORE}/pods/{name}/proxy/")
    assert lines.wanted == [wanted]


@pytest.mark.parametrize(
    ("asked", "reached"),
    [
        pytest.param("", "/", id="nothing is the root"),
        pytest.param("/", "/", id="a slash is the root"),
        pytest.param("/jobs", "/jobs", id="a page"),
        pytest.param("/jobs/", "/jobs/", id="a slash at the end is kept, since that is another page"),
    ],
)
async def test_a_proxied_path_arrives_as_it_was_asked_for(cluster, backend, asked, reached):
    await fetched(cluster, f"{CORE}/pods/p/proxy{asked}")
    assert [path for _, path, *_ in backend.asked] == [reached]


@pytest.mark.parametrize("name", ["ftp:p:21", "a:b:c:d", "p:http", ":p"])
async def test_a_proxy_path_that_makes_no_sense_is_refused(cluster, name):
    assert (await refused(cluster, f"{CORE}/pods/{name}/proxy/"))[0] == 400


async def test_a_pod_that_does_not_answer_is_unavailable(cluster, backend):
    backend.url = "http://127.0.0.1:1"
    status, message = await refused(cluster, f"{CORE}/pods/p/proxy/")
    assert status == 503
    assert message.startswith("error trying to reach service: ")


async def test_a_service_is_proxied_to_one_of_its_ready_endpoints(cluster, lines):
    client = cluster.client()
    ports = [{"name": "web", "port": 80}, {"name": "admin", "port": 81}]
    await client.create(f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    assert await refused(cluster, f"{CORE}/services/s:web/proxy/") == (
        503,
        'no endpoints available for service "s"',
    )
    points = [
        {"addresses": ["10.1.1.8"], "conditions": {"ready": False}},
        {"addresses": ["10.1.1.9"], "conditions": {"ready": True}},
    ]
    labels = {"kubernetes.io/service-name": "s"}
    body = {
        "metadata": {"name": "s-1", "labels": labels},
        "addressType": "IPv4",
        "endpoints": points,
        "ports": [{"name": "web", "port": 8000}],
    }
    await client.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", body)
    for name in ("s:web", "s:80"):
        await fetched(cluster, f"{CORE}/services/{name}/proxy/x")
    assert lines.wanted == ["http://10.1.1.9:8000"] * 2
    status, message = await refused(cluster, f"{CORE}/services/s/proxy/")
    assert (status, message) == (503, 'no service port "" found for service "s"')


async def test_a_node_is_proxied_to_its_kubelet(cluster, backend, lines):
    answer, text = await fetched(cluster, "/api/v1/nodes/n/proxy/stats/summary")
    assert (answer.status, text) == (200, "hello")
    assert lines.wanted == ["https://10.9.9.9:10999"]
    assert backend.asked[0][1] == "/stats/summary"


def test_the_first_known_kind_of_address_is_taken():
    lines = DirectLines()
    node = {"status": {"addresses": [{"type": "Other", "address": "x"}]}}
    with pytest.raises(Unreachable, match=r"known addresses: \[\{Other x\}\]"):
        lines.to_node(node)
