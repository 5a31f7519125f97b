"""Channels in a WebSocket: each message names the stream that it is of, in its first byte.

Clients choose how: in bytes, or, where a program can send only text, with a digit and base64.
"""

import base64
import binascii
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

END_INPUT = "v5.channel.k8s.io"
"""With this protocol a client can end its input and still listen."""

WITH_STATUS = (END_INPUT, "v4.channel.k8s.io", "v4.base64.channel.k8s.io")
"""Protocols in which the last word on a command is a Status; in the others it is a text, and none if all went well."""

COMMAND_PROTOCOLS = (*WITH_STATUS, "channel.k8s.io", "base64.channel.k8s.io", "")
"""What a WebSocket may be opened for to run a command, the best first; a client that names none gets the last one."""

PORT_PROTOCOLS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")
"""The same, to forward ports."""


class Channels:
    """The messages of a WebSocket, taken apart and put together as its protocol has it."""

    def __init__(self, socket: web.WebSocketResponse, protocol: str) -> None:
        self._socket = socket
        self._is_text = "base64." in protocol
        self.protocol = protocol

    async def send(self, channel: int, data: bytes = b"") -> None:
        """Send a message of a channel."""
        if self._is_text:
            await self._socket.send_str(f"{channel}{base64.b64encode(data).decode()}")
        else:
            await self._socket.send_bytes(bytes([channel]) + data)

    async def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the channels and contents of what the client sends, until it is gone."""
        async for message in self._socket:
            if message.type not in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT) or not message.data:
                continue
            data = message.data.encode() if isinstance(message.data, str) else bytes(message.data)
            if not self._is_text:
                yield data[0], data[1:]
                continue
            try:
                yield data[0] - ord("0"), base64.b64decode(data[1:], validate=True)
            except binascii.Error:
                continue  # as if it had not been sent

    async def close(self) -> None:
        await self._socket.close()
