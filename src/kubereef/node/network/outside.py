"""Connections to the world outside, made with sockets that live in the host's namespace."""

import asyncio
import socket
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from kubereef.node.network.ipam import Address
from kubereef.node.network.namespaces import Namespace, NamespaceThreads, SocketsThere, family_of
from kubereef.node.network.streams import prepare

_MOST_ADDRESSES = 4


class NotReached(ConnectionError):
    """A destination could not be reached, or must not be; the message says which and why."""


def is_public(address: Address) -> bool:
    """Tell whether Pods may go to an address outside: not to the host itself by loopback, nor to its links' own ones.

    Services of the host that listen on loopback trust whoever can reach them, and a link's own addresses are where
    clouds hand out credentials.
    """
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address.is_reserved
    )


class Outside:
    """The way out: connects from the host's namespace, to allowed addresses alone."""

    def __init__(
        self, host: Namespace, *, is_allowed: Callable[[Address], bool] = is_public, seconds: float = 10.0
    ) -> None:
        self._host = host
        self._is_allowed = is_allowed
        self._seconds = seconds
        # Looking a name up blocks its thread, so there are a few.
        self._threads = NamespaceThreads("outside", 4)
        self.sockets = SocketsThere(self._threads, host)

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection to a host, given by name or address; raises NotReached."""
        try:
            async with asyncio.timeout(self._seconds):
                addresses = await self._addresses(host)
        except (OSError, TimeoutError, UnicodeError) as problem:
            raise NotReached(f"{host} has no address: {problem}") from problem
        allowed = [one for one in addresses if self._is_allowed(ip_address(one))]
        if not allowed:
            raise NotReached(f"{host} is not a place outside that Pods may go to")
        problems = []
        for address in allowed[:_MOST_ADDRESSES]:
            try:
                return await self._connect(address, port)
            except (OSError, TimeoutError) as problem:
                problems.append(f"{address}: {str(problem) or 'no answer in time'}")
        raise NotReached(f"{host}:{port} cannot be reached: {'; '.join(problems)}")

    async def _connect(self, address: str, port: int) -> socket.socket:
        connection = await self.sockets.make(family_of(address), socket.SOCK_STREAM)
        try:
            prepare(connection)
            async with asyncio.timeout(self._seconds):
                await asyncio.get_running_loop().sock_connect(connection, (address, port))
        except BaseException:
            connection.close()
            raise
        return connection

    async def _addresses(self, host: str) -> list[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass  # a name, then

        def resolve() -> list[str]:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(str(one[4][0]) for one in found))

        return await self._threads.run(self._host, resolve)

    def close(self) -> None:
        """End the threads. Connections stay."""
        self._threads.close()
