"""What probes and lifecycle hooks do: run a command in the container, ask over HTTP, connect, or sleep."""

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Protocol

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.handles import NotRunning, RunningProcess
from kubereef.node.kubelet.interfaces import Answer, Prober
from kubereef.node.sandbox import SandboxError, Stdio
from kubewire.sources import Clock

MOST_OUTPUT = 10 * 1024
_CHUNK = 4096
# How long the output of a command that has ended is waited for: something it left behind may hold it open.
_OUTPUT_PATIENCE = 1.0


class Host(Protocol):
    """The container that an action is for."""

    @property
    def spec(self) -> Object: ...

    @property
    def address(self) -> str:
        """Where the Pod is reached from the node."""
        ...

    async def enter(self, argv: Sequence[str], stdio: Stdio) -> RunningProcess: ...


class BadAction(Exception):
    """The manifest asks for something that cannot be done; the message says what."""


async def perform(host: Host, action: Object, patience: float | None, prober: Prober, clock: Clock) -> Answer:
    """Do what a probe or a hook says, and return how it went. Never raises for what the container does."""
    try:
        if command := action.get("exec"):
            return await run_command(host, command.get("command") or [], patience)
        if request := action.get("httpGet"):
            address = request.get("host") or host.address
            return await prober.http_get(address, _port(host.spec, request["port"]), request, patience)
        if connection := action.get("tcpSocket"):
            address = connection.get("host") or host.address
            return await prober.tcp_connect(address, _port(host.spec, connection["port"]), patience)
        if (pause := action.get("sleep")) is not None:
            seconds = float(pause.get("seconds") or 0)
            await clock.sleep(seconds if patience is None else min(seconds, patience))
            return Answer(True)
    except BadAction as bad:
        return Answer(False, str(bad), is_error=True)
    except (SandboxError, NotRunning, OSError) as trouble:
        return Answer(False, str(trouble), is_error=True)
    return Answer(False, "the action is of a kind that this node does not know", is_error=True)


def _port(container: Object, port: int | str) -> int:
    """Return the number of a port that may be given by its name."""
    if isinstance(port, int) or port.isdigit():
        number = int(port)
    else:
        named = [one["containerPort"] for one in container.get("ports") or () if one.get("name") == port]
        if not named:
            raise BadAction(f"couldn't find port: {port}")
        number = named[0]
    if not 0 < number < 65536:
        raise BadAction(f"invalid port number: {number}")
    return int(number)


async def run_command(host: Host, argv: Sequence[str], patience: float | None) -> Answer:
    """Run a command inside and return its output; an exit code other than 0 fails, and so does taking too long."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        process = await host.enter(argv, Stdio(stdout=writing, stderr=writing))
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    collecting = asyncio.ensure_future(_collect(reading))
    ending = asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait((ending,), timeout=patience)
        if not ending.done():
            process.signal(signal.SIGKILL)
            shown = " ".join(argv)
            return Answer(False, f'command timed out: "{shown}" timed out after {patience:g}s')
        await asyncio.wait((collecting,), timeout=_OUTPUT_PATIENCE)
        output = collecting.result() if collecting.done() else ""
        return Answer(ending.result().code == 0, output)
    finally:
        for task in (collecting, ending):
            task.cancel()
        await asyncio.gather(collecting, ending, return_exceptions=True)
        process.close()


async def _collect(fd: int) -> str:
    """Return the first of what comes out of a pipe, until its end; the rest is read and forgotten."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    kept = bytearray()
    os.set_blocking(fd, False)

    def read() -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not data and not done.done():
            done.set_result(None)
        if len(kept) < MOST_OUTPUT:
            kept.extend(data)

    loop.add_reader(fd, read)
    try:
        await done
        return kept[:MOST_OUTPUT].decode(errors="replace")
    finally:
        loop.remove_reader(fd)
        os.close(fd)
