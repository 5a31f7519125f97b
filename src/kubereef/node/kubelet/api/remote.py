"""Exec and attach: a client's streams joined with those of a command, or of a container itself."""

import asyncio
import os
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from kubereef.node.kubelet.api.conversations import Conversation, Size, Streams
from kubereef.node.kubelet.api.descriptors import read_descriptor, write_descriptor
from kubereef.node.kubelet.handles import Attachment, ContainerHandle, NotRunning, RunningProcess
from kubereef.node.sandbox import SandboxError, Stdio, TerminalSize
from kubewire.sources import Clock

OUTPUT_SECONDS = 2.0
"""How long output is waited for after a command has ended: what it left running may hold its streams for ever."""

_SUCCESS: dict[str, Any] = {"metadata": {}, "status": "Success"}


async def run_command(
    container: ContainerHandle, argv: Sequence[str], wanted: Streams, client: Conversation, clock: Clock
) -> None:
    """Run a command for a client, to the end of either; the client is told how it went."""
    try:
        command = await _Command.start(container, argv, wanted, client.size)
    except (SandboxError, NotRunning, OSError) as failure:
        await client.finish(_internal(f"error executing command in container: {failure}"))
        return
    try:
        await command.converse(client, clock)
    finally:
        command.close()


async def join_container(attachment: Attachment, wanted: Streams, client: Conversation) -> None:
    """Attach a client to a container's own streams, until either ends."""
    client.on_resize = lambda size: attachment.resize(size.height, size.width)
    if client.size is not None:
        client.on_resize(client.size)

    async def pass_input() -> None:
        while data := await client.stdin.get():
            await attachment.write(data)
        attachment.end_input()

    async def pass_output() -> None:
        while (output := await attachment.read()) is not None:
            await client.write(output.stream, output.data)

    input_task = asyncio.create_task(pass_input() if wanted.stdin and attachment.takes_input else _nothing())
    try:
        await _unless_gone(pass_output(), client)
        await client.finish(_SUCCESS)
    finally:
        input_task.cancel()
        await asyncio.gather(input_task, return_exceptions=True)
        client.on_resize = None
        attachment.close()


class _Command:
    """A command that runs, and our ends of its streams."""

    def __init__(self, process: RunningProcess, stdin: int, outputs: dict[str, int]) -> None:
        self._process = process
        self._stdin = stdin
        self._outputs = outputs

    @classmethod
    async def start(
        cls, container: ContainerHandle, argv: Sequence[str], wanted: Streams, size: Size | None
    ) -> "_Command":
        if wanted.tty:
            terminal = TerminalSize(size.height, size.width) if size is not None else TerminalSize()
            process = await container.enter(argv, Stdio(), terminal)
            assert process.terminal is not None, "a process that was started with a terminal has one"
            os.set_blocking(process.terminal, False)
            return cls(process, process.terminal, {"stdout": process.terminal})
        ours: dict[str, int] = {}
        theirs: dict[str, int] = {}
        try:
            for name in ("stdin", "stdout", "stderr"):
                if getattr(wanted, name):
                    reading, writing = os.pipe2(os.O_CLOEXEC)
                    ours[name], theirs[name] = (writing, reading) if name == "stdin" else (reading, writing)
                    os.set_blocking(ours[name], False)
            process = await container.enter(argv, Stdio(**theirs))
        except BaseException:
            _close_all(ours.values())
            raise
        finally:
            _close_all(theirs.values())
        stdin = ours.pop("stdin", -1)
        return cls(process, stdin, ours)

    async def converse(self, client: Conversation, clock: Clock) -> None:
        if self._process.terminal is not None:
            client.on_resize = lambda size: self._process.resize(size.height, size.width)
            if client.size is not None:
                client.on_resize(client.size)
        tasks = [asyncio.create_task(self._pass_output(name, client)) for name in self._outputs]
        stdin = asyncio.create_task(self._pass_input(client))
        try:
            await _unless_gone(self._finish(tasks, client, clock), client)
        finally:
            client.on_resize = None
            for task in (stdin, *tasks):
                task.cancel()
            await asyncio.gather(stdin, *tasks, return_exceptions=True)

    async def _finish(self, outputs: "list[asyncio.Task[None]]", client: Conversation, clock: Clock) -> None:
        ended = await self._process.wait()
        if outputs:
            patience = asyncio.ensure_future(clock.sleep(OUTPUT_SECONDS))
            drained = asyncio.gather(*outputs, return_exceptions=True)
            await asyncio.wait((patience, drained), return_when=asyncio.FIRST_COMPLETED)
            patience.cancel()
        await client.finish(_SUCCESS if ended.code == 0 else _exit_status(ended.code))

    async def _pass_input(self, client: Conversation) -> None:
        if self._stdin < 0:
            return
        with suppress(OSError):  # the command does not read any more
            while data := await client.stdin.get():
                await write_descriptor(self._stdin, data)
        if self._process.terminal is None:
            os.close(self._stdin)
            self._stdin = -1

    async def _pass_output(self, name: str, client: Conversation) -> None:
        while data := await read_descriptor(self._outputs[name]):
            await client.write(name, data)

    def close(self) -> None:
        """Let go of the streams. A command that still runs sees its terminal hang up, or its pipes broken."""
        if self._process.terminal is None:
            _close_all([fd for fd in (self._stdin, *self._outputs.values()) if fd >= 0])
        self._process.close()


async def _unless_gone(work: Awaitable[None], client: Conversation) -> None:
    """Do the work, and stop where the client goes away."""
    doing, listening = asyncio.ensure_future(work), asyncio.create_task(client.listen())
    try:
        await asyncio.wait((doing, listening), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            with suppress(ConnectionError):  # the client went while it was told
                doing.result()
    finally:
        for task in (doing, listening):
            task.cancel()
        await asyncio.gather(doing, listening, return_exceptions=True)


async def _nothing() -> None:
    """For input that nobody takes."""


def _exit_status(code: int) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _internal(message: str) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }


def _close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
