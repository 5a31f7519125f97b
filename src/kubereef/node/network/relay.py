"""A relay: each connection to a listening socket is joined with another one that is opened for it."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from kubereef.node.network.streams import Joined, prepare, reset

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 1024
UNIX_SECONDS = 5.0
"""How long a unix socket may take to accept."""

TCP_SECONDS = 10.0
"""How long a host may take to accept."""

_ACCEPT_PAUSE = 0.1


class NotForwarded(ConnectionError):
    """A connection is not carried on, for a reason in the message that the client has been told already."""


class Relay:
    """Carries each connection to a listening socket to one that `connect` opens for it."""

    def __init__(
        self,
        listening: socket.socket,
        greet: Callable[[socket.socket], Awaitable[socket.socket]],
        *,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        """Begin to accept. `greet` may talk to a client before it returns the connection to join it with.

        The socket belongs to this object from now on.
        """
        listening.setblocking(False)
        self._listening = listening
        self._greet = greet
        self._most = most
        self._joined: set[Joined] = set()
        self._greeting: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    @classmethod
    def to(cls, listening: socket.socket, connect: Callable[[], Awaitable[socket.socket]]) -> "Relay":
        """Return a relay that carries every connection, without a word, to one that `connect` opens."""
        return cls(listening, lambda _: connect())

    def __len__(self) -> int:
        return len(self._joined) + len(self._greeting)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listening)
            except OSError as problem:
                log.warning("no connection is accepted for %s s: %s", _ACCEPT_PAUSE, problem)
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            if len(self) >= self._most:
                reset(client)
                continue
            task = asyncio.create_task(self._join(client))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    async def _join(self, client: socket.socket) -> None:
        try:
            prepare(client)
            other = await self._greet(client)
        except NotForwarded:
            client.close()
            return
        except (OSError, TimeoutError) as problem:
            log.debug("a connection is not carried on: %s", problem)
            reset(client)
            return
        except BaseException:
            reset(client)
            raise
        self._joined.add(Joined(client, other, self._joined.discard))

    async def close(self) -> None:
        """Carry nothing any more, and break what connections there are."""
        tasks = (self._accepting, *self._greeting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening.close()
        for joined in tuple(self._joined):
            joined.abort()


def listen_unix(path: Path) -> socket.socket:
    """Return a socket that listens at a path which only the own user can open; an old one there is replaced."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Nobody can connect before `listen`, so there is no moment at which others could.
        listening.bind(os.fspath(path))
        path.chmod(0o600)
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening


def listen_tcp(address: str, port: int) -> socket.socket:
    """Return a socket that listens at a port; 0 leaves it to the system which."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(1024)
    except BaseException:
        listening.close()
        raise
    return listening


async def connect_unix(path: Path) -> socket.socket:
    """Return a connection to a unix socket."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        async with asyncio.timeout(UNIX_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, os.fspath(path))
    except BaseException:
        connection.close()
        raise
    return connection


async def connect_tcp(host: str, port: int) -> socket.socket:
    """Return a connection to the first address of a host, given by name or address, that takes one; or OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    problem = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        try:
            prepare(connection)
            async with asyncio.timeout(TCP_SECONDS):
                await loop.sock_connect(connection, address)
        except OSError as refusal:  # a TimeoutError is one
            connection.close()
            problem = refusal
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise problem
