"""The calls of probes over a real network: loopback."""

import asyncio

import pytest
from aiohttp import web

from kubereef.node.kubelet.calls import NetworkCalls


@pytest.fixture
async def calls():
    calls = NetworkCalls()
    yield calls
    await calls.close()


@pytest.fixture
async def port():
    """A server that answers as its path says."""

    async def answer(request):
        match request.path.split("/")[1:]:
            case ["status", code]:
                return web.Response(status=int(code), text=request.headers.get("X-Token", ""))
            case ["to", *rest]:
                raise web.HTTPFound("/" + "/".join(rest))
            case ["elsewhere"]:
                raise web.HTTPFound("http://203.0.113.1/")
            case ["loop"]:
                raise web.HTTPFound("/loop")
            case ["slow"]:
                await asyncio.sleep(5)
        return web.Response(text=request.headers["User-Agent"])

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "passed", "output"),
    [
        ("/", True, "kube-probe"),
        ("/status/204", True, ""),
        ("/status/399", True, ""),
        ("/status/404", False, "HTTP probe failed with statuscode: 404"),
        ("/status/500", False, "HTTP probe failed with statuscode: 500"),
        ("/to/status/200", True, ""),
        ("/to/status/503", False, "HTTP probe failed with statuscode: 503"),
        ("/elsewhere", True, "Probe terminated redirects"),
        ("/loop", False, "stopped after 10 redirects"),
        ("/slow", False, "context deadline exceeded"),
    ],
)
async def test_an_http_answer_passes_or_fails(calls, port, path, passed, output):
    answer = await calls.http_get(
        "127.0.0.1", port, {"path": path, "port": port}, 0.3 if path == "/slow" else 10
    )
    assert answer.passed is passed
    assert output in answer.output


async def test_headers_are_sent(calls, port):
    action = {"path": "/status/200", "httpHeaders": [{"name": "X-Token", "value": "t"}]}
    assert (await calls.http_get("127.0.0.1", port, action, 1)).output == "t"


async def test_nobody_there(calls, port, unused_tcp_port):
    answer = await calls.http_get("127.0.0.1", unused_tcp_port, {}, 1)
    assert not answer.passed
    assert answer.output == f'Get "http://127.0.0.1:{unused_tcp_port}/": connection refused'
    answer = await calls.tcp_connect("127.0.0.1", unused_tcp_port, 1)
    assert answer.output == f"dial tcp 127.0.0.1:{unused_tcp_port}: connect: connection refused"
    assert (await calls.tcp_connect("127.0.0.1", port, 1)).passed
