"""How the node program, process 1 and its helpers talk: framed JSON with descriptors, over unix sockets.

A request travels on a socket pair of its own, whose far end is handed to process 1; the helper that process 1 forks
for it reads the request and answers there. Everything here blocks and is imported by process 1, which stays small;
`control` holds the node program's end, which does not block.
"""

import array
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kubereef.node.sandbox.specs import Command, ContainerSpec, PodSpec

MOST_BYTES = 16 * 1024 * 1024  # of one message: far above any environment the kernel would pass to a program
MOST_DESCRIPTORS = 16
_HEADER = struct.Struct("=I")
_FD_SPACE = socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)


class OpenPod(msgspec.Struct, frozen=True, tag=True):
    """Make a Pod's namespaces; answered by `PodOpened`."""

    spec: PodSpec


class StartContainer(msgspec.Struct, frozen=True, tag=True):
    """Start a container; `roles` names the descriptors that came with the request, in order."""

    spec: ContainerSpec
    roles: tuple[str, ...]


class EnterContainer(msgspec.Struct, frozen=True, tag=True):
    """Run a command inside the container whose pidfd is among the descriptors."""

    command: Command
    cgroup: dict[str, Path]
    roles: tuple[str, ...]


class PodOpened(msgspec.Struct, frozen=True, tag=True):
    """With descriptors of the net, uts and ipc namespace, and of the pid namespace if containers share one."""


class Born(msgspec.Struct, frozen=True, tag=True):
    """The process exists; a pidfd comes with this."""

    pid: int


class HasTerminal(msgspec.Struct, frozen=True, tag=True):
    """The master side of the process's terminal comes with this."""


class Started(msgspec.Struct, frozen=True, tag=True):
    """The program runs: its executable replaced the helper."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Nothing runs, because of this."""

    step: str
    message: str
    errno: int


Request = OpenPod | StartContainer | EnterContainer
Reply = PodOpened | Born | HasTerminal | Started | Failed


def _from_plain(kind: type, value: object) -> object:
    if kind is Path:
        return Path(str(value))
    raise TypeError(f"no {kind.__name__} travels in a message")


_encoder = msgspec.json.Encoder(enc_hook=str)  # the only foreign type is Path
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request, dec_hook=_from_plain)
_reply_decoder: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """Return a message's bytes."""
    return _encoder.encode(message)


def decode_reply(body: bytes | bytearray) -> Reply:
    """Return the reply in these bytes."""
    return _reply_decoder.decode(body)


def send_reply(line: socket.socket, reply: Reply, descriptors: Sequence[int] = ()) -> None:
    """Send a reply with descriptors, and wait until it is out."""
    body = encode(reply)
    send_header(line, len(body), descriptors)
    line.sendall(body)


def receive_request(line: socket.socket) -> tuple[Request, list[int]]:
    """Wait for the request on this line; EOFError if its sender is gone."""
    header, descriptors = receive_header(line)
    body = bytearray()
    while len(body) < header:
        if not (part := line.recv(header - len(body))):
            raise EOFError("the node program went away")
        body += part
    return _request_decoder.decode(body), descriptors


def close_descriptors(descriptors: Sequence[int]) -> None:
    """Close them all."""
    for fd in descriptors:
        os.close(fd)


def send_header(line: socket.socket, size: int, descriptors: Sequence[int]) -> None:
    """Announce a message of that size, which the caller sends next; the descriptors go with the announcement."""
    if size > MOST_BYTES or len(descriptors) > MOST_DESCRIPTORS:
        raise ValueError(f"a message of {size} bytes and {len(descriptors)} descriptors is too large")
    rights = array.array("i", descriptors)
    line.sendmsg(
        [_HEADER.pack(size)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
    )


def receive_header(line: socket.socket) -> tuple[int, list[int]]:
    """Return the size of the message that follows and the descriptors, which are the caller's to close."""
    data, ancillary, _, _ = line.recvmsg(_HEADER.size, _FD_SPACE, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    if len(data) < _HEADER.size:
        close_descriptors(descriptors)
        raise EOFError("the other side went away")
    (size,) = _HEADER.unpack(data)
    if size > MOST_BYTES:
        close_descriptors(descriptors)
        raise ValueError(f"a message of {size} bytes is too large")
    return size, list(descriptors)
