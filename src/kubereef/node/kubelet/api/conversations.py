"""The client's side of an exec or attach: standard streams, terminal sizes, and a last word on how it went.

Clients bring it over a WebSocket, whose messages name a channel in their first byte, or over SPDY, with a stream for
each. Both look the same to whoever runs the command.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from kubereef.node.kubelet.api.channels import END_INPUT, WITH_STATUS, Channels
from kubereef.node.kubelet.api.inbox import Inbox
from kubereef.node.kubelet.api.spdysession import Pipe, Session, Stream

SPDY_PROTOCOLS = ("v4.channel.k8s.io",)
STREAM_SECONDS = 30.0
"""How long a client may take to open the streams that it asked for."""

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_CHANNELS = {"stdout": _STDOUT, "stderr": _STDERR}
_MOST_RESIZE = 1024


class Streams(NamedTuple):
    """Which streams a client wants, and whether on a terminal."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Size(msgspec.Struct, frozen=True, rename="pascal"):
    """A terminal's size, as clients send it."""

    width: int = 0
    height: int = 0


class Conversation(Protocol):
    """What a command has to do with its client."""

    stdin: Inbox
    on_resize: Callable[[Size], None] | None
    size: Size | None

    async def greet(self) -> None:
        """Begin: the client is there, and all that it asked for."""
        ...

    async def close(self) -> None:
        """Let go of the client, whatever it does."""
        ...

    async def listen(self) -> None:
        """Take in what the client sends; returns when it is gone."""
        ...

    async def write(self, name: str, data: bytes) -> None:
        """Send output: of `stdout` or `stderr`."""
        ...

    async def finish(self, status: dict[str, Any]) -> None:
        """Tell how it ended, as a Status, and end the conversation."""
        ...


class _Sizes:
    """Takes in terminal sizes; the last one is remembered for who comes late."""

    def __init__(self) -> None:
        self.size: Size | None = None
        self.on_resize: Callable[[Size], None] | None = None

    def resized(self, text: bytes) -> None:
        try:
            size = msgspec.json.decode(text, type=Size)
        except msgspec.DecodeError:
            return  # a size that cannot be read changes nothing
        if 0 < size.width < 65536 and 0 < size.height < 65536:
            self.size = size
            if self.on_resize is not None:
                self.on_resize(size)


class WebSocketConversation(_Sizes):
    """Channels in one WebSocket."""

    def __init__(self, channels: Channels, wanted: Streams) -> None:
        super().__init__()
        self.stdin = Inbox()
        self._channels = channels
        self._wanted = wanted
        self._can_end_input = channels.protocol == END_INPUT
        if not wanted.stdin:
            self.stdin.end()

    async def greet(self) -> None:
        """Let the client know that it is heard: an empty message of the first channel it listens to."""
        first = _STDOUT if self._wanted.stdout else _STDERR if self._wanted.stderr else _ERROR
        await self._channels.send(first)

    async def close(self) -> None:
        """Nothing to do: the socket ends with its request."""

    async def listen(self) -> None:
        try:
            async for channel, data in self._channels:
                await self._take(channel, data)
        finally:
            self.stdin.end()

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == _STDIN:
            await self.stdin.put(data)
        elif channel == _RESIZE:
            self.resized(data)
        elif channel == _CLOSE and self._can_end_input and data[:1] == bytes([_STDIN]):
            self.stdin.end()

    async def write(self, name: str, data: bytes) -> None:
        if getattr(self._wanted, name):
            await self._channels.send(_CHANNELS[name], data)

    async def finish(self, status: dict[str, Any]) -> None:
        if self._channels.protocol in WITH_STATUS:
            await self._channels.send(_ERROR, msgspec.json.encode(status))
        elif status["status"] != "Success":
            await self._channels.send(_ERROR, str(status.get("message", "")).encode())
        await self._channels.close()


class SpdyConversation(_Sizes):
    """A SPDY stream for each of the client's."""

    def __init__(self, pipe: Pipe, wanted: Streams) -> None:
        super().__init__()
        self.stdin = Inbox()
        self._streams: dict[str, Stream] = {}
        self._session = Session(pipe, self._opened)
        self._expected = {"error"} | {name for name in ("stdin", "stdout", "stderr") if getattr(wanted, name)}
        if wanted.tty:
            self._expected.add("resize")
        self._complete = asyncio.Event()
        self._reading: asyncio.Task[None]
        if not wanted.stdin:
            self.stdin.end()

    async def greet(self) -> None:
        """Wait until the client has opened all the streams that it asked for; TimeoutError if it does not."""
        self._reading = asyncio.create_task(self._session.run())
        async with asyncio.timeout(STREAM_SECONDS):
            await self._complete.wait()

    def _opened(self, stream: Stream) -> None:
        name = stream.headers.get("streamtype", "")
        if name not in self._expected or name in self._streams:
            return
        self._streams[name] = stream
        if name == "stdin":
            self.stdin = stream.inbox
        if self._streams.keys() == self._expected:
            self._complete.set()

    async def listen(self) -> None:
        sizes = asyncio.create_task(self._follow_sizes())
        try:
            await asyncio.shield(self._reading)
        finally:
            sizes.cancel()
            await asyncio.gather(sizes, return_exceptions=True)

    async def close(self) -> None:
        """Listen no more."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _follow_sizes(self) -> None:
        await self._complete.wait()
        stream = self._streams.get("resize")
        text = b""
        while stream is not None and (part := await stream.read()):
            text = (text + part)[-_MOST_RESIZE:]
            *whole, text = text.split(b"\n") if b"\n" in text else text.replace(b"}", b"}\n").split(b"\n")
            for size in whole:
                self.resized(size)

    async def write(self, name: str, data: bytes) -> None:
        stream = self._streams.get(name)
        if stream is not None:
            await stream.write(data)

    async def finish(self, status: dict[str, Any]) -> None:
        for name, stream in self._streams.items():
            if name == "error":
                await stream.write(msgspec.json.encode(status))
            await stream.finish()
