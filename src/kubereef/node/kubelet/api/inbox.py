"""Bytes that have come and wait to be taken: a bounded queue between whoever reads a connection and who uses it."""

import asyncio
from collections import deque

MOST_BYTES = 1024 * 1024


class Inbox:
    """One stream of bytes. A full one makes `put` wait, so a slow reader slows its sender down."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._has_ended = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, data: bytes) -> None:
        """Add bytes, once there is room; after the end they are dropped."""
        while not self._room.is_set() and not self._has_ended:
            await self._room.wait()
        if self._has_ended or not data:
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size >= self._most:
            self._room.clear()
        self._news.set()

    def end(self) -> None:
        """Say that nothing more comes."""
        self._has_ended = True
        self._news.set()
        self._room.set()

    async def get(self) -> bytes:
        """Return the next bytes, or nothing when the stream has ended."""
        while not self._parts:
            if self._has_ended:
                return b""
            self._news.clear()
            await self._news.wait()
        data = self._parts.popleft()
        self._size -= len(data)
        if self._size < self._most:
            self._room.set()
        return data
