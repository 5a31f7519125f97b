"""The front door of the kubelet's HTTPS API: connections, who may come in, and where each path leads."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from aiohttp import web
from multidict import MultiMapping

from kubereef.node.kubelet.api import portforward
from kubereef.node.kubelet.api.access import Access, Denied
from kubereef.node.kubelet.api.channels import COMMAND_PROTOCOLS, PORT_PROTOCOLS, Channels
from kubereef.node.kubelet.api.conversations import (
    SPDY_PROTOCOLS,
    Conversation,
    SpdyConversation,
    Streams,
    WebSocketConversation,
)
from kubereef.node.kubelet.api.logoptions import BadOption, read_options
from kubereef.node.kubelet.api.logs import read_log
from kubereef.node.kubelet.api.portforward import Connection, Forwarder, forward_channels, read_ports
from kubereef.node.kubelet.api.remote import join_container, run_command
from kubereef.node.kubelet.api.stats import summary
from kubereef.node.kubelet.api.upgrades import (
    CannotUpgrade,
    MessagePipe,
    Taken,
    chosen,
    is_websocket,
    open_websocket,
    take_over,
)
from kubereef.node.kubelet.handles import ContainerHandle, NotRunning, PodHandle, Pods
from kubereef.server.peers import peer_of
from kubewire.sources import Clock

log = logging.getLogger(__name__)

_WEBSOCKET, _SPDY = "Sec-WebSocket-Protocol", "X-Stream-Protocol-Version"
_HANDSHAKE_SECONDS = 10.0
_MOST_HEADER = 64 * 1024


class Refused(Exception):
    """A request that cannot be answered; the message is for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Sockets(Protocol):
    """Opens connections inside Pods: `podsockets.PodSockets`."""

    async def connect(self, network: int, port: int) -> Connection: ...


