"""One request of a client: how it is sent to an endpoint, and how the answer goes back. Bodies pass as they come."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from kubereef.gateway.filters import Headers
from kubereef.gateway.proxy.answers import (
    Broken,
    Refusal,
    keeps_framing,
    reason_of,
    response_headers,
    upgraded_headers,
)
from kubereef.gateway.proxy.bodies import LAST_CHUNK, BodyReader, as_chunk
from kubereef.gateway.proxy.heads import (
    MOST_HEAD,
    NO_BODY,
    BadMessage,
    Body,
    Framing,
    RequestHead,
    ResponseHead,
    end_to_end,
    read_response,
    values,
    write_request,
    write_response,
)
from kubereef.gateway.proxy.wire import TooLong, Wire
from kubereef.gateway.reading import Backend
from kubereef.gateway.table import Found

MOST_REPEATED = 64 * 1024
"""Bytes of a body that are kept so that the request can be sent once more."""

_WITH_LENGTH = ("POST", "PUT", "PATCH")


class NoAnswer(Exception):
    """A connection broke before the first byte of an answer."""


class Outgoing(NamedTuple):
    """A request as it is sent to an endpoint; `rest` is its body, if that is passed on as it comes."""

    data: bytes
    rest: BodyReader | None = None
    is_chunked: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether all of it is at hand."""
        return self.rest is None


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        client: Wire,
        head: RequestHead,
        found: Found,
        backend: Backend,
        is_closing: Callable[[], bool],
    ) -> None:
        self.head = head
        self.deadline: asyncio.Timeout | None = None
        """When the client is told that it took too long, if ever."""
        self._client = client
        self._found = found
        self._filters = (found.rule.rule.filters, backend.filters)
        self._is_closing = is_closing
        self._has_answered = False

    async def outgoing(self) -> Outgoing:
        """Return the request as it is sent. A small body is waited for, so that it can be sent once more."""
        head = self.head
        body = BodyReader(self._client, head.body, 400)
        if head.body.framing is Framing.NONE:
            return Outgoing(self._request_head(head.body))
        written = self._request_head(head.body)
        is_small = head.body.framing is Framing.LENGTH and head.body.length <= MOST_REPEATED
        if not is_small or head.expects_continue:
            return Outgoing(written, body, head.body.framing is Framing.CHUNKED)
        pieces = [written]
        while piece := await body.next():
            pieces.append(piece)
        return Outgoing(b"".join(pieces))

    async def attempt(self, wire: Wire, outgoing: Outgoing) -> tuple[bool, bool]:
        """Send the request over a connection and pass the answer on.

        Return whether the client's connection, and whether the endpoint's, can be used for another request. NoAnswer if
        the connection broke before the first byte of an answer, Refusal if there is something to tell the client
        instead, Broken if it is too late for that.
        """
        wire.write(outgoing.data)
        sending = asyncio.create_task(self._send_rest(wire, outgoing)) if outgoing.rest is not None else None
        try:
            return await self._answer(wire, sending)
        except (NoAnswer, ConnectionError) as broke:
            if sending is not None and sending.done() and (bad := sending.exception()) is not None:
                self.give_up(400, str(bad))
            if isinstance(broke, NoAnswer):
                raise
            self.give_up(502, "the backend broke its answer off")
        except (BadMessage, TooLong):
            self.give_up(502, "the backend's answer is malformed")
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    def give_up(self, status: int, message: str) -> NoReturn:
        """Tell the client that there is no answer; one that has begun is broken off."""
        if self._has_answered:
            raise Broken(message)
        raise Refusal(status, message)

    # --- there

    def _request_head(self, body: Body) -> bytes:
        head, prefix = self.head, self._found.prefix
        rewrite = self._filters[0].rewrite or self._filters[1].rewrite
        path, authority = head.path, head.authority
        if rewrite is not None:
            authority = rewrite.hostname or authority
            path = rewrite.path.apply(path, prefix) if rewrite.path is not None else path
        kept = [one for one in end_to_end(head.headers) if not _is_replaced(one[0])]
        known = values(head.headers, "x-forwarded-for")
        headers: Headers = [
            ("Host", authority),
            *kept,
            ("X-Forwarded-For", ", ".join([*known, self._client.peer])),
            ("X-Forwarded-Proto", "http"),
            ("X-Forwarded-Host", next(iter(values(head.headers, "x-forwarded-host")), head.authority)),
        ]
        for filters in self._filters:
            if filters.request is not None:
                headers = filters.request.apply(headers)
        if body.framing is Framing.CHUNKED:
            headers.append(("Transfer-Encoding", "chunked"))
        elif body is not NO_BODY or head.method in _WITH_LENGTH:
            headers.append(("Content-Length", str(body.length)))
        if head.upgrade:
            headers += [("Connection", "Upgrade"), ("Upgrade", head.upgrade)]
        target = f"{path}?{head.query}" if head.query else path
        return write_request(head.method, target, headers)

    async def _send_rest(self, wire: Wire, outgoing: Outgoing) -> None:
        """Pass the client's body on as it comes. An endpoint that takes no more of it may have answered already."""
        assert outgoing.rest is not None
        try:
            while piece := await outgoing.rest.next():
                wire.write(as_chunk(piece) if outgoing.is_chunked else piece)
                try:
                    await wire.drain()
                except ConnectionError:
                    return
            if outgoing.is_chunked:
                wire.write(LAST_CHUNK)
        except (BadMessage, ConnectionError):
            wire.abort()  # the endpoint must not take what it has for the whole
            raise

    # --- and back

    async def _answer(self, wire: Wire, sending: "asyncio.Task[None] | None") -> tuple[bool, bool]:
        answer = await self._next_head(wire)
        while 100 <= answer.status < 200 and answer.status != 101:
            if self.head.is_modern:
                # A client that has been told to go on must not be told so again by another endpoint.
                self._has_answered = True
                self._client.write(write_response(answer.status, answer.reason, end_to_end(answer.headers)))
            answer = await self._next_head(wire)
        if answer.status == 101:
            await self._upgrade(wire, answer)
            return False, False
        has_sent_all = sending is None or sending.done()
        keeps = (
            not self.head.wants_close
            and has_sent_all
            and not self._is_closing()
            and keeps_framing(self.head, answer)
        )
        await self._pass_on(wire, answer, keeps=keeps)
        fit = has_sent_all and not answer.wants_close and answer.body.framing is not Framing.UNTIL_CLOSE
        return keeps, fit

    async def _next_head(self, wire: Wire) -> ResponseHead:
        raw = await wire.read_until(b"\r\n\r\n", MOST_HEAD)
        if raw is None:
            if self._has_answered:
                raise ConnectionResetError("the connection ended before the answer")
            raise NoAnswer
        return read_response(raw, self.head.method)

    async def _pass_on(self, wire: Wire, answer: ResponseHead, *, keeps: bool) -> None:
        headers = end_to_end(answer.headers)
        for filters in self._filters:
            if filters.response is not None:
                headers = filters.response.apply(headers)
        headers = response_headers(self.head, answer, headers, keeps=keeps)
        client = self._client
        written = write_response(answer.status, answer.reason or reason_of(answer.status), headers)
        body = BodyReader(wire, answer.body, 502)
        is_chunked = self.head.is_modern and answer.body.framing in (Framing.CHUNKED, Framing.UNTIL_CLOSE)
        self._has_answered = True
        if wire.is_quiet:
            client.write(written)  # the body may be long in coming
            written = b""
        while piece := await body.next():
            client.write(written + (as_chunk(piece) if is_chunked else piece))
            written = b""
            await _drained(client)
        client.write(written + (LAST_CHUNK if is_chunked else b""))

    async def _upgrade(self, wire: Wire, answer: ResponseHead) -> None:
        """Pass bytes of another protocol both ways until both sides have ended."""
        if not self.head.upgrade:
            raise BadMessage(502, "the backend changed the protocol without being asked")
        if self.deadline is not None:
            self.deadline.reschedule(None)
        self._has_answered = True
        self._client.on_gone = None  # either side may end before the other
        self._client.write(write_response(101, answer.reason, upgraded_headers(answer)))
        ways = [
            asyncio.create_task(_relay(self._client, wire)),
            asyncio.create_task(_relay(wire, self._client)),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        if any(way.exception() is not None for way in done):
            raise Broken("an upgraded connection broke")


async def _relay(source: Wire, target: Wire) -> None:
    while piece := await source.read():
        target.write(piece)
        await target.drain()
    if source.is_broken:
        raise ConnectionResetError("the connection broke")
    target.end()


async def _drained(client: Wire) -> None:
    try:
        await client.drain()
    except ConnectionError:
        raise Broken("the client is gone") from None


def _is_replaced(name: str) -> bool:
    return name.lower() in ("host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")
