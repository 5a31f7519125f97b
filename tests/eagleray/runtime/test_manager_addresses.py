"""A manager that serves its pages on real sockets."""

import asyncio

import aiohttp

from eagleray.runtime.addresses import Address
from eagleray.runtime.manager import Caches, Manager
from eagleray.runtime.metrics import Registry

ANYWHERE = Address("127.0.0.1", 0)


async def nothing():
    return None


def manager(metrics=ANYWHERE, probes=ANYWHERE):
    return Manager(
        [],
        [],
        Caches(nothing, list, nothing),
        Registry(),
        election=None,
        metrics_address=metrics,
        probe_address=probes,
    )


async def test_pages_are_served_while_it_runs():
    stop = asyncio.Event()
    running = manager()
    task = asyncio.create_task(running.run(stop))
    await running.serving.wait()
    metrics, probes = running.ports
    async with aiohttp.ClientSession() as session:
        for url in (f"{metrics}/metrics", f"{probes}/healthz", f"{probes}/readyz"):
            async with session.get(f"http://127.0.0.1:{url}") as response:
                assert response.status == 200
    stop.set()
    assert await task == 0


async def test_an_address_that_is_taken_ends_the_process_with_a_sentence(caplog):
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    taken = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    assert await manager(metrics=taken).run(asyncio.Event()) == 1
    assert "address already in use" in caplog.text
    server.close()
    await server.wait_closed()
