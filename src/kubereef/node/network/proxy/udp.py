"""UDP datagrams to a Service, passed on to its backends and back."""

import asyncio
import logging
import socket
from collections import OrderedDict

from kubereef.node.network.namespaces import family_of
from kubereef.node.network.proxy.balance import Balancer
from kubereef.node.network.proxy.rules import Backend
from kubewire.sources import Clock

log = logging.getLogger(__name__)

IDLE_SECONDS = 60.0
"""How long a client that says nothing and hears nothing keeps its backend."""

MOST_CLIENTS = 4096
"""Clients that one listener serves at a time; for one more, the one that was silent longest is forgotten."""

_DATAGRAMS_AT_ONCE = 64
_MOST_DATAGRAM = 65535

_buffer = memoryview(bytearray(_MOST_DATAGRAM))  # holds nothing between calls, so one is enough

ClientAddress = tuple[str | int, ...]


class _Session:
    """One client and the socket through which its backend sees it."""

    __slots__ = ("backend", "socket", "used_at")

    def __init__(self, backend: Backend, connected: socket.socket, used_at: float) -> None:
        self.backend = backend
        self.socket = connected
        self.used_at = used_at


class UdpListener:
    """A socket to which clients send."""

    def __init__(self, bound: socket.socket, balancer: Balancer, clock: Clock) -> None:
        """Begin to pass datagrams on; the socket is bound and belongs to this object from now on."""
        self.balancer = balancer
        self._socket = bound
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._sessions: OrderedDict[ClientAddress, _Session] = OrderedDict()
        self._loop.add_reader(bound, self._from_clients)

    def __len__(self) -> int:
        return len(self._sessions)

    def _from_clients(self) -> None:
        for _ in range(_DATAGRAMS_AT_ONCE):
            try:
                count, client = self._socket.recvfrom_into(_buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as problem:  # what a client's machine said about an earlier datagram
                log.debug("a client cannot be reached: %s", problem)
                continue
            session = self._session(client)
            if session is not None:
                self._pass_on(session, client, _buffer[:count])

    def _pass_on(self, session: _Session, client: ClientAddress, datagram: memoryview) -> None:
        try:
            session.socket.send(datagram)
        except (BlockingIOError, InterruptedError):
            return  # the backend's queue is full: datagrams may be lost
        except OSError as problem:
            # The backend refused an earlier one. The client's next datagram goes to another.
            log.debug("%s:%s takes no datagrams: %s", *session.backend, problem)
            self._forget(client)

    def _session(self, client: ClientAddress) -> _Session | None:
        session = self._sessions.get(client)
        if session is not None and session.backend not in self.balancer.backends:
            # Datagrams to a backend that was removed would be lost for ever, as no connection ends.
            self._forget(client)
            session = None
        if session is None:
            session = self._open(client)
            if session is None:
                return None
            self._sessions[client] = session
            if len(self._sessions) > MOST_CLIENTS:
                self._forget(next(iter(self._sessions)))
        session.used_at = self._clock.monotonic()
        self._sessions.move_to_end(client)
        return session

    def _open(self, client: ClientAddress) -> _Session | None:
        who = str(client[0])
        for backend in self.balancer.choices(who):
            connected = None
            try:
                connected = socket.socket(family_of(backend.address), socket.SOCK_DGRAM)
                connected.setblocking(False)
                connected.connect(tuple(backend))  # only sets the address; nothing is sent
            except OSError as problem:
                if connected is not None:
                    connected.close()
                log.debug("%s:%s cannot be reached: %s", *backend, problem)
                continue
            self.balancer.settled(who, backend)
            session = _Session(backend, connected, self._clock.monotonic())
            self._loop.add_reader(connected, self._from_backend, client, session)
            return session
        return None

    def _from_backend(self, client: ClientAddress, session: _Session) -> None:
        for _ in range(_DATAGRAMS_AT_ONCE):
            try:
                count = session.socket.recv_into(_buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as problem:
                log.debug("%s:%s takes no datagrams: %s", *session.backend, problem)
                self._forget(client)
                return
            session.used_at = self._clock.monotonic()
            try:
                self._socket.sendto(_buffer[:count], client)
            except OSError as problem:
                log.debug("a datagram for a client is lost: %s", problem)

    def _forget(self, client: ClientAddress) -> None:
        session = self._sessions.pop(client)
        self._loop.remove_reader(session.socket)
        session.socket.close()

    def sweep(self) -> None:
        """Forget clients that have been silent for long, or whose backend was removed."""
        oldest = self._clock.monotonic() - IDLE_SECONDS
        stale = [
            client
            for client, session in self._sessions.items()
            if session.used_at < oldest or session.backend not in self.balancer.backends
        ]
        for client in stale:
            self._forget(client)

    def close(self) -> None:
        """Serve nobody any more."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for client in tuple(self._sessions):
            self._forget(client)