class KubeletApi:
    """Serves the API of one node: `start` on a listening socket, `stop` in the end."""

    def __init__(self, node: str, pods: Pods, access: Access, sockets: Sockets, clock: Clock) -> None:
        self._node = node
        self._pods = pods
        self._access = access
        self._sockets = sockets
        self._clock = clock
        self._web: web.Server | None = None
        self._listeners: list[asyncio.Server] = []
        self._pages: dict[str, Callable[[web.BaseRequest, list[str]], Awaitable[web.StreamResponse]]] = {
            "healthz": self._healthz,
            "pods": self._list_pods,
            "runningpods": self._list_pods,
            "stats": self._stats,
            "containerLogs": self._log,
            "exec": self._exec,
            "attach": self._attach,
            "portForward": self._port_forward,
        }

    async def start(self, listening: socket.socket, tls: ssl.SSLContext) -> None:
        """Serve at a socket, which belongs to this object from now on. May be called for more than one."""
        if self._web is None:
            self._web = web.Server(
                self._answer,
                handler_cancellation=True,  # a log that nobody reads any more is not followed
                access_log=None,
                logger=log,
                max_line_size=_MOST_HEADER,
                max_field_size=_MOST_HEADER,
            )
        listener = await asyncio.get_running_loop().create_server(
            self._web, sock=listening, ssl=tls, ssl_handshake_timeout=_HANDSHAKE_SECONDS
        )
        self._listeners.append(listener)

    async def stop(self) -> None:
        """Serve nobody any more, and end what is under way."""
        for listener in self._listeners:
            listener.close()
        if self._web is not None:
            await self._web.shutdown(0)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            transport = request.transport
            peer = peer_of(transport.get_extra_info("ssl_object") if transport is not None else None)
            await self._access.check(peer, request.headers, request.method, request.path)
            words = request.path.split("/")[1:]
            page = self._pages.get(words[0])
            if page is None:
                raise Refused(404, "404 page not found")
            return await page(request, words[1:])
        except (Denied, Refused) as refusal:
            return web.Response(status=refusal.status, text=str(refusal))
        except CannotUpgrade as refusal:
            return web.Response(status=400, text=str(refusal))

    # --- what the node runs

    async def _healthz(self, _request: web.BaseRequest, _rest: list[str]) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _list_pods(self, _request: web.BaseRequest, _rest: list[str]) -> web.StreamResponse:
        items = [pod.manifest for pod in self._pods.all()]
        return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def _stats(self, _request: web.BaseRequest, rest: list[str]) -> web.StreamResponse:
        if rest != ["summary"]:
            raise Refused(404, "404 page not found")
        return _json(summary(self._node, self._pods, self._clock))

    # --- containers

    async def _log(self, request: web.BaseRequest, rest: list[str]) -> web.StreamResponse:
        pod, container = self._container(rest)
        try:
            options, previous = read_options(request.query, self._clock)
        except BadOption as bad:
            raise Refused(400, str(bad)) from None
        path = container.log_file(previous=previous)
        if path is None:
            raise Refused(400, _why_no_log(pod, container, previous=previous))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        ended = asyncio.ensure_future(_ended(container, is_over=previous))
        try:
            async for part in read_log(path, options, self._clock, ended.done):
                await response.write(part)
        finally:
            ended.cancel()
        return response

    async def _exec(self, request: web.BaseRequest, rest: list[str]) -> web.StreamResponse:
        _, container = self._container(rest)
        argv = request.query.getall("command", [])
        if not argv:
            raise Refused(400, "no command specified")
        wanted = _streams(request.query)

        async def run(client: Conversation) -> None:
            await run_command(container, argv, wanted, client, self._clock)

        return await self._conversed(request, wanted, run)

    async def _attach(self, request: web.BaseRequest, rest: list[str]) -> web.StreamResponse:
        _, container = self._container(rest)
        wanted = _streams(request.query)
        try:
            attachment = container.attach()
        except NotRunning as problem:
            raise Refused(400, str(problem)) from None
        try:
            # A terminal is the container's own affair: with one there is a single output.
            wanted = wanted._replace(tty=attachment.has_terminal)
            return await self._conversed(
                request, wanted, lambda client: join_container(attachment, wanted, client)
            )
        finally:
            attachment.close()

    async def _conversed(
        self, request: web.BaseRequest, wanted: Streams, work: Callable[[Conversation], Awaitable[None]]
    ) -> web.StreamResponse:
        """Upgrade the connection as the client wants it, and have the work done with its streams."""
        client: Conversation
        response: web.StreamResponse
        if is_websocket(request):
            protocol = chosen(request, _WEBSOCKET, COMMAND_PROTOCOLS)
            response = websocket = await open_websocket(request, protocol)
            client = WebSocketConversation(Channels(websocket, protocol), wanted)
        else:
            protocol = chosen(request, _SPDY, SPDY_PROTOCOLS)
            client = SpdyConversation(take_over(request, protocol), wanted)
            response = Taken()
        try:
            await client.greet()
            await work(client)
        except (ConnectionError, TimeoutError) as problem:
            log.debug("a client has gone: %s", problem)
        finally:
            await client.close()
        return response

    async def _port_forward(self, request: web.BaseRequest, rest: list[str]) -> web.StreamResponse:
        pod = self._pod(rest)
        network = pod.network
        if network is None:
            raise Refused(400, f"pod {rest[1]} has no network yet: it does not run")

        async def connect(port: int) -> Connection:
            if (present := pod.network) is None:
                raise ConnectionRefusedError("the Pod does not run any more")
            return await self._sockets.connect(present, port)

        name = f"{rest[0]}/{rest[1]}"
        if not is_websocket(request):
            pipe = take_over(request, chosen(request, _SPDY, portforward.SPDY_PROTOCOLS))
            await Forwarder(pipe, connect, name).run()
            return Taken()
        protocol = chosen(request, _WEBSOCKET, (portforward.TUNNELLED, *PORT_PROTOCOLS))
        if protocol == portforward.TUNNELLED:
            websocket = await open_websocket(request, protocol)
            await Forwarder(MessagePipe(websocket), connect, name).run()
            return websocket
        try:
            ports = read_ports(request.query.getall("port", []))
        except ValueError as bad:
            raise Refused(400, str(bad)) from None
        websocket = await open_websocket(request, protocol)
        await forward_channels(Channels(websocket, protocol), ports, connect, name)
        return websocket

    def _pod(self, rest: list[str]) -> PodHandle:
        """Return the Pod that a path names: namespace, name, and possibly its uid."""
        if len(rest) not in (2, 3):
            raise Refused(404, "404 page not found")
        pod = self._pods.find(*rest)
        if pod is None:
            raise Refused(404, f'pod "{rest[1]}" not found')
        return pod

    def _container(self, rest: list[str]) -> tuple[PodHandle, ContainerHandle]:
        if len(rest) < 3:
            raise Refused(404, "404 page not found")
        pod = self._pod(rest[:-1])
        container = pod.container(rest[-1])
        if container is None:
            raise Refused(404, f'container "{rest[-1]}" not found in pod "{rest[1]}"')
        return pod, container


def _streams(query: MultiMapping[str]) -> Streams:
    tty = _flag(query, "tty")
    # A terminal has one output, which is the standard one.
    wanted = Streams(_flag(query, "input"), _flag(query, "output"), _flag(query, "error") and not tty, tty)
    if not (wanted.stdin or wanted.stdout or wanted.stderr):
        raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")
    return wanted


def _flag(query: MultiMapping[str], name: str) -> bool:
    return query.get(name, "") in ("1", "true")


async def _ended(container: ContainerHandle, *, is_over: bool) -> None:
    if not is_over:
        await container.ended()


def _why_no_log(pod: PodHandle, container: ContainerHandle, *, previous: bool) -> str:
    name = pod.manifest["metadata"]["name"]
    if previous:
        return f'previous terminated container "{container.name}" in pod "{name}" not found'
    status = pod.manifest.get("status") or {}
    told = [
        one
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for one in status.get(kind) or ()
        if one.get("name") == container.name
    ]
    waiting = ((told[0].get("state") or {}).get("waiting") or {}) if told else {}
    reason = waiting.get("reason") or "ContainerCreating"
    return f'container "{container.name}" in pod "{name}" is waiting to start: {reason}'


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
