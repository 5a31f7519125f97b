"""The two nf_tables rules that the node may need, spoken to the kernel directly over netlink.

Tables belong to the network namespace of the calling thread and end with it. Calls block for a moment.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network

TABLE = "kubereef"

_NETLINK_NETFILTER = 12
_SUBSYSTEM = 10
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = 0, 3, 6
_ERROR = 2
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_NESTED = 0x8000
_IPV4 = 2
_REGISTER = 1

_PREROUTING, _POSTROUTING = 0, 4
_BEFORE_ROUTING, _AFTER_ROUTING = -100, 100  # the usual places of address translation

_EQUAL, _UNEQUAL = 0, 1
_IN_NAME, _OUT_NAME, _L4_PROTOCOL = 6, 7, 16
_SOURCE, _DESTINATION = 12, 16
_MOST_NAME = 16
_ANSWER_SECONDS = 5.0


class NfTablesUnavailable(Exception):
    """The kernel does not do what was asked of nf_tables; the message says what and why."""


def redirect_outgoing(bridge: str, port: int, except_to: Sequence[IPv4Network]) -> None:
    """Lead TCP connections that come in from the bridge, and want to go to no network of ours, to an own port.

    Whoever listens there learns from `original_destination` where a connection wanted to go.
    """
    conditions = [_interface(_IN_NAME, bridge), _is_tcp()]
    conditions += [_address(_DESTINATION, network, _UNEQUAL) for network in except_to]
    target = _immediate(struct.pack("!H", port)) + _expression("redir", _number(1, _REGISTER))
    _install("prerouting", _PREROUTING, _BEFORE_ROUTING, b"".join(conditions) + target)


def masquerade(link: str, source: IPv4Network) -> None:
    """Give what leaves by a link from a network of ours the address of that link."""
    conditions = _interface(_OUT_NAME, link) + _address(_SOURCE, source, _EQUAL)
    _install("postrouting", _POSTROUTING, _AFTER_ROUTING, conditions + _expression("masq", b""))


def original_destination(connection: socket.socket) -> tuple[str, int]:
    """Return where a redirected connection wanted to go."""
    so_original_dst = 80
    answer = connection.getsockopt(socket.IPPROTO_IP, so_original_dst, 16)
    port, address = struct.unpack("!2xH4s8x", answer)
    return socket.inet_ntoa(address), port


def _attribute(kind: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def _nested(kind: int, payload: bytes) -> bytes:
    return _attribute(kind | _NESTED, payload)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("!i", value))


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _data(kind: int, value: bytes) -> bytes:
    return _nested(kind, _attribute(1, value))


def _expression(name: str, payload: bytes) -> bytes:
    return _nested(1, _text(1, name) + _nested(2, payload))


def _immediate(value: bytes) -> bytes:
    return _expression("immediate", _number(1, _REGISTER) + _data(2, value))


def _compare(operation: int, value: bytes) -> bytes:
    return _expression("cmp", _number(1, _REGISTER) + _number(2, operation) + _data(3, value))


def _meta(key: int) -> bytes:
    return _expression("meta", _number(1, _REGISTER) + _number(2, key))


def _interface(key: int, name: str) -> bytes:
    return _meta(key) + _compare(_EQUAL, name.encode().ljust(_MOST_NAME, b"\0"))


def _is_tcp() -> bytes:
    return _meta(_L4_PROTOCOL) + _compare(_EQUAL, bytes([socket.IPPROTO_TCP]))


def _address(offset: int, network: IPv4Network, operation: int) -> bytes:
    """Return expressions that load an address of the packet, mask it, and compare it with a network."""
    network_header = 1
    load = _number(1, _REGISTER) + _number(2, network_header) + _number(3, offset) + _number(4, 4)
    mask = _data(4, network.netmask.packed) + _data(5, bytes(4))
    masked = _expression("bitwise", _number(1, _REGISTER) + _number(2, _REGISTER) + _number(3, 4) + mask)
    return _expression("payload", load) + masked + _compare(operation, network.network_address.packed)


def _install(chain: str, hook: int, priority: int, expressions: bytes) -> None:
    """Add a chain with one rule to our table, all of it or nothing."""
    hooked = _nested(4, _number(1, hook) + _number(2, priority))
    _transact(
        [
            (_NEW_TABLE, 0, _text(1, TABLE)),
            (_NEW_CHAIN, 0, _text(1, TABLE) + _text(3, chain) + hooked + _text(7, "nat")),
            (_NEW_RULE, _APPEND, _text(1, TABLE) + _text(2, chain) + _nested(4, expressions)),
        ]
    )


def _message(kind: int, flags: int, sequence: int, family: int, resource: int, payload: bytes) -> bytes:
    body = struct.pack("!BBH", family, 0, resource) + payload
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, sequence, 0) + body


def _transact(commands: Iterable[tuple[int, int, bytes]]) -> None:
    """Have the kernel do several commands as one; raises NfTablesUnavailable with the first refusal."""
    commands = list(commands)
    batch = _message(_BATCH_BEGIN, 0, 0, 0, _SUBSYSTEM, b"")
    for number, (command, flags, payload) in enumerate(commands, start=1):
        kind = _SUBSYSTEM << 8 | command
        batch += _message(kind, _ACK | _CREATE | flags, number, _IPV4, 0, payload)
    batch += _message(_BATCH_END, 0, len(commands) + 1, 0, _SUBSYSTEM, b"")
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as kernel:
            kernel.settimeout(_ANSWER_SECONDS)
            kernel.bind((0, 0))
            kernel.send(batch)
            awaited = set(range(1, len(commands) + 1))
            while awaited:
                for sequence, code in _answers(kernel.recv(65536)):
                    if code:
                        raise OSError(code, os.strerror(code))
                    awaited.discard(sequence)
    except OSError as refusal:
        hint = " (the kernel has no nf_tables)" if refusal.errno in _ABSENT else ""
        raise NfTablesUnavailable(f"nf_tables: {refusal}{hint}") from refusal


_ABSENT = {errno.EPROTONOSUPPORT, errno.EOPNOTSUPP, errno.ENOENT, errno.EINVAL}


def _answers(received: bytes) -> Iterable[tuple[int, int]]:
    """Yield the number of each command that is answered, with its error, 0 for none."""
    while len(received) >= 20:
        length, kind, _, sequence, _, code = struct.unpack_from("=IHHIIi", received)
        if kind == _ERROR:
            yield sequence, -code
        received = received[max(length + -length % 4, 16) :]
