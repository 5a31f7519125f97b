"""The HTTP proxy: what it understands, and what it does with it."""

import asyncio
import contextlib
from ipaddress import ip_address

import pytest

from kubereef.node.network.httpproxy import BadRequest, HttpProxy, Request, read_request
from kubereef.node.network.namespaces import Namespace
from kubereef.node.network.outbound import proxy_environment
from kubereef.node.network.outside import Outside, is_public
from kubereef.node.network.relay import listen_tcp
from tests.kubereef.node.network.inside import in_namespace
from tests.kubereef.node.network.peers import Server, connected, listening_at


@pytest.mark.parametrize(
    ("head", "want"),
    [
        pytest.param(
            b"CONNECT packages.example:443 HTTP/1.1\r\nHost: packages.example:443\r\n\r\n",
            Request("packages.example", 443, b"", is_tunnel=True),
            id="a tunnel",
        ),
        pytest.param(
            b"CONNECT [fd00::1]:443 HTTP/1.1\r\n\r\n",
            Request("fd00::1", 443, b"", is_tunnel=True),
            id="by address",
        ),
        pytest.param(
            b"GET http://a.example/x?y=1 HTTP/1.1\r\nHost: a.example\r\nProxy-Connection: keep-alive\r\n\r\n",
            Request(
                "a.example",
                80,
                b"GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
                is_tunnel=False,
            ),
            id="a plain request, without what was meant for the proxy",
        ),
        pytest.param(
            b"GET http://u:p@a.example:8080 HTTP/1.0\r\n\r\n",
            Request("a.example", 8080, b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n", is_tunnel=False),
            id="another port and no path",
        ),
    ],
)
def test_read_request(head, want):
    assert read_request(head) == want


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="a request to the proxy itself"),
        pytest.param(b"CONNECT packages.example HTTP/1.1\r\n\r\n", id="no port"),
        pytest.param(b"CONNECT packages.example:0 HTTP/1.1\r\n\r\n", id="port 0"),
        pytest.param(b"CONNECT :443 HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET https://a.example/ HTTP/1.1\r\n\r\n", id="a secret address without a tunnel"),
        pytest.param(b"\x16\x03\x01\r\n\r\n", id="no HTTP at all"),
    ],
)
def test_bad_request(head):
    with pytest.raises(BadRequest):
        read_request(head)


@pytest.mark.parametrize(
    ("address", "want"),
    [
        ("93.184.216.34", True),
        ("192.168.1.5", True),
        ("2606:4700::1", True),
        ("::ffff:93.184.216.34", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("fe80::1", False),
        ("224.0.0.1", False),
    ],
)
def test_where_pods_may_go(address, want):
    assert is_public(ip_address(address)) == want


def test_what_is_inside_is_reached_without_the_proxy():
    found = proxy_environment("http://10.1.0.1:3128", [], "cluster.local")
    assert found["https_proxy"] == found["HTTPS_PROXY"] == "http://10.1.0.1:3128"
    assert ".svc" in found["no_proxy"].split(",")
    assert ".cluster.local" in found["NO_PROXY"].split(",")


async def spoken(address, request):
    """The whole answer to some bytes."""
    reader, writer = await connected(address)
    writer.write(request)
    writer.write_eof()
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def proxying(**options):
    listening = listen_tcp("127.0.0.1", 0)
    address = listening.getsockname()
    outside = Outside(Namespace.current(), **options)
    proxy = HttpProxy(listening, outside)
    try:
        yield address
    finally:
        await proxy.close()
        outside.close()


async def loopback_up():
    from ipaddress import ip_interface

    from kubereef.node.network import Links

    (await Links.start([ip_interface("10.1.0.1/24")])).close()


@in_namespace()
async def test_tunnels_and_plain_requests_reach_their_server():
    await loopback_up()
    everywhere = {"is_allowed": lambda _: True}
    async with Server("a", listening_at("127.0.0.1")) as server, proxying(**everywhere) as address:
        where = f"127.0.0.1:{server.address[1]}"
        tunnel = await spoken(address, f"CONNECT {where} HTTP/1.1\r\n\r\nhello".encode())
        assert tunnel == b"HTTP/1.1 200 Connection established\r\n\r\nahello"
        plain = await spoken(
            address, f"POST http://{where}/x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody".encode()
        )
        assert plain == b"aPOST /x HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"


@in_namespace()
async def test_the_hosts_loopback_is_not_outside():
    await loopback_up()
    async with Server("a", listening_at("127.0.0.1")) as server, proxying() as address:
        for host in ("127.0.0.1", "localhost"):
            answer = await spoken(address, f"CONNECT {host}:{server.address[1]} HTTP/1.1\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 502")
            assert b"not a place outside" in answer
        assert server.connections == 0


@in_namespace()
async def test_what_is_no_request_is_answered_with_400():
    await loopback_up()
    async with proxying() as address:
        assert (await spoken(address, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert (await spoken(address, b"x" * 70_000)).startswith(b"HTTP/1.1 400")
