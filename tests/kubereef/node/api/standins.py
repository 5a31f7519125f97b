"""Pods for the kubelet's API without a node: commands are programs of this machine, logs are files of the test."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios

from kubereef.node.kubelet.api.portforward import Connection
from kubereef.node.kubelet.handles import NotRunning, Output
from kubereef.node.sandbox import Exit, StartFailed, Usage


async def until(holds, patience=5.0):
    """Return once something holds; what happens elsewhere has no event to wait for."""
    async with asyncio.timeout(patience):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


class Program:
    """A program of this machine, as a process in a container."""

    def __init__(self, argv, stdio, terminal):
        self.terminal: int | None = None
        slave = -1
        streams = [subprocess.DEVNULL if fd is None else fd for fd in stdio]
        if terminal is not None:
            self.terminal, slave = pty.openpty()
            streams = [slave] * 3
            self.resize(terminal.rows, terminal.columns)
        stdin, stdout, stderr = streams
        try:
            self._process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
            )
        except FileNotFoundError as problem:
            raise StartFailed("command", str(problem), problem.errno or 0) from None
        finally:
            if slave >= 0:
                os.close(slave)

    async def wait(self):
        code = await asyncio.to_thread(self._process.wait)
        return Exit(code) if code >= 0 else Exit(128 - code, -code)

    def signal(self, number):
        self._process.send_signal(number)
        return self._process.poll() is None

    def resize(self, rows, columns):
        assert self.terminal is not None
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self):
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def end(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Attached:
    """A container's own streams: what is put into `output` is seen, and what is written lands in `written`."""

    has_terminal = False
    takes_input = True

    def __init__(self):
        self.output: asyncio.Queue[Output | None] = asyncio.Queue()
        self.written = bytearray()
        self.sizes = []
        self.input_ended = asyncio.Event()
        self.is_closed = False

    async def read(self):
        return await self.output.get()

    async def write(self, data):
        self.written += data
        self.output.put_nowait(Output("stdout", b"got " + data))

    def end_input(self):
        self.input_ended.set()

    def resize(self, rows, columns):
        self.sizes.append((rows, columns))

    def close(self):
        self.is_closed = True


class Container:
    """One container: `log` and `previous` are its log files."""

    kind = "container"

    def __init__(self, name="app", log=None, previous=None, is_running=True):
        self.name = name
        self.is_running = is_running
        self.log = log
        self.previous = previous
        self.programs = []
        self.attached = Attached()
        self.over = asyncio.Event()

    def log_file(self, *, previous=False):
        return self.previous if previous else self.log

    async def ended(self):
        await self.over.wait()

    async def enter(self, argv, stdio, terminal=None):
        if not self.is_running:
            raise NotRunning("container not running: it has ended")
        program = Program(argv, stdio, terminal)
        self.programs.append(program)
        return program

    def attach(self):
        if not self.is_running:
            raise NotRunning("container not running: it has ended")
        return self.attached

    def usage(self):
        return Usage(memory=300, working_set=200, cpu_seconds=1.5)


class Pod:
    """A Pod with these containers, whose network is this machine's."""

    def __init__(self, *containers, name="web", uid="u-1", status=None):
        self.manifest = {
            "metadata": {"namespace": "default", "name": name, "uid": uid},
            "status": status or {"startTime": "2030-01-01T00:00:00Z"},
        }
        self._containers = containers
        self.network = 0

    def containers(self):
        return self._containers

    def container(self, name):
        return next((one for one in self._containers if one.name == name), None)


class Pods:
    """All Pods there are."""

    def __init__(self, *pods):
        self.pods = list(pods)

    def find(self, namespace, name, uid=""):
        for pod in self.pods:
            meta = pod.manifest["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, name) and uid in ("", meta["uid"]):
                return pod
        return None

    def all(self):
        return self.pods


class LocalSockets:
    """Connects to the loopback of this machine instead of a Pod's."""

    async def connect(self, network, port):
        return Connection(*await asyncio.open_connection("127.0.0.1", port))


class Reviews:
    """An API server that knows some tokens, and what their users may do."""

    def __init__(self):
        self.tokens = {"good": {"username": "ann", "groups": ["team"], "uid": "7", "extra": {"k": ["v"]}}}
        self.allowed = {"ann"}
        self.parts = None  # all, or some of the node's subresources
        self.asked = []
        self.failure = None

    async def create(self, url, body):
        self.asked.append((url.rpartition("/")[2], body["spec"]))
        if self.failure is not None:
            raise self.failure
        if url.endswith("tokenreviews"):
            user = self.tokens.get(body["spec"]["token"])
            return {"status": {"authenticated": user is not None, "user": user}}
        part = body["spec"]["resourceAttributes"]["subresource"]
        fits = self.parts is None or part in self.parts
        return {"status": {"allowed": body["spec"]["user"] in self.allowed and fits}}
