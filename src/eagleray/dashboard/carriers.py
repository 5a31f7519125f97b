"""What carries requests to dashboards: one small protocol, and the way through the API server's proxy."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, runtime_checkable

import msgspec

from eagleray.dashboard.address import Address
from eagleray.dashboard.tokens import Token
from eagleray.kube.client import USER_AGENT
from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, AnswerLost, NotSent, Transport, TransportError


class ConnectTimedOut(NotSent):
    """The connection was not made in time."""


class TooLong(TransportError):
    """The answer goes on beyond what anybody wants to hold. The request has arrived."""


class HandshakeRefused(TransportError):
    """The dashboard has answered, but not with a WebSocket."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Carrier(Protocol):
    """Carries requests to dashboards. What fails on the way is raised as a TransportError."""

    async def send(
        self, address: Address, request: Request, token: Token | None, *, connect_seconds: float, longest: int
    ) -> Answer:
        """Return the answer, of at most `longest` bytes; its own connection, if it makes one, is made in time."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


@runtime_checkable
class Tailing(Protocol):
    """A carrier that can also listen to a WebSocket."""

    def listen(
        self, address: Address, request: Request, token: Token | None, *, longest: int
    ) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """Give the messages as they come; the end of the block hangs up."""
        ...


def headers_of(request: Request, token: Token | None) -> tuple[tuple[str, str], ...]:
    """Return the headers to send."""
    shown = (token.header,) if token is not None else ()
    return (*request.headers, ("user-agent", USER_AGENT), *shown)


async def gathered(chunks: AsyncIterator[bytes], longest: int) -> bytes:
    """Return all chunks together; too many of them are not waited for."""
    parts: list[bytes] = []
    held = 0
    async for chunk in chunks:
        held += len(chunk)
        if held > longest:
            raise TooLong(f"the answer has more than {longest} bytes")
        parts.append(chunk)
    return b"".join(parts)


class ProxyCarrier:
    """Reaches dashboards through the API server, for an operator that is outside of the cluster's network."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(
        self,
        address: Address,
        request: Request,
        token: Token | None,
        *,
        connect_seconds: float,  # noqa: ARG002 - the API server connects
        longest: int,
    ) -> Answer:
        proxied = request._replace(
            path=f"{address.proxied}{request.path}",
            headers=headers_of(request, token),
            resource="services/proxy",
        )
        async with self._transport.stream(proxied) as (answer, chunks):
            body = answer.body or await gathered(chunks, longest)
        if len(body) > longest:
            raise TooLong(f"the answer has more than {longest} bytes")
        answer = answer._replace(body=body)
        _raise_if_not_from_ray(answer)
        return answer

    async def close(self) -> None:
        """The transport belongs to whoever made it."""


class _Status(msgspec.Struct):
    kind: str
    message: str = ""
    reason: str = ""


_statuses = msgspec.json.Decoder(_Status)
# The API server says 503 for all that goes wrong behind it. These texts mean that it never got through.
_NOT_CONNECTED: Final = ("no endpoints available", "dial tcp", "no such host", "connection refused")


def _raise_if_not_from_ray(answer: Answer) -> None:
    """Raise if the API server itself has answered: a missing Service must not be taken for a missing job."""
    if answer.is_success:
        return
    try:
        status = _statuses.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return
    if status.kind != "Status":
        return
    told = f"the API server says {answer.status} {status.reason}: {status.message[:1000]}"
    if answer.status < 500 or any(text in status.message for text in _NOT_CONNECTED):
        raise NotSent(told)
    raise AnswerLost(told)
