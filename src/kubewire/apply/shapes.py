"""What a schema says about ownership: which values have fields or items of their own, and which are one whole.

Shapes are made of published definitions and of the schemas of custom resources. A definition refers to others and to
itself, so what lies below a shape is made when it is first looked at, and kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from kubewire.apply.elements import field_element, is_plain, key_element, value_element
from kubewire.builtin import definition
from kubewire.gotypes.facts import fields_of, is_known

if TYPE_CHECKING:
    from collections.abc import Mapping

Scalar = Literal["numeric", "string", "boolean", "untyped"]

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"

# Keys of list items that may be left out; the published definitions do not tell their defaults.
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
}

_ZEROS: Final[dict[str, Any]] = {"string": "", "int32": 0, "int64": 0}


class NoElement(ValueError):
    """An item that has no place in its list: nothing tells it from others."""


class MapShape:
    """An object: its declared fields, the shape of all others if there may be any, and whether it is one whole.

    `steps` has the step to every field and the field's shape, by the field's name.
    """

    __slots__ = ("_others", "_others_node", "_preserves", "declared", "is_atomic", "is_open", "steps")

    def __init__(self, node: Mapping[str, Any], *, preserves: bool, relation: str) -> None:
        self.is_atomic = (relation or node.get("x-kubernetes-map-type")) == "atomic"
        self.declared: Mapping[str, Any] = node.get("properties") or {}
        self.steps = _Steps(self)
        extra = node.get("additionalProperties")
        is_free = preserves or not self.declared
        self.is_open: bool = is_free if extra is None else extra is not False
        self._others_node: Mapping[str, Any] | None = extra if isinstance(extra, dict) else None
        self._others: Shape | None = None
        self._preserves = preserves

    def made(self, name: str) -> Shape:
        """Return the shape of a field, made anew if it is declared."""
        node = self.declared.get(name)
        return self.others if node is None else _referred(node, preserves=self._preserves)

    @property
    def others(self) -> Shape:
        """The shape of fields that are not declared."""
        if self._others is None:
            node = self._others_node
            self._others = DEDUCED if node is None else _referred(node, preserves=self._preserves)
        return self._others

    def default(self, name: str) -> object:
        """Return the default of a field, None if it has none."""
        return self.declared.get(name, {}).get("default")


class _Steps(dict[str, tuple[str, "Shape"]]):
    """The fields of an object by name, made when first asked for. Only declared ones are kept: they are few."""

    __slots__ = ("_owner",)

    def __init__(self, owner: MapShape) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, name: str) -> tuple[str, Shape]:
        found = (field_element(name), self._owner.made(name))
        if name in self._owner.declared:
            self[name] = found
        return found


class ListShape:
    """A list: one whole, a set of plain values, or items told apart by their keys."""

    __slots__ = ("_items", "_node", "_preserves", "_single", "is_atomic", "keys")

    def __init__(self, node: Mapping[str, Any], *, preserves: bool) -> None:
        self.is_atomic, keys = _list_relation(node)
        # Steps name the keys in alphabetical order.
        self.keys = tuple(sorted(keys))
        self._single = f'k:{{"{self.keys[0]}":"' if len(self.keys) == 1 else ""
        self._node: Mapping[str, Any] | None = node.get("items")
        self._preserves = preserves
        self._items: Shape | None = None

    @property
    def items(self) -> Shape:
        """The shape of every item."""
        if self._items is None:
            node = self._node
            self._items = UNTYPED if node is None else _referred(node, preserves=self._preserves)
        return self._items

    def element(self, item: object) -> str:
        """Return the step to an item; NoElement if nothing tells it from others."""
        if self._single and item.__class__ is dict:
            value = item.get(self.keys[0])
            if value.__class__ is str and is_plain(value):
                return f'{self._single}{value}"}}'
        return self._keyed(item) if self.keys else _member(item)

    def _keyed(self, item: object) -> str:
        if item is None:
            raise NoElement("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise NoElement("associative list with keys may not have non-map elements")
        names, values = [], []
        for key in self.keys:
            value = item.get(key)
            if key not in item:
                fields = self.items.map
                value = None if fields is None else fields.default(key)
                if value is None:
                    continue
            names.append(key)
            values.append(value)
        if not names:
            listed = " ".join(f'"{key}"' for key in self.keys)
            raise NoElement(
                f"associative list with keys has an element that omits all key fields [{listed}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_element(names, values)


class Shape:
    """What a value may be: a plain value, a list, an object, or any of them where the schema does not say."""

    __slots__ = ("list", "map", "scalar")

    def __init__(
        self,
        *,
        scalar: Scalar | None = None,
        list: ListShape | None = None,  # noqa: A002 - the schema's word
        map: MapShape | None = None,  # noqa: A002 - the schema's word
    ) -> None:
        self.scalar = scalar
        self.list = list
        self.map = map

    def of(self, value: object) -> MapShape | ListShape | None:
        """Return what the shape makes of a value: an object, a list, or None for a plain value."""
        if isinstance(value, dict):
            found = self.map
        elif isinstance(value, list):
            found = self.list  # type: ignore[assignment]  # either will do
        elif value is not None and self.scalar is not None:
            return None
        else:
            found = None
        if found is not None:
            return found
        # A value of another type than the schema's, or null, which every type has.
        if self.map is not None:
            return self.map
        return None if self.scalar is not None else self.list


def definition_shape(name: str) -> Shape:
    """Return the shape of a published definition, as in `io.k8s.api.core.v1.Pod`; KeyError if there is none."""
    found = _named.get(name)
    if found is None:
        found = _named[name] = _named_shape(name)
    return found


def custom_shape(schema: Mapping[str, Any] | None) -> Shape:
    """Return the shape of a custom resource by the OpenAPI schema of its version."""
    node: Mapping[str, Any] = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return _made(_as_resource(node), preserves=False)


def _as_resource(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of an object of its own with what all such objects have."""
    text = {"type": "string"}
    common = {"apiVersion": text, "kind": text, "metadata": {"$ref": f"#/definitions/{_OBJECT_META}"}}
    return {**node, "properties": {**(node.get("properties") or {}), **common}}


