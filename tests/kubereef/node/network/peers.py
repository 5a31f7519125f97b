"""Servers and clients to test with, on raw sockets so that every end can be seen."""

import asyncio
import contextlib
import socket


class Server:
    """A TCP server that answers each connection with its own name first, then echoes until the client has ended."""

    def __init__(self, name, listening):
        self.name = name
        self.address = listening.getsockname()[:2]
        self.connections = 0
        self.clients = set()
        self._serving = set()
        self._listening = listening

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, sock=self._listening)
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in tuple(self.clients):
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        self.connections += 1
        self._serving.add(asyncio.current_task())
        self.clients.add(writer)
        with contextlib.suppress(ConnectionError):
            writer.write(self.name.encode())
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()
        self.clients.discard(writer)


def listening_at(address, port=0):
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    made.listen()
    made.setblocking(False)
    return made


async def opened(address, *, sockets=None):
    """A socket that is connected, from another namespace if one is given."""
    loop = asyncio.get_running_loop()
    if sockets is None:
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.setblocking(False)
    else:
        client = await sockets.make(socket.AF_INET, socket.SOCK_STREAM)
    try:
        async with asyncio.timeout(5):
            await loop.sock_connect(client, address)
    except BaseException:
        client.close()
        raise
    return client


async def connected(address, *, sockets=None):
    """The two ends of a new connection's stream."""
    return await asyncio.open_connection(sock=await opened(address, sockets=sockets))


async def asked(address, *, sockets=None):
    """The name of the server that a new connection is answered by."""
    loop = asyncio.get_running_loop()
    with await opened(address, sockets=sockets) as client:
        async with asyncio.timeout(5):
            with contextlib.suppress(OSError):  # a connection that was reset already says so when it is read
                client.shutdown(socket.SHUT_WR)
            answer = b""
            while data := await loop.sock_recv(client, 65536):
                answer += data
            return answer.decode()
