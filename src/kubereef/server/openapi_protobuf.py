"""The older OpenAPI document in protobuf, the only form in which kubectl and client-go take it.

Of the paths it tells what their clients look for: which operations there are, on which kinds, with which parameters.
The schemas are all there. The message is `openapi.v2.Document` of the gnostic project.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubereef.server.requests import Request
from kubereef.store.records import encode

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ACCEPTED = frozenset((MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"))

# Numbers of the fields of a path item that hold operations.
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_VARINT, _FIXED_64, _LENGTH_DELIMITED = 0, 1, 2


def is_wanted(request: Request) -> bool:
    """Tell whether a client prefers this form."""
    first = request.headers.get("accept", "").partition(",")[0]
    return first.partition(";")[0].strip() in _ACCEPTED


def document(
    info: Mapping[str, str], paths: Mapping[str, Mapping[str, Any]], definitions: Mapping[str, Any]
) -> bytes:
    """Return the document of paths whose operations are as in the newer form, and of schemas of the older one."""
    items = b"".join(
        _message(2, _text(1, path) + _message(2, _path_item(item))) for path, item in paths.items()
    )
    about = _text(1, info["title"]) + _text(2, info["version"])
    return _text(1, "2.0") + _message(2, about) + _message(8, items) + _message(9, _named(definitions))


def _path_item(item: Mapping[str, Any]) -> bytes:
    return b"".join(
        _message(number, _operation(item[method])) for method, number in _METHODS.items() if method in item
    )


def _operation(operation: Mapping[str, Any]) -> bytes:
    parameters = b"".join(
        # An item of the list is a parameter, which is one outside the body, which is one of the query.
        _message(8, _message(1, _message(2, _message(3, _text(2, "query") + _text(4, parameter["name"])))))
        for parameter in operation.get("parameters", ())
        if parameter.get("in") == "query"
    )
    return _text(5, operation["operationId"]) + parameters + _message(13, _kind(operation))


def _kind(operation: Mapping[str, Any]) -> bytes:
    """Return the extension that tells which kind an operation is about."""
    name = "x-kubernetes-group-version-kind"
    return _text(1, name) + _message(2, _any(operation[name]))


def _named(schemas: Mapping[str, Any]) -> bytes:
    return b"".join(_message(1, _text(1, name) + _message(2, _schema(one))) for name, one in schemas.items())


def _schema(schema: Mapping[str, Any]) -> bytes:
    """Return a schema; extensions are kept, and what the message has no field for is left out."""
    fields = []
    for key, value in schema.items():
        field = _FIELDS.get(key)
        if field is not None:
            fields.append(field.write(field.number, value))
        elif key.startswith("x-"):
            fields.append(_message(_EXTENSION, _text(1, key) + _message(2, _any(value))))
    return b"".join(fields)


def _others(value: Any) -> bytes:
    """Return what properties without a name may be: anything, nothing, or of a schema."""
    return _count(2, value) if isinstance(value, bool) else _message(1, _schema(value))


def _any(value: Any) -> bytes:
    """Return a value that is written as YAML, of which JSON is a part."""
    return _message(2, encode(value))


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _message(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    return _tag(number, _LENGTH_DELIMITED) + _varint(len(value)) + value


def _tag(number: int, wire_type: int) -> bytes:
    """Return what stands before the value of a field."""
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(number: int, value: float) -> bytes:
    return _tag(number, _FIXED_64) + struct.pack("<d", value)


def _count(number: int, value: int) -> bytes:
    """Return a field that holds a whole number, or whether something holds."""
    return _tag(number, _VARINT) + _varint(int(value))


class _Field(NamedTuple):
    """A field of a schema: its number, and how its value is written."""

    number: int
    write: Callable[[int, Any], bytes]


_EXTENSION = 31
_FIELDS = {
    "$ref": _Field(1, _text),
    "format": _Field(2, _text),
    "title": _Field(3, _text),
    "description": _Field(4, _text),
    "default": _Field(5, lambda number, value: _message(number, _any(value))),
    "multipleOf": _Field(6, _number),
    "maximum": _Field(7, _number),
    "exclusiveMaximum": _Field(8, _count),
    "minimum": _Field(9, _number),
    "exclusiveMinimum": _Field(10, _count),
    "maxLength": _Field(11, _count),
    "minLength": _Field(12, _count),
    "pattern": _Field(13, _text),
    "maxItems": _Field(14, _count),
    "minItems": _Field(15, _count),
    "uniqueItems": _Field(16, _count),
    "maxProperties": _Field(17, _count),
    "minProperties": _Field(18, _count),
    "required": _Field(19, lambda number, names: b"".join(_text(number, name) for name in names)),
    "enum": _Field(20, lambda number, values: b"".join(_message(number, _any(one)) for one in values)),
    "additionalProperties": _Field(21, lambda number, value: _message(number, _others(value))),
    "type": _Field(22, lambda number, value: _message(number, _text(1, value))),
    "items": _Field(23, lambda number, value: _message(number, _message(1, _schema(value)))),
    "properties": _Field(25, lambda number, value: _message(number, _named(value))),
}
