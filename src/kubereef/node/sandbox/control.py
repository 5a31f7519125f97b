"""The node program's line to process 1: ask for processes, hear how they end.

`Control(start.control)` is made once, inside the running event loop. `ask` is what `PodSandbox` and `Container` use;
a `Process` is what they make of everything that runs. Exit codes of the node program's own children (asyncio's
subprocesses and the like) are not touched: those children are not process 1's.
"""

import array
import asyncio
import fcntl
import os
import signal
import socket
import struct
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from kubereef.node.sandbox.errors import NodeEnded, StartFailed
from kubereef.node.sandbox.init import EXIT_REPORT
from kubereef.node.sandbox.messages import (
    Born,
    Failed,
    HasTerminal,
    Reply,
    Request,
    close_descriptors,
    decode_reply,
    encode,
    receive_header,
    send_header,
)


class Exit(NamedTuple):
    """How a process ended: its exit code, which is 128 + `signal` where a signal ended it."""

    code: int
    signal: int | None = None


class Birth(NamedTuple):
    """A process as it came from process 1; a `Process` is made from it."""

    pid: int
    pidfd: int
    terminal: int | None
    exited: "asyncio.Future[Exit]"


class Process:
    """A running process that is not ours: a container, a command inside one, or the keeper of a Pod.

    `pid` is its number in the node's pid namespace, `terminal` the master side of its terminal, if it has one. Close
    it when it has ended and its terminal has been read.
    """

    def __init__(self, birth: Birth) -> None:
        self.pid, self._pidfd, self.terminal, self._exited = birth

    @property
    def is_running(self) -> bool:
        return not self._exited.done()

    async def wait(self) -> Exit:
        """Return how it ended, once it has; any number of tasks may wait, as often as they like."""
        return await asyncio.shield(self._exited)

    def signal(self, number: int) -> bool:
        """Send it a signal; False if it has ended. Its number cannot have passed to another process meanwhile."""
        if self._pidfd < 0:
            return False
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            return False
        return True

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal another size, of which it is told by SIGWINCH."""
        if self.terminal is None:
            raise ValueError(f"process {self.pid} has no terminal")
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """Close the descriptors; a process that still runs goes on."""
        for fd in (self._pidfd, self.terminal):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._pidfd = -1
        self.terminal = None


class Answer(NamedTuple):
    """What came of a request: a process if one was started, descriptors of namespaces if a Pod was opened."""

    birth: Birth | None
    namespaces: tuple[int, ...]


class Control:
    """The line itself; one for the life of the node program."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._take_reports)

    async def ask(self, request: Request, descriptors: Sequence[int] = ()) -> Answer:
        """Have a helper of process 1 do this; `StartFailed` if it could not. Cancelling undoes it."""
        line = _Line()
        answer = _Unfinished()
        try:
            await self._hand_over(line.far)
            line.far.close()
            await line.send(request, descriptors)
            while not answer.is_whole:
                reply, received = await line.receive()
                answer.add(reply, received)
                if isinstance(reply, Born):
                    answer.exited = self._exits[reply.pid] = self._loop.create_future()
            line.acknowledge()
        except BaseException as failure:
            answer.undo()
            self._exits.pop(answer.pid, None)
            if isinstance(failure, EOFError | ConnectionError):
                raise StartFailed("helper", "the helper process was killed before it was done") from failure
            raise
        finally:
            line.close()
        return answer.finished()

    def close(self) -> None:
        """Let go of the line: nothing can be asked for any more, and nobody hears of exits."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._end_waits()

    async def _hand_over(self, far: socket.socket) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [far.fileno()]))]
        while True:
            try:
                self._socket.sendmsg([b"\0"], rights)
            except BlockingIOError:  # process 1 has many requests before ours
                await _ready(self._loop.add_writer, self._loop.remove_writer, self._socket)
            else:
                return

    def _take_reports(self) -> None:
        while True:
            try:
                report = self._socket.recv(EXIT_REPORT.size)
            except BlockingIOError:
                return
            if not report:
                self._loop.remove_reader(self._socket)
                self._end_waits()
                return
            pid, status = EXIT_REPORT.unpack(report)
            exited = self._exits.pop(pid, None)
            if exited is not None and not exited.done():
                code = os.waitstatus_to_exitcode(status)
                exited.set_result(Exit(code) if code >= 0 else Exit(128 - code, -code))

    def _end_waits(self) -> None:
        for exited in self._exits.values():
            if not exited.done():
                exited.set_exception(NodeEnded("process 1 of the node is gone"))
                exited.exception()  # somebody may never ask
        self._exits.clear()


class _Unfinished:
    """An answer whose replies are still coming."""

    def __init__(self) -> None:
        self.pid = 0
        self.exited: asyncio.Future[Exit] | None = None
        self.is_whole = False
        self._pidfd = -1
        self._terminal: int | None = None
        self._namespaces: list[int] = []

    def add(self, reply: Reply, received: list[int]) -> None:
        if isinstance(reply, Failed):
            raise StartFailed(reply.step, reply.message, reply.errno)
        if isinstance(reply, Born):
            self.pid, (self._pidfd,) = reply.pid, received
        elif isinstance(reply, HasTerminal):
            (self._terminal,) = received
        else:
            self._namespaces = received
            self.is_whole = True

    def undo(self) -> None:
        """End the process, if there is one, and close everything."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):  # it may have ended by itself
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            os.close(self._pidfd)
        if self._terminal is not None:
            os.close(self._terminal)
        close_descriptors(self._namespaces)

    def finished(self) -> Answer:
        if self.exited is None:
            return Answer(None, tuple(self._namespaces))
        return Answer(Birth(self.pid, self._pidfd, self._terminal, self.exited), tuple(self._namespaces))


class _Line:
    """Our end of one request: send it, receive the replies, acknowledge the last one."""

    def __init__(self) -> None:
        self._near, self.far = socket.socketpair()
        self._near.setblocking(False)
        self._loop = asyncio.get_running_loop()

    async def send(self, request: Request, descriptors: Sequence[int]) -> None:
        body = encode(request)
        send_header(self._near, len(body), descriptors)
        await self._loop.sock_sendall(self._near, body)

    async def receive(self) -> tuple[Reply, list[int]]:
        """Return the next reply with its descriptors, which are the caller's; EOFError if none will come."""
        await _ready(self._loop.add_reader, self._loop.remove_reader, self._near)
        size, descriptors = receive_header(self._near)
        try:
            body = bytearray()
            while len(body) < size:
                if not (part := await self._loop.sock_recv(self._near, size - len(body))):
                    raise EOFError("the helper went away")
                body += part
            return decode_reply(body), descriptors
        except BaseException:
            close_descriptors(descriptors)
            raise

    def acknowledge(self) -> None:
        """Let the helper go: what it started is ours now."""
        self._near.send(b".")

    def close(self) -> None:
        self._near.close()
        self.far.close()


async def _ready(
    watch: Callable[[socket.socket, Callable[[], None]], object],
    unwatch: Callable[[socket.socket], object],
    source: socket.socket,
) -> None:
    """Return when the loop says that the socket can be read, or written, depending on what is passed."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    watch(source, wake)
    try:
        await ready
    finally:
        unwatch(source)
