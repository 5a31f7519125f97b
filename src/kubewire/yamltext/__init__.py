"""YAML and JSON text as kubectl reads it, within bounds.

The value of a plain scalar is decided as kubectl's YAML library does (`on` is true, `0777` is octal, `1e3` is
the integer 1000, dates are strings), keys become strings, merge keys (`<<`) are merged, and an alias is a
copy of what it stands for. Text that would take unreasonable time or memory is refused with its position.
"""

from collections.abc import Iterator

from kubewire.paths import show
from kubewire.yamltext.builder import documents
from kubewire.yamltext.events import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    Duplicate,
    Position,
    YamlError,
)
from kubewire.yamltext.jsontext import json_document, looks_like_json
from kubewire.yamltext.places import locate

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_VALUES",
    "Document",
    "Duplicate",
    "Position",
    "YamlError",
    "decode",
    "load",
    "load_all",
    "locate",
]


def decode(raw: bytes) -> str:
    """Return the bytes as text, or say why they are none."""
    if len(raw) > MAX_BYTES:
        raise YamlError(f"more than {MAX_BYTES // 2**20} MiB; split it into smaller files")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = raw.count(b"\n", 0, bad.start) + 1
        raise YamlError(f"not UTF-8 text (byte 0x{raw[bad.start]:02x} at offset {bad.start})", line) from None
    if "\0" in text:
        raise YamlError("a binary file, not text", text.count("\n", 0, text.index("\0")) + 1)
    return text


def load(text: str) -> object:
    """Return the value of a text with one document; nothing at all is None."""
    found = list(load_all(text))
    if not found:
        return None
    if len(found) > 1:
        second = found[1].position
        raise YamlError("a second document begins here; only one is expected", second.line, second.column)
    if found[0].duplicates:
        twice = found[0].duplicates[0]
        raise YamlError(f"{show(twice.path)} is given twice", twice.again.line, twice.again.column)
    return found[0].value


def load_all(text: str) -> Iterator[Document]:
    """Yield the documents of a text one after the other."""
    if looks_like_json(text) and (document := json_document(text)) is not None:
        yield document
    else:
        yield from documents(text)
