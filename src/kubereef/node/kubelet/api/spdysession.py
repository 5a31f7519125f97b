"""A SPDY connection with a client: it opens streams, both sides write to them and end them one by one."""

from collections.abc import Callable, Mapping
from typing import Protocol

from kubereef.node.kubelet.api.inbox import Inbox
from kubereef.node.kubelet.api.spdy import (
    BadFrame,
    Data,
    Decoder,
    Encoder,
    Frame,
    GoAway,
    Ping,
    Reset,
    SynStream,
)

MOST_STREAMS = 2048
_PORTION = 32 * 1024
_REFUSED_STREAM, _CANCEL = 3, 5


class Pipe(Protocol):
    """A connection that both sides write to."""

    async def read(self) -> bytes:
        """Return what has come, waiting for it; nothing once the other side has ended."""
        ...

    async def send(self, data: bytes) -> None:
        """Send bytes, no faster than they are taken; OSError if the other side is gone."""
        ...


class Stream:
    """One stream: read until nothing comes, write, finish."""

    def __init__(self, session: "Session", number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        self.inbox = Inbox()
        self.is_finished = False
        self.has_ended = False
        self._session = session

    async def read(self) -> bytes:
        """Return the next bytes, or nothing when the client has ended its side."""
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        """Send bytes; nothing after `finish`."""
        for start in range(0, len(data), _PORTION):
            if not self.is_finished:
                await self._session.send_data(self.number, data[start : start + _PORTION])

    async def finish(self) -> None:
        """End our side: the client reads to its end."""
        if not self.is_finished:
            self.is_finished = True
            await self._session.send_data(self.number, b"", fin=True)
            self._session.forget_if_over(self)

    async def reset(self) -> None:
        """Break the stream off."""
        if not self.is_finished:
            self.is_finished = True
            await self._session.send_reset(self.number)
        self.inbox.end()
        self.has_ended = True
        self._session.forget_if_over(self)


class Session:
    """The connection. `on_stream` is told of each stream that the client opens; `run` returns when it is over."""

    def __init__(self, pipe: Pipe, on_stream: Callable[[Stream], None]) -> None:
        self._pipe = pipe
        self._on_stream = on_stream
        self._decoder = Decoder()
        self._encoder = Encoder()
        self._streams: dict[int, Stream] = {}

    async def run(self) -> None:
        """Take in what the client sends until it ends, or does not speak SPDY."""
        try:
            while data := await self._pipe.read():
                for frame in self._decoder.feed(data):
                    await self._take(frame)
        except (BadFrame, OSError):
            return  # whoever sent that is not told more than that the connection ends
        finally:
            for stream in tuple(self._streams.values()):
                stream.inbox.end()
                stream.is_finished = True
            self._streams.clear()

    async def send_data(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        await self._pipe.send(self._encoder.data(stream, data, fin=fin))

    async def send_reset(self, stream: int) -> None:
        await self._pipe.send(self._encoder.reset(stream, _CANCEL))

    def forget_if_over(self, stream: Stream) -> None:
        """Let go of a stream that neither side writes to any more."""
        if stream.is_finished and stream.has_ended:
            self._streams.pop(stream.number, None)

    async def _take(self, frame: Frame) -> None:
        match frame:
            case SynStream():
                await self._open(frame)
            case Data(number, data, fin):
                stream = self._streams.get(number)
                if stream is not None:
                    await stream.inbox.put(data)
                    if fin:
                        self._end(stream)
            case Reset(number):
                stream = self._streams.get(number)
                if stream is not None:
                    stream.is_finished = True
                    self._end(stream)
            case Ping(number):
                await self._pipe.send(self._encoder.ping(number))
            case GoAway():
                pass  # streams that are open go on; the connection's end comes by itself

    async def _open(self, frame: SynStream) -> None:
        if len(self._streams) >= MOST_STREAMS or frame.stream in self._streams:
            await self._pipe.send(self._encoder.reset(frame.stream, _REFUSED_STREAM))
            return
        stream = Stream(self, frame.stream, frame.headers)
        self._streams[frame.stream] = stream
        await self._pipe.send(self._encoder.syn_reply(frame.stream))
        if frame.fin:
            self._end(stream)
        self._on_stream(stream)

    def _end(self, stream: Stream) -> None:
        stream.has_ended = True
        stream.inbox.end()
        self.forget_if_over(stream)
