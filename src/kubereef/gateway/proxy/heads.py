"""The heads of HTTP/1.1 messages, read strictly.

Whatever two programs could read in two ways, and so could smuggle one request inside another, is refused: bare line
ends, folded lines, spaces before colons, two lengths, a length beside a transfer coding.
"""

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

MOST_HEAD = 64 * 1024
MOST_TARGET = 16 * 1024
MOST_FIELDS = 200

Headers = list[tuple[str, str]]

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TARGET = re.compile(r"[\x21-\x7e\x80-\xff]+")
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: (.*))?")
_VERSION = re.compile(r"HTTP/[0-9]\.[0-9]")
_DIGITS = re.compile(r"[0-9]{1,18}")
_ABSOLUTE = re.compile(r"https?://([^/?#]*)([^#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\s\"<>\\^`{|}]*)(?::[0-9]{0,5})?")

# What is said between two neighbours and not passed on.
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
# A client must not have these taken out by naming them in its Connection header.
_KEPT = frozenset(("host", "content-length", "content-type", "authorization", "cookie"))


class BadMessage(Exception):
    """A message that is not to be passed on; `status` is the answer to whoever sent it, if it was a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Framing(Enum):
    """How the end of a body is found."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    UNTIL_CLOSE = "until close"


class Body(NamedTuple):
    """How a body is framed; `length` is that of one whose length was told."""

    framing: Framing
    length: int = 0


NO_BODY = Body(Framing.NONE)


class RequestHead(NamedTuple):
    """What a request begins with. `is_modern` is HTTP/1.1 rather than 1.0; `host` is without port, in lower case."""

    method: str
    path: str
    query: str
    is_modern: bool
    headers: Headers
    authority: str
    host: str
    body: Body
    upgrade: str
    wants_close: bool
    expects_continue: bool

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


class ResponseHead(NamedTuple):
    """What an answer begins with."""

    status: int
    reason: str
    headers: Headers
    body: Body
    wants_close: bool


def read_request(head: bytes) -> RequestHead:
    """Return the head of a request; BadMessage if it is not one that can be passed on."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.rpartition(" ")
    if not _TOKEN.fullmatch(method) or not _VERSION.fullmatch(version):
        raise BadMessage(400, "the request line is malformed")
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadMessage(505, "the version of HTTP is not 1.1")
    if len(target) > MOST_TARGET:
        raise BadMessage(414, "the target of the request is too long")
    if not _TARGET.fullmatch(target):
        raise BadMessage(400, "the target of the request has characters that it must not have")
    is_modern = version == "HTTP/1.1"
    headers = _fields(lines)
    path, query, authority = _read_target(method, target, headers, is_modern=is_modern)
    options = _tokens(headers, "connection")
    upgrade = next(iter(values(headers, "upgrade")), "") if "upgrade" in options and is_modern else ""
    return RequestHead(
        method=method,
        path=path,
        query=query,
        is_modern=is_modern,
        headers=headers,
        authority=authority,
        host=_host_of(authority),
        body=_request_body(headers, is_modern=is_modern),
        upgrade=upgrade,
        wants_close="close" in options or (not is_modern and "keep-alive" not in options),
        expects_continue=is_modern and "100-continue" in _tokens(headers, "expect"),
    )


def read_response(head: bytes, method: str) -> ResponseHead:
    """Return the head of the answer to a request of this method; BadMessage if it is not one."""
    first, *lines = head.decode("latin-1").split("\r\n")
    found = _STATUS_LINE.fullmatch(first)
    if found is None:
        raise BadMessage(502, "the backend's answer does not begin as one of HTTP/1.1")
    headers = _fields(lines)
    status, reason = int(found[2]), found[3] or ""
    if _CONTROL.search(reason):
        raise BadMessage(502, "the backend's answer has control characters in its first line")
    options = _tokens(headers, "connection")
    wants_close = "close" in options or (found[1] == "0" and "keep-alive" not in options)
    return ResponseHead(status, reason, headers, _response_body(headers, method, status), wants_close)


def values(headers: Headers, name: str) -> list[str]:
    """Return the values of a header, whose name is given in lower case."""
    return [value for field, value in headers if field.lower() == name]


def joined(headers: Headers) -> dict[str, str]:
    """Return headers by their names in lower case; repeated ones are joined by commas."""
    found: dict[str, str] = {}
    for field, value in headers:
        name = field.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def end_to_end(headers: Headers) -> Headers:
    """Return the headers that are passed on: those that are not said between two neighbours alone, nor of framing."""
    named = _tokens(headers, "connection") - _KEPT
    return [
        (name, value)
        for name, value in headers
        if (lower := name.lower()) not in _HOP_BY_HOP and lower not in named and lower != "content-length"
    ]


def write_request(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the bytes of the head of a request."""
    return _written(f"{method} {target} HTTP/1.1", headers)


