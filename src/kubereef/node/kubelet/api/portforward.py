"""Port-forward: connections of a client to ports inside a Pod, many over one SPDY connection, or one per channel."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from kubereef.node.kubelet.api.channels import Channels
from kubereef.node.kubelet.api.inbox import Inbox
from kubereef.node.kubelet.api.spdysession import Pipe, Session, Stream

log = logging.getLogger(__name__)

SPDY_PROTOCOLS = ("portforward.k8s.io",)
TUNNELLED = "SPDY/3.1+portforward.k8s.io"
"""SPDY inside the messages of a WebSocket, as kubectl has it today."""

STREAM_SECONDS = 30.0
_PORTION = 64 * 1024
_MOST_PORTS = 100


class Connection(NamedTuple):
    """A connection to a port inside the Pod."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


Connect = Callable[[int], Awaitable[Connection]]
"""Opens a connection to a port inside the Pod; OSError if nobody listens."""


class Forwarder:
    """Forwards over one SPDY connection: each pair of a data and an error stream is a connection to a port."""

    def __init__(self, pipe: Pipe, connect: Connect, pod: str) -> None:
        self._connect = connect
        self._pod = pod
        self._waiting: dict[str, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session = Session(pipe, self._opened)

    async def run(self) -> None:
        """Forward until the client ends the connection; what is open then is closed."""
        try:
            await self._session.run()
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _opened(self, stream: Stream) -> None:
        kind = stream.headers.get("streamtype", "")
        if kind not in ("data", "error") or _port(stream) == 0:
            self._spawn(stream.reset())
            return
        # Clients that give no id open the error stream first and the data stream right after it.
        number = stream.number if kind == "error" else stream.number - 2
        request = stream.headers.get("requestid") or str(number)
        other = self._waiting.pop(request, None)
        if other is None:
            self._waiting[request] = stream
            self._spawn(self._give_up(request, stream))
            return
        data, error = (stream, other) if kind == "data" else (other, stream)
        self._spawn(self._forward(data, error))

    async def _give_up(self, request: str, stream: Stream) -> None:
        """End a stream whose counterpart does not come."""
        await asyncio.sleep(STREAM_SECONDS)
        if self._waiting.get(request) is stream:
            del self._waiting[request]
            await stream.reset()

    async def _forward(self, data: Stream, error: Stream) -> None:
        port = _port(data)
        problem = await forward(port, self._connect, self._pod, data.inbox, data.write)
        with suppress(OSError):  # the client may be gone
            if problem:
                await error.write(problem.encode())
            await error.finish()
            await (data.reset() if problem else data.finish())

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def forward_channels(channels: Channels, ports: Sequence[int], connect: Connect, pod: str) -> None:
    """Forward over the channels of a WebSocket: 2n is the data of the n-th port and 2n + 1 tells what went wrong."""
    inboxes = [Inbox() for _ in ports]

    async def one(index: int, port: int) -> None:
        async def send(data: bytes) -> None:
            await channels.send(2 * index, data)

        problem = await forward(port, connect, pod, inboxes[index], send)
        if problem:
            await channels.send(2 * index + 1, problem.encode())

    async def listen() -> None:
        async for channel, data in channels:
            index, kind = divmod(channel, 2)
            if kind == 0 and 0 <= index < len(inboxes):
                await inboxes[index].put(data)

    for index, port in enumerate(ports):
        for channel in (2 * index, 2 * index + 1):
            await channels.send(channel, port.to_bytes(2, "little"))
    listening = asyncio.create_task(listen())
    forwarding = asyncio.gather(*(one(index, port) for index, port in enumerate(ports)))
    try:
        await asyncio.wait((listening, forwarding), return_when=asyncio.FIRST_COMPLETED)
    finally:
        listening.cancel()
        forwarding.cancel()
        await asyncio.gather(listening, forwarding, return_exceptions=True)
        await channels.close()


async def forward(
    port: int, connect: Connect, pod: str, incoming: Inbox, send: Callable[[bytes], Awaitable[None]]
) -> str:
    """Carry bytes both ways between a client and a port of the Pod; return what went wrong, for the client."""
    try:
        reader, writer = await connect(port)
    except (OSError, TimeoutError) as problem:
        reason = str(problem) or "no answer in time"
        return f"error forwarding port {port} to pod {pod}: {reason}"

    async def inwards() -> None:
        while data := await incoming.get():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def outwards() -> None:
        while data := await reader.read(_PORTION):
            await send(data)

    passing = asyncio.create_task(inwards())
    try:
        # The Pod's side decides when it is over: a client that has said all may still wait for the answer.
        await outwards()
    except OSError as problem:
        return f"error forwarding port {port} to pod {pod}: {problem}"
    finally:
        writer.close()  # before anything that may be cancelled
        passing.cancel()
        await asyncio.gather(passing, return_exceptions=True)
    return ""


def read_ports(words: Sequence[str]) -> list[int]:
    """Return the ports of a query; ValueError, with a message for the client, if one is none."""
    ports = []
    for word in (part for text in words for part in text.split(",")):
        if not word.isascii() or not word.isdigit() or not 0 < int(word) < 65536:
            raise ValueError(f'unable to parse "{word[:20]}" as a port')
        ports.append(int(word))
    if not ports:
        raise ValueError('query parameter "port" is required')
    if len(ports) > _MOST_PORTS:
        raise ValueError(f"more than {_MOST_PORTS} ports")
    return ports


def _port(stream: Stream) -> int:
    word = stream.headers.get("port", "")
    return int(word) if word.isascii() and word.isdigit() and 0 < int(word) < 65536 else 0
