"""Answers to questions: from the cluster's records, or from other servers."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, assert_never

from kubereef.node.network.dns import wire
from kubereef.node.network.dns.records import Alias, Host, Location, Name, Pointer, Record, Records, Text
from kubereef.node.network.dns.wire import BadQuery, Question

if TYPE_CHECKING:
    from dnslib import RR

_MOST_ALIASES = 8
_ANY = 255
_NS, _SOA = 2, 6


class Asks(Protocol):
    """Somebody who can be asked for what the cluster does not know."""

    async def ask(self, query: bytes, *, by_tcp: bool) -> bytes | None:
        """Return an answer under the query's id, if there is one."""
        ...


class Answers:
    """Answers messages. Where no other server is known, names outside the cluster are refused."""

    def __init__(self, known: Records, elsewhere: Asks | None = None) -> None:
        self._known = known
        self._elsewhere = elsewhere
        self._turn = 0

    async def answer(self, message: bytes, *, by_tcp: bool) -> bytes | None:
        """Return the answer to a message; None for one that must not be answered."""
        try:
            question = wire.read_query(message)
        except BadQuery as bad:
            return None if bad.id is None else wire.failure(bad.id, wire.FORMAT_ERROR)
        most = wire.MOST_TCP if by_tcp else question.most_udp
        if question.opcode != 0:
            return wire.write_answer(question, code=wire.NOT_IMPLEMENTED, is_authoritative=False)
        if question.family not in (wire.IN, wire.ANY_CLASS):
            return wire.write_answer(question, code=wire.REFUSED, is_authoritative=False)
        if not self._known.is_ours(question.name):
            return await self._ask_elsewhere(question, message, by_tcp=by_tcp)
        return await self._answer_ours(question, most)

    async def _ask_elsewhere(self, question: Question, message: bytes, *, by_tcp: bool) -> bytes:
        if self._elsewhere is None:
            return wire.write_answer(question, code=wire.REFUSED, is_authoritative=False)
        found = await self._elsewhere.ask(message, by_tcp=by_tcp)
        if found is None:
            return wire.write_answer(question, code=wire.SERVER_FAILURE, is_authoritative=False)
        if not by_tcp and len(found) > question.most_udp:
            return _cut(question)
        return found

    async def _answer_ours(self, question: Question, most: int) -> bytes:
        name, owner = question.name, _label(question.labels)
        answers: list[RR] = []
        additional: list[RR] = []
        for _ in range(_MOST_ALIASES):
            found = self._known.lookup(name)
            if not found.is_ours:
                rest = await self._addresses_elsewhere(name, question)
                if rest is None:
                    return wire.write_answer(question, code=wire.SERVER_FAILURE, is_authoritative=False)
                answers += rest
                break
            chosen = self._chosen(found.records, question.kind)
            answers += [_resource(owner, one) for one in chosen]
            additional += self._hosts_of(chosen)
            aliases = [one.target for one in chosen if isinstance(one, Alias)]
            if not aliases or question.kind in (_kind("CNAME"), _ANY):
                break
            name, owner = aliases[0], _label(aliases[0])
        else:
            return wire.write_answer(question, code=wire.SERVER_FAILURE, is_authoritative=False)
        if not answers:
            return self._answer_none(question)
        return wire.write_answer(question, answers=answers, additional=additional, most=most)

    def _answer_none(self, question: Question) -> bytes:
        """Answer that there is no such name, or nothing of that kind under it, and for how long to remember that."""
        is_apex = question.name == self._known.domain
        if is_apex and question.kind in (_SOA, _NS, _ANY):
            return wire.write_answer(question, answers=self._apex(question))
        code = 0 if self._known.lookup(question.name).exists else wire.NO_SUCH_NAME
        return wire.write_answer(question, code=code, authority=[self._soa()])

    def _chosen(self, found: tuple[Record, ...], kind: int) -> list[Record]:
        """Return the records of a kind, in an order that changes from answer to answer: clients use the first."""
        wanted = [one for one in found if kind == _ANY or _kind(one.kind) == kind]
        wanted = wanted or [one for one in found if isinstance(one, Alias)]
        if len(wanted) > 1:
            self._turn += 1
            start = self._turn % len(wanted)
            wanted = wanted[start:] + wanted[:start]
        return wanted

    def _hosts_of(self, chosen: Iterable[Record]) -> list["RR"]:
        """Return the addresses of the targets of SRV records, so that the client need not ask again."""
        targets = dict.fromkeys(one.target for one in chosen if isinstance(one, Location))
        return [
            _resource(_label(target), host)
            for target in targets
            for host in self._known.lookup(target).records
            if isinstance(host, Host)
        ]

    async def _addresses_elsewhere(self, name: Name, question: Question) -> list["RR"] | None:
        """Return what other servers say of a name that an alias led to; None if they cannot be asked or understood."""
        from dnslib import DNSError, DNSLabel, DNSQuestion, DNSRecord

        if self._elsewhere is None:
            return []
        query = DNSRecord(q=DNSQuestion(DNSLabel(_label(name)), question.kind))
        query.header.id = question.id
        found = await self._elsewhere.ask(query.pack(), by_tcp=False)
        if found is None:
            return None
        try:
            return list(DNSRecord.parse(found).rr)
        except (DNSError, RecursionError, ValueError):
            return None

    def _soa(self) -> "RR":
        from dnslib import RR, SOA

        domain = self._known.domain
        times = (1, 7200, 1800, 86400, wire.TTL)
        data = SOA(_label(("ns", "dns", *domain)), _label(("hostmaster", *domain)), times)
        return RR(_label(domain), _SOA, ttl=wire.TTL, rdata=data)

    def _apex(self, question: Question) -> list["RR"]:
        from dnslib import NS, RR

        server = RR(
            _label(self._known.domain),
            _NS,
            ttl=wire.TTL,
            rdata=NS(_label(("ns", "dns", *self._known.domain))),
        )
        return {_SOA: [self._soa()], _NS: [server]}.get(question.kind, [self._soa(), server])


def _cut(question: Question) -> bytes:
    """Return an answer that only says: too long, use TCP."""
    return wire.write_answer(question, is_authoritative=False, most=0)


def _kind(name: str) -> int:
    from dnslib import QTYPE

    number: int = QTYPE.reverse[name]
    return number


def _label(labels: Iterable[str | bytes]) -> tuple[bytes, ...]:
    return tuple(label if isinstance(label, bytes) else label.encode("ascii", "replace") for label in labels)


def _resource(owner: tuple[bytes, ...], record: Record) -> "RR":
    from dnslib import AAAA, CNAME, PTR, RD, RR, SRV, TXT, A, DNSLabel

    data: RD
    match record:
        case Host(address):
            data = AAAA(address) if ":" in address else A(address)
        case Alias(target):
            data = CNAME(DNSLabel(_label(target)))
        case Location(port, target, weight):
            data = SRV(0, weight, port, DNSLabel(_label(target)))
        case Pointer(target):
            data = PTR(DNSLabel(_label(target)))
        case Text(text):
            data = TXT(text)
        case _:
            assert_never(record)
    return RR(DNSLabel(owner), _kind(record.kind), ttl=wire.TTL, rdata=data)
