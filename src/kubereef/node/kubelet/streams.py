"""A container's own streams: its output goes to the log and to whoever is attached, its input comes from them."""

import asyncio
import os
from collections import deque
from contextlib import suppress

from kubereef.node.kubelet.handles import Output
from kubereef.node.kubelet.interfaces import Process
from kubereef.node.kubelet.logs import ContainerLog, Stream
from kubereef.node.sandbox import Stdio

_CHUNK = 64 * 1024
_MOST_UNREAD = 4 * 1024 * 1024  # bytes for one who is attached and does not read; then he is let go


class ContainerStreams:
    """The streams of one run: `stdio` is for the sandbox, `begin` when the process runs, `finish` when it ended."""

    def __init__(self, log: ContainerLog, *, has_stdin: bool, has_terminal: bool, stdin_once: bool) -> None:
        self.has_terminal = has_terminal
        self.takes_input = has_stdin
        self._log = log
        self._stdin_once = stdin_once
        self._attached: list[StreamAttachment] = []
        self._reading: dict[int, Stream] = {}
        self._input = -1
        self._may_write = asyncio.Event()
        self._process: Process | None = None
        self._drained = asyncio.get_running_loop().create_future()
        self._theirs: list[int] = []
        self.stdio = Stdio()
        if not has_terminal:
            self._make_pipes(has_stdin=has_stdin)

    def begin(self, process: Process) -> None:
        """Begin to read; the descriptors that the process was given are closed here."""
        self._close_theirs()
        self._process = process
        if process.terminal is not None:
            master = os.dup(process.terminal)
            self._reading = {master: "stdout"}
            self._input = os.dup(process.terminal) if self.takes_input else -1
        loop = asyncio.get_running_loop()
        for fd in self._reading:
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._read, fd)

    async def finish(self, patience: float) -> None:
        """Return when all output was read; what somebody else still holds open is left after some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.shield(self._drained)
        self.close()

    def close(self) -> None:
        """Let go of everything; the log is whole then. A second time does nothing."""
        self._close_theirs()
        for fd in tuple(self._reading):
            self._end(fd)
        self.close_input()
        self._log.close()
        for attachment in tuple(self._attached):
            attachment.end()
        self._attached.clear()
        if not self._drained.done():
            self._drained.set_result(None)

    def attach(self) -> "StreamAttachment":
        """Let somebody see the output from now on."""
        attachment = StreamAttachment(self)
        self._attached.append(attachment)
        return attachment

    def detach(self, attachment: "StreamAttachment") -> None:
        """Forget somebody who was attached."""
        with suppress(ValueError):
            self._attached.remove(attachment)

    def end_input(self) -> None:
        """Let the container see the end of its input, if one client's input is all it takes."""
        if self._stdin_once:
            self.close_input()

    def close_input(self) -> None:
        """Let the container see the end of its input."""
        if self._input >= 0:
            asyncio.get_running_loop().remove_writer(self._input)
            os.close(self._input)
            self._input = -1
        self._may_write.set()

    async def write(self, data: bytes) -> None:
        """Pass bytes to the container; those that it does not take any more are dropped."""
        while data and self._input >= 0:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await self._until_writable()
            except OSError:  # the container has closed its input, or ended
                self.close_input()

    def resize(self, rows: int, columns: int) -> None:
        if self._process is not None and self._process.terminal is not None:
            self._process.resize(rows, columns)

    async def _until_writable(self) -> None:
        self._may_write.clear()
        loop = asyncio.get_running_loop()
        loop.add_writer(self._input, self._may_write.set)
        try:
            await self._may_write.wait()
        finally:
            if self._input >= 0:
                loop.remove_writer(self._input)

    def _make_pipes(self, *, has_stdin: bool) -> None:
        stdin = None
        if has_stdin:
            stdin, self._input = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self._input, False)
            self._theirs.append(stdin)
        writing = []
        streams: tuple[Stream, ...] = ("stdout", "stderr")
        for stream in streams:
            ours, theirs = os.pipe2(os.O_CLOEXEC)
            self._reading[ours] = stream
            self._theirs.append(theirs)
            writing.append(theirs)
        self.stdio = Stdio(stdin, *writing)

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # a terminal whose last program has gone
            data = b""
        if not data:
            self._end(fd)
            return
        stream = self._reading[fd]
        self._log.write(stream, data)
        for attachment in tuple(self._attached):
            attachment.take(Output(stream, data))

    def _end(self, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)
        del self._reading[fd]
        if not self._reading and not self._drained.done():
            self._drained.set_result(None)

    def _close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())


class StreamAttachment:
    """Somebody attached; see `handles.Attachment`."""

    def __init__(self, streams: ContainerStreams) -> None:
        self._streams = streams
        self._unread: deque[Output] = deque()
        self._size = 0
        self._is_over = False
        self._news = asyncio.Event()

    @property
    def has_terminal(self) -> bool:
        return self._streams.has_terminal

    @property
    def takes_input(self) -> bool:
        return self._streams.takes_input

    async def read(self) -> Output | None:
        while not self._unread:
            if self._is_over:
                return None
            self._news.clear()
            await self._news.wait()
        output = self._unread.popleft()
        self._size -= len(output.data)
        return output

    async def write(self, data: bytes) -> None:
        await self._streams.write(data)

    def end_input(self) -> None:
        self._streams.end_input()

    def resize(self, rows: int, columns: int) -> None:
        self._streams.resize(rows, columns)

    def close(self) -> None:
        self.end()
        self._streams.detach(self)
        self._streams.end_input()

    def take(self, output: Output) -> None:
        """Hear of output."""
        self._size += len(output.data)
        if self._size > _MOST_UNREAD:
            self.close()
            return
        self._unread.append(output)
        self._news.set()

    def end(self) -> None:
        """Hear that no more comes."""
        self._is_over = True
        self._news.set()
