"""SPDY/3.1 as kubectl and API servers speak it: frames to and from bytes. Pure; `spdysession` gives them a connection.

Only what Kubernetes uses is here: streams with headers, data, pings and their ends. There is no flow control in it,
for the programs on the other side have none; what is not understood is passed over.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

VERSION = 3
MOST_CONTROL_BYTES = 64 * 1024
MOST_HEADER_BYTES = 64 * 1024
_MOST_DATA = 0xFFFFFF

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_FIN = 1
_HEAD = struct.Struct(">IB3s")
_WORD = struct.Struct(">I")


class BadFrame(Exception):
    """The other side does not speak SPDY/3.1, or sends more than is taken."""


class SynStream(NamedTuple):
    """A stream begins; with `fin` its sender has nothing more to say."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


class SynReply(NamedTuple):
    """A stream was accepted."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


class Data(NamedTuple):
    """Bytes of a stream, or a part of a frame that is still coming; the last has `fin`."""

    stream: int
    data: bytes
    fin: bool = False


class Reset(NamedTuple):
    """A stream ended before its time."""

    stream: int
    status: int


class Ping(NamedTuple):
    """Asks to be sent back."""

    number: int


class GoAway(NamedTuple):
    """No new streams, please."""

    last_stream: int


Frame = SynStream | SynReply | Data | Reset | Ping | GoAway


class Decoder:
    """Bytes to frames. Memory is bounded: data is passed on as it comes, and control frames have a largest size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._headers = zlib.decompressobj(zdict=_DICTIONARY)
        self._data_stream = 0
        self._data_left = 0
        self._data_fin = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that these bytes complete; raises BadFrame."""
        self._buffer += data
        while True:
            if self._data_left:
                if not self._buffer:
                    return
                yield self._more_data()
                continue
            if len(self._buffer) < _HEAD.size:
                return
            word, flags, size_bytes = _HEAD.unpack_from(self._buffer)
            size = int.from_bytes(size_bytes, "big")
            if not word >> 31:
                del self._buffer[: _HEAD.size]
                self._data_stream, self._data_left, self._data_fin = word, size, bool(flags & _FIN)
                if not size:
                    yield Data(word, b"", self._data_fin)
                continue
            if word >> 16 & 0x7FFF != VERSION or size > MOST_CONTROL_BYTES:
                raise BadFrame(f"a control frame of version {word >> 16 & 0x7FFF} with {size} bytes")
            if len(self._buffer) < _HEAD.size + size:
                return
            body = bytes(self._buffer[_HEAD.size : _HEAD.size + size])
            del self._buffer[: _HEAD.size + size]
            frame = self._control(word & 0xFFFF, flags, body)
            if frame is not None:
                yield frame

    def _more_data(self) -> Data:
        part = bytes(self._buffer[: self._data_left])
        del self._buffer[: len(part)]
        self._data_left -= len(part)
        return Data(self._data_stream, part, self._data_fin and not self._data_left)

    def _control(self, kind: int, flags: int, body: bytes) -> Frame | None:
        try:
            stream = _WORD.unpack_from(body)[0] & 0x7FFFFFFF if body else 0
            if kind == _SYN_STREAM:
                return SynStream(stream, self._read_headers(body[10:]), bool(flags & _FIN))
            if kind == _SYN_REPLY:
                return SynReply(stream, self._read_headers(body[4:]), bool(flags & _FIN))
            if kind == _RST_STREAM:
                return Reset(stream, _WORD.unpack_from(body, 4)[0])
            if kind == _PING:
                return Ping(_WORD.unpack_from(body)[0])
            if kind == _GOAWAY:
                return GoAway(stream)
            if kind == _HEADERS:
                self._read_headers(body[4:])  # one compressor serves all frames, so none may be left out
        except (struct.error, zlib.error, UnicodeDecodeError) as bad:
            raise BadFrame(f"a control frame of type {kind}: {bad}") from bad
        return None

    def _read_headers(self, block: bytes) -> dict[str, str]:
        text = self._headers.decompress(block, MOST_HEADER_BYTES)
        if self._headers.unconsumed_tail:
            raise BadFrame(f"headers of more than {MOST_HEADER_BYTES} bytes")
        words: list[str] = []
        (count,), place = _WORD.unpack_from(text), _WORD.size
        while len(words) < 2 * count:
            (size,) = _WORD.unpack_from(text, place)
            place += _WORD.size + size
            if place > len(text):
                raise BadFrame("a header that is longer than all headers")
            words.append(text[place - size : place].decode())
        return {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=True)}


class Encoder:
    """Frames to bytes."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=_DICTIONARY)

    def syn_stream(self, stream: int, headers: Mapping[str, str], *, fin: bool = False) -> bytes:
        return _control(_SYN_STREAM, fin, struct.pack(">IIH", stream, 0, 0) + self._header_block(headers))

    def syn_reply(self, stream: int, headers: Mapping[str, str] | None = None, *, fin: bool = False) -> bytes:
        return _control(_SYN_REPLY, fin, _WORD.pack(stream) + self._header_block(headers or {}))

    def data(self, stream: int, data: bytes, *, fin: bool = False) -> bytes:
        if len(data) > _MOST_DATA:
            raise ValueError(f"a frame of {len(data)} bytes is too large")
        return _HEAD.pack(stream, _FIN if fin else 0, len(data).to_bytes(3, "big")) + data

    def reset(self, stream: int, status: int) -> bytes:
        return _control(_RST_STREAM, False, struct.pack(">II", stream, status))

    def ping(self, number: int) -> bytes:
        return _control(_PING, False, _WORD.pack(number))

    def go_away(self, last_stream: int) -> bytes:
        return _control(_GOAWAY, False, struct.pack(">II", last_stream, 0))

    def _header_block(self, headers: Mapping[str, str]) -> bytes:
        words = [word.encode() for pair in headers.items() for word in pair]
        text = _WORD.pack(len(headers)) + b"".join(_WORD.pack(len(word)) + word for word in words)
        return self._headers.compress(text) + self._headers.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, fin: bool, body: bytes) -> bytes:
    word = 1 << 31 | VERSION << 16 | kind
    return _HEAD.pack(word, _FIN if fin else 0, len(body).to_bytes(3, "big")) + body


# What both sides assume to have been compressed before the first header: the protocol's own list of words, each
# behind its length, and then some that often stand in values.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
_VALUES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    words = [word.replace("_", " ").encode() for word in _WORDS.split()]
    return b"".join(_WORD.pack(len(word)) + word for word in words) + _VALUES.encode()


_DICTIONARY = _dictionary()
