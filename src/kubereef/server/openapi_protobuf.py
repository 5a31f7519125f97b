"""The older OpenAPI document in protobuf, the only form in which kubectl takes it: the paths, without the schemas.

kubectl reads it to learn whether the server checks fields itself, for instance before it creates a `List`; all schemas
it takes from the newer document. The message is `openapi.v2.Document` of the gnostic project.
"""

from collections.abc import Mapping
from typing import Any

from kubereef.server.requests import Request

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ACCEPTED = frozenset((MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"))

# Numbers of the fields of a path item that hold operations.
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_LENGTH_DELIMITED = 2


def is_wanted(request: Request) -> bool:
    """Tell whether a client prefers this form."""
    first = request.headers.get("accept", "").partition(",")[0]
    return first.partition(";")[0].strip() in _ACCEPTED


def document(info: Mapping[str, str], paths: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the document of paths whose operations are as in the newer form."""
    items = b"".join(
        _message(2, _text(1, path) + _message(2, _path_item(item))) for path, item in paths.items()
    )
    about = _text(1, info["title"]) + _text(2, info["version"])
    return _text(1, "2.0") + _message(2, about) + _message(8, items)


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
    """Return the extension that tells which kind an operation is about; its value is a piece of YAML."""
    name = "x-kubernetes-group-version-kind"
    about = operation[name]
    lines = "".join(f'{key}: "{about[key]}"\n' for key in ("group", "kind", "version"))
    return _text(1, name) + _message(2, _text(2, lines))


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _message(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    return bytes((number << 3 | _LENGTH_DELIMITED,)) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
