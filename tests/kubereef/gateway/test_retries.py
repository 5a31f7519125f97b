"""Requests that meet dying backends: which are sent once more, and which must not be."""

import asyncio

import pytest

from kubereef.gateway.proxy.pool import Endpoint
from tests.kubereef.gateway.loopback import PATIENCE, Backend, bound, plain, world
from tests.kubereef.gateway.making import route
from tests.kubereef.gateway.test_proxy import body_of, until


async def hang_up(backend, reader, writer, head):
    """Break every connection as soon as a request has come."""
    writer.transport.abort()
    return False


def nobody():
    """Return an endpoint that refuses connections."""
    reserved = bound()
    endpoint = Endpoint(*reserved.getsockname())
    reserved.close()
    return endpoint


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_refused_connection_is_always_tried_elsewhere(method):
    async with world(route()) as reef:
        web = await reef.backend()
        reef.set_endpoints("web", nobody(), nobody(), web.endpoint)
        client = await reef.client()
        for _ in range(10):
            assert (await client.ask(method=method, body=b"x" * 10))[0] == 200
        assert len(web.heads) == 10


async def test_a_body_that_is_passed_on_as_it_comes_is_kept_for_the_endpoint_that_accepts():
    size = 200_000
    async with world(route()) as reef:
        web = await reef.backend()
        reef.set_endpoints("web", nobody(), web.endpoint)
        client = await reef.client()
        for _ in range(4):
            assert (await client.ask(method="POST", body=b"x" * size))[0] == 200
        assert len(web.heads) == 4


async def test_where_nobody_accepts_the_client_is_told_so():
    async with world(route()) as reef:
        reef.set_endpoints("web", nobody(), nobody())
        client = await reef.client()
        assert (await client.ask())[0] == 503


@pytest.mark.parametrize(
    ("method", "body", "want"),
    [
        pytest.param("GET", b"", 200, id="what may be repeated is"),
        pytest.param("PUT", b"x", 200, id="also with a small body"),
        pytest.param("PUT", b"x" * 70000, 502, id="not with a body that is gone"),
        pytest.param("POST", b"x", 502, id="what must not be repeated is not"),
    ],
)
async def test_a_new_connection_that_breaks_before_the_answer(method, body, want):
    async with world(route()) as reef:
        bad = await reef.backend(answer=hang_up)
        good = await reef.backend()
        answers = []
        for _ in range(2):  # each of the two endpoints is the first once
            client = await reef.client()
            answers.append((await client.ask(method=method, body=body))[0])
            reef.pool.close()
        assert sorted(answers) == sorted([200, want])
        assert len(bad.heads) == 1
        assert len(good.heads) == (2 if want == 200 else 1)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_kept_connection_that_was_dead_all_along_costs_nothing(method):
    """The backend ends the connection at the very moment at which the next request comes over it."""

    async def once(backend, reader, writer, head):
        if len(backend.heads) == 2:
            writer.transport.abort()
            return False
        return await plain()(backend, reader, writer, head)

    async with world(route()) as reef:
        web = await reef.backend(answer=once)
        client = await reef.client()
        for _ in range(3):
            assert (await client.ask(method=method, body=b"x"))[0] == 200
        assert web.connections == 2


@pytest.mark.parametrize("place", range(3))
async def test_an_endpoint_whose_kept_connection_was_dead_is_the_last_resort(place):
    async def once(backend, reader, writer, head):
        if len(backend.heads) == 2:
            writer.transport.abort()
            return False
        return await plain()(backend, reader, writer, head)

    async with world(route()) as reef:
        web = await reef.backend(answer=once)
        client = await reef.client()
        assert (await client.ask())[0] == 200
        endpoints = [nobody(), nobody()]
        endpoints.insert(place, web.endpoint)
        reef.set_endpoints("web", *endpoints)
        assert (await client.ask())[0] == 200
        assert len(web.heads) == 3


