"""The server on the wire: TLS, keep-alive, streams, and bounds on what a client may cost."""

import asyncio
import gzip
import json
import ssl
from io import BytesIO

import aiohttp
import pytest
import yaml

from kubereef.cluster import Cluster
from kubereef.server.certificates import Identity, write_private
from kubereef.server.credentials import Credentials
from kubereef.server.http import HttpsServer, Limits
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SystemClock, SystemEntropy

MAPS = "/api/v1/namespaces/default/configmaps"
LIMIT = 3 * 1024 * 1024
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def eventually(condition):
    """Return once the server has come to be so."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what happens in a server on the wire tells nobody
            await asyncio.sleep(0.01)


class Wire:
    """A served cluster and ways to speak to it."""

    def __init__(self, cluster, credentials, https):
        self.cluster = cluster
        self.credentials = credentials
        self.https = https
        self.host, self.port = https.address
        self.token = yaml.safe_load(credentials.write_kubeconfig("x").read_text())["users"][0]["user"][
            "token"
        ]

    def tls(self, *pair):
        context = ssl.create_default_context(cafile=str(self.credentials.directory / "ca.crt"))
        if pair:
            context.load_cert_chain(*pair)
        return context

    def session(self, *pair, token=None, **options):
        token = self.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=self.tls(*pair), **options)
        return aiohttp.ClientSession(
            f"https://127.0.0.1:{self.port}", connector=connector, headers=headers, auto_decompress=False
        )

    async def open(self, context=None):
        return await asyncio.open_connection(self.host, self.port, ssl=context or self.tls())

    async def raw(self, data):
        """Send bytes as they are and return all that comes back until the server closes."""
        reader, writer = await self.open()
        try:
            writer.write(data)
            async with asyncio.timeout(5):
                return await reader.read()
        finally:
            writer.transport.abort()


@pytest.fixture
async def serve(tmp_path):
    opened = []

    async def start(limits=None, clock=None, directory="data"):
        clock, entropy = clock or SystemClock(), SystemEntropy()
        credentials = Credentials(tmp_path / directory, (), clock, entropy)
        cluster = Cluster(
            Store(), clock=clock, entropy=entropy, tokens=credentials.tokens, signer=credentials.signer
        )
        https = HttpsServer(cluster.server, credentials.server_tls, clock, limits)
        await https.start("127.0.0.1", 0)
        await cluster.start()
        opened.append((cluster, https))
        return Wire(cluster, credentials, https)

    yield start
    for cluster, https in opened:
        await https.stop(cluster.drain, grace=1)
        await cluster.stop()


@pytest.fixture
async def wire(serve):
    return await serve()


async def test_requests_of_one_client_share_a_connection(wire):
    async with wire.session(limit=1) as session:
        for number in range(3):
            body = {"metadata": {"name": f"c{number}"}}
            async with session.post(MAPS, json=body) as answer:
                assert answer.status == 201
        async with session.get(MAPS) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            assert len((await answer.json())["items"]) == 3
        assert len(wire.https._web.connections) == 1


async def test_nobody_is_believed_without_the_authority(wire):
    with pytest.raises(ssl.SSLCertVerificationError):
        await wire.open(ssl.create_default_context())


async def test_old_tls_is_refused(wire):
    context = wire.tls()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await wire.open(context)


async def test_plain_http_on_the_port_gets_no_answer_that_matters(wire):
    reader, writer = await asyncio.open_connection(wire.host, wire.port)
    writer.write(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(5):
        try:
            data = await reader.read()
        except ConnectionResetError:
            data = b""
    assert b"paths" not in data
    writer.close()


async def who(session):
    async with session.post(WHO, json={}) as answer:
        return (await answer.json())["status"]["userInfo"]


async def test_a_client_certificate_stands_for_its_name_and_organisations(wire, tmp_path):
    certificates = wire.credentials.certificates
    made = certificates.client(certificates.pair("ca"), Identity("alice", ("devs", "ops")))
    files = tmp_path / "alice.crt", tmp_path / "alice.key"
    write_private(files[0], made.certificate_pem)
    write_private(files[1], made.key_pem)
    async with wire.session(*files, token="") as session:
        info = await who(session)
        (credential,) = info.pop("extra")["authentication.kubernetes.io/credential-id"]
        assert credential.startswith("X509SHA256=")
        assert info == {"username": "alice", "groups": ["devs", "ops", "system:authenticated"]}
        async with session.get(MAPS) as answer:
            assert answer.status == 403


async def test_a_certificate_counts_before_a_token(wire):
    certificates = wire.credentials.certificates
    pair = certificates.directory / "kubelet-client.crt", certificates.directory / "kubelet-client.key"
    async with wire.session(*pair) as session:
        assert (await who(session))["username"] == "kube-apiserver-kubelet-client"


async def test_a_certificate_of_another_authority_opens_nothing(wire, tmp_path):
    other = Credentials(tmp_path / "other", (), SystemClock(), SystemEntropy()).certificates
    pair = other.directory / "admin.crt", other.directory / "admin.key"
    async with wire.session(*pair, token="") as session:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await who(session)


async def test_the_serving_certificate_does_not_open_the_server_as_a_client(wire):
    async with wire.session(*wire.credentials.certificates.server_paths, token="") as session:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await who(session)


async def test_a_certificate_that_expires_during_a_connection_is_refused_from_then_on(serve):
    start = SystemClock().now()
    clock = ManualClock(start)
    wire = await serve(clock=clock)
    certificates = wire.credentials.certificates
    pair = certificates.directory / "admin.crt", certificates.directory / "admin.key"
    async with wire.session(*pair, token="") as session:
        assert (await who(session))["username"] == "kubernetes-admin"
        clock.advance(366 * 24 * 3600)
        async with session.post(WHO, json={}) as answer:
            assert answer.status == 401


async def test_renewed_certificates_serve_new_connections(serve):
    clock = ManualClock(SystemClock().now())
    wire = await serve(clock=clock)

    async def shown():
        _, writer = await wire.open()
        certificate = writer.get_extra_info("ssl_object").getpeercert()
        writer.transport.abort()
        return certificate["serialNumber"]

    before = await shown()
    assert not wire.credentials.refresh()
    assert await shown() == before
    # Far enough for the serving certificate to be due, and yet good today by the machine's own clock.
    wire.credentials.certificates._issuer.is_due = lambda _certificate: True
    assert wire.credentials.refresh()
    assert await shown() != before


async def test_a_watch_brings_each_event_as_it_happens_and_ends_with_the_server(wire):
    async with wire.session() as session, session.get(f"{MAPS}?watch=true") as answer:
        assert answer.status == 200
        client = wire.cluster.client()
        for number in range(3):
            await client.create(MAPS, {"metadata": {"name": f"c{number}"}})
            async with asyncio.timeout(5):
                event = json.loads(await answer.content.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", f"c{number}")
        stopping = asyncio.create_task(wire.https.stop(wire.cluster.drain))
        async with asyncio.timeout(5):
            assert await answer.content.read() == b""  # a proper end and not a broken connection
            await stopping
    with pytest.raises(OSError, match=r"refused|failed"):
        await wire.open()


async def test_a_watch_is_forgotten_when_its_client_goes(wire):
    before = wire.cluster.store.watcher_count
    async with wire.session() as session:
        answer = await session.get(f"{MAPS}?watch=true")
        assert wire.cluster.store.watcher_count == before + 1
        answer.close()
        await eventually(lambda: wire.cluster.store.watcher_count == before)


async def test_large_answers_are_compressed_for_those_who_accept_it(wire):
    client = wire.cluster.client()
    for number in range(4):
        await client.create(MAPS, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 100_000}})
    async with wire.session() as session:
        async with session.get(MAPS, headers={"Accept-Encoding": "deflate, gzip"}) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            packed = await answer.read()
        async with session.get(MAPS, headers={"Accept-Encoding": "gzip;q=0"}) as answer:
            assert "Content-Encoding" not in answer.headers
            plain = await answer.read()
        async with session.get(f"{MAPS}/c1", headers={"Accept-Encoding": "gzip"}) as answer:
            assert "Content-Encoding" not in answer.headers
    assert gzip.decompress(packed) == plain
    assert len(json.loads(plain)["items"]) == 4
    assert len(packed) < len(plain) / 10


async def test_a_head_request_gets_the_headers_alone(wire):
    async with wire.session() as session, session.head("/version") as answer:
        assert answer.status == 200
        assert int(answer.headers["Content-Length"]) > 100
        assert await answer.read() == b""


async def test_a_head_request_for_a_large_answer_gets_no_body_either(wire):
    async with wire.session(limit=1) as session:
        async with session.head("/openapi/v3/api/v1", headers={"Accept-Encoding": "identity"}) as answer:
            assert int(answer.headers["Content-Length"]) > 200_000
        async with session.get("/livez") as answer:
            assert await answer.text() == "ok"


async def test_warnings_come_as_headers(wire):
    async with wire.session() as session:
        body = {"metadata": {"name": "c"}, "nonsense": 1}
        async with session.post(MAPS, json=body) as answer:
            assert answer.status == 201
            assert answer.headers.getall("Warning", []) == ['299 - "unknown field \\"nonsense\\""']


# What kubectl sends for `kubectl auth can-i delete nodes`.
CAN_I = bytes.fromhex(
    "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a656374416363657373526576"
    "69657712400a100a0012001a0022002a003200380042001222 0a200a0764656661756c74120664656c6574651a0022002a056e6f64"
    "657332003a001a08080012001a0020001a002200"
)
# Options of a deletion that keep everything as it is.
DRY_RUN = bytes.fromhex("6b387300 0a13 0a027631 120d44656c6574654f7074696f6e73 1205 2a03416c6c")


async def test_go_clients_may_send_protocol_buffers(wire):
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    await wire.cluster.client().create(MAPS, {"metadata": {"name": "c"}})
    async with wire.session() as session:
        url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        async with session.post(url, data=CAN_I, headers=headers) as answer:
            review = await answer.json()
        async with session.delete(f"{MAPS}/c", data=DRY_RUN, headers=headers) as answer:
            assert answer.status == 200
    assert review["spec"]["resourceAttributes"] == {
        "namespace": "default",
        "verb": "delete",
        "resource": "nodes",
    }
    assert review["status"]["allowed"] is True
    assert (await wire.cluster.client().get(f"{MAPS}/c"))["metadata"]["name"] == "c"


def head(method="POST", path=MAPS, **headers):
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def test_a_body_that_says_it_is_too_large_is_refused_unread(serve):
    wire = await serve(Limits(linger=0.1))
    data = await wire.raw(head(Content_Length=4_000_000, Authorization=f"Bearer {wire.token}"))
    assert data.startswith(b"HTTP/1.1 413 ")
    assert b"Request entity too large: limit is 3145728" in data


async def test_a_body_that_turns_out_too_large_is_refused_before_its_end(serve):
    wire = await serve(Limits(linger=0.1))

    async def chunks():
        while True:
            yield b" " * 100_000

    async with wire.session() as session, session.post(MAPS, data=chunks()) as answer:
        assert answer.status == 413
        assert (await answer.json())["reason"] == "RequestEntityTooLarge"


async def test_a_body_at_the_limit_is_read(wire):
    async with wire.session() as session:
        for size, status in ((LIMIT, 400), (LIMIT + 1, 413)):
            headers = {"Content-Type": "application/json"}
            async with session.post(MAPS, data=BytesIO(b" " * size), headers=headers) as answer:
                assert answer.status == status


async def test_a_body_for_a_pod_may_be_larger(serve):
    wire = await serve(Limits(linger=0.1))
    path = "/api/v1/namespaces/default/services/nobody:dashboard/proxy/api/packages/gcs/a.zip"
    data = BytesIO(b" " * (LIMIT + 1))
    async with wire.session() as session, session.put(path, data=data) as answer:
        assert answer.status == 404
    told = await wire.raw(head("PUT", path, Content_Length=200_000_000, Authorization=f"Bearer {wire.token}"))
    assert told.startswith(b"HTTP/1.1 413 ")
    assert b"limit is 134217728" in told


async def test_a_large_body_of_a_stranger_is_not_read(serve):
    wire = await serve(Limits(linger=0.1))
    path = "/api/v1/namespaces/default/services/nobody/proxy/"
    data = await wire.raw(head("PUT", path, Content_Length=4_000_000))
    assert data.startswith(b"HTTP/1.1 403 ")


async def test_a_client_that_waits_to_be_told_to_go_on_is_told(wire):
    reader, writer = await wire.open()
    body = b'{"metadata":{"name":"c"}}'
    writer.write(head(Content_Length=len(body), Authorization=f"Bearer {wire.token}", Expect="100-continue"))
    async with asyncio.timeout(5):
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        await reader.readline()
        writer.write(body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 201 ")
    writer.transport.abort()


async def test_a_body_that_does_not_come_is_given_up(serve):
    wire = await serve(Limits(body=0.2, linger=0.1))
    data = await wire.raw(head(Content_Length=100) + b"{")
    assert data.startswith(b"HTTP/1.1 408 ")


async def test_a_connection_on_which_nothing_is_asked_is_closed(serve):
    wire = await serve(Limits(idle=0.2))
    assert await wire.raw(b"GET /li") == b""


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(b"", id="the first"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", id="one that follows another"),
    ],
)
async def test_a_head_that_comes_byte_by_byte_is_given_up_after_as_long_as_silence(serve, before):
    wire = await serve(Limits(idle=0.3))
    reader, writer = await wire.open()
    writer.write(before + b"GET /livez HTTP/1.1\r\nX: ")
    ended = asyncio.create_task(reader.read())
    async with asyncio.timeout(10):
        while not ended.done():
            writer.write(b"a")
            await asyncio.wait([ended], timeout=0.05)
    writer.transport.abort()
    assert ended.result().count(b"HTTP/1.1") == before.count(b"GET"), (
        "what was asked in full is answered, and no more"
    )


async def test_a_client_that_does_not_read_is_dropped(serve):
    wire = await serve(Limits(write=0.3))
    client = wire.cluster.client()
    for number in range(30):
        await client.create(MAPS, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 900_000}})
    _, writer = await wire.open()
    writer.transport.pause_reading()
    writer.write(head("GET", Authorization=f"Bearer {wire.token}"))
    await eventually(lambda: wire.https._web.connections)
    await eventually(lambda: not wire.https._web.connections)
    writer.transport.abort()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no request line"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="a version that does not exist"),
        pytest.param(b"GET /api HTTP/1.1\r\nHost x\r\n\r\n", id="a header without a colon"),
        pytest.param(b"GET /api HTTP/1.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", id="a huge header"),
        pytest.param(b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n", id="a huge path"),
        pytest.param(
            b"GET /api HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(5000)) + b"\r\n",
            id="thousands of headers",
        ),
        pytest.param(
            b"POST /api HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="two lengths",
        ),
        pytest.param(b"POST /api HTTP/1.1\r\nContent-Length: -5\r\n\r\n", id="a negative length"),
        pytest.param(b"\x00\xff\xfe\r\n\r\n", id="bytes"),
        pytest.param(head("GET", "/%zz"), id="a bad escape"),
        pytest.param(head("GET", "/%ff%fe"), id="a path that is not UTF-8"),
        pytest.param(
            head("GET", "/api?" + "&".join(f"a{n}=1" for n in range(2000))), id="thousands of parameters"
        ),
    ],
)
async def test_bad_http_is_answered_with_400_at_once(wire, data):
    answer = await wire.raw(data)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(b"[" * 500_000, {}, id="deep lists"),
        pytest.param(b'{"a":' * 200_000 + b"1" + b"}" * 200_000, {}, id="deep objects"),
        pytest.param(b'{"metadata":{"name":"\xff\xfe"}}', {}, id="bytes that are no text"),
        pytest.param(b'{"metadata":{"name":"\\ud800"}}', {}, id="half a character"),
        pytest.param(b'{"metadata":{"name":"a"},"data":{"a":NaN}}', {}, id="not a number"),
        pytest.param(
            b'{"metadata":{"name":"a"},"data":{"a":' + b"1" * 100_000 + b"}}", {}, id="a huge number"
        ),
        pytest.param(
            gzip.compress(b'{"metadata":{"name":"a"}}'), {"Content-Encoding": "gzip"}, id="compressed"
        ),
        pytest.param("{}".encode("utf-16"), {}, id="UTF-16"),
        pytest.param(
            b"a: &a [*a, *a]\nb: *a", {"Content-Type": "application/yaml"}, id="YAML that refers to itself"
        ),
        pytest.param(
            b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
            b"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
            b"f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]",
            {"Content-Type": "application/yaml"},
            id="YAML that grows without end",
        ),
        pytest.param(b"\x08\x96", {"Content-Type": "application/vnd.kubernetes.protobuf"}, id="protobuf"),
    ],
)
async def test_a_hostile_body_is_answered_with_a_4xx_status_in_bounded_time(wire, body, headers):
    headers = {"Content-Type": "application/json", **headers}
    async with (
        asyncio.timeout(5),
        wire.session() as session,
        session.post(MAPS, data=BytesIO(body), headers=headers) as answer,
    ):
        status = await answer.json()
    assert 400 <= answer.status < 500, status
    assert status["kind"] == "Status"
    assert status["code"] == answer.status


async def test_a_client_that_goes_before_its_answer_is_nothing_for_the_log(wire, caplog):
    request = head("GET", f"{MAPS}?watch=true", Authorization=f"Bearer {wire.token}")
    for _ in range(10):
        _, writer = await wire.open()
        writer.write(request)
        writer.write_eof() if writer.can_write_eof() else writer.close()
    await eventually(lambda: not wire.https._web.connections)
    assert caplog.text == ""


async def test_no_secret_reaches_the_log(wire, caplog):
    caplog.set_level("DEBUG")
    async with wire.session() as session:
        secret = {"metadata": {"name": "s"}, "data": {"k": "c2VjcmV0LXZhbHVl"}}
        await session.post("/api/v1/namespaces/default/secrets", json=secret)
        await session.post("/api/v1/namespaces/default/secrets", data=b'{"data": "c2VjcmV0LXZhbHVl"')
        await session.get("/api/v1/nothing?token=query-secret")
    await wire.raw(b"GET /api HTTP/1.1\r\nAuthorization: Bearer header-secret\x00\r\n\r\n")
    for leaked in ("c2VjcmV0LXZhbHVl", "query-secret", "header-secret", wire.token):
        assert leaked not in caplog.text
