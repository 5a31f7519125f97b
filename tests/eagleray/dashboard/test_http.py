"""The direct way, over real connections on this machine."""

import asyncio
import gzip
import socket
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from eagleray.dashboard.address import Address
from eagleray.dashboard.client import Dashboard, Patience
from eagleray.dashboard.errors import Malformed, NotThere, Refused, Unauthorised, Unreachable
from eagleray.dashboard.http import HttpCarrier
from eagleray.dashboard.requests import Submission
from eagleray.dashboard.tokens import Token
from kubewire.sources import SystemClock
from tests.eagleray.dashboard.scripted import Ledger, ScriptedHead

QUICK = Patience(read=0.3, write=0.3, logs=0.3)


@asynccontextmanager
async def serving(handler):
    """Serve on a free port of this machine; gives the address."""
    server = web.Server(handler)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield Address("default", f"{host}:{port}", "")
    finally:
        await runner.cleanup()


@pytest.fixture
async def carrier():
    carrier = HttpCarrier()
    yield carrier
    await carrier.close()


def answering(head, seen):
    async def handler(request):
        seen.append(request)
        answer = head.handle(request.method, request.rel_url.raw_path, request.headers, await request.read())
        return web.Response(status=answer.status, body=answer.body)

    return handler


class OneToken:
    async def current(self, address):
        return Token("sesame")

    def refused(self, address, token):
        return False


async def test_a_job_is_run_over_http_with_the_token_in_its_header(carrier):
    ledger = Ledger()
    seen: list[web.BaseRequest] = []
    head = ScriptedHead(SystemClock(), ledger, session="s", token="sesame")
    async with serving(answering(head, seen)) as address:
        dashboard = Dashboard(address, carrier, OneToken())
        await dashboard.submit(Submission("python job.py", "a/b c"))
        assert (await dashboard.info("a/b c")).status == "RUNNING"
        with pytest.raises(NotThere):
            await dashboard.info("nothing")
        with pytest.raises(Unauthorised):
            await Dashboard(address, carrier).version()
    assert ledger.executions("a/b c") == 1
    assert seen[0].headers["x-ray-authorization"] == "Bearer sesame"
    assert seen[0].headers["user-agent"].startswith("eagleray-")
    assert seen[0].headers["content-type"] == "application/json"


async def test_reading_keeps_its_connection_and_writing_takes_a_new_one(carrier):
    head, ports = ScriptedHead(SystemClock(), Ledger(), session="s"), []

    async def handler(request):
        ports.append((request.method, request.transport.get_extra_info("peername")[1]))
        return await answering(head, [])(request)

    async with serving(handler) as address:
        dashboard = Dashboard(address, carrier)
        await dashboard.version()
        await dashboard.version()
        await dashboard.submit(Submission("x", "a"))
        await dashboard.submit(Submission("x", "b"))
    reading = {port for method, port in ports if method == "GET"}
    writing = {port for method, port in ports if method == "POST"}
    assert len(reading) == 1
    assert len(writing) == 2
    assert not reading & writing


async def test_a_refused_connection_means_that_nothing_was_done(carrier):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = Address("default", f"127.0.0.1:{taken.getsockname()[1]}", "")
        with pytest.raises(Unreachable) as caught:
            await Dashboard(address, carrier).submit(Submission("x", "a"))
    assert caught.value.certainly_not_done
    assert not caught.value.timed_out


async def test_a_name_that_nobody_knows_means_that_nothing_was_done(carrier):
    address = Address("default", "nobody.invalid:8265", "")
    with pytest.raises(Unreachable) as caught:
        await Dashboard(address, carrier, patience=Patience(write=5)).submit(Submission("x", "a"))
    assert caught.value.certainly_not_done


async def test_a_connection_that_is_never_made_means_that_nothing_was_done(carrier, monkeypatch):
    async def never(*_args, **_options):
        await asyncio.sleep(60)

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", never)
    with pytest.raises(Unreachable) as caught:
        await Dashboard(Address("default", "127.0.0.1:1", ""), carrier, patience=QUICK).submit(
            Submission("x", "a")
        )
    assert caught.value.certainly_not_done
    assert caught.value.timed_out


async def test_an_answer_that_does_not_come_is_given_up_and_leaves_open_what_was_done(carrier):
    async def handler(request):
        await asyncio.sleep(60)

    async with serving(handler) as address:
        started = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable) as caught:
            await Dashboard(address, carrier, patience=QUICK).submit(Submission("x", "a"))
    assert asyncio.get_running_loop().time() - started < 5
    assert caught.value.timed_out
    assert not caught.value.certainly_not_done


