"""The DNS server, asked by real clients over loopback."""

import asyncio
import contextlib
import socket
import struct
from ipaddress import ip_network

import pytest
from dnslib import EDNS0, QTYPE, RCODE, RR, A, DNSRecord
from hypothesis import given
from hypothesis import strategies as st

from kubereef.node.network.dns import wire
from kubereef.node.network.dns.answers import Answers
from kubereef.node.network.dns.forwarding import Forwarder, Upstream
from kubereef.node.network.dns.records import Records
from kubereef.node.network.dns.server import DnsServer
from kubereef.node.network.namespaces import SocketsHere
from kubewire.sources import SeededEntropy
from tests.kubereef.node.network.manifests import endpoint, endpoint_slice, headless, service

WEB = "web.default.svc.cluster.local"


def records():
    known = Records(networks=[ip_network("10.96.0.0/16")])
    many = [endpoint(f"10.1.{number // 200}.{number % 200 + 1}") for number in range(300)]
    known.replace(
        [
            service(ports=[{"name": "http", "port": 80}]),
            headless(),
            headless("many"),
            service("near", type="ExternalName", externalName=WEB),
            service("far", type="ExternalName", externalName="db.example.com"),
            service("loop", type="ExternalName", externalName="loop.default.svc.cluster.local"),
        ],
        [
            endpoint_slice(
                "peers", "10.1.0.5", "10.1.0.6", "10.1.0.7", ports=[{"name": "http", "port": 8080}]
            ),
            endpoint_slice("many", *many),
        ],
    )
    return known


def query(name, kind="A", *, edns=0):
    asked = DNSRecord.question(name, kind)
    if edns:
        asked.add_ar(EDNS0(udp_len=edns))
    return asked.pack()


async def by_udp(port, message, seconds=5):
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(("127.0.0.1", port))
        await loop.sock_sendall(client, message)
        async with asyncio.timeout(seconds):
            return await loop.sock_recv(client, 65535)


async def by_tcp(port, *messages):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for message in messages:
            writer.write(struct.pack("!H", len(message)) + message)
        return [
            await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big")) for _ in messages
        ]
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def serving(elsewhere=None, known=None):
    server = await DnsServer.start(Answers(known or records(), elsewhere), SocketsHere(), ["127.0.0.1"], 0)
    try:
        yield server.ports[0]
    finally:
        await server.close()


class Elsewhere(asyncio.DatagramProtocol):
    """A DNS server for other names: answers with an address, after failing in the given ways."""

    def __init__(self, *, silent=0, forge=False):
        self.asked = []
        self._silent = silent
        self._forge = forge

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.asked.append(data)
        if len(self.asked) <= self._silent:
            return
        reply = DNSRecord.parse(data).reply()
        if self._forge:
            self.transport.sendto(wire.with_id(reply.pack(), reply.header.id ^ 1), addr)
        reply.add_answer(RR(reply.q.qname, rdata=A("203.0.113.5")))
        self.transport.sendto(reply.pack(), addr)


@contextlib.asynccontextmanager
async def elsewhere(**behaviour):
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: Elsewhere(**behaviour), local_addr=("127.0.0.1", 0)
    )
    upstream = Upstream("127.0.0.1", transport.get_extra_info("sockname")[1])
    try:
        yield server, Forwarder([upstream], SocketsHere(), SeededEntropy(1), seconds=0.2)
    finally:
        transport.close()


def values(answer):
    return [str(one.rdata) for one in DNSRecord.parse(answer).rr]


