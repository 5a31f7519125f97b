"""Exec over WebSockets and SPDY: streams, terminals, exit codes, and ends that come early."""

import asyncio
import base64
import json
from urllib.parse import quote

import aiohttp
import pytest

from tests.kubereef.node.api.spdyclient import SpdyClient
from tests.kubereef.node.api.standins import until

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
SUCCESS = {"metadata": {}, "status": "Success"}


def path(*command, streams="output=1&error=1"):
    words = "&".join(f"command={quote(word)}" for word in command)
    return f"/exec/default/web/app?{streams}&{words}"


async def heard(socket):
    """Return what came on each channel, until the server closes."""
    channels: dict[int, bytes] = {}
    async with asyncio.timeout(10):
        async for message in socket:
            assert message.type is aiohttp.WSMsgType.BINARY
            channels[message.data[0]] = channels.get(message.data[0], b"") + message.data[1:]
    return channels


async def run(client, *command, protocol=V5, **options):
    async with client.ws_connect(path(*command, **options), protocols=[protocol]) as socket:
        assert socket.protocol == protocol
        return await heard(socket)


@pytest.mark.parametrize("protocol", [V4, V5])
async def test_output_and_error_come_on_channels_of_their_own_and_then_the_status(client, protocol):
    said = await run(client, "sh", "-c", "echo out; echo err >&2", protocol=protocol)
    assert said[1] == b"out\n"
    assert said[2] == b"err\n"
    assert json.loads(said[3]) == SUCCESS


@pytest.mark.parametrize(
    "protocols", [pytest.param([], id="no name"), pytest.param(["channel.k8s.io"], id="the first name")]
)
async def test_older_protocols_tell_of_a_failure_in_words_and_of_nothing_else(client, protocols):
    for command, want in (
        ("exit 3", b"command terminated with non-zero exit code: exit status 3"),
        ("", None),
    ):
        async with client.ws_connect(path("sh", "-c", f"echo out; {command}"), protocols=protocols) as socket:
            said = await heard(socket)
        assert said[1] == b"out\n"
        assert said.get(3) == want


async def test_a_client_of_text_has_its_channels_in_base64(client):
    address = path("head", "-c3", streams="input=1&output=1")
    async with client.ws_connect(address, protocols=["v4.base64.channel.k8s.io"]) as socket:
        assert await socket.receive_str() == "1"
        await socket.send_str("0this is no base64")
        await socket.send_str(f"0{base64.b64encode(b'abc').decode()}")
        assert await socket.receive_str() == f"1{base64.b64encode(b'abc').decode()}"
        status = await socket.receive_str()
    assert status[0] == "3"
    assert json.loads(base64.b64decode(status[1:])) == SUCCESS


async def test_the_exit_code_is_in_the_status(client):
    said = await run(client, "sh", "-c", "exit 3")
    status = json.loads(said[3])
    assert status["status"] == "Failure"
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert status["message"] == "command terminated with non-zero exit code: exit status 3"


async def test_a_command_that_is_not_there_is_told_as_an_internal_error(client):
    status = json.loads((await run(client, "no-such-program"))[3])
    assert (status["reason"], status["code"]) == ("InternalError", 500)
    assert "no-such-program" in status["message"]


async def test_a_container_that_does_not_run_is_told_so(client, container):
    container.is_running = False
    status = json.loads((await run(client, "true"))[3])
    assert "container not running: it has ended" in status["message"]


async def test_an_end_of_input_by_the_close_signal_lets_the_output_come_to_its_end(client):
    streams = "input=1&output=1"
    async with client.ws_connect(path("cat", streams=streams), protocols=[V5]) as socket:
        await socket.send_bytes(b"\x00hello ")
        await socket.send_bytes(b"\x00world")
        await socket.send_bytes(b"\xff\x00")
        said = await heard(socket)
    assert said[1] == b"hello world"
    assert json.loads(said[3]) == SUCCESS


async def test_more_input_than_a_pipe_holds_arrives_whole(client):
    streams = "input=1&output=1"
    async with client.ws_connect(path("wc", "-c", streams=streams), protocols=[V5]) as socket:
        for _ in range(40):
            await socket.send_bytes(b"\x00" + b"x" * 100_000)
        await socket.send_bytes(b"\xff\x00")
        said = await heard(socket)
    assert said[1].strip() == b"4000000"


async def test_much_output_arrives_whole(client):
    said = await run(client, "head", "-c", "3000000", "/dev/zero")
    assert len(said[1]) == 3_000_000


async def test_a_terminal_has_its_size_and_is_told_of_another(client):
    script = "stty size; read line; stty size"
    streams = "input=1&output=1&error=1&tty=1"
    async with client.ws_connect(path("sh", "-c", script, streams=streams), protocols=[V5]) as socket:
        assert (await socket.receive_bytes()) == b"\x01"
        await socket.send_bytes(b"\x04" + b'{"Width":100,"Height":40}')
        await asyncio.sleep(0.1)
        await socket.send_bytes(b"\x00\n")
        said = await heard(socket)
    assert b"40 100" in said[1].splitlines()[-1]
    assert 2 not in said
    assert json.loads(said[3]) == SUCCESS


async def test_a_program_on_a_terminal_is_hung_up_on_when_its_client_goes(client, container):
    streams = "input=1&output=1&tty=1"
    async with client.ws_connect(path("sleep", "100", streams=streams), protocols=[V5]) as socket:
        await socket.receive_bytes()
        await until(lambda: container.programs)
    await until(lambda: container.programs[0].terminal is None)


async def test_the_status_does_not_wait_for_what_a_command_left_running(client):
    async with asyncio.timeout(8):
        said = await run(client, "sh", "-c", "sleep 60 & echo done")
    assert said[1] == b"done\n"
    assert json.loads(said[3]) == SUCCESS


@pytest.mark.parametrize(
    ("address", "protocols", "code"),
    [
        pytest.param(path("true", streams="tty=1"), [V5], 400, id="no stream at all"),
        pytest.param("/exec/default/web/app?output=1", [V5], 400, id="no command"),
        pytest.param(path("true"), ["v9.channel.k8s.io"], 400, id="a protocol that nobody speaks"),
        pytest.param("/exec/default/other/app?output=1&command=true", [V5], 404, id="another Pod"),
        pytest.param("/exec/default/web/other?output=1&command=true", [V5], 404, id="another container"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_the_upgrade(client, address, protocols, code):
    with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
        await client.ws_connect(address, protocols=protocols)
    assert refusal.value.status == code


async def test_spdy_carries_the_streams_on_the_bare_connection(url, keys):
    spdy = await SpdyClient.open(
        url, keys.client("ann"), path("sh", "-c", "cat; exit 4", streams="input=1&output=1&error=1"), V4
    )
    async with spdy:
        for number, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            await spdy.open_stream(number, {"streamType": name})
        await spdy.send(3, b"over spdy", fin=True)
        assert await spdy.read(5) == b"over spdy"
        status = json.loads(await spdy.read(1))
    assert status["details"]["causes"][0]["message"] == "4"


async def test_spdy_tells_a_terminal_its_size(url, keys):
    streams = "input=1&output=1&error=1&tty=1"  # of a terminal nobody opens an error stream
    spdy = await SpdyClient.open(
        url, keys.client("ann"), path("sh", "-c", "read line; stty size", streams=streams), V4
    )
    async with spdy:
        for number, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "resize")):
            await spdy.open_stream(number, {"streamType": name})
        await spdy.send(7, b'{"Width":90,"Height":30}\n')
        await asyncio.sleep(0.1)
        await spdy.send(3, b"\n")
        assert b"30 90" in await spdy.read(5)
