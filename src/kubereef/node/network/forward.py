"""Ways in and out of the node's network over unix sockets.

From outside, a caller connects to the node's socket, says where it wants to go in one line, and is connected there if
that was allowed: `Gate` inside, `open_through` and `LoopbackPort` outside. From inside, `Relay` carries what arrives at
a listener to a unix socket, which is how Pods reach an API server that lives outside.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

from kubereef.node.network.proxy.rules import Backend
from kubereef.node.network.proxy.tcp import connect
from kubereef.node.network.relay import NotForwarded, Relay, connect_unix, listen_tcp

_SECONDS_TO_ASK = 5.0
_MOST_LINE = 256


class Gate:
    """The node's side of the way in: connects callers to addresses inside, where that is allowed.

    `is_allowed` decides for each connection, so what is allowed may change at any time.
    """

    def __init__(self, listening: socket.socket, is_allowed: Callable[[str, int], bool]) -> None:
        """Begin to let callers in; the socket belongs to this object from now on."""
        self._is_allowed = is_allowed
        self._relay = Relay(listening, self._greet)

    async def _greet(self, caller: socket.socket) -> socket.socket:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_SECONDS_TO_ASK):
                address, port = _read_request(await _read_line(caller))
            if not self._is_allowed(address, port):
                raise NotForwarded(f"{address}:{port} is not open to callers from outside")
            inside = await connect(Backend(address, port))
        except (OSError, TimeoutError) as problem:
            reason = str(problem) or "no answer in time"
            await loop.sock_sendall(caller, f"NO {reason}"[: _MOST_LINE - 1].encode() + b"\n")
            raise NotForwarded(reason) from problem
        try:
            await loop.sock_sendall(caller, b"OK\n")
        except BaseException:
            inside.close()
            raise
        return inside

    async def close(self) -> None:
        """Let nobody in any more."""
        await self._relay.close()


def _read_request(line: str) -> tuple[str, int]:
    word, _, rest = line.partition(" ")
    address, _, port = rest.rpartition(" ")
    if word != "CONNECT" or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise NotForwarded("the request is not: CONNECT address port")
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, address)
            return address, int(port)
    raise NotForwarded(f"{address!r} is not an address")


async def _read_line(connection: socket.socket) -> str:
    """Return the first line of a connection, and read nothing beyond it: what follows belongs to somebody else."""
    loop = asyncio.get_running_loop()
    line = b""
    while not line.endswith(b"\n"):
        if len(line) >= _MOST_LINE:
            raise NotForwarded("a line that does not end")
        more = await loop.sock_recv(connection, 1)
        if not more:
            raise NotForwarded("the other side hung up")
        line += more
    return line[:-1].decode("utf-8", "replace")


async def open_through(gate: Path, address: str, port: int) -> socket.socket:
    """Return a connection to an address inside the node's network; raises NotForwarded."""
    loop = asyncio.get_running_loop()
    try:
        connection = await connect_unix(gate)
    except (OSError, TimeoutError) as problem:
        raise NotForwarded(f"the node cannot be reached at {gate}: {problem}") from problem
    try:
        # A little more time than the node takes to try, so that its own words arrive.
        async with asyncio.timeout(2 * _SECONDS_TO_ASK):
            await loop.sock_sendall(connection, f"CONNECT {address} {port}\n".encode())
            answer = await _read_line(connection)
    except TimeoutError as problem:
        connection.close()
        raise NotForwarded("the node did not answer in time") from problem
    except BaseException:
        connection.close()
        raise
    if answer != "OK":
        connection.close()
        raise NotForwarded(answer.removeprefix("NO "))
    return connection


class LoopbackPort:
    """A port of the loopback address, outside, that leads to an address inside the node's network."""

    def __init__(
        self, gate: Path, address: str, port: int, *, loopback: str = "127.0.0.1", at: int = 0
    ) -> None:
        """Begin to listen at a port of loopback; 0 leaves it to the system which."""
        listening = listen_tcp(loopback, at)
        self.port: int = listening.getsockname()[1]
        self._relay = Relay.to(listening, lambda: open_through(gate, address, port))

    async def close(self) -> None:
        """Stop listening, and break what connections there are."""
        await self._relay.close()
