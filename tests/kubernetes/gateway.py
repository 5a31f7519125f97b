"""The way from an API server into Pods that run nowhere: what it sends to their addresses is answered by a function.

A kube-apiserver that is told so (`--egress-selector-config-file`) asks a CONNECT proxy for every connection to a Pod or
a Service. Here that proxy is a unix socket, and behind it is no network.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml
from aiohttp import web

from eagleray.kube.transport import Answer

# Answers a request (method, path, headers, body) to an address such as 10.64.0.7:8265; None if nobody is there.
Answering = Callable[[str, str, str, dict[str, str], bytes], Answer | None]

_LONGEST_HEADER = 8192


class Gateway:
    """Serves what is sent to the addresses of Pods, from a unix socket in a directory."""

    def __init__(self, directory: Path, answering: Answering) -> None:
        self._socket = directory / "egress.sock"
        self._directory = directory
        self._answering = answering
        self._server: asyncio.Server | None = None

    @property
    def flags(self) -> list[str]:
        """What an API server has to be told so that it comes here."""
        transport = {"uds": {"udsName": str(self._socket)}}
        connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
        config = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }
        path = self._directory / "egress.yaml"
        path.write_text(yaml.safe_dump(config))
        return [f"--egress-selector-config-file={path}"]

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Tunnel(self._answering), str(self._socket))

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


class _Tunnel(asyncio.Protocol):
    """One connection: it says where it wants to go, and is then spoken to as if it were there."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._heard = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._heard += data
        header, end, rest = self._heard.partition(b"\r\n\r\n")
        if not end:
            if len(header) > _LONGEST_HEADER:
                self._transport.abort()
            return
        method, target, _version = header.split(b"\r\n")[0].decode("ascii").split()
        if method != "CONNECT":
            self._transport.abort()
            return
        self._transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        inside = web.Server(_handler_at(target, self._answering))()
        self._transport.set_protocol(inside)
        inside.connection_made(self._transport)
        if rest:
            inside.data_received(rest)


def _handler_at(
    target: str, answering: Answering
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = answering(target, request.method, request.path, headers, await request.read())
        if answer is None:
            # As if the connection had been refused: the API server says 502 or 503 for a line that is cut.
            assert request.transport is not None
            request.transport.close()
            return web.Response(status=502)
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))

    return handle
