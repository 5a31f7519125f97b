"""The client over HTTPS: against a served cluster, and against servers that behave badly."""

import asyncio
import base64
import json
from asyncio import sslproto
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest
import yaml

from eagleray.kube import requests
from eagleray.kube.access import Access, ConfigError, CredentialsError, Fixed, Identity, Pair, UserCredentials
from eagleray.kube.client import Client
from eagleray.kube.http import HttpTransport, spare_tls_buffers, tls_context
from eagleray.kube.informers import Informers
from eagleray.kube.kubeconfig import find_access
from eagleray.kube.requests import Request, Selection
from eagleray.kube.resources import CONFIG_MAPS, PODS, Ref, Resource
from eagleray.kube.retries import Patience
from eagleray.kube.transport import AnswerLost, NotSent
from eagleray.kube.views import whole
from kubereef.serving import Settings, serving
from kubewire import errors
from kubewire.sources import SystemClock, SystemEntropy

REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
QUICK = Patience(attempt=2, total=2, tries=2, first_pause=0.01)


def client_of(access, patience=QUICK):
    return Client(HttpTransport(access), SystemClock(), SystemEntropy(), patience=patience)


@pytest.fixture
async def served(tmp_path):
    async with serving(Settings(tmp_path, in_memory=True)) as served:
        yield served


@pytest.fixture
async def connect(served, tmp_path):
    """Return clients by the served kubeconfig with changes to its cluster and user."""
    clients: list[Client] = []

    def connected(user=None, cluster=None):
        config = yaml.safe_load(served.kubeconfig.read_text())
        config["clusters"][0]["cluster"].update(cluster or {})
        settings = config["users"][0]["user"]
        settings.update(user or {})
        for entry in (config["clusters"][0]["cluster"], settings):
            for field in [field for field, value in entry.items() if value is None]:
                del entry[field]
        path = tmp_path / f"config-{len(clients)}"
        path.write_text(yaml.safe_dump(config))
        clients.append(client_of(find_access({}, SystemClock(), kubeconfig=str(path))))
        return clients[-1]

    yield connected
    for client in clients:
        await client.close()


CERTIFICATE_ONLY = {"token": None}
TOKEN_ONLY = {"client-certificate-data": None, "client-key-data": None}
STRANGER = {**TOKEN_ONLY, "token": "nobody-knows-it"}


async def who(client):
    return (await client.create(REVIEWS, {}))["status"]["userInfo"]["username"]


@pytest.mark.parametrize(
    ("user", "cluster", "name"),
    [
        pytest.param(CERTIFICATE_ONLY, {}, "kubernetes-admin", id="a certificate"),
        pytest.param(TOKEN_ONLY, {}, "kubernetes-admin", id="a token"),
        pytest.param(
            {"as": "jane", "as-groups": ["system:masters", "x"]}, {}, "jane", id="somebody to act as"
        ),
        pytest.param(
            TOKEN_ONLY,
            {"insecure-skip-tls-verify": True, "certificate-authority-data": None},
            "kubernetes-admin",
            id="no questions about the server",
        ),
        pytest.param(
            TOKEN_ONLY, {"tls-server-name": "localhost"}, "kubernetes-admin", id="another server name"
        ),
    ],
)
async def test_a_kubeconfig_with(connect, user, cluster, name):
    assert await who(connect(user, cluster)) == name


async def test_nobody_is_believed_without_the_authority(connect):
    with pytest.raises(NotSent, match="certificate"):
        await who(connect(TOKEN_ONLY, {"certificate-authority-data": None}))


async def test_a_server_of_another_name_is_not_believed(connect):
    with pytest.raises(NotSent, match="certificate is not valid for 'elsewhere'"):
        await who(connect(TOKEN_ONLY, {"tls-server-name": "elsewhere"}))


async def test_a_stranger_is_refused(connect):
    with pytest.raises(errors.Unauthorized):
        await who(connect(STRANGER))


async def test_a_refused_token_is_replaced_by_a_newer_one(connect, served, tmp_path):
    known = yaml.safe_load(served.kubeconfig.read_text())["users"][0]["user"]["token"]
    file = tmp_path / "token"
    file.write_text("an-old-one")
    client = connect({**TOKEN_ONLY, "token": None, "tokenFile": str(file)})
    with pytest.raises(errors.Unauthorized):
        await who(client)
    file.write_text(known)
    assert await who(client) == "kubernetes-admin"


async def test_an_exec_plugin_gives_the_token(connect, served, tmp_path):
    known = yaml.safe_load(served.kubeconfig.read_text())["users"][0]["user"]["token"]
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": known}}
    (tmp_path / "answer").write_text(json.dumps(answer))
    plugin = {
        "apiVersion": version,
        "command": "cat",
        "args": [str(tmp_path / "answer")],
        "interactiveMode": "Never",
    }
    assert await who(connect({**TOKEN_ONLY, "token": None, "exec": plugin})) == "kubernetes-admin"


