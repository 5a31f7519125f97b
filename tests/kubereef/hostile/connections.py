"""What can be wrong with a connection rather than with a request: framing, pace, upgrades and ends."""

from collections.abc import Callable
from typing import NamedTuple

from tests.kubereef.hostile.aims import Aim, Attack
from tests.kubereef.hostile.wire import Connection

_MAPS = "/api/v1/namespaces/default/configmaps"


class Rudeness(NamedTuple):
    """Bytes to send, with pauses in seconds between them; then the end of what is sent, or of everything."""

    name: str
    portions: list[bytes | float]
    ends: bool = False


def rudeness(aim: Aim, connection: Connection) -> Rudeness:
    """Return the next thing to do to a connection."""
    (family,) = aim.random.choices(list(_KINDS), list(_KINDS.values()))
    return family(aim, connection)


def _framing(aim: Aim, connection: Connection) -> Rudeness:
    """Send a body that does not have the length it says, or a head that is none."""
    random = aim.random
    post = _head(connection, Attack("", "POST", _MAPS))
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    sized = post + b"Content-Length: 20\r\n\r\n"
    get = _head(connection, Attack("", "GET", _MAPS))
    choices: list[list[bytes | float]] = [
        [chunked + b"zz\r\nabc\r\n0\r\n\r\n"],
        [chunked + b"-5\r\nabcde\r\n0\r\n\r\n"],
        [chunked + b"fffffffffffffffffffff\r\nabc"],
        [chunked + b"3\r\nabcdefgh\r\n0\r\n\r\n"],
        [chunked + b"2\r\n{}\r\n"],
        [chunked + b"2;" + b"x" * 70_000 + b"\r\n{}\r\n0\r\n\r\n"],
        [chunked + b"2\r\n{}\r\n0\r\nTrailer: x\r\n\r\n"],
        [chunked + b"0\r\n" + b"T: x\r\n" * 20_000 + b"\r\n"],
        [sized + b"{}"],
        [sized + b'{"metadata": {}}    ' + b"GET / HTTP/1.1\r\n\r\n"],
        [post + b"Content-Length: -1\r\n\r\n{}"],
        [post + b"Content-Length: 9999999999999999999999\r\n\r\n{}"],
        [post + b"Content-Length: 4\r\nContent-Length: 2\r\n\r\n{}"],
        [post + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
        [post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
        [post + b"Transfer-Encoding: nonsense\r\n\r\n"],
        [post + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"],
        [post + b"Expect: 999-nonsense\r\nContent-Length: 2\r\n\r\n{}"],
        [get + b"X: " + b"a" * 100_000 + b"\r\n\r\n"],
        [get + b"".join(b"X-%d: a\r\n" % number for number in range(30_000)) + b"\r\n"],
        [get + b" folded: x\r\n\r\n"],
        [get + b"No colon\r\n\r\n"],
        [get + b": no name\r\n\r\n"],
        [get + b"A\0B: \0\r\n\r\n"],
        [get + b"Sp ace : x\r\n\r\n"],
        [b"GET " + b"/a" * 100_000 + b" HTTP/1.1\r\n\r\n"],
        [b"GET / HTTP/9.9\r\n\r\n"],
        [b"GET / HTTP/1.0\r\n\r\n"],
        [b"GET\r\n\r\n"],
        [b"\r\n" * 1000],
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 100],
        [random.randbytes(random.randrange(1, 3000))],
        [b"\x16\x03\x01" + random.randbytes(300)],
        [get + b"\r\n" + get + b"\r\n" + get + b"\r\n"],
        [get + b"Host: \xff\xfe\r\n\r\n"],
        [b"GET http://[::1/ HTTP/1.1\r\nHost: [::1\r\n\r\n"],
        [b"GET //[x/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ]  # fmt: skip
    return Rudeness("framing", random.choice(choices), ends=random.random() < 0.3)


def _slow(aim: Aim, connection: Connection) -> Rudeness:
    """Send a few bytes now and then, and never the last."""
    random = aim.random
    whole = _head(connection, Attack("", "POST", _MAPS)) + b"Content-Length: 2000\r\n\r\n" + b" " * 1000
    portions: list[bytes | float] = []
    start = random.randrange(1, len(whole))
    for place in range(start, min(start + 6, len(whole))):
        portions += [whole[:start] if place == start else whole[place - 1 : place], 0.002]
    return Rudeness("slow", portions)


def _watch(aim: Aim, connection: Connection) -> Rudeness:
    """Begin a watch and go away at some point."""
    random = aim.random
    path = random.choice(aim.surface.lists)
    query = random.choice(
        (
            "watch=true",
            "watch=1&resourceVersion=0",
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true",
        )
    )
    target = f"{aim.path(path)}?{query}&timeoutSeconds={random.choice((1, 30, 3000))}"
    head = _head(connection, Attack("", "GET", target)) + b"\r\n"
    return Rudeness("watch", [head, random.choice((0.0, 0.001, 0.01))], ends=random.random() < 0.5)


def _upgrade(aim: Aim, connection: Connection) -> Rudeness:
    """Ask for another protocol and break off, or speak another one than that."""
    random = aim.random
    part = random.choice(
        (
            "exec?command=id&stdout=true",
            "attach?stdin=true",
            "portforward?ports=80",
            "log?follow=true",
            "proxy/x",
        )
    )
    place = f"/api/v1/namespaces/{aim.namespace}/pods/{random.choice((aim.standing(), 'nobody'))}/{part}"
    head = _head(
        connection,
        Attack("", random.choice(("GET", "POST")), random.choice((place, place, _MAPS, "/version"))),
    )
    protocol = random.choice((b"SPDY/3.1", b"websocket", b"h2c", b"nonsense", b"", b"websocket, SPDY/3.1"))
    head += b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n"
    head += random.choice(
        (
            b"", b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
            b"Sec-WebSocket-Key: x\r\n",
            b"Sec-WebSocket-Version: 99\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
            b"X-Stream-Protocol-Version: v9\r\n",
            b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" * 50,
        )
    )  # fmt: skip
    frames = random.choice(
        (b"", b"\x80\x03\x00\x01\x00\x00\x00\x00", b"\x82\xff" + b"\xff" * 8, random.randbytes(200))
    )
    return Rudeness(
        "upgrade", [head + b"\r\n", random.choice((0.0, 0.01)), frames], ends=random.random() < 0.5
    )


def _torn_answer(aim: Aim, connection: Connection) -> Rudeness:
    """Ask for something long and do not wait for it."""
    target = aim.random.choice(("/openapi/v2", "/openapi/v3/apis/apps/v1", "/apis", "/api/v1/configmaps"))
    asked = _head(connection, Attack("", "GET", target, (("Accept-Encoding", "gzip"),))) + b"\r\n"
    return Rudeness("torn answer", [asked * aim.random.choice((1, 5, 20)), 0.0], ends=True)


_KINDS: dict[Callable[[Aim, Connection], Rudeness], int] = {
    _framing: 10,
    _slow: 2,
    _watch: 4,
    _upgrade: 4,
    _torn_answer: 1,
}


def _head(connection: Connection, attack: Attack) -> bytes:
    """Return the lines of a request up to where more headers may follow."""
    plain = connection.head(attack)
    return b"".join(
        line + b"\r\n" for line in plain.split(b"\r\n") if line and not line.startswith(b"Content-Length")
    )
