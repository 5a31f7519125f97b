"""The proxy and backends on the loopback address, with real sockets."""

import asyncio
import socket
from contextlib import asynccontextmanager

from kubereef.gateway.proxy.carrier import Carrier
from kubereef.gateway.proxy.pool import Endpoint, Pool, connect
from kubereef.gateway.proxy.server import Door
from kubereef.gateway.reading import ServicePortRef, read_gateway, read_route
from kubereef.gateway.table import build_table
from kubewire.sources import SystemClock
from tests.kubereef.gateway.making import gateway

PATIENCE = 10.0


def bound(port=0):
    made = socket.socket()
    made.setblocking(False)
    made.bind(("127.0.0.1", port))
    return made


class Client:
    """A client that says and hears bytes."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def of(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**20))

    def say(self, data):
        self.writer.write(data)

    async def ask(self, target="/", method="GET", headers="", body=b"", host="any.example"):
        """Send a request; return the answer."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self.say(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}{length}\r\n".encode() + body)
        return await self.hear(method)

    async def hear(self, method="GET"):
        """Return status, headers and body of the next answer."""
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            headers = {}
            for line in lines:
                name, _, value = line.partition(": ")
                headers[name.lower()] = value
            status = int(first.split()[1])
            if method == "HEAD" or status < 200 or status in (204, 304):
                return status, headers, b""
            if headers.get("transfer-encoding") == "chunked":
                return status, headers, await self._chunks()
            if "content-length" in headers:
                return status, headers, await self.reader.readexactly(int(headers["content-length"]))
            return status, headers, await self.reader.read()

    async def _chunks(self):
        whole = bytearray()
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            whole += await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return bytes(whole)

    async def rest(self):
        """Return all that comes until the other side ends the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    def close(self):
        self.writer.transport.abort()
        self.writer.close()


class Backend:
    """A server whose requests are answered by a function of its own: `async answer(backend, reader, writer, head)`."""

    def __init__(self, answer=None):
        self.heads = []
        self.connections = 0
        self._answer = answer or plain()
        self._writers = set()

    async def start(self, port=0):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def endpoint(self):
        return Endpoint("127.0.0.1", self.port)

    async def _serve(self, reader, writer):
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                self.heads.append(head)
                if await self._answer(self, reader, writer, head) is False:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._writers.discard(writer)

    def hang_up(self):
        """Break all connections."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def stop(self):
        self._server.close()
        self.hang_up()
        await asyncio.sleep(0)


def plain(text="hello", headers=""):
    """Answer every request with a text."""

    async def answer(backend, reader, writer, head):
        for line in head.split("\r\n"):
            if line.lower().startswith("content-length: "):
                await reader.readexactly(int(line.partition(": ")[2]))
        body = b"" if head.startswith("HEAD") else text.encode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n{headers}\r\n".encode() + body)
        await writer.drain()

    return answer


class World:
    """The proxy for some routes, and who is behind the Services that they name."""

    def __init__(self, careful=True, opened=connect):
        self.found = {}
        self.pool = Pool(SystemClock(), opened)
        self.carrier = Carrier(self, self.pool, careful=careful)
        self.backends = []
        self.clients = []

    def endpoints(self, service):
        return self.found.get(service.name) if isinstance(service, ServicePortRef) else None

    def set_endpoints(self, name, *endpoints):
        self.found[name] = tuple(endpoints)
        self.carrier.retain({one for found in self.found.values() for one in found})

    async def serve(self, *routes, gateways=None, port=80):
        self.door = Door(self.carrier, site_of(routes, gateways, port))
        listening = bound()
        self.port = listening.getsockname()[1]
        await self.door.open(listening)

    async def backend(self, name="web", answer=None, count=1):
        """Start backends of a Service; return the last."""
        for _ in range(count):
            self.backends.append(await Backend(answer).start())
            self.set_endpoints(name, *self.found.get(name, ()), self.backends[-1].endpoint)
        return self.backends[-1]

    async def client(self):
        made = await Client.of(self.port)
        self.clients.append(made)
        return made

    async def close(self):
        for client in self.clients:
            client.close()
        for backend in self.backends:
            await backend.stop()
        await self.door.close(0)
        self.pool.close()
        await asyncio.sleep(0.01)  # the event loop lets go of what was closed


def site_of(routes, gateways=None, port=80):
    table, _ = build_table(
        [read_gateway(one) for one in gateways or [gateway()]], [read_route(one) for one in routes], {}, {}
    )
    return table["default", "gate"][port]


@asynccontextmanager
async def world(*routes, **options):
    made = World(**options)
    await made.serve(*routes)
    try:
        yield made
    finally:
        await made.close()