async def test_objects_and_names_travel_unharmed(connect):
    client = connect()
    data = {"text": "ümlaut \n 🦈", "empty": ""}
    made = await client.create(
        CONFIG_MAPS, {"metadata": {"name": "a.b", "namespace": "default"}, "data": data}
    )
    assert (await client.get(CONFIG_MAPS, "default", "a.b"))["data"] == data
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, Ref.of(made)._replace(version="1"), {"data": {}})
    await client.delete(CONFIG_MAPS, Ref.of(made), propagation="Background")
    found = await client.list(CONFIG_MAPS, Selection("default", fields="metadata.name=a.b"))
    assert found == []


async def test_with_small_buffers_long_answers_arrive_whole(connect, monkeypatch):
    monkeypatch.setattr(
        sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size
    )  # put back at the end
    usual = sslproto.SSLProtocol.max_size
    spare_tls_buffers()
    assert sslproto.SSLProtocol.max_size < usual
    client = connect()
    data = {"text": "0123456789" * 90_000}
    body = {"metadata": {"name": "long", "namespace": "default"}, "data": data}
    made = await client.create(CONFIG_MAPS, body)
    assert (await client.get(CONFIG_MAPS, "default", "long"))["data"] == data
    await client.delete(CONFIG_MAPS, Ref.of(made), propagation="Background")


async def test_an_informer_follows_over_the_wire(connect, served):
    client, clock, entropy = connect(), SystemClock(), SystemEntropy()
    informers = Informers(client, clock, entropy)
    maps = informers.add(CONFIG_MAPS, whole(CONFIG_MAPS), label_selector="test").cache
    await informers.start()
    news = asyncio.Event()
    maps.listen(lambda change: news.set())
    body = {"metadata": {"name": "a", "labels": {"test": "yes"}}}
    await served.cluster.client().create("/api/v1/namespaces/default/configmaps", body)
    async with asyncio.timeout(5):
        await news.wait()
    found = maps.get(("default", "a"))
    assert found is not None
    assert found["metadata"]["labels"] == {"test": "yes"}
    await informers.stop()


async def test_however_many_watches_there_are_requests_get_through(connect, monkeypatch):
    monkeypatch.setattr("eagleray.kube.http._CONNECTIONS", 2)
    client = connect()
    async with AsyncExitStack() as open_watches:
        for _ in range(5):
            watch = await open_watches.enter_async_context(
                aclosing(client.watch(CONFIG_MAPS, with_present=True))
            )
            await anext(watch)
        assert await who(client)


async def test_a_refused_watch_is_raised_by_its_reason(connect):
    client = connect()
    with pytest.raises(errors.NotFound):
        async with aclosing(client.watch(Resource("x.io", "v1", "nothings", "Nothing"))) as batches:
            await anext(batches)


# --- servers that behave badly


class Cut(bytes):
    """An answer after which the connection is dropped."""