@pytest.mark.parametrize(
    ("name", "kind", "code", "want"),
    [
        pytest.param(WEB, "A", "NOERROR", ["10.96.0.10"], id="an address"),
        pytest.param(WEB.upper(), "A", "NOERROR", ["10.96.0.10"], id="in any case"),
        pytest.param(WEB, "AAAA", "NOERROR", [], id="no address of the other family is no error"),
        pytest.param("nobody.default.svc.cluster.local", "A", "NXDOMAIN", [], id="an unknown name is one"),
        pytest.param(
            "default.svc.cluster.local", "A", "NOERROR", [], id="a name with others below it is not"
        ),
        pytest.param(f"_http._tcp.{WEB}", "SRV", "NOERROR", [f"0 100 80 {WEB}."], id="a port"),
        pytest.param("10.0.96.10.in-addr.arpa", "PTR", "NOERROR", [f"{WEB}."], id="the name of an address"),
        pytest.param("1.0.96.10.in-addr.arpa", "PTR", "NXDOMAIN", [], id="an unknown address of the cluster"),
        pytest.param("dns-version.cluster.local", "TXT", "NOERROR", ['"1.1.0"'], id="text"),
        pytest.param(
            "cluster.local", "NS", "NOERROR", ["ns.dns.cluster.local."], id="who answers for the domain"
        ),
        pytest.param(
            "near.default.svc.cluster.local", "A", "NOERROR", [f"{WEB}.", "10.96.0.10"], id="an alias inside"
        ),
        pytest.param(
            "near.default.svc.cluster.local", "CNAME", "NOERROR", [f"{WEB}."], id="the alias itself"
        ),
        pytest.param("loop.default.svc.cluster.local", "A", "SERVFAIL", [], id="an alias of itself fails"),
        pytest.param(
            "packages.example", "A", "REFUSED", [], id="other names are refused where nobody else is known"
        ),
    ],
)
async def test_answer(name, kind, code, want):
    async with serving() as port:
        message = query(name, kind)
        udp, (tcp,) = await by_udp(port, message), await by_tcp(port, message)
        assert udp == tcp
        answer = DNSRecord.parse(udp)
        assert (RCODE[answer.header.rcode], values(udp)) == (code, want)
        assert answer.header.id == DNSRecord.parse(message).header.id
        assert all(one.ttl == 5 for one in answer.rr)


async def test_the_answer_repeats_the_question_in_its_own_spelling():
    async with serving() as port:
        answer = DNSRecord.parse(await by_udp(port, query("WeB.default.svc.cluster.LOCAL")))
        assert str(answer.q.qname) == str(answer.rr[0].rname) == "WeB.default.svc.cluster.LOCAL."


async def test_no_comes_with_how_long_to_remember_it():
    async with serving() as port:
        (soa,) = DNSRecord.parse(await by_udp(port, query("nobody.default.svc.cluster.local"))).auth
        assert (QTYPE[soa.rtype], soa.ttl, soa.rdata.times[-1]) == ("SOA", 5, 5)


async def test_a_port_comes_with_the_addresses_of_its_targets():
    async with serving() as port:
        answer = DNSRecord.parse(
            await by_udp(port, query("_http._tcp.peers.default.svc.cluster.local", "SRV"))
        )
        assert sorted(str(one.rdata) for one in answer.ar) == ["10.1.0.5", "10.1.0.6", "10.1.0.7"]
        assert {str(one.rname) for one in answer.ar} == {str(one.rdata.target) for one in answer.rr}


async def test_each_of_several_addresses_comes_first_in_turn():
    async with serving() as port:
        firsts = {values(await by_udp(port, query("peers.default.svc.cluster.local")))[0] for _ in range(3)}
        assert firsts == {"10.1.0.5", "10.1.0.6", "10.1.0.7"}


async def test_an_answer_too_long_for_udp_says_so_and_is_whole_by_tcp():
    async with serving() as port:
        message = query("many.default.svc.cluster.local")
        cut = await by_udp(port, message)
        assert wire.is_truncated(cut)
        assert len(cut) <= 512
        assert values(cut) == []
        (whole,) = await by_tcp(port, message)
        assert len(values(whole)) == 300


@pytest.mark.parametrize(
    ("edns", "is_cut"),
    [
        pytest.param(0, True, id="without EDNS 512 bytes fit"),
        pytest.param(600, True, id="no more than the client takes"),
        pytest.param(1232, False, id="as much as the client takes"),
    ],
)
async def test_how_long_an_answer_by_udp_may_be(edns, is_cut):
    known = Records()
    known.replace([headless()], [endpoint_slice("peers", *(f"10.1.0.{number}" for number in range(1, 41)))])
    async with serving(known=known) as port:
        answer = await by_udp(port, query("peers.default.svc.cluster.local", edns=edns))
        assert wire.is_truncated(answer) == is_cut
        assert bool([one for one in DNSRecord.parse(answer).ar if one.rtype == QTYPE.OPT]) == bool(edns)


async def test_several_queries_on_one_connection_are_answered_in_order():
    async with serving() as port:
        answers = await by_tcp(port, query(WEB), query("nobody.default.svc.cluster.local"), query(WEB))
        assert [DNSRecord.parse(one).header.rcode for one in answers] == [0, 3, 0]


