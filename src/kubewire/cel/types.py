"""The types an expression is checked with: scalars, `list(int)`, `map(string, dyn)`, objects with named fields."""

from typing import TYPE_CHECKING, Literal

from kubewire.cel.names import escape_name, unescape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class CelType:
    """A type by name and parameters; two types are the same when both are."""

    __slots__ = ("name", "parameters")

    def __init__(self, name: str, *parameters: "CelType") -> None:
        self.name = name
        self.parameters = parameters

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, CelType) and self.name == other.name and self.parameters == other.parameters
        )

    def __hash__(self) -> int:
        return hash((self.name, self.parameters))

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def __repr__(self) -> str:
        return f"<CEL {self}>"

    def rebuilt(self, parameters: tuple["CelType", ...]) -> "CelType":
        """Return the same type with other parameters."""
        return CelType(self.name, *parameters)


class TypeParameter(CelType):
    """A type still to be found: the `A` of a signature, or the element of an empty list."""

    __slots__ = ()


class ListType(CelType):
    """A list; `kind` and `keys` are Kubernetes' list type, which decides what `==` and `+` mean for it."""

    __slots__ = ("keys", "kind")

    def __init__(
        self, element: CelType, kind: Literal["atomic", "set", "map"] = "atomic", keys: tuple[str, ...] = ()
    ) -> None:
        super().__init__("list", element)
        self.kind = kind
        self.keys = keys

    @property
    def element(self) -> CelType:
        return self.parameters[0]

    def rebuilt(self, parameters: tuple[CelType, ...]) -> CelType:
        return ListType(parameters[0], self.kind, self.keys)


class MapType(CelType):
    __slots__ = ()

    def __init__(self, key: CelType, value: CelType) -> None:
        super().__init__("map", key, value)

    @property
    def key(self) -> CelType:
        return self.parameters[0]

    @property
    def value(self) -> CelType:
        return self.parameters[1]

    def rebuilt(self, parameters: tuple[CelType, ...]) -> CelType:
        return MapType(*parameters)


class ObjectType(CelType):
    """An object with declared fields, under their JSON names or under the identifiers that `escape_name` gives.

    `fields` may be a function: it is called when an expression first selects a field, so a schema as large
    as a Pod's costs nothing until then. Objects of one name are one type.
    """

    __slots__ = ("_fields",)

    def __init__(
        self, name: str, fields: "Mapping[str, CelType] | Callable[[], Mapping[str, CelType]]"
    ) -> None:
        super().__init__(name)
        self._fields = fields

    @property
    def fields(self) -> "Mapping[str, CelType]":
        if callable(self._fields):
            self._fields = self._fields()
        return self._fields

    def field(self, name: str) -> CelType | None:
        """Return the type of a property by its JSON name."""
        return self.fields.get(name) or self.fields.get(escape_name(name) or "")

    def key_of(self, identifier: str) -> str | None:
        """Return the JSON name of the property that an identifier would select."""
        name = unescape_name(identifier)
        return name if name is not None and escape_name(name) == identifier else None


class PlainObjectType(ObjectType):
    """An object that is no user's, so that identifiers are the names themselves, reserved words included."""

    __slots__ = ()

    def key_of(self, identifier: str) -> str | None:
        return identifier


BOOL = CelType("bool")
INT = CelType("int")
UINT = CelType("uint")
DOUBLE = CelType("double")
STRING = CelType("string")
BYTES = CelType("bytes")
NULL = CelType("null")
DYN = CelType("dyn")
TIMESTAMP = CelType("timestamp")
DURATION = CelType("duration")
QUANTITY = CelType("kubernetes.Quantity")
URL = CelType("kubernetes.URL")
SEMVER = CelType("kubernetes.Semver")
NAMED_FORMAT = CelType("kubernetes.NamedFormat")
IP = CelType("net.IP")
CIDR = CelType("net.CIDR")


def optional_type(value: CelType) -> CelType:
    return CelType("optional_type", value)


def type_type(described: CelType) -> CelType:
    return CelType("type", described)


def is_optional(candidate: CelType) -> bool:
    return candidate.name == "optional_type"


_NAMED = {t.name: t for t in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DYN, TIMESTAMP, DURATION)}
_NAMED |= {"quantity": QUANTITY, "url": URL, "ip": IP, "cidr": CIDR}
_NAMED |= {"semver": SEMVER, "namedformat": NAMED_FORMAT}


def parse_type(text: str) -> CelType:
    """Return the type that a signature writes as `map(string, A)`; a capital letter is a type parameter."""
    text = text.strip()
    if not text.endswith(")"):
        return TypeParameter(text) if text.isupper() else _NAMED[text]
    name, _, inside = text[:-1].partition("(")
    parameters = [parse_type(part) for part in split_types(inside)]
    if name == "list":
        return ListType(parameters[0])
    if name == "map":
        return MapType(*parameters)
    return type_type(*parameters) if name == "type" else optional_type(*parameters)


def split_types(text: str) -> list[str]:
    """Return the parts between the commas that stand in no parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        depth += (character == "(") - (character == ")")
    return [*parts, text[start:]] if text.strip() else []