async def test_a_large_body_never_goes_over_a_kept_connection():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        await client.ask()
        await client.ask(method="POST", body=b"x" * 70000)
        assert web.connections == 2


async def test_a_kept_connection_that_the_backend_has_ended_is_not_used():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        await client.ask()
        assert len(reef.pool) == 1
        web.hang_up()
        await until(lambda: len(reef.pool) == 0)
        assert (await client.ask(method="POST", body=b"x"))[0] == 200


async def test_an_answer_that_has_begun_is_not_asked_for_again():
    async def stammer(backend, reader, writer, head):
        writer.write(b"HTTP/1.1 20")
        await writer.drain()
        return False

    async with world(route()) as reef:
        bad = await reef.backend(answer=stammer)
        client = await reef.client()
        assert (await client.ask())[0] == 502
        assert len(bad.heads) == 1


async def test_a_restarted_backend_is_reached_again():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        await client.ask()
        await web.stop()
        again = await Backend(plain("again")).start(web.port)
        reef.backends.append(again)
        assert (await client.ask())[2] == b"again"


async def test_without_care_nothing_is_sent_twice():
    async with world(route(), careful=False) as reef:
        web = await reef.backend()
        reef.set_endpoints("web", nobody(), web.endpoint)
        client = await reef.client()
        assert {(await client.ask())[0] for _ in range(4)} == {200, 503}


@pytest.mark.parametrize("careful", [True, False])
async def test_an_endpoint_that_leaves_gets_no_new_request_and_finishes_what_it_has(careful):
    release = asyncio.Event()

    async def slow(backend, reader, writer, head):
        await release.wait()
        writer.write(body_of("old"))

    async with world(route(), careful=careful) as reef:
        old = await reef.backend(answer=slow)
        client = await reef.client()
        asking = asyncio.create_task(client.ask())
        await until(lambda: old.heads)
        new = await Backend(plain("new")).start()
        reef.backends.append(new)
        reef.set_endpoints("web", new.endpoint)
        other = await reef.client()
        for _ in range(5):
            assert (await other.ask())[2] == b"new"
        release.set()
        status, _, body = await asking
        assert (status, body) == ((200, b"old") if careful else (502, body))
        assert len(old.heads) == 1


async def test_connections_to_an_endpoint_that_left_are_not_kept():
    async with world(route()) as reef:
        web = await reef.backend()
        client = await reef.client()
        await client.ask()
        assert len(reef.pool) == 1
        reef.set_endpoints("web")
        assert len(reef.pool) == 0
        assert (await client.ask())[0] == 503
        reef.set_endpoints("web", web.endpoint)
        assert (await client.ask())[0] == 200
        assert web.connections == 2


async def test_a_connection_that_was_in_use_when_its_endpoint_left_is_not_kept():
    release = asyncio.Event()

    async def slow(backend, reader, writer, head):
        await release.wait()
        writer.write(body_of())

    async with world(route()) as reef:
        web = await reef.backend(answer=slow)
        client = await reef.client()
        asking = asyncio.create_task(client.ask())
        await until(lambda: web.heads)
        reef.set_endpoints("web")
        release.set()
        assert (await asking)[0] == 200
        assert len(reef.pool) == 0


async def test_a_backend_that_ends_under_load_costs_no_request():
    async with world(route()) as reef:
        await reef.backend(count=3)
        answers = []

        async def ask_on():
            client = await reef.client()
            for _ in range(60):
                answers.append((await client.ask())[0])
                await asyncio.sleep(0.002)

        async def disturb():
            for number in range(6):
                await asyncio.sleep(0.03)
                leaving = reef.backends[number % 3]
                await leaving.stop()  # it is dead before anybody has been told
                await asyncio.sleep(0.01)
                reef.set_endpoints("web", *(one.endpoint for one in reef.backends[:3] if one is not leaving))
                await leaving.start(leaving.port)
                reef.set_endpoints("web", *(one.endpoint for one in reef.backends[:3]))

        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(disturb(), *(ask_on() for _ in range(5)))
        assert answers == [200] * 300