async def test_other_names_are_asked_elsewhere_under_another_id():
    async with elsewhere() as (other, forwarder), serving(forwarder) as port:
        message = query("packages.example")
        answer = await by_udp(port, message)
        assert values(answer) == ["203.0.113.5"]
        assert answer[:2] == message[:2]
        assert other.asked[0][2:] == message[2:]


async def test_an_alias_that_leads_outside_is_followed_there():
    async with elsewhere() as (_, forwarder), serving(forwarder) as port:
        answer = await by_udp(port, query("far.default.svc.cluster.local"))
        assert values(answer) == ["db.example.com.", "203.0.113.5"]


async def test_a_question_that_got_lost_is_asked_again():
    async with elsewhere(silent=1) as (other, forwarder), serving(forwarder) as port:
        assert values(await by_udp(port, query("packages.example"))) == ["203.0.113.5"]
        assert len(other.asked) == 2


async def test_nobody_answering_is_a_failure_within_the_time_limit():
    async with elsewhere(silent=99) as (_, forwarder), serving(forwarder) as port:
        answer = await by_udp(port, query("packages.example"), seconds=2)
        assert RCODE[DNSRecord.parse(answer).header.rcode] == "SERVFAIL"


async def test_an_answer_with_another_id_is_not_taken_for_the_answer():
    async with elsewhere(forge=True) as (_, forwarder), serving(forwarder) as port:
        assert values(await by_udp(port, query("packages.example"))) == ["203.0.113.5"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param(query(WEB)[:-3], "FORMERR", id="a question that is cut short"),
        pytest.param(b"\0\7\1\0\0\2" + bytes(6) + query(WEB)[12:], "FORMERR", id="two questions"),
        pytest.param(
            b"\0\7\1\0\0\1" + bytes(6) + b"\xc0\x0c\0\1\0\1", "FORMERR", id="a name that points at itself"
        ),
        pytest.param(
            b"\0\7\1\0\0\1" + bytes(6) + b"\xc0" + b"x" * 192 + b"\0\0\1\0\1",
            "FORMERR",
            id="a pointer that could be taken for a long label",
        ),
        pytest.param(b"\0\7\1\0\0\1" + bytes(6) + b"\x3fxxx", "FORMERR", id="a label that is cut short"),
        pytest.param(
            b"\0\7\1\0\0\1" + bytes(6) + (b"\x3f" + b"x" * 63) * 5 + b"\0\0\1\0\1",
            "FORMERR",
            id="an endless name",
        ),
        pytest.param(b"\0\7\x28\0" + query(WEB)[4:], "NOTIMP", id="another kind of request"),
        pytest.param(query(WEB)[:-1] + b"\3", "REFUSED", id="another class of names"),
    ],
)
async def test_a_bad_query_is_answered_with(message, code):
    async with serving() as port:
        assert RCODE[(await by_udp(port, message))[3] & 0xF] == code


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"x", id="too short to have an id"),
        pytest.param(b"\0\7\x81\0" + bytes(8), id="an answer"),
    ],
)
async def test_what_must_not_be_answered_is_not(message):
    assert await Answers(records()).answer(message, by_tcp=False) is None


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_whatever_confuse_the_server(tail, has_header):
    message = (b"\0\7\1\0\0\1\0\0\0\0\0\1" if has_header else b"") + tail
    answer = asyncio.run(Answers(records_once).answer(message, by_tcp=False))
    assert answer is None or answer[:2] == message[:2]


records_once = records()


async def test_a_client_that_falls_silent_is_let_go(monkeypatch):
    monkeypatch.setattr("kubereef.node.network.dns.server.IDLE_SECONDS", 0.05)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(2):
            assert await reader.read() == b""
        writer.close()


async def test_questions_under_way_are_bounded(monkeypatch):
    monkeypatch.setattr("kubereef.node.network.dns.forwarding.MOST_AT_ONCE", 1)
    async with elsewhere(silent=99) as (_, forwarder), serving(forwarder) as port:
        waiting = asyncio.create_task(by_udp(port, query("packages.example")))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(0.1):
            refused = await by_udp(port, query("example.org"))
        assert RCODE[DNSRecord.parse(refused).header.rcode] == "SERVFAIL"
        await waiting
