"""One connection: bytes that came and were not read yet, and bytes that were written and have not gone yet.

Both are bounded. Whoever sends faster than is read is made to wait by the kernel, and a writer waits in `drain`.
"""

import asyncio
from collections.abc import Callable

CHUNK = 128 * 1024
"""Bytes that are kept in either direction before somebody has to wait, besides what one read brings."""


MOST_READ = 1024 * 1024


class TooLong(Exception):
    """A head or line is longer than it may be."""


class Wire(asyncio.Protocol):
    """A connection, made by an event loop's `create_server` or `create_connection`. One task reads, one writes."""

    def __init__(self, on_made: "Callable[[Wire], None] | None" = None) -> None:
        self.on_gone: Callable[[], object] | None = None
        """Called when the other side has ended or broken the connection, once."""
        self.has_ended = False
        self.is_broken = False
        """Whether the connection broke, so that what came is not to be taken for the whole."""
        self._on_made = on_made
        self._buffer = bytearray()
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._transport: asyncio.Transport
        self._is_lost = False
        self._is_full = False
        self._is_paused = False

    # --- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=CHUNK)
        if self._on_made is not None:
            self._on_made(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > CHUNK and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        self._gone()
        return True  # what is still to be sent is sent

    def connection_lost(self, problem: Exception | None) -> None:
        self._is_lost = True
        self.is_broken = problem is not None
        self._is_full = False
        self._gone()
        self._wake_writers()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake_writers()

    # --- reading

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has come that was not read."""
        return not self._buffer

    async def has_more(self) -> bool:
        """Return once there is something to read; False if there will not be."""
        return await self._something(0)

    async def read(self, most: int = MOST_READ) -> bytes:
        """Return what has come, but no more than so much, waiting for it; nothing once the other side has ended."""
        await self._something(0)
        return self._take(min(most, len(self._buffer)))

    async def read_until(self, end: bytes, most: int) -> bytes | None:
        """Return what comes up to an end mark, without the mark; None if the connection ended before the first byte.

        TooLong if it is longer than so much, ConnectionError if the connection ends in the middle.
        """
        searched = 0
        while (found := self._buffer.find(end, searched)) < 0:
            if len(self._buffer) > most:
                raise TooLong
            searched = max(0, len(self._buffer) - len(end) + 1)
            if not await self._something(len(self._buffer)):
                if not self._buffer:
                    return None
                raise ConnectionResetError("the connection ended in the middle of a message")
        if found > most:
            raise TooLong
        data = self._take(found + len(end))
        return data[: -len(end)]

    def skip(self, data: bytes) -> None:
        """Leave out what the unread bytes begin with, as often as they do."""
        while self._buffer.startswith(data):
            self._take(len(data))

    async def _something(self, beyond: int) -> bool:
        """Return once there are more bytes than so many; False if there will not be."""
        while len(self._buffer) <= beyond:
            if self.has_ended:
                return False
            assert self._reader is None, "one task reads"
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return True

    def _take(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        if self._is_paused and len(self._buffer) <= CHUNK and not self._is_lost:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    # --- writing

    def write(self, data: bytes) -> None:
        """Have bytes sent; await `drain` before many more."""
        if not self._is_lost:
            self._transport.write(data)

    async def drain(self) -> None:
        """Return when there is room for more; ConnectionError if nobody takes them any more."""
        while self._is_full:
            waiter = asyncio.get_running_loop().create_future()
            self._writers.append(waiter)
            await waiter
        if self._is_lost or self._transport.is_closing():
            raise ConnectionResetError("the connection is gone")

    def end(self) -> None:
        """Say that no more bytes come."""
        if not self._is_lost and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        """End the connection when everything has been sent."""
        self._transport.close()

    def abort(self) -> None:
        """Break the connection at once, so that the other side does not take what it has for the whole."""
        self._transport.abort()

    @property
    def peer(self) -> str:
        """The address of the other side."""
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    @property
    def is_open(self) -> bool:
        """Whether the other side is there, as far as is known."""
        return not self.has_ended and not self._transport.is_closing()

    # --- inside

    def _gone(self) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        self._wake_reader()
        if self.on_gone is not None:
            self.on_gone()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wake_writers(self) -> None:
        waiting, self._writers = self._writers, []
        for writer in waiting:
            if not writer.done():
                writer.set_result(None)
