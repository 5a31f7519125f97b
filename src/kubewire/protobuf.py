"""Objects in the protocol buffer form that Go clients send built-in kinds in, read into what their JSON would be.

`scripts/go-types` takes the numbers and types of the fields from the published Go modules; its README describes the
notation of types. Only reading is here: every client that sends this form accepts JSON in return.
"""

import base64
import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kubewire.times import format_micro_time, format_time

MAGIC: Final = b"k8s\0"
# Nothing in the API goes deeper, except schemas, which nobody writes by hand.
MAX_DEPTH: Final = 100

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA: Final = f"{_EXTENSIONS}JSONSchemaProps"
# Kinds that every group has, whatever version they say.
_COMMON: Final = frozenset(("DeleteOptions", "Status"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Object = dict[str, Any]
# Makes a value of what stands in a field, at a depth.
_Read = Callable[[int | bytes, int], Any]


class Malformed(ValueError):
    """Bytes that are no object in this form."""


def decode(data: bytes) -> Object:
    """Return the object in a message, with apiVersion and kind; Malformed if there is none that is known."""
    if not data.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    identity = b""
    raw = b""
    for number, value in _fields(data[len(MAGIC) :]):
        if number == 1:
            identity = _bytes(value)
        elif number == 2:
            raw = _bytes(value)
    names = {number: _text(value, 0) for number, value in _fields(identity)}
    version, kind = names.get(1, ""), names.get(2, "")
    definition = _definition(version, kind)
    if definition not in _numbers():
        raise Malformed(f'no kind "{kind}" is registered for version "{version}"')
    return {"apiVersion": version, "kind": kind, **_message(definition, raw, 1)}


def _definition(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind in _COMMON:
        return f"{_META}{kind}"
    if group == "apiextensions.k8s.io":
        return f"{_EXTENSIONS}{kind}"
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


_loaded: dict[str, list[tuple[int, str, str]]] = {}
_tables: dict[str, dict[int, "_Field"]] = {}


def _numbers() -> dict[str, list[tuple[int, str, str]]]:
    if not _loaded:
        path = Path(__file__).parent / "data" / "protobuf-1.36.json"
        _loaded.update(json.loads(path.read_bytes()))
    return _loaded


class _Field:
    """A field of a message: how to read what stands in it and where to put it."""

    __slots__ = ("is_list", "is_map", "name", "read")

    def __init__(self, name: str, kind: str) -> None:
        kind = kind.removeprefix("*")
        self.name = name
        self.is_list = kind.startswith("[]")
        self.is_map = kind.startswith("{")
        if self.is_list:
            self.read = _reader(kind[2:])
        elif self.is_map:
            self.read = _map_value_reader(kind.partition("}")[2])
        else:
            self.read = _reader(kind)

    def put(self, obj: Object, value: int | bytes, depth: int) -> None:
        if self.is_map:
            entry = dict(_fields(_bytes(value)))
            key = _text(entry.get(1, b""), depth)
            obj.setdefault(self.name, {})[key] = self.read(entry.get(2, b""), depth)
            return
        made = self.read(value, depth)
        if self.is_list:
            obj.setdefault(self.name, []).append(made)
        elif not self.name:
            obj.update(
                made
            )  # an embedded struct has a message of its own, but its fields are the outer one's
        elif made is not None:
            obj[self.name] = made


def _message(definition: str, data: bytes, depth: int) -> Object:
    """Return a message as an object; fields that are not known are skipped."""
    if depth > MAX_DEPTH:
        raise Malformed("exceeded max depth")
    table = _tables.get(definition)
    if table is None:
        fields = _numbers().get(definition, ())
        table = _tables[definition] = {number: _Field(name, kind) for number, name, kind in fields}
    obj: Object = {}
    for number, value in _fields(data):
        field = table.get(number)
        if field is not None:
            field.put(obj, value, depth)
    return obj


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and content of each field: a number, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire in (_BYTES, _FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            if wire == _BYTES:
                size, at = _varint(data, at)
            value = data[at : at + size]
            if len(value) != size:
                raise Malformed("unexpected EOF")
            at += size
        else:
            raise Malformed(f"proto: illegal wireType {wire}")
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
    raise Malformed("proto: integer overflow")


def _reader(kind: str) -> _Read:
    kind = kind.removeprefix("*")
    if kind in _PLAIN:
        return _PLAIN[kind]
    return lambda value, depth: _message(kind, _bytes(value), depth + 1)


def _map_value_reader(kind: str) -> _Read:
    if kind.startswith("[]"):
        # A list cannot be the value of a map, so it stands in a message of its own.
        of_item = _reader(kind[2:])
        return lambda value, depth: [
            of_item(item, depth) for number, item in _fields(_bytes(value)) if number == 1
        ]
    return _reader(kind)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Malformed("proto: wrong wireType")
    return value


def _text(value: int | bytes, _depth: int) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8") from None


def _number(value: int | bytes, _depth: int) -> int:
    if isinstance(value, bytes):
        if value:
            raise Malformed("proto: wrong wireType")
        return 0
    return value - (1 << 64) if value >> 63 else value


def _float(value: int | bytes, _depth: int) -> float:
    data = _bytes(value)
    if len(data) != 8:
        raise Malformed("proto: wrong wireType")
    found: float = struct.unpack("<d", data)[0]
    return found


def _moment(value: int | bytes) -> datetime | None:
    """Return a time; none if nothing is said of it, which is how an empty time is sent."""
    parts = {number: _number(part, 0) for number, part in _fields(_bytes(value))}
    if not parts:
        return None
    try:
        moment = datetime.fromtimestamp(parts.get(1, 0), UTC)
    except (OverflowError, ValueError, OSError):
        raise Malformed("a time is out of range") from None
    return moment.replace(microsecond=min(max(parts.get(2, 0), 0) // 1000, 999_999))


def _time(value: int | bytes, _depth: int) -> str | None:
    moment = _moment(value)
    return None if moment is None else format_time(moment)


def _micro_time(value: int | bytes, _depth: int) -> str | None:
    moment = _moment(value)
    return None if moment is None else format_micro_time(moment)


def _quantity(value: int | bytes, depth: int) -> str:
    return _text(dict(_fields(_bytes(value))).get(1, b"0"), depth) or "0"


def _int_or_string(value: int | bytes, depth: int) -> int | str:
    parts = dict(_fields(_bytes(value)))
    if _number(parts.get(1, 0), depth):
        return _text(parts.get(3, b""), depth)
    return _number(parts.get(2, 0), depth)


def _json(value: int | bytes, _depth: int) -> Any:
    text = _bytes(dict(_fields(_bytes(value))).get(1, b""))
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("a field that holds JSON holds something else") from None


def _schema_or(choice: int, other: _Read, *, many: bool) -> _Read:
    """Return the reader of a schema's field that holds a schema or something else, which has a number of its own."""
    schema_at = 2 if choice == 1 else 1

    def read(value: int | bytes, depth: int) -> Any:
        fields = list(_fields(_bytes(value)))
        for number, content in fields:
            if number == schema_at:
                return _message(_SCHEMA, _bytes(content), depth + 1)
        found = [other(content, depth) for number, content in fields if number == choice]
        return found if many else found[0] if found else False

    return read


_PLAIN: dict[str, _Read] = {
    "string": _text,
    "bytes": lambda value, _depth: base64.b64encode(_bytes(value)).decode(),
    "bool": lambda value, depth: bool(_number(value, depth)),
    "int32": _number,
    "int64": _number,
    "float64": _float,
    "time": _time,
    "microtime": _micro_time,
    "quantity": _quantity,
    "intstr": _int_or_string,
    "raw": _json,
    "schemaOrArray": _schema_or(
        2, lambda value, depth: _message(_SCHEMA, _bytes(value), depth + 1), many=True
    ),
    "schemaOrBool": _schema_or(1, lambda value, depth: bool(_number(value, depth)), many=False),
    "schemaOrStrings": _schema_or(2, _text, many=True),
}