def write_response(status: int, reason: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the bytes of the head of an answer."""
    return _written(f"HTTP/1.1 {status} {reason}", headers)


def _written(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _fields(lines: list[str]) -> Headers:
    if len(lines) > MOST_FIELDS:
        raise BadMessage(431, "there are too many headers")
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        # A folded line begins with a space, and a space before the colon is read by some as part of the name.
        if not colon or not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise BadMessage(400, "a header is malformed")
        fields.append((name, value.strip(" \t")))
    return fields


def _tokens(headers: Headers, name: str) -> set[str]:
    return {
        token.strip(" \t").lower() for value in values(headers, name) for token in value.split(",") if token
    }


def _read_target(method: str, target: str, headers: Headers, *, is_modern: bool) -> tuple[str, str, str]:
    """Return path, query and authority of a request."""
    hosts = values(headers, "host")
    if len(hosts) > 1 or (is_modern and not hosts):
        raise BadMessage(400, "a request has exactly one Host header")
    authority = hosts[0] if hosts else ""
    if absolute := _ABSOLUTE.fullmatch(target):
        authority, target = absolute[1], absolute[2] or "/"
        target = target if target.startswith("/") else f"/{target}"
    elif not target.startswith("/") and (method, target) != ("OPTIONS", "*"):
        raise BadMessage(400, "the target of the request is not a path")
    if not _HOST.fullmatch(authority):
        raise BadMessage(400, "the host of the request is malformed")
    path, _, query = target.partition("?")
    return path, query, authority


def _host_of(authority: str) -> str:
    found = _HOST.fullmatch(authority)
    return found[1].lower().rstrip(".") if found else ""


def _request_body(headers: Headers, *, is_modern: bool) -> Body:
    lengths, codings = values(headers, "content-length"), values(headers, "transfer-encoding")
    if codings:
        if lengths or not is_modern:
            raise BadMessage(400, "a request has a length or a transfer coding, not both")
        if [one.lower() for one in codings] != ["chunked"]:
            raise BadMessage(501, "the only transfer coding here is chunked")
        return Body(Framing.CHUNKED)
    if not lengths:
        return NO_BODY
    length = _length(lengths, 400)
    return Body(Framing.LENGTH, length) if length else NO_BODY


def _response_body(headers: Headers, method: str, status: int) -> Body:
    lengths, codings = values(headers, "content-length"), values(headers, "transfer-encoding")
    if status < 200 or status in (204, 304) or method == "HEAD":
        return NO_BODY
    if codings:
        if lengths or [one.lower() for one in codings] != ["chunked"]:
            raise BadMessage(502, "the backend's answer is framed in more than one way")
        return Body(Framing.CHUNKED)
    if not lengths:
        return Body(Framing.UNTIL_CLOSE)
    length = _length(lengths, 502)
    return Body(Framing.LENGTH, length) if length else NO_BODY


def _length(lengths: list[str], status: int) -> int:
    if len(set(lengths)) != 1 or not _DIGITS.fullmatch(lengths[0]):
        raise BadMessage(status, "Content-Length is not one number")
    return int(lengths[0])
