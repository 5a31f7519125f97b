"""The node as Kubereef sees it: a process that can be started, told to end, and waited for.

    node = NodeProcess("kubereef.node.kubelet.program:run", argument={…}, descriptors={"api": sock.fileno()})
    await node.start()
    code = await node.wait()

The function runs as the node program, a child of process 1 of new pid, mount and network namespaces, with a /proc of
its own and `lo` up. It is given a `NodeStart`: the line to process 1 (for `Control`), the descriptors by name, and the
argument (anything JSON can say). However this process, the node program, or any process between them ends, the kernel
ends everything that the node ever started, and its mounts, links and namespaces with it.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from kubereef.node.sandbox.errors import SandboxError
from kubewire.sources import Clock, SystemClock


class NodeProcess:
    """One node; start it once. The descriptors stay the caller's to close, any time after `start` has returned."""

    def __init__(
        self,
        entry: str,
        argument: object = None,
        descriptors: Mapping[str, int] | None = None,
        *,
        output: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._entry = entry
        self._argument = argument
        self._descriptors = dict(descriptors or {})
        self._output = output  # where its standard output and error go; None is to ours
        self._clock = clock or SystemClock()
        self._boot: subprocess.Popen[bytes] | None = None
        self._ended: asyncio.Future[int] | None = None

    @property
    def pid(self) -> int:
        """The process outside the namespaces that holds the node; its end is the node's."""
        if self._boot is None:
            raise SandboxError("the node has not been started")
        return self._boot.pid

    async def start(self) -> None:
        """Return when the process exists; its program tells by itself, over a descriptor of its own, when it serves."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        self._ended = loop.create_future()
        threading.Thread(
            target=self._hold, args=(loop, started, self._ended), name="node", daemon=True
        ).start()
        await started

    async def wait(self) -> int:
        """Return the node program's exit code, 128 + signal if one ended it, once everything is gone."""
        if self._ended is None:
            raise SandboxError("the node has not been started")
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Pass SIGTERM or SIGINT to the node program; end everything by SIGKILL."""
        if self._boot is not None:
            self._boot.send_signal(number)

    async def stop(self, grace: float) -> int:
        """Ask the node program to end, and end everything when it has not within `grace` seconds."""
        self.signal(signal.SIGTERM)
        timer = asyncio.ensure_future(self._clock.sleep(grace))
        ending = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait((timer, ending), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                self.signal(signal.SIGKILL)
            return await ending
        finally:
            timer.cancel()
            ending.cancel()

    def _hold(
        self, loop: asyncio.AbstractEventLoop, started: "asyncio.Future[None]", ended: "asyncio.Future[int]"
    ) -> None:
        """Start the process and stay until it ends: it gets its death signal when the thread that made it ends."""
        try:
            self._boot = self._spawn()
        except OSError as failure:
            loop.call_soon_threadsafe(started.set_exception, failure)
            return
        loop.call_soon_threadsafe(started.set_result, None)
        code = self._boot.wait()
        with suppress(RuntimeError):  # where the loop is closed nobody waits any more
            loop.call_soon_threadsafe(_settle, ended, code if code >= 0 else 128 - code)

    def _spawn(self) -> subprocess.Popen[bytes]:
        plan = {
            "parent": os.getpid(),
            "entry": self._entry,
            "descriptors": self._descriptors,
            "argument": self._argument,
        }
        # Not among the arguments, which everybody can read and which the kernel keeps short.
        with os.fdopen(os.memfd_create("node-plan"), "wb") as plan_file:
            plan_file.write(msgspec.json.encode(plan))
            plan_file.flush()
            return subprocess.Popen(  # noqa: S603 - our own module, run by our own interpreter
                [sys.executable, "-P", "-m", "kubereef.node.sandbox", "boot", str(plan_file.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(plan_file.fileno(), *self._descriptors.values()),
                start_new_session=True,  # a Ctrl-C is for us, who then end the node in good order
            )


def _settle(ended: "asyncio.Future[int]", code: int) -> None:
    if not ended.done():
        ended.set_result(code)
