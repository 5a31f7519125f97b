"""Bodies, read piece by piece as they come and never kept whole."""

import re

from kubereef.gateway.proxy.heads import BadMessage, Body, Framing
from kubereef.gateway.proxy.wire import TooLong, Wire

LAST_CHUNK = b"0\r\n\r\n"

_MOST_LINE = 4096
_MOST_TRAILERS = 16 * 1024
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")


def as_chunk(piece: bytes) -> bytes:
    """Return a piece of a body as a chunk."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class BodyReader:
    """Reads one body from a connection. `status` is the answer to whoever sends a malformed one."""

    __slots__ = ("_body", "_has_begun", "_left", "_status", "_wire", "is_complete")

    def __init__(self, wire: Wire, body: Body, status: int) -> None:
        self._wire = wire
        self._body = body
        self._status = status
        self._left = body.length  # of the body, or of the present chunk
        self._has_begun = False
        self.is_complete = body.framing is Framing.NONE

    async def next(self) -> bytes:
        """Return the next piece, or nothing at the end.

        BadMessage if the body is malformed, ConnectionError if it breaks off.
        """
        if self.is_complete:
            return b""
        match self._body.framing:
            case Framing.CHUNKED:
                return await self._next_of_chunks()
            case Framing.UNTIL_CLOSE:
                piece = await self._wire.read()
                if not piece and self._wire.is_broken:
                    raise _broken_off()
                self.is_complete = not piece
                return piece
            case _:
                piece = await self._measured()
                self.is_complete = not self._left
                return piece

    async def _measured(self) -> bytes:
        piece = await self._wire.read(self._left)
        if not piece:
            raise _broken_off()
        self._left -= len(piece)
        return piece

    async def _next_of_chunks(self) -> bytes:
        try:
            if not self._left:
                self._left = await self._chunk_size()
            if not self._left:
                await self._skip_trailers()
                self.is_complete = True
                return b""
        except TooLong:
            raise BadMessage(self._status, "a line between the chunks of a body is too long") from None
        return await self._measured()

    async def _chunk_size(self) -> int:
        if self._has_begun and await self._line():
            raise BadMessage(self._status, "a chunk is longer than it says")
        self._has_begun = True
        found = _SIZE.fullmatch(await self._line())
        if found is None:
            raise BadMessage(self._status, "the size of a chunk is not a number")
        return int(found[1], 16)

    async def _skip_trailers(self) -> None:
        """Read what follows the last chunk. It is not passed on, as everybody must be able to do without it."""
        room = _MOST_TRAILERS
        while line := await self._line():
            room -= len(line)
            if room < 0 or b":" not in line or b"\n" in line or b"\r" in line:
                raise BadMessage(self._status, "what follows the last chunk is malformed")

    async def _line(self) -> bytes:
        line = await self._wire.read_until(b"\r\n", _MOST_LINE)
        if line is None:
            raise _broken_off()
        return line


def _broken_off() -> ConnectionResetError:
    return ConnectionResetError("the connection ended in the middle of a body")
