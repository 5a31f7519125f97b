"""The private place, and the names in it."""

import asyncio
import os
from pathlib import Path

import pytest
from dnslib import DNSRecord

from bench.kubernetes.place import EveryService, in_private_place, named_services
from kubereef.node.network.dns.answers import Answers
from tests.bench.inside import look_around
from tests.kubernetes.plane import NotHere

NETWORK = "10.64.0.0/12"
SERVICE = "c-head-svc.default.svc.cluster.local"


def place_of_this_process():
    return Path("/proc/self/ns/net").readlink(), Path("/etc/resolv.conf").read_bytes()


async def answer(name, kind="A"):
    query = bytes(DNSRecord.question(name, kind).pack())
    found = await Answers(EveryService("127.0.0.1")).answer(query, by_tcp=False)
    parsed = DNSRecord.parse(found)
    return parsed.header.rcode, [str(record.rdata) for record in parsed.rr]


@pytest.mark.parametrize(
    ("name", "kind", "want"),
    [
        pytest.param(SERVICE, "A", (0, ["127.0.0.1"]), id="a Service is on loopback"),
        pytest.param(SERVICE.upper(), "A", (0, ["127.0.0.1"]), id="however it is written"),
        pytest.param(SERVICE, "AAAA", (0, []), id="a Service has no other address"),
        pytest.param("default.svc.cluster.local", "A", (3, []), id="a namespace is no Service"),
        pytest.param("c.default.pod.cluster.local", "A", (3, []), id="a Pod's name is none"),
        pytest.param("example.com", "A", (5, []), id="nobody is asked for names elsewhere"),
    ],
)
async def test_names(name, kind, want):
    assert await answer(name, kind) == want


async def test_names_are_answered_by_udp():
    async with named_services(port=0) as port:
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[bytes] = asyncio.Queue()

        class Client(asyncio.DatagramProtocol):
            def datagram_received(self, data, addr):
                answers.put_nowait(data)

        transport, _ = await loop.create_datagram_endpoint(Client, remote_addr=("127.0.0.1", port))
        transport.sendto(DNSRecord.question(SERVICE).pack())
        async with asyncio.timeout(5):
            found = DNSRecord.parse(await answers.get())
        transport.close()
    assert str(found.a.rdata) == "127.0.0.1"


def test_without_root_there_is_no_place(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotHere, match="needs root"):
        in_private_place(NETWORK, look_around)


def test_a_place_has_names_and_addresses_of_its_own_and_leaves_nothing():
    outside = place_of_this_process()
    try:
        found, own, links = in_private_place(NETWORK, look_around)
    except NotHere as missing:
        pytest.skip(str(missing))
    assert found == ["127.0.0.1"]
    assert own == "10.64.12.34"
    assert links == ["lo"]
    assert place_of_this_process() == outside
