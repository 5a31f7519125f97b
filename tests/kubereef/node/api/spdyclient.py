"""A client that speaks SPDY on a bare connection, as API servers do with kubelets."""

import asyncio
from urllib.parse import urlsplit

from kubereef.node.kubelet.api.spdy import Data, Decoder, Encoder, Reset, SynReply


class SpdyClient:
    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer
        self._encoder = Encoder()
        self._decoder = Decoder()
        self.frames = []
        self._data = {}
        self._ended = {}
        self._reading = asyncio.create_task(self._run())

    @classmethod
    async def open(cls, url, tls, path, protocol):
        """Upgrade a connection; the answer has to agree to the protocol."""
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=tls)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            f"X-Stream-Protocol-Version: {protocol}\r\n\r\n"
        )
        writer.write(head.encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert answer.startswith("HTTP/1.1 101 "), answer
        assert f"X-Stream-Protocol-Version: {protocol}" in answer
        return cls(reader, writer)

    async def open_stream(self, number, headers, fin=False):
        self._ended[number] = asyncio.Event()
        self._data[number] = b""
        self._writer.write(self._encoder.syn_stream(number, headers, fin=fin))
        await self._writer.drain()

    async def send(self, number, data, fin=False):
        self._writer.write(self._encoder.data(number, data, fin=fin))
        await self._writer.drain()

    async def ping(self, number):
        self._writer.write(self._encoder.ping(number))
        await self._writer.drain()

    async def read(self, number):
        """Return all that came on a stream, once it has ended."""
        async with asyncio.timeout(10):
            await self._ended[number].wait()
        return self._data[number]

    async def _run(self):
        while data := await self._reader.read(65536):
            for frame in self._decoder.feed(data):
                self.frames.append(frame)
                if isinstance(frame, Data):
                    self._data[frame.stream] += frame.data
                if (isinstance(frame, Data | SynReply) and frame.fin) or isinstance(frame, Reset):
                    self._ended[frame.stream].set()
        for ended in self._ended.values():
            ended.set()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *why):
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
