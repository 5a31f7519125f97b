"""Two connections made one: bytes that arrive at either leave at the other.

Bytes are moved as soon as they come and kept only while the receiver cannot take them; meanwhile nothing more is read
from their sender, so a slow receiver slows its sender down and memory stays bounded. One direction may end before
the other. A connection that breaks breaks the other one too, so that nobody takes half a message for a whole one.
"""

import asyncio
import socket
import struct
from collections.abc import Callable

CHUNK = 256 * 1024
"""Bytes that are moved at once: enough to make the cost of a call small, few enough to let others have their turn."""

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6))
_NEVER_STARTED = (BlockingIOError, InterruptedError)

# One buffer serves all connections of a process, as it holds nothing between calls: what could not be sent is copied.
# Only the event loop's thread touches it.
_buffer = memoryview(bytearray(CHUNK))


def prepare(connection: socket.socket) -> None:
    """Set a TCP connection up for being passed on: no waiting for more bytes, and a peer that vanished is noticed."""
    connection.setblocking(False)
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def reset(connection: socket.socket) -> None:
    """Close a connection so that its peer learns that it broke, rather than ended."""
    if connection.fileno() >= 0 and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    connection.close()


class Joined:
    """Two sockets that pass their bytes to each other until both directions have ended or one socket breaks."""

    __slots__ = ("_left", "_loop", "_on_end", "_right", "_to_left", "_to_right")

    def __init__(self, left: socket.socket, right: socket.socket, on_end: Callable[["Joined"], None]) -> None:
        """Begin to pass bytes. The sockets do not block and belong to this object from now on."""
        self._loop = asyncio.get_running_loop()
        self._left, self._right = left, right
        self._on_end = on_end
        self._to_right = _Direction(self._loop, left, right, self._ended, self.abort)
        self._to_left = _Direction(self._loop, right, left, self._ended, self.abort)
        self._to_right.start()
        self._to_left.start()

    @property
    def is_open(self) -> bool:
        return self._left.fileno() >= 0

    def abort(self) -> None:
        """Break both connections. Safe to call twice."""
        self._finish(reset)

    def _ended(self) -> None:
        if self._to_left.is_over and self._to_right.is_over:
            self._finish(socket.socket.close)

    def _finish(self, close: Callable[[socket.socket], None]) -> None:
        if not self.is_open:
            return
        for one in (self._left, self._right):
            self._loop.remove_reader(one)
            self._loop.remove_writer(one)
            close(one)
        self._on_end(self)


class _Direction:
    """Bytes on their way from one socket to the other."""

    __slots__ = ("_broke", "_ended", "_left_over", "_loop", "_receiver", "_sender", "is_over")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sender: socket.socket,
        receiver: socket.socket,
        ended: Callable[[], None],
        broke: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._sender, self._receiver = sender, receiver
        self._ended, self._broke = ended, broke
        self._left_over = memoryview(b"")
        self.is_over = False

    def start(self) -> None:
        self._loop.add_reader(self._sender, self._readable)

    def _readable(self) -> None:
        try:
            count = self._sender.recv_into(_buffer)
        except _NEVER_STARTED:
            return
        except OSError:
            self._broke()
            return
        if not count:
            self._loop.remove_reader(self._sender)
            self._end()
            return
        sent = self._send(_buffer[:count])
        if 0 <= sent < count:
            self._left_over = memoryview(bytes(_buffer[sent:count]))
            self._loop.remove_reader(self._sender)
            self._loop.add_writer(self._receiver, self._writable)

    def _writable(self) -> None:
        sent = self._send(self._left_over)
        if sent < 0:
            return
        self._left_over = self._left_over[sent:]
        if not self._left_over:
            self._left_over = memoryview(b"")  # let go of the bytes behind the empty view
            self._loop.remove_writer(self._receiver)
            self._loop.add_reader(self._sender, self._readable)

    def _send(self, data: memoryview) -> int:
        """Return how many bytes were taken; below zero if the receiver is gone, and with it everything else."""
        try:
            return self._receiver.send(data)
        except _NEVER_STARTED:
            return 0
        except OSError:
            self._broke()
            return -1

    def _end(self) -> None:
        """Pass on that no more bytes come. There are none left over: reading stops while there are."""
        self.is_over = True
        try:
            self._receiver.shutdown(socket.SHUT_WR)
        except OSError:
            self._broke()
            return
        self._ended()
