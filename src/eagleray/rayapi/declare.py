"""The words in which the Ray kinds are declared, and the OpenAPI that a declaration means.

A kind is a tree of structs; a struct is a list of fields; a field has a name, a type and a description::

    SCALE_STRATEGY = struct(
        "ScaleStrategy",
        "Which workers to remove first.",
        field("workersToDelete", list_of(STRING), "Names of Pods to delete, whatever `replicas` says."),
    )

Types are scalars (`STRING`, `INT32`, `choice("v1", "v2")`), `list_of` and `map_of` other types, structs, and
Kubernetes' own types (`kubernetes_type("core/v1", "PodTemplateSpec")`), whose fields are published elsewhere.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "ray.io"

OpenAPI: TypeAlias = dict[str, Any]
Type: TypeAlias = "Scalar | KubernetesType | ListOf | MapOf | Struct"


class Scalar(NamedTuple):
    """A string, number or boolean; `shown` is what documentation calls it."""

    shown: str
    openapi: OpenAPI

    @property
    def choices(self) -> tuple[str, ...]:
        """The only values allowed, or nothing when any value of the type is."""
        return tuple(self.openapi.get("enum", ()))


class KubernetesType(NamedTuple):
    """A type that Kubernetes publishes, such as PodTemplateSpec of core/v1."""

    group_version: str
    name: str

    @property
    def shown(self) -> str:
        return f"{self.name} ({self.group_version})"

    @property
    def definition(self) -> str:
        """Its name among the published definitions."""
        package = "apimachinery.pkg.apis" if self.group_version.startswith("meta/") else "api"
        return f"io.k8s.{package}.{self.group_version.replace('/', '.')}.{self.name}"


class ListOf(NamedTuple):
    """A list. Server-side apply replaces an `atomic` one whole and merges one with `keys` entry by entry."""

    items: Type
    atomic: bool = False
    keys: tuple[str, ...] = ()
    min_items: int = 0


class MapOf(NamedTuple):
    """An object whose keys the user chooses."""

    values: Type


class Rule(NamedTuple):
    """A CEL expression that must hold, and what is said when it does not."""

    rule: str
    message: str

    def openapi(self) -> OpenAPI:
        return {"message": self.message, "rule": self.rule}


class Field(NamedTuple):
    """One field of a struct.

    `pointer` and `always` say how the field is encoded where the bytes matter (the hash of a cluster's
    spec). A plain scalar, list or map that is empty is left out; a plain struct never is. A pointer is left
    out only when it is unset, so an explicit `false` or `0` stays. `always` writes the field whatever it
    holds, and so does `required`. Neither changes the schema.
    """

    name: str
    type: Type
    doc: str
    required: bool = False
    default: str | int | None = None
    pointer: bool = False
    always: bool = False
    nullable: bool = False
    rules: tuple[Rule, ...] = ()


class Struct(NamedTuple):
    """An object with known fields, in the order in which they are encoded."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...] = ()
    version: str = "v1"

    @property
    def shown(self) -> str:
        return self.name

    @property
    def definition(self) -> str:
        """Its name among the definitions that schemas refer to."""
        return f"io.ray.{self.version}.{self.name}"

    def field(self, name: str) -> Field:
        """Return the field of this name; a KeyError if there is none."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise KeyError(name)


class Column(NamedTuple):
    """A column of `kubectl get`; priority 1 shows it only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


class Version(NamedTuple):
    """One version of a kind."""

    kind: str
    name: str
    doc: str
    spec: Struct
    status: Struct
    columns: tuple[Column, ...] = ()
    storage: bool = True
    deprecation: str | None = None

    @property
    def api_version(self) -> str:
        return f"{GROUP}/{self.name}"


class Kind(NamedTuple):
    """A kind with all its versions, the stored one first."""

    name: str
    versions: tuple[Version, ...]

    @property
    def singular(self) -> str:
        return self.name.lower()

    @property
    def plural(self) -> str:
        return f"{self.singular}s"


_QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