@asynccontextmanager
async def bad_server(*answers):
    """Serve plain HTTP: each request gets the next answer; without one the connection is dropped."""
    left = list(answers)
    seen = []

    async def serve(reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                seen.append(head.decode())
                length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                await reader.readexactly(int(length[0].partition(b":")[2]) if length else 0)
                answer = left.pop(0) if left else None
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if isinstance(answer, Cut):
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
DELETE = requests.delete(PODS, Ref("default", "a"))


async def test_nobody_there_means_that_nothing_was_sent():
    async with bad_server() as (url, _):
        pass
    transport = HttpTransport(Access(url, UserCredentials()))
    with pytest.raises(NotSent):
        await transport.send(requests.get(PODS, "default", "a"))
    await transport.close()


async def test_a_connection_that_is_dropped_loses_the_answer_and_nothing_is_sent_twice_behind_our_back():
    async with bad_server(OK) as (url, seen):
        transport = HttpTransport(Access(url, UserCredentials()))
        await transport.send(DELETE)
        with pytest.raises(AnswerLost):
            await transport.send(DELETE)  # on the same connection, which the server then drops
        assert len(seen) == 2
        await transport.close()


async def test_an_answer_that_is_cut_short_is_lost():
    async with bad_server(Cut(OK.replace(b": 2", b": 999"))) as (url, _):
        transport = HttpTransport(Access(url, UserCredentials()))
        with pytest.raises(AnswerLost):
            await transport.send(DELETE)
        await transport.close()


async def test_a_watch_that_is_cut_is_told_as_lost():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    event = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n'
    async with bad_server(Cut(head + b"%x\r\n%s\r\n" % (len(event), event))) as (url, _):
        client = client_of(Access(url, UserCredentials()))
        async with aclosing(client.watch(PODS)) as batches:
            assert await anext(batches) == ()
            assert [event.type for event in await anext(batches)] == ["BOOKMARK"]
            with pytest.raises(AnswerLost):
                await anext(batches)
        await client.close()


async def test_redirects_are_not_followed_with_our_credentials():
    away = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with bad_server(away) as (url, seen):
        client = client_of(Access(url, UserCredentials(token=Fixed(b"t"))))
        with pytest.raises(errors.ApiError, match="302"):
            await client.delete_collection(PODS, Selection("default"))
        assert "authorization: Bearer t" in seen[0]
        await client.close()


async def test_a_proxy_is_asked_for_the_server():
    async with bad_server(OK) as (proxy, seen):
        transport = HttpTransport(Access("http://cluster.example", UserCredentials(), proxy=proxy))
        await transport.send(requests.get(PODS, "default", "a"))
        assert seen[0].startswith("GET http://cluster.example/api/v1/namespaces/default/pods/a HTTP/1.1")
        await transport.close()


async def test_a_proxy_carries_tls_through(connect, served):
    asked = []

    async def carry(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.decode().split("\r\n")[0])
        port = int(served.url.rpartition(":")[2])
        onward_reader, onward = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pour(reader, onward), pour(onward_reader, writer))

    async def pour(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    proxy = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with proxy:
        port = proxy.sockets[0].getsockname()[1]
        client = connect(CERTIFICATE_ONLY, {"proxy-url": f"http://127.0.0.1:{port}"})
        assert await who(client) == "kubernetes-admin"
        await client.close()
    assert asked == [f"CONNECT {served.url.removeprefix('https://')} HTTP/1.1"]


async def test_the_proxy_of_the_environment_is_used_unless_the_server_is_exempt(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert HttpTransport(Access("https://outside.example", UserCredentials()))._proxy == "http://proxy:3128"
    assert HttpTransport(Access("https://inside.example", UserCredentials()))._proxy == ""


async def test_credentials_that_cannot_be_had_mean_that_nothing_was_sent():
    class Broken:
        async def current(self):
            raise CredentialsError("no luck")

        def refused(self, identity):
            return False

    transport = HttpTransport(Access("https://there", Broken()))
    with pytest.raises(NotSent, match="no luck"):
        await transport.send(Request("GET", "/version"))


# --- certificates


def test_what_is_no_certificate_is_said():
    with pytest.raises(ConfigError, match="certificate-authority: this is no certificate"):
        tls_context(b"nonsense")
    with pytest.raises(ConfigError, match="client-certificate, client-key: they cannot be used"):
        tls_context(pair=Pair(b"nonsense", b"nonsense"))


async def test_a_client_of_an_authority_that_is_none_says_so():
    client = client_of(Access("https://there", UserCredentials(), Fixed(b"nonsense")))
    with pytest.raises(ConfigError, match="certificate-authority"):
        await client.get(PODS, "default", "a")
    await client.close()


async def test_renewed_certificates_are_used_and_half_renewed_ones_are_not(served):
    config = yaml.safe_load(served.kubeconfig.read_text())
    user = config["users"][0]["user"]
    good = Pair(*(base64.b64decode(user[field]) for field in ("client-certificate-data", "client-key-data")))
    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])

    class Renewing:
        identity = Identity(pair=None)

        async def current(self):
            return self.identity

        def refused(self, identity):
            return False

    credentials = Renewing()
    client = client_of(Access(served.url, credentials, Fixed(authority)))
    credentials.identity = Identity(pair=good)
    assert await who(client) == "kubernetes-admin"
    credentials.identity = Identity(pair=Pair(good.certificate, b"half written"))
    assert await who(client) == "kubernetes-admin"
    await client.close()


async def test_a_refusal_of_a_watch_is_read_only_so_far():
    head = b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n"
    endless = b"%x\r\n%s\r\n" % (2**16, b"x" * 2**16)
    async with bad_server(Cut(head + endless * 64)) as (url, _):
        transport = HttpTransport(Access(url, UserCredentials()))
        async with transport.stream(requests.get(PODS, "default", "a")) as (answer, _):
            assert answer.status == 500
            assert len(answer.body) <= 2**20
        await transport.close()


async def test_the_time_of_looking_addresses_up_is_told():
    async with bad_server(OK) as (url, _):
        port = url.rpartition(":")[2]
        transport = HttpTransport(Access(f"http://localhost:{port}", UserCredentials()))
        told = []
        transport.on_resolved = lambda host, seconds: told.append((host, seconds >= 0))
        await transport.send(requests.get(PODS, "default", "a"))
        assert told == [(f"localhost:{port}", True)]
        await transport.close()
