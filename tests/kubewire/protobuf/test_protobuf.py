"""Messages of Go clients are read into what their JSON would be.

`objects.jsonl` holds objects and `messages.txt` what the published Go types make of them, recorded by
`scripts/go-types`.
"""

import base64
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire import gotypes, protobuf

HERE = Path(__file__).parent
OBJECTS = [json.loads(line) for line in (HERE / "objects.jsonl").read_text().splitlines()]
MESSAGES = [base64.b64decode(line) for line in (HERE / "messages.txt").read_text().splitlines()]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param(asked, message, id=asked["name"])
        for asked, message in zip(OBJECTS, MESSAGES, strict=True)
    ],
)
def test_a_message_is_read_as_the_object_that_it_was_made_of(asked, message):
    read = protobuf.decode(message)
    assert read.pop("kind") == asked["definition"].rpartition(".")[2]
    assert read.pop("apiVersion")
    given_as_json = json.loads(asked["text"])
    for obj in (read, given_as_json):
        assert gotypes.read(asked["definition"], obj) == []
    # An empty list stands for none on the wire, so in a map it is there but empty.
    assert read == given_as_json


def envelope(version, kind, raw=b""):
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    identity = field(1, version.encode()) + field(2, kind.encode())
    return protobuf.MAGIC + field(1, identity) + field(2, raw)


def test_an_empty_message_is_an_empty_object():
    assert protobuf.decode(envelope("v1", "ConfigMap")) == {"apiVersion": "v1", "kind": "ConfigMap"}


def test_fields_of_a_later_version_are_skipped():
    unknown = b"\xf8\x07\x01" + b"\xf2\x07\x02ab" + b"\xf1\x0712345678" + b"\xf5\x071234"
    read = protobuf.decode(envelope("v1", "ConfigMap", unknown + b"\x20\x01"))
    assert read == {"apiVersion": "v1", "kind": "ConfigMap", "immutable": True}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "expected prefix [107 56 115 0]", id="nothing"),
        pytest.param(b"{}", "expected prefix [107 56 115 0]", id="JSON"),
        pytest.param(protobuf.MAGIC, 'no kind ""', id="nothing behind the beginning"),
        pytest.param(
            envelope("v1", "Gadget"), 'no kind "Gadget" is registered for version "v1"', id="no such kind"
        ),
        pytest.param(protobuf.MAGIC + b"\x0a\x7f", "unexpected EOF", id="cut short"),
        pytest.param(protobuf.MAGIC + b"\x0a" + b"\xff" * 11, "integer overflow", id="a length without end"),
        pytest.param(protobuf.MAGIC + b"\x0a" + b"\xff" * 9 + b"\x01", "unexpected EOF", id="a huge length"),
        pytest.param(protobuf.MAGIC + b"\x0b", "illegal wireType 3", id="a group"),
        pytest.param(protobuf.MAGIC + b"\x08\x01", "wrong wireType", id="a number for a message"),
        pytest.param(
            envelope("v1", "ConfigMap", b"\x0a\x02\x08\x01"), "wrong wireType", id="a number for a name"
        ),
        pytest.param(envelope("v1", "ConfigMap", b"\x22\x01a"), "wrong wireType", id="text for a yes"),
        pytest.param(
            envelope("v1", "ConfigMap", b"\x0a\x03\x0a\x01\xff"), "not UTF-8", id="bytes for a name"
        ),
        pytest.param(
            envelope("v1", "ConfigMap", b"\x0a\x0c\x42\x0a\x08" + b"\xff" * 8 + b"\x7f"),
            "a time is out of range",
            id="a time beyond all times",
        ),
        pytest.param(
            envelope("apps/v1", "ControllerRevision", b"\x12\x03\x0a\x01{"),
            "holds something else",
            id="JSON that is none",
        ),
    ],
)
def test_what_is_no_object_is_refused(data, message):
    with pytest.raises(protobuf.Malformed) as refused:
        protobuf.decode(data)
    assert message in str(refused.value)


def test_a_schema_without_end_is_refused():
    raw = b""
    for _ in range(protobuf.MAX_DEPTH + 5):
        # Each schema is the `not` of the next.
        size = len(raw)
        length = bytes([size & 0x7F | 0x80, size >> 7]) if size > 0x7F else bytes([size])
        raw = b"\xe2\x01" + length + raw
    message = protobuf._message
    with pytest.raises(protobuf.Malformed, match="exceeded max depth"):
        message(protobuf._SCHEMA, raw, 1)


@given(st.sampled_from(MESSAGES), st.data())
def test_a_damaged_message_is_read_or_refused_and_nothing_else_happens(message, data):
    damaged = bytearray(message)
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(4, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(protobuf.Malformed):
        protobuf.decode(bytes(damaged[: data.draw(st.integers(4, len(damaged)))]))
