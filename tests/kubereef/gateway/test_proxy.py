"""Requests through the proxy, over real sockets."""

import asyncio
import tracemalloc

import pytest

from kubereef.gateway.proxy.wire import CHUNK
from tests.kubereef.gateway.loopback import PATIENCE, site_of, world
from tests.kubereef.gateway.making import backend, path, route, rule

MEBIBYTE = 1024 * 1024


async def until(holds):
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what is waited for is told by nobody
            await asyncio.sleep(0.005)


def body_of(text="hello"):
    return (f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()


async def test_a_request_reaches_the_backend_and_its_answer_the_client():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        status, headers, body = await client.ask("/a/b?c=d", headers="X-Own: 1\r\n", host="shop.example:8080")
        assert (status, body) == (200, b"hello")
        assert "connection" not in headers
        (head,) = web.heads
        assert head.startswith("GET /a/b?c=d HTTP/1.1\r\nHost: shop.example:8080\r\n")
        for line in (
            "X-Own: 1",
            "X-Forwarded-For: 127.0.0.1",
            "X-Forwarded-Proto: http",
            "X-Forwarded-Host: shop.example:8080",
        ):
            assert f"\r\n{line}\r\n" in head


async def test_what_is_said_between_neighbours_is_not_passed_on():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        await client.ask(
            headers="Connection: X-Hop, Authorization\r\nX-Hop: 1\r\nAuthorization: token\r\nKeep-Alive: 5\r\n"
            "TE: trailers\r\nUpgrade: h2c\r\nX-Forwarded-For: 1.2.3.4\r\n"
        )
        (head,) = web.heads
        lower = head.lower()
        for word in ("x-hop", "keep-alive", "te:", "upgrade", "connection"):
            assert f"\r\n{word}" not in lower
        assert "\r\nX-Forwarded-For: 1.2.3.4, 127.0.0.1\r\n" in head
        assert (
            "\r\nAuthorization: token\r\n" in head
        )  # nobody takes that out by calling it a neighbour's matter


async def test_connections_are_kept_on_both_sides():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        for _ in range(20):
            assert (await client.ask())[0] == 200
        await client.ask(method="POST", body=b"x" * 1000)
        assert (web.connections, len(web.heads)) == (1, 21)
        assert len(reef.door) == 1


async def test_a_client_may_ask_again_before_it_is_answered():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        for number in range(5):
            client.say(f"GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert [(await client.hear())[0] for _ in range(5)] == [200] * 5
        assert [head.split()[1] for head in web.heads] == ["/0", "/1", "/2", "/3", "/4"]


async def test_an_older_client_is_answered_and_let_go():
    async def streamed(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")

    async with world(route()) as reef:
        await reef.backend(answer=streamed)
        client = await reef.client()
        client.say(b"GET / HTTP/1.0\r\n\r\n")
        head, _, body = (await client.rest()).partition(b"\r\n\r\n")
        assert body == b"hello"
        assert b"Connection: close" in head
        assert b"chunked" not in head


@pytest.mark.parametrize(
    ("method", "answer", "want"),
    [
        pytest.param("HEAD", "200 OK\r\nContent-Length: 5", (200, "5"), id="HEAD tells the length"),
        pytest.param("GET", "304 Not Modified\r\nContent-Length: 5", (304, "5"), id="304 has no body"),
        pytest.param("GET", "204 No Content", (204, None), id="204 has no length"),
        pytest.param("GET", "200 OK\r\nContent-Length: 0", (200, "0"), id="an empty answer"),
    ],
)
async def test_answers_without_bodies(method, answer, want):
    async def say(backend, reader, writer, head):
        writer.write(f"HTTP/1.1 {answer}\r\n\r\n".encode())

    async with world(route()) as reef:
        web = await reef.backend(answer=say)
        client = await reef.client()
        for _ in range(2):
            status, headers, _ = await client.ask(method=method)
            assert (status, headers.get("content-length")) == want
        assert web.connections == 1


async def test_an_answer_that_ends_with_its_connection_is_passed_on_in_chunks():
    async def say(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        return False

    async with world(route()) as reef:
        await reef.backend(answer=say)
        client = await reef.client()
        for _ in range(2):
            assert (await client.ask())[2] == b"hello"


async def test_hundred_requests_are_shared_out_exactly_by_weight():
    weighted = route(rule(backend("a", 70), backend("b", 30)))
    async with world(weighted) as reef:
        a, b = await reef.backend("a"), await reef.backend("b")
        client = await reef.client()
        for _ in range(100):
            assert (await client.ask())[0] == 200
        assert (len(a.heads), len(b.heads)) == (70, 30)


async def test_a_share_that_leads_nowhere_is_answered_500_in_proportion():
    async with world(route(rule(backend("web", 3), backend("none", 1)))) as reef:
        await reef.backend()
        client = await reef.client()
        answers = [(await client.ask())[0] for _ in range(40)]
        assert (answers.count(200), answers.count(500)) == (30, 10)


@pytest.mark.parametrize(
    ("target", "want"),
    [
        pytest.param("/elsewhere", 404, id="no route"),
        pytest.param("/empty", 503, id="no endpoint"),
        pytest.param("/unknown", 500, id="no such Service"),
    ],
)
async def test_what_is_answered_where_there_is_no_backend(target, want):
    rules = [
        rule(backend("empty"), matches=[path("/empty")]),
        rule(backend("unknown"), matches=[path("/unknown")]),
    ]
    async with world(route(*rules)) as reef:
        reef.set_endpoints("empty")
        client = await reef.client()
        for _ in range(2):
            assert (await client.ask(target))[0] == want


async def test_requests_go_to_the_endpoint_with_the_least_to_do():
    release = asyncio.Event()

    async def slow(backend, reader, writer, head):
        await release.wait()
        writer.write(body_of("slow"))

    async with world(route()) as reef:
        waiting = await reef.backend(answer=slow)
        busy = [await reef.client() for _ in range(3)]
        asking = [asyncio.create_task(one.ask()) for one in busy]
        await until(lambda: len(waiting.heads) == 3)
        quick = await reef.backend()
        client = await reef.client()
        for _ in range(10):
            assert (await client.ask())[2] == b"hello"
        assert len(quick.heads) == 10
        release.set()
        assert [(await one)[2] for one in asking] == [b"slow"] * 3


async def test_large_bodies_pass_both_ways_in_little_memory():
    size = 48 * MEBIBYTE

    async def echo(backend, reader, writer, head):
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        left = size
        while left:
            piece = await reader.read(65536)
            left -= len(piece)
            writer.write(piece)
            await writer.drain()

    async with world(route()) as reef:
        await reef.backend(answer=echo)
        client = await reef.client()
        tracemalloc.start()
        try:
            client.say(f"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n".encode())

            async def send():
                piece = b"x" * 65536
                for _ in range(size // len(piece)):
                    client.writer.write(piece)
                    await client.writer.drain()

            sending = asyncio.create_task(send())
            await client.reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.2)  # a client that does not read is not read for
            got = 0
            while got < size:
                got += len(await client.reader.read(65536))
            await sending
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Client, backend and proxy together keep a handful of buffers.
        assert peak < 8 * MEBIBYTE


async def test_pieces_pass_as_they_come():
    turns: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def drip(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while (word := await turns.get()) is not None:
            writer.write(b"%x\r\n%b\r\n" % (len(word), word))
        writer.write(b"0\r\n\r\n")

    async with world(route()) as reef:
        await reef.backend(answer=drip)
        client = await reef.client()
        client.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        for word in (b"one", b"two"):
            await turns.put(word)
            async with asyncio.timeout(PATIENCE):
                assert await client.reader.readexactly(3 + 3 + 2) == b"3\r\n" + word + b"\r\n"
        await turns.put(None)
        assert await client.reader.readexactly(5) == b"0\r\n\r\n"


async def test_a_body_in_chunks_passes_and_the_connection_is_kept():
    async def gather(backend, reader, writer, head):
        assert "\r\nTransfer-Encoding: chunked\r\n" in head
        whole = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            whole += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        writer.write(body_of(whole.decode()))

    async with world(route()) as reef:
        await reef.backend(answer=gather)
        client = await reef.client()
        for _ in range(2):
            client.say(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;note=1\r\none\r\n")
            await asyncio.sleep(0.01)
            client.say(b"3\r\ntwo\r\n0\r\nX-Trailer: 1\r\n\r\n")
            assert (await client.hear())[2] == b"onetwo"


async def test_a_client_that_waits_for_leave_to_send_gets_it_from_the_backend():
    async def grant(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await reader.readexactly(4)
        writer.write(body_of())

    async with world(route()) as reef:
        await reef.backend(answer=grant)
        client = await reef.client()
        client.say(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert (await client.hear())[0] == 100
        client.say(b"body")
        assert (await client.hear())[2] == b"hello"


async def test_an_answer_before_the_end_of_the_request_reaches_the_client():
    async def refuse(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!")
        return False

    async with world(route()) as reef:
        await reef.backend(answer=refuse)
        client = await reef.client()
        client.say(
            f"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {MEBIBYTE}\r\n\r\n".encode() + b"x" * 70000
        )
        status, headers, body = await client.hear()
        assert (status, body, headers["connection"]) == (413, b"no!", "close")


async def test_an_upgraded_connection_passes_bytes_both_ways():
    async def switch(backend, reader, writer, head):
        assert "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" in head
        writer.write(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst")
        while piece := await reader.read(1000):
            writer.write(piece.upper())
        writer.write(b"LAST")
        return False

    async with world(route(rule(timeouts={"request": "100ms"}))) as reef:
        await reef.backend(answer=switch)
        client = await reef.client()
        client.say(
            b"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        status, headers, _ = await client.hear()
        assert (status, headers["upgrade"]) == (101, "websocket")
        assert await client.reader.readexactly(5) == b"first"
        await asyncio.sleep(0.2)  # the time limit of requests is not one of what they turn into
        client.say(b"ping")
        assert await client.reader.readexactly(4) == b"PING"
        client.writer.write_eof()
        assert await client.rest() == b"LAST"


async def test_a_protocol_that_nobody_asked_for_is_not_passed_on():
    async def switch(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")

    async with world(route()) as reef:
        await reef.backend(answer=switch)
        client = await reef.client()
        assert (await client.ask())[0] == 502


async def test_a_backend_that_takes_longer_than_the_route_allows_is_given_up():
    async def never(backend, reader, writer, head):
        await asyncio.sleep(PATIENCE)

    for limits in ({"request": "50ms"}, {"request": "5s", "backendRequest": "50ms"}):
        async with world(route(rule(timeouts=limits))) as reef:
            await reef.backend(answer=never)
            client = await reef.client()
            assert (await client.ask())[0] == 504
            assert (await client.ask())[0] == 504
            assert reef.carrier.loads[reef.backends[0].endpoint] == 0


async def test_an_answer_that_breaks_off_does_not_look_whole():
    async def half(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        await writer.drain()
        return False

    async with world(route()) as reef:
        await reef.backend(answer=half)
        client = await reef.client()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask()


async def test_a_client_that_goes_takes_its_request_along():
    ended = asyncio.Event()

    async def wait(backend, reader, writer, head):
        assert await reader.read() == b""
        ended.set()
        return False

    async with world(route()) as reef:
        web = await reef.backend(answer=wait)
        client = await reef.client()
        client.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await until(lambda: web.heads)
        client.close()
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        await until(lambda: len(reef.door) == 0)
        assert reef.carrier.loads[web.endpoint] == 0


async def test_other_weights_hold_for_the_next_request_of_the_same_connection():
    async with world(route(rule(backend("a", 1), backend("b", 0)))) as reef:
        await reef.backend("a")
        b = await reef.backend("b")
        client = await reef.client()
        await client.ask()
        reef.door.site = site_of([route(rule(backend("a", 0), backend("b", 1)))])
        for _ in range(5):
            await client.ask()
        assert len(b.heads) == 5


async def test_headers_paths_and_hosts_are_changed_as_the_route_says():
    filters = [
        {
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": {
                "set": [{"name": "X-Set", "value": "new"}],
                "add": [{"name": "X-Add", "value": "more"}],
                "remove": ["X-Gone"],
            },
        },
        {
            "type": "ResponseHeaderModifier",
            "responseHeaderModifier": {"add": [{"name": "X-Back", "value": "1"}]},
        },
        {
            "type": "URLRewrite",
            "urlRewrite": {
                "hostname": "inside.example",
                "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"},
            },
        },
    ]
    async with world(route(rule(matches=[path("/old")], filters=filters))) as reef:
        web = await reef.backend()
        client = await reef.client()
        _, headers, _ = await client.ask("/old/x?y=1", headers="X-Set: old\r\nX-Gone: 1\r\n")
        (head,) = web.heads
        assert head.startswith("GET /new/x?y=1 HTTP/1.1\r\nHost: inside.example\r\n")
        assert "X-Set: new" in head
        assert "X-Set: old" not in head
        assert "X-Add: more" in head
        assert "X-Gone" not in head
        assert headers["x-back"] == "1"


async def test_a_redirect_is_answered_without_a_backend():
    redirect = {"scheme": "https", "statusCode": 301, "hostname": "new.example"}
    filters = [{"type": "RequestRedirect", "requestRedirect": redirect}]
    async with world(route(rule(filters=filters))) as reef:
        client = await reef.client()
        status, headers, _ = await client.ask("/a?b=c")
        assert (status, headers["location"]) == (301, "https://new.example/a?b=c")


async def test_a_proxy_that_ends_lets_requests_finish_and_takes_no_new_ones():
    release = asyncio.Event()

    async def slow(backend, reader, writer, head):
        await release.wait()
        writer.write(body_of())

    async with world(route()) as reef:
        web = await reef.backend(answer=slow)
        idle, busy = await reef.client(), await reef.client()
        asking = asyncio.create_task(busy.ask())
        await until(lambda: web.heads and len(reef.door) == 2)
        closing = asyncio.create_task(reef.door.close(PATIENCE))
        assert await idle.rest() == b""
        with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the kernel likes
            await (await reef.client()).ask()
        release.set()
        status, headers, _ = await asking
        assert (status, headers["connection"]) == (200, "close")
        await closing
        assert len(reef.door) == 0


def test_what_is_kept_of_a_connection_is_less_than_a_mebibyte():
    assert CHUNK <= MEBIBYTE // 4