async def test_an_answer_that_trickles_is_given_up_too(carrier):
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(600):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response

    async with serving(handler) as address:
        with pytest.raises(Unreachable, match=r"no answer in 0\.3 s"):
            await Dashboard(address, carrier, patience=QUICK).info("a")


async def test_a_connection_that_breaks_leaves_open_what_was_done(carrier):
    async def handler(request):
        request.transport.abort()
        return web.Response()

    async with serving(handler) as address:
        with pytest.raises(Unreachable) as caught:
            await Dashboard(address, carrier).submit(Submission("x", "a"))
    assert not caught.value.certainly_not_done


async def test_a_broken_connection_makes_nothing_be_sent_twice(carrier):
    seen = []

    async def handler(request):
        seen.append(request.method)
        request.transport.abort()
        return web.Response()

    async with serving(handler) as address:
        dashboard = Dashboard(address, carrier)
        for call in (dashboard.put_serve({}), dashboard.delete("a"), dashboard.info("a")):
            with pytest.raises(Unreachable):
                await call
    assert seen == ["PUT", "DELETE", "GET"]


async def test_no_more_is_read_than_is_allowed(carrier):
    written = 0

    async def handler(request):
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        while written < 2**30:
            await response.write(b"x" * 2**20)
            written += 2**20
        return response

    async with serving(handler) as address:
        with pytest.raises(Malformed, match="more than 4194304 bytes"):
            await Dashboard(address, carrier, patience=Patience(read=10)).info("a")
    assert written < 2**26


async def test_a_packed_answer_is_not_unpacked(carrier):
    async def handler(request):
        assert request.headers["accept-encoding"] == "identity"
        return web.Response(body=gzip.compress(b" " * 2**24), headers={"content-encoding": "gzip"})

    async with serving(handler) as address:
        with pytest.raises(Malformed, match="cannot be read"):
            await Dashboard(address, carrier).info("a")


async def test_a_redirect_is_not_followed(carrier):
    async def handler(request):
        if request.path == "/api/version":
            raise web.HTTPFound("/elsewhere")
        return web.json_response({})

    async with serving(handler) as address:
        with pytest.raises(Refused) as caught:
            await Dashboard(address, carrier).version()
    assert caught.value.code == 302


async def test_what_speaks_no_http_is_unreachable(carrier):
    async def gibberish(reader, writer):
        writer.write(b"\x00\x01 220 mail.example ready\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(gibberish, "127.0.0.1", 0)
    async with server:
        address = Address("default", f"127.0.0.1:{server.sockets[0].getsockname()[1]}", "")
        with pytest.raises(Unreachable):
            await Dashboard(address, carrier, patience=QUICK).info("a")


# --- following logs


def tailing(messages, code=1000):
    async def handler(request):
        if request.headers.get("x-ray-authorization") != "Bearer sesame":
            return web.Response(status=401)
        if request.path != "/api/jobs/job-1/logs/tail":
            return web.Response(status=404, text="Job does not exist")
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        for message in messages:
            await ws.send_str(message)
        await ws.close(code=code)
        return ws

    return handler


async def test_logs_are_followed_to_their_end(carrier):
    async with (
        serving(tailing(["one\n", "two\n"])) as address,
        Dashboard(address, carrier, OneToken()).tail("job-1") as lines,
    ):
        assert [line async for line in lines] == ["one\n", "two\n"]


async def test_logs_that_break_off_are_not_taken_for_their_end(carrier):
    async with serving(tailing(["one\n"], code=1011)) as address:
        with pytest.raises(Unreachable, match="1011"):
            async with Dashboard(address, carrier, OneToken()).tail("job-1") as lines:
                assert [line async for line in lines]


async def test_logs_of_a_job_that_is_not_there(carrier):
    async with serving(tailing([])) as address:
        with pytest.raises(NotThere):
            async with Dashboard(address, carrier, OneToken()).tail("other"):
                pass
        with pytest.raises(Unauthorised):
            async with Dashboard(address, carrier).tail("job-1"):
                pass


async def test_logs_that_never_begin_are_given_up(carrier):
    async def handler(request):
        await asyncio.sleep(60)

    async with serving(handler) as address:
        with pytest.raises(Unreachable, match=r"no answer in 0\.3 s"):
            async with Dashboard(address, carrier, patience=QUICK).tail("job-1"):
                pass
