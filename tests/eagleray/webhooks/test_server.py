"""The webhooks over real HTTPS: what they answer, and what they do not put up with."""

import asyncio
import gzip
import json
import ssl

import pytest

from eagleray.runtime.metrics import Registry
from eagleray.webhooks import server as serving
from eagleray.webhooks.certificates import Serving
from eagleray.webhooks.keeper import Keeper
from eagleray.webhooks.server import Patience, WebhookMetrics, WebhookServer
from kubewire.certificates import Identity, Issuer
from kubewire.sources import SystemClock, SystemEntropy
from tests.eagleray.webhooks.https import ANY_PORT, Asker, trusting
from tests.eagleray.webhooks.test_reviews import review
from tests.eagleray.world import raycluster

CLUSTERS = "/validate-ray-io-v1-raycluster"


class Given:
    """A source of certificates that a test fills."""

    def __init__(self):
        self.issuer = Issuer(SystemClock(), SystemEntropy())
        self.authority = self.issuer.authority("a")
        self.serving = None
        self.renew()

    def renew(self):
        names = ["webhook-service.default.svc", "127.0.0.1"]
        pair = self.issuer.serving(self.authority, Identity("b"), names)
        self.serving = Serving(pair.certificate_pem, pair.key_pem)

    async def current(self):
        return self.serving


@pytest.fixture
def given():
    return Given()


@pytest.fixture
def keeper(given):
    return Keeper(given, None, SystemClock())


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
async def server(keeper, registry):
    made = WebhookServer(
        keeper.context, WebhookMetrics(registry), SystemClock(), Patience(body=0.5, turn=0.1, end=0.1)
    )
    yield made
    await made.stop()


@pytest.fixture
async def asker(given, keeper, server):
    port = await server.start(ANY_PORT)
    await keeper.refresh()
    return Asker(port, trusting(given.authority.certificate_pem))


async def test_a_good_object_is_allowed_and_a_bad_one_refused(asker):
    for name, allowed in (("c", True), ("c" * 54, False)):
        status, body = await asker.post(CLUSTERS, review(raycluster(name)))
        assert status == 200
        assert json.loads(body)["response"]["allowed"] is allowed


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        pytest.param("/validate-ray-io-v1-raycronjob", b"{}", {}, 404, id="a path that is none"),
        pytest.param(CLUSTERS, b"{}", {}, 400, id="no review"),
        pytest.param(CLUSTERS, b"{}", {"Content-Type": "application/yaml"}, 415, id="another format"),
        pytest.param(
            CLUSTERS, gzip.compress(bytes(1000)), {"Content-Encoding": "gzip"}, 415, id="a compressed body"
        ),
    ],
)
async def test_what_cannot_be_answered_is_refused(asker, path, body, headers, status):
    assert (await asker.post(path, body, **headers))[0] == status


async def test_only_post_is_answered(asker):
    assert (await asker.get(CLUSTERS))[0] == 405


async def said(asker, text):
    """Say something on a connection; returns the first line of the answer."""
    reader, writer = await asker.connect()
    try:
        writer.write(text)
        await writer.drain()
        async with asyncio.timeout(5):
            return (await reader.readline()).decode()
    finally:
        writer.close()


async def until(holds):
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen in time")


def head(*lines):
    start = (f"POST {CLUSTERS} HTTP/1.1", "Host: x", "Content-Type: application/json")
    return ("\r\n".join((*start, *lines)) + "\r\n\r\n").encode()


async def test_a_body_that_says_it_is_too_long_is_refused_unread(asker):
    line = await said(asker, head(f"Content-Length: {serving.LONGEST_BODY + 1}"))
    assert " 413 " in line


async def test_a_body_that_goes_on_for_too_long_is_refused(asker, monkeypatch):
    monkeypatch.setattr(serving, "LONGEST_BODY", 1000)
    chunk = b"400\r\n" + b" " * 0x400 + b"\r\n"
    assert " 413 " in await said(asker, head("Transfer-Encoding: chunked") + chunk)


async def test_a_body_that_does_not_come_is_given_up(asker):
    assert " 408 " in await said(asker, head("Content-Length: 10") + b"{")


async def test_more_questions_than_can_be_held_are_sent_away(asker, server):
    waiting = [await asker.connect() for _ in range(serving.AT_ONCE)]
    for _, writer in waiting:
        writer.write(head("Content-Length: 10") + b"{")
    await until(server._turns.locked)
    assert (await asker.post(CLUSTERS, review(raycluster())))[0] == 503
    for _, writer in waiting:
        writer.close()
    await until(lambda: not server._turns.locked())
    assert (await asker.post(CLUSTERS, review(raycluster())))[0] == 200


async def test_connections_on_which_nothing_is_said_make_room_for_others(asker, monkeypatch):
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 3)
    silent = [await asker.connect() for _ in range(3)]
    assert (await asker.post(CLUSTERS, review(raycluster())))[0] == 200
    async with asyncio.timeout(5):
        assert await silent[0][0].read() == b""
    for _, writer in silent:
        writer.close()


async def test_questions_are_counted_and_timed(asker, registry):
    await asker.post(CLUSTERS, review(raycluster()))
    await asker.post(CLUSTERS, b"x")
    page = registry.render()
    assert f'controller_runtime_webhook_requests_total{{webhook="{CLUSTERS}",code="200"}} 1' in page
    assert f'controller_runtime_webhook_requests_total{{webhook="{CLUSTERS}",code="400"}} 1' in page
    assert f'controller_runtime_webhook_latency_seconds_count{{webhook="{CLUSTERS}"}} 2' in page


# --- the certificate


async def test_a_renewed_certificate_is_shown_to_the_next_connection(asker, given, keeper):
    first = await asker.certificate()
    given.renew()
    assert await asker.certificate() == first
    assert await keeper.refresh()
    assert await asker.certificate() != first


async def test_a_client_that_does_not_say_whom_it_wants_is_shown_the_certificate_too(asker, given):
    context, _ = trusting(given.authority.certificate_pem)
    assert await Asker(asker._port, (context, "127.0.0.1")).certificate()


async def test_a_renewal_that_is_half_done_leaves_the_old_certificate(asker, given, keeper, caplog):
    first = await asker.certificate()
    good = given.serving
    given.renew()
    half = Serving(given.serving.certificate, good.key)
    given.serving = half
    assert not await keeper.refresh()
    assert not await keeper.refresh()
    assert keeper.check() is None
    assert await asker.certificate() == first
    (record,) = caplog.records
    assert "cannot be used together" in record.getMessage()


async def test_without_a_certificate_nobody_is_served_and_the_reason_is_told(given, registry):
    given.serving = Serving(b"", b"")
    keeper = Keeper(given, None, SystemClock())
    assert keeper.check() == "no certificate: not looked for yet"
    server = WebhookServer(keeper.context, WebhookMetrics(registry), SystemClock())
    port = await server.start(ANY_PORT)
    try:
        assert not await keeper.refresh()
        assert "cannot be used together" in str(keeper.check())
        with pytest.raises((ConnectionResetError, ssl.SSLError)):
            await Asker(port, trusting(given.authority.certificate_pem)).certificate()
    finally:
        await server.stop()
