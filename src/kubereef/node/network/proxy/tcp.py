"""TCP connections to a Service, passed on to its backends."""

import asyncio
import errno
import logging
import socket

from kubereef.node.network.namespaces import family_of
from kubereef.node.network.proxy.balance import Balancer
from kubereef.node.network.proxy.rules import Backend
from kubereef.node.network.streams import Joined, prepare, reset

log = logging.getLogger(__name__)

BACKLOG = 4096
CONNECT_SECONDS = 3.0
"""How long a backend may take to accept before another one is tried: they are all on this machine or near."""

_ACCEPTS_AT_ONCE = 64
_PAUSE_SECONDS = 0.1
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class TcpConnections:
    """All connections that the proxy has open, whichever listener they came from; they outlive their listeners."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._joined: set[Joined] = set()
        self._connecting: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._joined) + len(self._connecting)

    def add(self, client: socket.socket, balancer: Balancer) -> None:
        """Connect a client to a backend."""
        task = asyncio.create_task(self._connect(client, balancer))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, client: socket.socket, balancer: Balancer) -> None:
        try:
            prepare(client)
            who = client.getpeername()[0]
            backend = await _first_that_accepts(balancer, who)
        except BaseException as problem:
            reset(client)
            if isinstance(problem, OSError):
                log.debug("a client left before it was connected: %s", problem)
                return
            raise
        if backend is None:
            reset(client)  # nothing was read from it, so for the client it is as if nobody had listened
            return
        self._joined.add(Joined(client, backend, self._joined.discard))

    async def close(self) -> None:
        """Break all connections."""
        connecting = tuple(self._connecting)
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        for joined in tuple(self._joined):
            joined.abort()


async def _first_that_accepts(balancer: Balancer, client: str) -> socket.socket | None:
    """Return a connection to the first backend that takes one. No byte of the client has been read before."""
    for backend in balancer.choices(client):
        try:
            connection = await connect(backend)
        except (OSError, TimeoutError) as problem:
            log.debug("%s:%s took no connection: %s", *backend, problem)
            continue
        balancer.settled(client, backend)
        return connection
    return None


async def connect(backend: Backend, seconds: float = CONNECT_SECONDS) -> socket.socket:
    """Return a connection to a backend; raises OSError or TimeoutError."""
    connection = socket.socket(family_of(backend.address), socket.SOCK_STREAM)
    try:
        prepare(connection)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(connection, tuple(backend))
    except BaseException:
        connection.close()
        raise
    return connection


class TcpListener:
    """A socket at which clients connect."""

    def __init__(self, listening: socket.socket, balancer: Balancer, connections: TcpConnections) -> None:
        """Begin to accept; the socket is listening and belongs to this object from now on."""
        self.balancer = balancer
        self._socket = listening
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._paused: asyncio.TimerHandle | None = None
        self._loop.add_reader(listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            if len(self._connections) >= self._connections.most:
                self._pause("the proxy has as many connections as it may")
                return
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as problem:
                if problem.errno in _OUT_OF_RESOURCES:
                    self._pause(str(problem))
                    return
                continue  # a client that left while it waited: the next one may be there
            self._connections.add(client, self.balancer)

    def _pause(self, reason: str) -> None:
        """Let clients wait in the kernel's queue for a moment instead of turning in circles."""
        log.warning("no connections are accepted for %s s: %s", _PAUSE_SECONDS, reason)
        self._loop.remove_reader(self._socket)
        self._paused = self._loop.call_later(_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._paused = None
        self._loop.add_reader(self._socket, self._accept)

    def sweep(self) -> None:
        """Nothing goes stale here."""

    def close(self) -> None:
        """Accept nobody any more. Clients that the kernel has already let in are served first."""
        if self._paused is None:
            self._accept()
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
