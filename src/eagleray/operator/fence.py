"""The fence around a leader: a process whose Lease has run out changes nothing, even if it does not know it yet.

A process that was stopped or starved goes on where it was when it wakes up, in the middle of a pass, before the loop
that renews the Lease gets its turn. Somebody else leads by then. So each write asks the clock right before it is sent.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, Stream, Transport


class NotLeading(OSError):
    """A write was not sent, because it is no longer this process's turn to write."""


class Fenced:
    """A transport that lets reads pass always, and all else only while `may_write` says so."""

    def __init__(self, inner: Transport, may_write: Callable[[], bool]) -> None:
        self._inner = inner
        self._may_write = may_write

    @property
    def host(self) -> str:
        return self._inner.host

    async def send(self, request: Request) -> Answer:
        if request.method != "GET" and not self._may_write():
            raise NotLeading(f"{request.method} {request.path} was not sent: the leader's Lease has run out")
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()
