"""Heads and bodies of messages, whatever bytes they are made of."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubereef.gateway.attachment import common_hostnames
from kubereef.gateway.objects import service_name
from kubereef.gateway.proxy.bodies import BodyReader
from kubereef.gateway.proxy.heads import (
    BadMessage,
    Body,
    Framing,
    end_to_end,
    read_request,
    read_response,
    write_request,
)
from kubereef.gateway.proxy.wire import Wire

TEXT = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=20)
LINES = st.lists(st.one_of(st.binary(max_size=30), TEXT.map(lambda text: f"X-A: {text}".encode("latin-1"))))


@given(LINES, st.sampled_from([b"GET / HTTP/1.1", b"POST /a?b HTTP/1.1", b"HTTP/1.1 200 OK", b""]))
def test_any_bytes_are_a_head_or_refused(lines, first):
    raw = b"\r\n".join([first, b"Host: h", *lines])
    for read in (read_request, lambda data: read_response(data, "GET")):
        try:
            head = read(raw)
        except BadMessage:
            continue
        # What is passed on is read by the next as the very same headers.
        passed = end_to_end(head.headers)
        written = write_request(
            "GET", "/", [("Host", "h"), *(one for one in passed if one[0].lower() != "host")]
        )
        again = read_request(written.removesuffix(b"\r\n\r\n"))
        assert sorted(again.headers[1:]) == sorted(one for one in passed if one[0].lower() != "host")


class _Transport(asyncio.Transport):
    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.integers(1, 7))
def test_chunks_are_read_whatever_the_pieces_they_come_in(chunks, step):
    async def read():
        wire = Wire()
        wire.connection_made(_Transport())
        raw = b"".join(b"%X\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\nnext"
        reader = BodyReader(wire, Body(Framing.CHUNKED), 400)

        async def feed():
            for start in range(0, len(raw), step):
                wire.data_received(raw[start : start + step])
                await asyncio.sleep(0)

        feeding = asyncio.create_task(feed())
        whole = b""
        while piece := await reader.next():
            whole += piece
        await feeding
        return whole, await wire.read()

    assert asyncio.run(read()) == (b"".join(chunks), b"next")


@pytest.mark.parametrize(
    ("listener", "route", "want"),
    [
        pytest.param("", [], ("",), id="every host"),
        pytest.param("a.com", [], ("a.com",), id="the listener's"),
        pytest.param("", ["a.com", "b.com"], ("a.com", "b.com"), id="the route's"),
        pytest.param("a.com", ["a.com", "b.com"], ("a.com",), id="what both name"),
        pytest.param("*.a.com", ["x.a.com", "a.com"], ("x.a.com",), id="below a wildcard"),
        pytest.param("x.a.com", ["*.a.com"], ("x.a.com",), id="a wildcard of the route"),
        pytest.param("*.a.com", ["*.b.a.com"], ("*.b.a.com",), id="the narrower wildcard"),
        pytest.param("*.b.a.com", ["*.a.com"], ("*.b.a.com",), id="in either order"),
        pytest.param("a.com", ["b.com"], (), id="nothing in common"),
        pytest.param("*.a.com", ["xa.com"], (), id="not below the wildcard"),
    ],
)
def test_hosts_of_a_listener_and_a_route(listener, route, want):
    assert common_hostnames(listener, route) == want


@pytest.mark.parametrize("name", ["g", "g.with.dots", "1-begins-with-a-digit", "g" * 253])
def test_every_gateway_has_a_service_of_a_name_that_services_may_have(name):
    made = service_name(name)
    assert len(made) <= 63
    assert "." not in made
    assert made[0].isalpha()
    assert service_name(f"{name}x") != made