def _named_shape(name: str) -> Shape:
    if name == _QUANTITY:
        return Shape(scalar="untyped")
    if name == _RAW_EXTENSION:
        return UNTYPED
    node: Mapping[str, Any] = definition(name)
    defaults = {**_zeros(name), **_DEFAULTS.get(name, {})}
    if defaults and "properties" in node:
        fields = dict(node["properties"])
        for field, default in defaults.items():
            if field in fields:
                fields[field] = {**fields[field], "default": default}
        node = {**node, "properties": fields}
    return _made(node, preserves=False)


def _zeros(name: str) -> dict[str, Any]:
    """Return the fields that are never left out, with what they are if nobody says: they can tell items apart."""
    if not is_known(name):
        return {}
    return {
        field.name: _ZEROS[field.type]
        for field in fields_of(name)
        if field.type in _ZEROS and not field.omission
    }


def _referred(node: Mapping[str, Any], *, preserves: bool) -> Shape:
    """Return the shape of a node, which may only name a definition."""
    reference = node.get("$ref")
    if reference is None and len(node.get("allOf") or ()) == 1:
        reference = node["allOf"][0].get("$ref")
    if reference is None:
        return _made(node, preserves=preserves)
    name = reference.rpartition("/")[2]
    relation = node.get("x-kubernetes-map-type")
    if not relation:
        return definition_shape(name)
    return _made(definition(name), preserves=preserves, relation=relation)


def _made(node: Mapping[str, Any], *, preserves: bool, relation: str = "") -> Shape:
    preserves = preserves or node.get("x-kubernetes-preserve-unknown-fields") is True
    if node.get("x-kubernetes-embedded-resource") is True:
        node = _as_resource(node)
    kind = node.get("type")
    if kind == "object":
        return Shape(map=MapShape(node, preserves=preserves, relation=relation))
    if kind == "array":
        return Shape(list=ListShape(node, preserves=preserves))
    if kind in ("integer", "number"):
        return Shape(scalar="numeric")
    if kind == "boolean":
        return Shape(scalar="boolean")
    if kind == "string":
        return Shape(scalar="string" if node.get("format", "") in ("", "byte") else "untyped")
    return Shape(
        scalar="untyped",
        list=ListShape(node, preserves=preserves),
        map=MapShape(node, preserves=preserves, relation=relation),
    )


def _list_relation(node: Mapping[str, Any]) -> tuple[bool, tuple[str, ...]]:
    """Return whether a list is one whole, and the keys of its items."""
    kind = node.get("x-kubernetes-list-type")
    if kind is not None:
        keys = tuple(node.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
        return kind not in ("map", "set"), keys
    if node.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = node.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key else ()
    return True, ()


def _member(item: object) -> str:
    if isinstance(item, dict):
        raise NoElement("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise NoElement("not supported: associative list with lists as elements")
    if item is None:
        raise NoElement("associative list without keys has an element that's an explicit null")
    return value_element(item)


_named: dict[str, Shape] = {}

# Where a schema says nothing: a value that is owned as a whole, and one whose objects have fields of their own.
UNTYPED: Final = Shape(
    scalar="untyped",
    list=ListShape({"x-kubernetes-list-type": "atomic"}, preserves=True),
    map=MapShape({"x-kubernetes-map-type": "atomic"}, preserves=True, relation=""),
)
DEDUCED: Final = Shape(
    scalar="untyped",
    list=ListShape({"x-kubernetes-list-type": "atomic"}, preserves=True),
    map=MapShape({}, preserves=True, relation=""),
)
