"""What carries requests: one small protocol, the ways in which it fails, and calls inside one process."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import NamedTuple, Protocol

from eagleray.kube.requests import Request


class TransportError(OSError):
    """A request that got no answer."""


class NotSent(TransportError):
    """The server never saw the request: nothing happened."""


class AnswerLost(TransportError):
    """The request was sent, and its answer did not come: what it asked for may have happened."""


class Answer(NamedTuple):
    """An answer of the server. Header names are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def is_success(self) -> bool:
        """Whether the server has done it; one that sends us elsewhere has not, and is not followed."""
        return 200 <= self.status < 300


class Stream(NamedTuple):
    """An answer that goes on: chunks until it ends. A refusal is all in the answer, without chunks."""

    answer: Answer
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Carries requests to one API server. What fails on the way is raised as a TransportError."""

    @property
    def host(self) -> str:
        """Whom it speaks to, for metrics and messages."""
        ...

    async def send(self, request: Request) -> Answer:
        """Return the answer, whatever it says."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Give an answer as it comes; the end of the block hangs up."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


async def nothing() -> AsyncGenerator[bytes, None]:
    """The chunks of an answer that has none."""
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk


class Reply(NamedTuple):
    """What a server in this process answers: a body, or chunks."""

    answer: Answer
    chunks: AsyncGenerator[bytes, None] | None = None


class LocalTransport:
    """Speaks to a server of this process through a function."""

    def __init__(self, call: Callable[[Request], Awaitable[Reply]], host: str = "local") -> None:
        self._call = call
        self._host = host

    @property
    def host(self) -> str:
        return self._host

    async def send(self, request: Request) -> Answer:
        reply = await self._call(request)
        if reply.chunks is None:
            return reply.answer
        async with aclosing(reply.chunks) as chunks:
            return reply.answer._replace(body=b"".join([chunk async for chunk in chunks]))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        reply = await self._call(request)
        async with aclosing(reply.chunks or nothing()) as chunks:
            yield Stream(reply.answer, chunks)

    async def close(self) -> None:
        """Nothing is held."""
