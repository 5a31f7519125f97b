"""DNS messages: queries read with care, since anybody in a Pod may send one, and answers written with dnslib.

A query is read by hand: what follows its question is of no interest except EDNS, and a name in a question cannot
point elsewhere, so reading takes one pass over few bytes whatever was sent.
"""

from collections.abc import Iterable
from struct import Struct, error
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dnslib import RR

TTL = 5
"""Seconds for which a record may be remembered: endpoints change."""

MOST_UDP = 1232
"""Bytes of the longest answer by UDP: fits any path without fragments."""

MOST_TCP = 65535

_LEAST_UDP = 512
_MOST_NAME = 255
_MOST_LABEL = 63
_HEADER = Struct("!HHHHHH")
_QUESTION = Struct("!HH")
_RECORD = Struct("!HHIH")
_OPT = 41

FORMAT_ERROR, SERVER_FAILURE, NO_SUCH_NAME, NOT_IMPLEMENTED, REFUSED = 1, 2, 3, 4, 5
IN, ANY_CLASS = 1, 255


class Question(NamedTuple):
    """What a client wants to know, and how much it can take."""

    id: int
    labels: tuple[bytes, ...]
    kind: int
    family: int
    opcode: int
    wants_recursion: bool
    has_edns: bool
    most_udp: int

    @property
    def name(self) -> tuple[str, ...]:
        """The name in lower case; bytes that no name of ours has are kept apart from those that one may have."""
        return tuple(label.decode("ascii", "backslashreplace").lower() for label in self.labels)


class BadQuery(Exception):
    """A message that is no query. `id` is set if an answer can be sent at all."""

    def __init__(self, reason: str, message_id: int | None = None) -> None:
        super().__init__(reason)
        self.id = message_id


def read_query(data: bytes) -> Question:
    """Return the question of a query; raises BadQuery."""
    if len(data) < _HEADER.size:
        raise BadQuery("shorter than a header")
    message_id, flags, questions, answers, authorities, additional = _HEADER.unpack_from(data)
    if flags & 0x8000:
        raise BadQuery("an answer, not a query")  # answering it could go on for ever
    if questions != 1 or answers:
        raise BadQuery("not exactly one question", message_id)
    try:
        labels, offset = _read_name(data, _HEADER.size)
        kind, family = _QUESTION.unpack_from(data, offset)
        most_udp = _edns_size(data, offset + _QUESTION.size) if additional and not authorities else None
    except (IndexError, error, ValueError) as broken:
        raise BadQuery(f"not readable: {broken}", message_id) from broken
    return Question(
        message_id,
        labels,
        kind,
        family,
        opcode=flags >> 11 & 0xF,
        wants_recursion=bool(flags & 0x0100),
        has_edns=most_udp is not None,
        most_udp=max(_LEAST_UDP, min(most_udp or _LEAST_UDP, MOST_UDP)),
    )


def _read_name(data: bytes, offset: int) -> tuple[tuple[bytes, ...], int]:
    labels: list[bytes] = []
    start = offset
    while length := data[offset]:
        if length > _MOST_LABEL:
            raise ValueError("a name that points elsewhere")
        label = data[offset + 1 : offset + 1 + length]
        offset += 1 + length
        if len(label) < length or offset - start > _MOST_NAME:
            raise ValueError("a name that does not end")
        labels.append(label)
    return tuple(labels), offset + 1


def _edns_size(data: bytes, offset: int) -> int | None:
    """Return how long an answer the client takes by UDP, if the first additional record says so."""
    if data[offset] != 0:
        return None
    kind, size, _, _ = _RECORD.unpack_from(data, offset + 1)
    return size if kind == _OPT else None


def failure(message_id: int, code: int) -> bytes:
    """Return an answer that says only what went wrong, to a query that could not be read."""
    return _HEADER.pack(message_id, 0x8000 | code, 0, 0, 0, 0)


def write_answer(
    question: Question,
    *,
    code: int = 0,
    answers: Iterable["RR"] = (),
    authority: Iterable["RR"] = (),
    additional: Iterable["RR"] = (),
    is_authoritative: bool = True,
    most: int = MOST_TCP,
) -> bytes:
    """Return a message of at most so many bytes. If the answer is longer it says only that, and the client uses TCP."""
    from dnslib import EDNS0, DNSHeader, DNSLabel, DNSQuestion, DNSRecord

    def packed(*, is_cut: bool) -> bytes:
        header = DNSHeader(
            id=question.id, qr=1, aa=int(is_authoritative), ra=1, rd=int(question.wants_recursion), rcode=code
        )
        header.opcode = question.opcode
        header.tc = int(is_cut)
        asked = DNSQuestion(DNSLabel(question.labels), question.kind, question.family)
        record = DNSRecord(header, q=asked)
        if not is_cut:
            record.add_answer(*answers)
            record.add_auth(*authority)
            record.add_ar(*additional)
        if question.has_edns:
            record.add_ar(EDNS0(udp_len=MOST_UDP))
        message: bytes = record.pack()
        return message

    message = packed(is_cut=False)
    return message if len(message) <= most else packed(is_cut=True)


def with_id(message: bytes, message_id: int) -> bytes:
    """Return a message under another id."""
    return message_id.to_bytes(2, "big") + message[2:]


def question_bytes(message: bytes) -> bytes:
    """Return the question of a message as it is written, to compare query and answer; empty if there is none."""
    try:
        _, end = _read_name(message, _HEADER.size)
    except (IndexError, ValueError):
        return b""
    return message[_HEADER.size : end + _QUESTION.size].lower()


def is_truncated(message: bytes) -> bool:
    """Tell whether a message says that it is not whole."""
    return bool(message[2] & 0x02)
