"""Attach: a client on a container's own streams."""

import asyncio
import json

import aiohttp
import pytest

from kubereef.node.kubelet.handles import Output
from tests.kubereef.node.api.spdyclient import SpdyClient
from tests.kubereef.node.api.standins import until

V5 = "v5.channel.k8s.io"
PATH = "/attach/default/web/app?input=1&output=1&error=1"


async def next_bytes(socket):
    async with asyncio.timeout(5):
        return await socket.receive_bytes()


async def test_input_reaches_the_container_and_its_output_the_client(client, container):
    async with client.ws_connect(PATH, protocols=[V5]) as socket:
        assert await next_bytes(socket) == b"\x01"
        await socket.send_bytes(b"\x00hi")
        assert await next_bytes(socket) == b"\x01got hi"
        container.attached.output.put_nowait(Output("stderr", b"oh"))
        assert await next_bytes(socket) == b"\x02oh"
        container.attached.output.put_nowait(None)
        assert json.loads((await next_bytes(socket))[1:]) == {"metadata": {}, "status": "Success"}
    assert bytes(container.attached.written) == b"hi"


async def test_who_goes_away_lets_the_container_go_on(client, container):
    async with client.ws_connect(PATH, protocols=[V5]) as socket:
        await next_bytes(socket)
    await until(lambda: container.attached.is_closed)
    assert container.is_running


async def test_an_ended_input_is_passed_on(client, container):
    async with client.ws_connect(PATH, protocols=[V5]) as socket:
        await socket.send_bytes(b"\xff\x00")
        async with asyncio.timeout(5):
            await container.attached.input_ended.wait()


async def test_the_terminal_of_a_container_takes_the_size_of_the_client(client, container):
    container.attached.has_terminal = True
    async with client.ws_connect(PATH + "&tty=1", protocols=[V5]) as socket:
        await next_bytes(socket)
        await socket.send_bytes(b"\x04" + b'{"Width":120,"Height":50}')
        await until(lambda: container.attached.sizes)
    assert container.attached.sizes == [(50, 120)]


async def test_a_size_that_cannot_be_read_changes_nothing(client, container):
    async with client.ws_connect(PATH, protocols=[V5]) as socket:
        await next_bytes(socket)
        for size in (b"{", b'{"Width":0,"Height":10}', b'{"Width":70000,"Height":10}'):
            await socket.send_bytes(b"\x04" + size)
        await socket.send_bytes(b"\x00x")
        assert await next_bytes(socket) == b"\x01got x"
    assert container.attached.sizes == []


async def test_spdy_attaches_too(url, keys, container):
    spdy = await SpdyClient.open(url, keys.client("ann"), PATH, "v4.channel.k8s.io")
    async with spdy:
        for number, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            await spdy.open_stream(number, {"streamType": name})
        await spdy.send(3, b"hey")
        await until(lambda: bytes(container.attached.written) == b"hey")
        container.attached.output.put_nowait(None)
        assert await spdy.read(5) == b"got hey"
        assert json.loads(await spdy.read(1))["status"] == "Success"


async def test_nobody_attaches_to_a_container_that_does_not_run(client, container):
    container.is_running = False
    with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
        await client.ws_connect(PATH, protocols=[V5])
    assert refusal.value.status == 400