STRING = Scalar("string", {"type": "string"})
BOOLEAN = Scalar("boolean", {"type": "boolean"})
INT32 = Scalar("int32", {"type": "integer", "format": "int32"})
INT64 = Scalar("int64", {"type": "integer", "format": "int64"})
NUMBER = Scalar("number", {"type": "number"})
TIME = Scalar("time", {"type": "string", "format": "date-time"})
INT_OR_STRING = Scalar(
    "int or string",
    {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
)
QUANTITY = Scalar("quantity", {**INT_OR_STRING.openapi, "pattern": _QUANTITY_PATTERN})


def choice(*values: str) -> Scalar:
    """A string that is one of these."""
    return Scalar("string", {"type": "string", "enum": list(values)})


def at_least(minimum: int, number: Scalar) -> Scalar:
    """A number that is not below this minimum."""
    return Scalar(f"{number.shown}, at least {minimum}", {**number.openapi, "minimum": minimum})


NON_EMPTY_STRING = Scalar("non-empty string", {"type": "string", "minLength": 1})

# Declarations read as prose, in lower case.
field = Field
kubernetes_type = KubernetesType
list_of = ListOf
map_of = MapOf


def struct(name: str, doc: str, *fields: Field, rules: tuple[Rule, ...] = ()) -> Struct:
    """An object with these fields, of which all `rules` hold."""
    return Struct(name, doc, fields, rules)


def older(base: Struct, version: str, *fields: str | Field) -> Struct:
    """Return the form a struct has in an older version: the named fields as they are, others as given."""
    chosen = tuple(base.field(entry) if isinstance(entry, str) else entry for entry in fields)
    return Struct(base.name, base.doc, chosen, version=version)


def reference_to(definition: str) -> OpenAPI:
    return {"$ref": f"#/definitions/{definition}"}


def type_openapi(declared: Type) -> OpenAPI:
    """Return the OpenAPI of a type; structs and Kubernetes' types are references to definitions."""
    if isinstance(declared, Scalar):
        return dict(declared.openapi)
    if isinstance(declared, MapOf):
        return {"type": "object", "additionalProperties": type_openapi(declared.values)}
    if isinstance(declared, ListOf):
        return _list_openapi(declared)
    return reference_to(declared.definition)


def struct_openapi(declared: Struct, *, documented: bool = False) -> OpenAPI:
    """Return the OpenAPI of a struct, one level deep; `documented` adds the descriptions."""
    schema: OpenAPI = {"type": "object"}
    if documented:
        schema["description"] = declared.doc
    schema["properties"] = {entry.name: _field_openapi(entry, documented) for entry in declared.fields}
    if required := sorted(entry.name for entry in declared.fields if entry.required):
        schema["required"] = required
    if declared.rules:
        schema["x-kubernetes-validations"] = [rule.openapi() for rule in declared.rules]
    return schema


def structs_below(*roots: Struct) -> "Iterator[Struct]":
    """Yield the structs and every struct they are made of, each once, in order of appearance."""
    seen: set[str] = set()
    waiting = list(reversed(roots))
    while waiting:
        current = waiting.pop()
        if current.definition in seen:
            continue
        seen.add(current.definition)
        yield current
        inner = [unwrapped(entry.type)[1] for entry in current.fields]
        waiting.extend(entry for entry in reversed(inner) if isinstance(entry, Struct))


def unwrapped(declared: Type) -> "tuple[str, Scalar | KubernetesType | Struct]":
    """Return what a list or map is made of in the end, before it how to show that: `[]`, `map[string]`."""
    wrapper = ""
    while isinstance(declared, (ListOf, MapOf)):
        wrapper += "[]" if isinstance(declared, ListOf) else "map[string]"
        declared = declared.items if isinstance(declared, ListOf) else declared.values
    return wrapper, declared


def _list_openapi(declared: ListOf) -> OpenAPI:
    schema: OpenAPI = {"type": "array", "items": type_openapi(declared.items)}
    if declared.keys:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(declared.keys)
    elif declared.atomic:
        schema["x-kubernetes-list-type"] = "atomic"
    if declared.min_items:
        schema["minItems"] = declared.min_items
    return schema


def _field_openapi(entry: Field, documented: bool) -> OpenAPI:
    schema = type_openapi(entry.type)
    if documented:
        schema["description"] = entry.doc
    if entry.default is not None:
        schema["default"] = entry.default
    if entry.nullable:
        schema["nullable"] = True
    if entry.rules:
        schema["x-kubernetes-validations"] = [rule.openapi() for rule in entry.rules]
    return schema
