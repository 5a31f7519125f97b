"""Connections into a Pod's own network, as port-forward needs them: to what listens on the Pod's loopback too."""

import asyncio
import socket

from kubereef.node.kubelet.api.portforward import Connection
from kubereef.node.network import Namespace, NamespaceThreads, SocketsThere

CONNECT_SECONDS = 10.0
_LOOPBACKS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


class PodSockets:
    """Opens connections inside Pods' network namespaces."""

    def __init__(self) -> None:
        self._threads = NamespaceThreads("portforward")

    async def connect(self, network: int, port: int) -> Connection:
        """Return a connection to a port at a namespace's loopback address; OSError or TimeoutError if there is none."""
        loop = asyncio.get_running_loop()
        with Namespace.at(network) as namespace:
            sockets = SocketsThere(self._threads, namespace)
            refusal: OSError | None = None
            for family, address in _LOOPBACKS:
                connection = await sockets.make(family, socket.SOCK_STREAM)
                try:
                    async with asyncio.timeout(CONNECT_SECONDS):
                        await loop.sock_connect(connection, (address, port))
                    return Connection(*await asyncio.open_connection(sock=connection))
                except OSError as problem:
                    connection.close()
                    refusal = refusal or problem
                except BaseException:
                    connection.close()
                    raise
        assert refusal is not None, "there are two loopback addresses"
        raise refusal

    def close(self) -> None:
        """End the threads. Connections stay."""
        self._threads.close()
