"""Frames of SPDY/3.1."""

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubereef.node.kubelet.api.spdy import (
    MOST_HEADER_BYTES,
    BadFrame,
    Data,
    Decoder,
    Encoder,
    GoAway,
    Ping,
    Reset,
    SynReply,
    SynStream,
)


def frames_of(*parts):
    decoder = Decoder()
    return [frame for part in parts for frame in decoder.feed(part)]


def test_every_frame_is_read_as_it_was_written():
    encoder = Encoder()
    written = [
        encoder.syn_stream(1, {"streamtype": "data", "port": "80"}),
        encoder.syn_stream(3, {}, fin=True),
        encoder.syn_reply(1, {"a": "b"}),
        encoder.data(1, b"hello"),
        encoder.data(1, b"", fin=True),
        encoder.reset(3, 5),
        encoder.ping(2),
        encoder.go_away(3),
    ]
    assert frames_of(*written) == [
        SynStream(1, {"streamtype": "data", "port": "80"}),
        SynStream(3, {}, True),
        SynReply(1, {"a": "b"}),
        Data(1, b"hello"),
        Data(1, b"", True),
        Reset(3, 5),
        Ping(2),
        GoAway(3),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 99), st.binary(max_size=50), st.booleans()), max_size=8),
    st.lists(st.integers(1, 40), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_it_does_not_matter_how_bytes_are_cut(sent, cuts):
    encoder = Encoder()
    stream = b"".join(encoder.data(number, data, fin=fin) for number, data, fin in sent)
    stream += encoder.syn_stream(101, {"last": "one"})
    parts: list[bytes] = []
    place = 0
    while place < len(stream):
        size = cuts[len(parts) % len(cuts)]
        parts.append(stream[place : place + size])
        place += size
    *data, last = frames_of(*parts)
    assert last == SynStream(101, {"last": "one"})
    # A frame may come in several parts, of which the last alone can have `fin`.
    for number, content, fin in sent:
        came = data.pop(0)
        while len(came.data) < len(content):
            assert not came.fin
            more = data.pop(0)
            came = Data(came.stream, came.data + more.data, more.fin)
        assert came == Data(number, content, fin)
    assert data == []


def test_the_dictionary_is_the_protocols_own():
    """zlib names the dictionary by its checksum in the first bytes that it writes."""
    head = Encoder().syn_stream(1, {})[18:24]
    assert head[2:6] == struct.pack(">I", 0xE3C6A7C2)


def test_names_of_headers_come_in_small_letters():
    assert frames_of(Encoder().syn_stream(1, {"streamType": "Error"}))[0].headers == {"streamtype": "Error"}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"\x80\x02\x00\x01" + bytes(4), id="another version"),
        pytest.param(b"\x80\x03\x00\x01\x00\xff\xff\xff", id="a control frame that is too large"),
        pytest.param(b"\x80\x03\x00\x01\x00\x00\x00\x0c" + b"x" * 12, id="headers that are not compressed"),
        pytest.param(b"\x80\x03\x00\x03\x00\x00\x00\x02xx", id="a reset without a status"),
    ],
)
def test_what_is_no_frame_is_refused(bad):
    with pytest.raises(BadFrame):
        frames_of(bad)


def test_headers_that_grow_beyond_measure_are_refused():
    big = Encoder().syn_stream(1, {"a": "x" * (MOST_HEADER_BYTES + 1)})
    assert len(big) < 1000
    with pytest.raises(BadFrame, match="headers of more than"):
        frames_of(big)


def test_a_header_that_claims_to_be_longer_than_all_is_refused():
    encoder = Encoder()
    block = struct.pack(">II", 1, 2**31) + b"x"
    packed = encoder._headers.compress(block) + encoder._headers.flush(zlib.Z_SYNC_FLUSH)
    body = bytes(10) + packed
    with pytest.raises(BadFrame, match="longer than"):
        frames_of(struct.pack(">IB", 0x80030001, 0) + len(body).to_bytes(3, "big") + body)
