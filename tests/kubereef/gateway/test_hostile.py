"""Clients and backends that mean harm, or know no better."""

import asyncio

import pytest

from kubereef.gateway.proxy import server
from kubereef.gateway.proxy.heads import MOST_HEAD
from tests.kubereef.gateway.loopback import world
from tests.kubereef.gateway.making import route

HOST = b"Host: h\r\n"


def request(*lines, first=b"POST / HTTP/1.1", body=b""):
    return b"\r\n".join([first, b"Host: h", *lines, b"", body])


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param(
            request(
                b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\nGET /x HTTP/1.1\r\n\r\n"
            ),
            400,
            id="a length and a transfer coding",
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n"),
            400,
            id="in either order",
        ),
        pytest.param(
            request(b"Content-Length: 5", b"Content-Length: 6", body=b"hello"), 400, id="two lengths"
        ),
        pytest.param(request(b"Content-Length: 5, 5", body=b"hello"), 400, id="a list of lengths"),
        pytest.param(request(b"Content-Length: +5", body=b"hello"), 400, id="a length with a sign"),
        pytest.param(request(b"Content-Length: -1"), 400, id="a length below zero"),
        pytest.param(request(b"Content-Length: 0x5", body=b"hello"), 400, id="a length in another base"),
        pytest.param(request(b"Content-Length:", body=b"hello"), 400, id="an empty length"),
        pytest.param(request(b"Content-Length: " + b"9" * 30), 400, id="a length beyond all measure"),
        pytest.param(request(b"Transfer-Encoding: gzip, chunked"), 501, id="a coding that is not known"),
        pytest.param(request(b"Transfer-Encoding: xchunked"), 501, id="nearly a coding"),
        pytest.param(
            request(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"), 501, id="two codings"
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", first=b"POST / HTTP/1.0"),
            400,
            id="chunks of an old client",
        ),
        pytest.param(request(b"Transfer-Encoding : chunked"), 400, id="a space before the colon"),
        pytest.param(request(b"X-A: 1\r\n Content-Length: 5"), 400, id="a folded line"),
        pytest.param(request(b"X-A: 1\nContent-Length: 5"), 400, id="a bare line feed"),
        pytest.param(request(b"X-A: 1\rContent-Length: 5"), 400, id="a bare carriage return"),
        pytest.param(request(b"X-A: a\x00b"), 400, id="a zero byte"),
        pytest.param(request(b"no colon"), 400, id="no colon"),
        pytest.param(request(b": nameless"), 400, id="no name"),
        pytest.param(request(b"Host: other"), 400, id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, id="a host with a space"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400, id="a host with a user"),
        pytest.param(b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, id="two spaces"),
        pytest.param(b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, id="a space in the target"),
        pytest.param(b"GET nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 400, id="no path"),
        pytest.param(b"CONNECT other:443 HTTP/1.1\r\nHost: h\r\n\r\n", 400, id="a tunnel"),
        pytest.param(b"G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, id="no method"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, id="another version"),
        pytest.param(b"GET /\r\nHost: h\r\n\r\n", 400, id="no version"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, id="another protocol"),
        pytest.param(b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 414, id="a long target"),
        pytest.param(request(b"X-A: " + b"a" * MOST_HEAD), 431, id="a long header"),
        pytest.param(request(*[b"X-A: 1"] * 300), 431, id="many headers"),
        pytest.param(
            request(b"Transfer-Encoding: chunked", body=b"zz\r\n"), 400, id="a chunk without a size"
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", body=b"-1\r\n"), 400, id="a chunk of less than nothing"
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", body=b"1\nx\r\n0\r\n\r\n"),
            400,
            id="a chunk after a line feed",
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", body=b"1\r\nxyz\r\n0\r\n\r\n"),
            400,
            id="more than its size",
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", body=b"1" + b";" * 9000),
            400,
            id="a size that does not end",
        ),
        pytest.param(
            request(b"Transfer-Encoding: chunked", body=b"0\r\n" + b"X: 1\r\n" * 9000),
            400,
            id="endless trailers",
        ),
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused_and_the_connection_ended(said, want):
    async def wait(backend, reader, writer, head):
        await reader.read()
        return False

    async with world(route()) as reef:
        web = await reef.backend(answer=wait)
        client = await reef.client()
        client.say(said)
        status, headers, _ = await client.hear()
        assert (status, headers["connection"]) == (want, "close")
        client.writer.write_eof()
        assert await client.rest() == b""
        # At most the beginning of the one request was passed on, and never what was hidden in it.
        assert not any("/x" in head for head in web.heads)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"no HTTP\r\n\r\n", id="not HTTP at all"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            id="framed in two ways",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", id="two lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: 1\nY: 2\r\n\r\n", id="a bare line feed"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2 * MOST_HEAD, id="a head that does not end"),
        pytest.param(b"HTTP/1.1 99 What\r\n\r\n", id="no status"),
    ],
)
async def test_a_malformed_answer_is_not_passed_on(answer):
    async def say(backend, reader, writer, head):
        writer.write(answer)
        await reader.read()
        return False

    async with world(route()) as reef:
        await reef.backend(answer=say)
        client = await reef.client()
        assert (await client.ask())[0] == 502
        assert (await client.ask())[0] == 502


async def test_bytes_after_an_answer_do_not_become_the_answer_to_somebody_else():
    async def say_more(backend, reader, writer, head):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        )

    async with world(route()) as reef:
        web = await reef.backend(answer=say_more)
        client = await reef.client()
        for _ in range(3):
            assert (await client.ask())[2] == b"ok"
        assert web.connections == 3


async def test_bytes_that_come_unasked_over_a_kept_connection_end_it():
    async def say_later(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    async with world(route()) as reef:
        await reef.backend(answer=say_later)
        client = await reef.client()
        for _ in range(3):
            assert (await client.ask())[2] == b"ok"
            await asyncio.sleep(0.1)


async def test_a_client_that_is_refused_in_the_middle_of_its_request_reads_why():
    async with world() as reef:
        client = await reef.client()
        client.say(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n")
        for _ in range(9):
            client.say(b"x" * 100_000)
            await asyncio.sleep(0.01)
        assert (await client.hear())[0] == 404


async def test_a_head_that_comes_byte_by_byte_is_given_up(monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.1)
    async with world(route()) as reef:
        client = await reef.client()
        client.say(b"GET / HT")
        assert (await client.hear())[0] == 408


async def test_a_connection_that_nobody_uses_is_ended(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.1)
    async with world(route()) as reef:
        client = await reef.client()
        assert await client.rest() == b""


async def test_there_are_no_more_connections_than_may_be():
    async with world(route()) as reef:
        await reef.backend()
        reef.door._most = 2
        first, second, third = [await reef.client() for _ in range(3)]
        assert (await first.ask())[0] == (await second.ask())[0] == 200
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await third.ask()


async def test_an_absolute_target_names_the_host():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        client.say(b"GET http://real.example/a?b HTTP/1.1\r\nHost: other.example\r\n\r\n")
        assert (await client.hear())[0] == 200
        assert web.heads[0].startswith("GET /a?b HTTP/1.1\r\nHost: real.example\r\n")
