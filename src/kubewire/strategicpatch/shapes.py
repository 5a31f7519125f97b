"""What the published definitions say about a type as far as patches care: its fields and how each is merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kubewire.builtin import definition
from kubewire.gotext import quote
from kubewire.strategicpatch.problems import PatchNotApplicable

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRATEGY = "x-kubernetes-patch-strategy"
_MERGE_KEY = "x-kubernetes-patch-merge-key"


class Field(NamedTuple):
    """One field of a type: the shape of its value and how a patch meets that value."""

    shape: Shape
    strategy: str
    """`merge`, `replace` or empty. `retainKeys` is left out: it tells clients how to write a patch."""
    merge_key: str
    """The field that names the items of a merged list; empty for lists of plain values."""


class Shape:
    """A type, by its definition; the types of its fields are looked up when they are first asked for."""

    __slots__ = ("_fields", "_node", "_type_name")

    def __init__(self, node: Mapping[str, Any], type_name: str = "") -> None:
        """Describe the type of an OpenAPI node without `$ref`; named types are structs in the server's code."""
        self._node = node
        self._type_name = type_name
        self._fields: dict[str, Field] = {}

    @property
    def kind(self) -> str:
        """What the type is in the server's code, as messages name it: `struct`, `map`, `slice` or `string`."""
        if "properties" in self._node:
            return "struct"
        if "additionalProperties" in self._node:
            return "map"
        openapi_type: str = self._node.get("type", "object")
        if openapi_type == "array":
            return "slice"
        if openapi_type == "object":
            return "struct" if self._type_name else "map"
        return openapi_type

    def field(self, name: str) -> Field:
        """Return a field by its name; raises PatchNotApplicable if the type has none."""
        found = self._fields.get(name)
        if found is None:
            exact_name = self._spelled(name)
            found = self._fields[exact_name] = _field(self._node["properties"][exact_name])
        return found

    def list_field(self, name: str) -> Field:
        """Return a field that holds a list, with the shape of the list's elements instead of the list's."""
        field = self.field(name)
        if field.shape.kind != "slice":
            raise PatchNotApplicable(f"expected slice or array type, but got: {self.kind}")
        elements = field.shape.elements()
        if elements.kind == "slice":
            raise PatchNotApplicable("unexpected slice of slice")
        return field._replace(shape=elements)

    def elements(self) -> Shape:
        """Return the shape of a list's elements."""
        return _resolved(self._node["items"])

    def _spelled(self, name: str) -> str:
        """Return the name as the definition spells it; the case of its letters does not matter."""
        if self.kind != "struct":
            raise PatchNotApplicable(
                f"merging an object in json but data type is not struct, instead is: {self.kind}"
            )
        properties: Mapping[str, Any] = self._node.get("properties", {})
        if name in properties:
            return name
        folded = name.casefold()
        for spelling in properties:
            # A letter that folds to two is another letter here.
            if len(spelling) == len(name) and spelling.casefold() == folded:
                return spelling
        raise PatchNotApplicable(
            f"unable to find api field in struct {self._type_name} for the json field {quote(name)}"
        )


_shapes: dict[str, Shape] = {}


def shape_of(name: str) -> Shape:
    """Return the shape of a published definition, as in `io.k8s.api.core.v1.Pod`; KeyError if there is none."""
    shape = _shapes.get(name)
    if shape is None:
        shape = _shapes[name] = Shape(definition(name), name.rpartition(".")[2])
    return shape


def _field(node: Mapping[str, Any]) -> Field:
    strategies: list[str] = node.get(_STRATEGY, "").split(",")
    strategy = next((one for one in strategies if one != "retainKeys"), "")
    return Field(_resolved(node), strategy, node.get(_MERGE_KEY, ""))


def _resolved(node: Mapping[str, Any]) -> Shape:
    reference: str | None = node.get("$ref")
    return Shape(node) if reference is None else shape_of(reference.rpartition("/")[2])
