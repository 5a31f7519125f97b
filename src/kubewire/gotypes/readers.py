"""Readers of values, made from the notation of Go's types the first time a type is met."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kubewire.gotypes import scalars
from kubewire.gotypes.facts import Field, fields_of, go_name
from kubewire.gotypes.problems import DecodeError, Mismatch
from kubewire.gotypes.walk import MAX_DEPTH, Place, Walk

Read = Callable[[Any, Place | None, Walk], object]

_SCHEMAS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."


class Type(NamedTuple):
    """How values of a Go type are read, and when a field of that type is left out."""

    # What Go calls it.
    go: str
    read: Read
    # What Go writes for a value that was not given.
    zero: Callable[[], object]
    # Values of exactly this class are as they should be and need not be read.
    plain: type | None = None
    # Whether `omitempty` leaves out a zero value. It has no effect on structs, nor on what Go builds of them.
    can_be_empty: bool = True
    is_pointer: bool = False


def struct_reader(definition: str) -> "StructReader":
    """Return the reader of a struct, which raises KeyError if its type is not known."""
    found = _structs.get(definition)
    if found is None:
        found = _structs[definition] = StructReader(definition)
    return found


class StructReader:
    """Reads objects into the fields of a struct."""

    __slots__ = ("_always", "_definition", "_fields", "_go", "_path")

    def __init__(self, definition: str) -> None:
        self._definition = definition
        self._go = go_name(definition)
        # By name: the class that needs no reading, how to read others, and whether empty values are kept.
        self._fields: dict[str, tuple[type | None, Read, bool]] = {}
        self._always: list[tuple[str, Callable[[], object]]] = []
        # Fields whose path in messages is longer than their name.
        self._path: dict[str, str] = {}

    def read(self, value: Any, at: Place | None, walk: Walk) -> dict[str, Any]:
        """Return the struct that an object means, with the fields that Go would write."""
        if value.__class__ is not dict:
            raise Mismatch(value, self._go, "struct")
        walk.depth += 1
        if walk.depth > MAX_DEPTH:
            raise DecodeError("exceeded max depth")
        fields = self._fields or self._prepared()
        result: dict[str, Any] = {}
        for name, given in value.items():
            field = fields.get(name)
            if field is None:
                walk.note_unknown(at, name)
                continue
            if given is None:
                continue
            plain, read, keeps_empty = field
            try:
                kept = given if given.__class__ is plain else read(given, (at, name), walk)
            except Mismatch as bad:
                bad.within(self._definition.rpartition(".")[2], self._path.get(name) or name)
                raise
            if kept or keeps_empty:
                result[name] = kept
        for name, zero in self._always:
            if name not in result:
                result[name] = zero()
        walk.depth -= 1
        return result

    def zero(self) -> dict[str, Any]:
        """Return the struct in which nothing is set."""
        self._prepared()
        return {name: zero() for name, zero in self._always}

    def _prepared(self) -> dict[str, tuple[type | None, Read, bool]]:
        """Make the readers of the fields once an object comes: a type may contain itself, and most are never met."""
        if not self._fields:
            for field in fields_of(self._definition):
                self._add(field)
        return self._fields

    def _add(self, field: Field) -> None:
        kind = _type(field.type)
        optional = field.omission == "omitzero" or (field.omission != "" and kind.can_be_empty)
        # Kinds are stored as protocol buffers, which do not tell an empty list from none; definitions of custom
        # resources are stored as JSON, which does. Bytes are told apart in both.
        tells_empty = self._definition.startswith(_SCHEMAS) or kind.go == "[]uint8"
        keeps_empty = kind.is_pointer or not (optional or (kind.can_be_empty and not tells_empty))
        self._fields[field.name] = (kind.plain, kind.read, keeps_empty)
        if not optional:
            self._always.append((field.name, kind.zero))
        if field.embedded:
            self._path[field.name] = f"{field.embedded}.{field.name}"


_structs: dict[str, StructReader] = {}
_types: dict[str, Type] = {}


def _type(notation: str) -> Type:
    found = _types.get(notation)
    if found is None:
        found = _types[notation] = _made(notation)
    return found


def _made(notation: str, go: str = "") -> Type:
    """Return the type that a notation means; `go` is its name where it has one of its own."""
    if notation[0] == "*":
        return _type(notation[1:])._replace(zero=_none, can_be_empty=True, is_pointer=True)
    if notation[0] == "[":
        element = _type(notation[2:])
        go = go or f"[]{element.go}"
        return Type(go, _list_reader(element, go), _none)
    if notation[0] == "{":
        key, _, rest = notation[1:].partition("}")
        element = _type(rest)
        if rest == "bytes":
            element = element._replace(zero=str)  # storage knows no null in a map
        go = go or f"map[{key}]{element.go}"
        return Type(go, _map_reader(element, go), _none)
    name, named, shape = notation.partition("=")
    if named:
        return _made(shape, name)
    if notation in _SCALARS:
        return _SCALARS[notation](go or notation)
    if notation in _SPECIAL:
        return _SPECIAL[notation]
    struct = struct_reader(notation)
    return Type(go_name(notation), struct.read, struct.zero, can_be_empty=False)


def _none() -> object:
    return None


def _list_reader(element: Type, go: str) -> Read:
    _, read_element, zero, plain, *_ = element

    def read(value: Any, at: Place | None, walk: Walk) -> object:
        if value.__class__ is not list:
            raise Mismatch(value, go, "slice")
        for item in value:
            if item.__class__ is not plain:
                break
        else:
            return value
        return [
            zero() if item is None else read_element(item, (at, index), walk)
            for index, item in enumerate(value)
        ]

    return read


def _map_reader(element: Type, go: str) -> Read:
    _, read_element, zero, plain, *_ = element

    def read(value: Any, at: Place | None, walk: Walk) -> object:
        if value.__class__ is not dict:
            raise Mismatch(value, go, "map")
        for item in value.values():
            if item.__class__ is not plain:
                break
        else:
            return value
        return {
            key: zero() if item is None else read_element(item, (at, key), walk)
            for key, item in value.items()
        }

    return read


def _scalar(go: str, read: scalars.ReadScalar, zero: object, plain: type | None = None) -> Type:
    return Type(go, lambda value, _at, _walk: read(value), lambda: zero, plain)


_SCALARS: dict[str, Callable[[str], Type]] = {
    "string": lambda go: _scalar(go, scalars.text_reader(go), "", str),
    "bool": lambda go: _scalar(go, scalars.bool_reader(go), False, bool),
    "int32": lambda go: _scalar(go, scalars.integer_reader(go, 32, "int32"), 0),
    "int64": lambda go: _scalar(go, scalars.integer_reader(go, 64, "int64"), 0),
    "float64": lambda go: _scalar(go, scalars.float_reader(go), 0),
    "bytes": lambda _go: _scalar("[]uint8", scalars.base64_reader("[]uint8"), None),
}


def _read_raw(value: Any, _at: Place | None, _walk: Walk) -> object:
    return value


def _read_schema(value: Any, walk: Walk) -> object:
    """Read a schema inside one of the three unions below.

    They decode with a decoder of their own, so what is unknown inside is dropped without a word.
    """
    inner = Walk()
    inner.depth = walk.depth
    return struct_reader(f"{_SCHEMAS}JSONSchemaProps").read(value, None, inner)


def _read_schema_or_array(value: Any, _at: Place | None, walk: Walk) -> object:
    if isinstance(value, list):
        return [_read_schema({} if item is None else item, walk) for item in value] or None
    return _read_schema(value, walk) if isinstance(value, dict) else None


def _read_schema_or_bool(value: Any, _at: Place | None, walk: Walk) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return _read_schema(value, walk)
    raise DecodeError("boolean or JSON schema expected")


def _read_schema_or_strings(value: Any, at: Place | None, walk: Walk) -> object:
    if isinstance(value, list):
        return _type("[]string").read(value, at, walk) or None
    return _read_schema(value, walk) if isinstance(value, dict) else None


_SPECIAL: dict[str, Type] = {
    notation: made._replace(can_be_empty=False)
    for notation, made in {
        "time": _scalar("v1.Time", scalars.time, None),
        "microtime": _scalar("v1.MicroTime", scalars.micro_time, None),
        "quantity": _scalar("resource.Quantity", scalars.quantity, "0"),
        "intstr": _scalar("intstr.IntOrString", scalars.int_or_text, 0),
        "raw": Type("json.RawMessage", _read_raw, _none),
        "schemaOrArray": Type("v1.JSONSchemaPropsOrArray", _read_schema_or_array, _none),
        "schemaOrBool": Type("v1.JSONSchemaPropsOrBool", _read_schema_or_bool, lambda: False),
        "schemaOrStrings": Type("v1.JSONSchemaPropsOrStringArray", _read_schema_or_strings, _none),
    }.items()
}
