"""What documentation says of every field, declared or published by Kubernetes, and the reference page."""

import json
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from eagleray.rayapi import kubernetes
from eagleray.rayapi.declare import (
    INT_OR_STRING,
    QUANTITY,
    STRING,
    TIME,
    Field,
    KubernetesType,
    OpenAPI,
    Scalar,
    Struct,
    Version,
    structs_below,
    unwrapped,
)
from eagleray.rayapi.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Inside: TypeAlias = Struct | OpenAPI

_METADATA = KubernetesType("meta/v1", "ObjectMeta")
_TIME = KubernetesType("meta/v1", "Time")

_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    _TIME.definition: TIME,
}


class Entry(NamedTuple):
    """What is to be said of one field.

    `required` is told to a user who writes a manifest: a field with a default may be left out. `inside` is
    the struct or published type whose fields come next, if there are any.
    """

    name: str
    wrapper: str
    base: str
    doc: str = ""
    required: bool = False
    default: object = None
    choices: tuple[str, ...] = ()
    inside: Inside | None = None

    @property
    def type(self) -> str:
        return self.wrapper + self.base

    @property
    def shown_default(self) -> str:
        """The default as it would stand in JSON, or nothing."""
        return "" if self.default is None else json.dumps(self.default)


class UnknownFieldError(LookupError):
    """There is no field `name` below `above`; `known` are the names that there are."""

    def __init__(self, above: "Sequence[str]", name: str, known: "Sequence[str]") -> None:
        super().__init__(".".join([*above, name]))
        self.above = tuple(above)
        self.name = name
        self.known = tuple(known)


def entries_of_kind(version: Version) -> tuple[Entry, ...]:
    """Return the fields at the top of an object."""
    return (
        Entry("apiVersion", "", STRING.shown, f"Group and version of this object: `{version.api_version}`."),
        Entry("kind", "", STRING.shown, f"Kind of this object: `{version.kind}`."),
        Entry(
            "metadata",
            "",
            _METADATA.shown,
            "Name, namespace, labels and annotations, as on every Kubernetes object.",
            inside=kubernetes.published(_METADATA.definition),
        ),
        _declared(Field("spec", version.spec, version.spec.doc)),
        _declared(Field("status", version.status, version.status.doc)),
    )


def entries_inside(inside: Inside | None) -> tuple[Entry, ...]:
    """Return the fields of a declared struct, in its order, or of a type that Kubernetes publishes."""
    if inside is None:
        return ()
    if isinstance(inside, Struct):
        return tuple(_declared(field) for field in inside.fields)
    required = inside.get("required", [])
    properties = inside.get("properties", {})
    return tuple(_published(name, node, name in required) for name, node in properties.items())


def find(version: Version, steps: "Sequence[str]") -> Entry:
    """Return the field at the end of a path, which passes through lists and maps; or UnknownFieldError."""
    found, around = None, entries_of_kind(version)
    for depth, step in enumerate(steps):
        found = next((entry for entry in around if entry.name == step), None)
        if found is None:
            raise UnknownFieldError(steps[:depth], step, [entry.name for entry in around])
        around = entries_inside(found.inside)
    if found is None:
        raise ValueError("a path has at least one step")
    return found


def _declared(field: Field) -> Entry:
    wrapper, base = unwrapped(field.type)
    inside: Inside | None = None
    if isinstance(base, Struct):
        inside = base
    elif isinstance(base, KubernetesType):
        inside = kubernetes.definition(base.definition)
    choices = base.choices if isinstance(base, Scalar) else ()
    required = field.required and field.default is None
    return Entry(field.name, wrapper, base.shown, field.doc, required, field.default, choices, inside)


def _published(name: str, node: OpenAPI, required: bool) -> Entry:
    default = node.get("default")
    choices = tuple(node.get("enum", []))
    wrapper = ""
    while "items" in node or "additionalProperties" in node:
        wrapper += "[]" if "items" in node else "map[string]"
        node = node.get("items") or node["additionalProperties"]
    target = node.get("$ref")
    if target is None:
        base = str(node.get("format") or node["type"])
        return Entry(name, wrapper, base, required=required, default=default, choices=choices)
    definition = str(target).removeprefix("#/definitions/")
    if scalar := _SCALARS.get(definition):
        return Entry(name, wrapper, scalar.shown, required=required, default=default)
    base = definition.rpartition(".")[2]
    return Entry(name, wrapper, base, required=required, inside=kubernetes.definition(definition))


def api_reference() -> str:
    """Return the reference page of all kinds, in Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> "Iterator[str]":
    yield "# API reference"
    yield ""
    yield "All fields of Ray's kinds, generated from `src/eagleray/rayapi/declarations` by `make generate`."
    yield "The terminal shows the same: `eagleray explain raycluster.spec`. Types with a group in"
    yield "parentheses, like PodTemplateSpec (core/v1), are Kubernetes' own."
    yield ""
    versions = [version for kind in KINDS for version in kind.versions]
    versions.sort(key=lambda version: version.deprecation is not None)
    for version in versions:
        deprecated = " (deprecated)" if version.deprecation else ""
        anchor = _anchor(version.name, version.kind)
        yield f"- [{version.kind}](#{anchor}) `{version.api_version}`{deprecated}"
    written: set[str] = set()
    for version in versions:
        yield from _version_section(version, written)


def _version_section(version: Version, written: set[str]) -> "Iterator[str]":
    yield ""
    yield f'## <a id="{_anchor(version.name, version.kind)}"></a>{version.kind} ({version.api_version})'
    yield ""
    yield version.doc
    yield ""
    yield from _table(entries_of_kind(version))
    for struct in structs_below(version.spec, version.status):
        # A struct stands below the first kind that uses it; the others link there.
        if struct.definition not in written:
            written.add(struct.definition)
            yield from _struct_section(struct)


def _struct_section(struct: Struct) -> "Iterator[str]":
    yield ""
    title = struct.name if struct.version == "v1" else f"{struct.name} ({struct.version})"
    yield f'### <a id="{_anchor(struct.version, struct.name)}"></a>{title}'
    yield ""
    yield struct.doc
    yield ""
    yield from _table(entries_inside(struct))
    rules = [rule.message for rule in struct.rules]
    rules += [f"`{field.name}`: {rule.message}" for field in struct.fields for rule in field.rules]
    if rules:
        yield ""
        yield "The API server refuses, with these words:"
        yield ""
        yield from (f"- {rule}" for rule in rules)


def _table(entries: "Sequence[Entry]") -> "Iterator[str]":
    yield "| Field | Type | Default | Required | Description |"
    yield "|---|---|---|---|---|"
    for entry in entries:
        default = f"`{entry.shown_default}`" if entry.shown_default else ""
        required = "yes" if entry.required else ""
        cells = (f"`{entry.name}`", _linked_type(entry), default, required, entry.doc)
        yield f"| {' | '.join(cells)} |"


def _linked_type(entry: Entry) -> str:
    shown = entry.type
    if isinstance(entry.inside, Struct):
        wrapper = entry.wrapper.replace("[", r"\[").replace("]", r"\]")
        shown = f"{wrapper}[{entry.base}](#{_anchor(entry.inside.version, entry.inside.name)})"
    if entry.choices:
        shown += ": " + ", ".join(f"`{choice}`" for choice in entry.choices)
    return shown


def _anchor(version: str, name: str) -> str:
    return f"{version}-{name}".lower()
