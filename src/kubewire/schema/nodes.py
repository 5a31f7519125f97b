"""The compiled form of a structural schema: a tree of nodes whose children are compiled when first visited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kubewire.schema.checks import Check
    from kubewire.schema.rules import Rule

# Objects nested deeper than this are refused: every walk over them is a recursion. Kubernetes' deepest kind, a
# definition of a custom resource with a Pod template inside, needs about forty levels.
MAX_DEPTH = 128

# The class whose every value is of a type of JSON. Numbers have none: an int may be too large for an integer.
_CLASSES: dict[str, type] = {"array": list, "boolean": bool, "object": dict, "string": str}

_JUNCTORS = frozenset(("allOf", "anyOf", "not", "oneOf"))
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_NULL = frozenset((type(None),))
_NULL_INT_OR_STRING = frozenset((type(None), int, str))
_DEMANDS = _JUNCTORS | {"enum", "format", "maxLength", "minLength", "pattern"}

_REFERENCES = ("#/definitions/", "#/components/schemas/")


class TooDeep(ValueError):
    """An object, or a schema, is nested deeper than `MAX_DEPTH` levels."""

    def __init__(self) -> None:
        super().__init__(f"nested deeper than {MAX_DEPTH} levels")


class UnknownDefinition(LookupError):
    """A schema refers to a definition that does not exist."""


class Scope:
    """Where `$ref` leads: each definition is compiled once and shared by all who refer to it."""

    __slots__ = ("_lookup", "_nodes")

    def __init__(
        self, definitions: Mapping[str, Mapping[str, object]] | Callable[[str], Mapping[str, object]]
    ) -> None:
        self._lookup = definitions if callable(definitions) else definitions.__getitem__
        self._nodes: dict[str, Schema] = {}

    def node(self, raw: Mapping[str, Any]) -> Schema:
        """Return the compiled node of a schema; what stands beside a `$ref` adds to what it refers to."""
        if "$ref" not in raw:
            return Schema(raw, self)
        if len(raw) > 1:
            return Schema(self.resolved(raw), self)
        reference = raw["$ref"]
        node = self._nodes.get(reference)
        if node is None:
            node = self._nodes[reference] = Schema(self.resolved(raw), self)
        return node

    def resolved(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema that a reference means; a schema without one is returned as it is."""
        followed = 0
        while "$ref" in raw:
            target = self._definition(raw["$ref"])
            beside = {key: value for key, value in raw.items() if key != "$ref"}
            raw = {**target, **beside} if beside else target
            followed += 1
            if followed > MAX_DEPTH:
                raise UnknownDefinition("a definition refers to nothing but itself")
        return raw

    def _definition(self, reference: str) -> Mapping[str, Any]:
        for prefix in _REFERENCES:
            if reference.startswith(prefix):
                try:
                    return self._lookup(reference[len(prefix) :])
                except KeyError:
                    break
        raise UnknownDefinition(f"there is no definition {reference}")


class Schema:
    """A node of a compiled schema.

    `additional` is the schema of the values of a map, or `ANY_VALUE` where values are not described, or None
    where the node is not a map. `rules` are the node's x-kubernetes-validations as they stand in the schema.
    A value of the class `expected` has the right type; if the node is `trivial`, nothing else is asked of it.
    Values of a class in `exempt` satisfy the node's junctors (allOf, anyOf, oneOf, not) whatever they are.
    """

    __slots__ = (
        "_additional",
        "_branches",
        "_checks",
        "_defaults",
        "_fields",
        "_has_rules",
        "_items",
        "_scope",
        "combined",
        "compiled_rules",
        "embedded",
        "exempt",
        "expected",
        "format",
        "int_or_string",
        "list_type",
        "map_keys",
        "map_type",
        "nullable",
        "preserves_unknown",
        "raw",
        "required",
        "rules",
        "trivial",
        "type",
        "types",
    )

    def __init__(self, raw: Mapping[str, Any], scope: Scope) -> None:
        get = raw.get
        self.raw = raw
        self._scope = scope
        self.type: str = get("type") or ""
        self.format: str = get("format") or ""
        # Published definitions say it in the format, custom resources in a field of its own.
        self.int_or_string = bool(get("x-kubernetes-int-or-string")) or self.format == "int-or-string"
        self.types: tuple[str, ...] = (self.type,) if self.type else ()
        if self.int_or_string:
            self.types = ("integer", "string")
        self.expected: type | None = None if self.int_or_string else _CLASSES.get(self.type)
        self.combined = not _JUNCTORS.isdisjoint(raw)
        # Most junctors only spell out that a value is an integer or a string, which the type says already.
        self.exempt = _NULL_INT_OR_STRING if self._is_spelled_out() else _NULL
        self.trivial = self.expected in (str, bool) and _DEMANDS.isdisjoint(raw)
        self.nullable = bool(get("nullable"))
        self.required: Sequence[str] = get("required") or ()
        self.preserves_unknown = bool(get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(get("x-kubernetes-embedded-resource"))
        self.list_type: str = get("x-kubernetes-list-type") or ""
        self.map_keys: Sequence[str] = get("x-kubernetes-list-map-keys") or ()
        self.map_type: str = get("x-kubernetes-map-type") or ""
        self.rules: Sequence[Mapping[str, Any]] = get("x-kubernetes-validations") or ()
        self.compiled_rules: list[Rule] | None = None
        self._branches: dict[str, list[Schema]] = {}
        self._fields: dict[str, Schema] = {}
        self._items: Schema | None = None
        self._additional: Schema | None = None
        self._checks: tuple[Check, ...] | None = None
        self._defaults: tuple[tuple[str, object, bool], ...] | None = None
        self._has_rules: bool | None = None

    def _is_spelled_out(self) -> bool:
        others = _JUNCTORS - {"anyOf"}
        return self.int_or_string and self.raw.get("anyOf") == INT_OR_STRING and others.isdisjoint(self.raw)

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The properties as they stand in the schema."""
        return self.raw.get("properties") or {}

    def field(self, name: str) -> Schema | None:
        """Return the schema of a property, or None if there is no such property."""
        node = self._fields.get(name)
        if node is None:
            fields = self.raw.get("properties")
            if not fields or name not in fields:
                return None
            node = self._fields[name] = self._scope.node(fields[name])
        return node

    @property
    def items(self) -> Schema | None:
        """The schema of a list's items."""
        if self._items is None:
            raw = self.raw.get("items")
            if raw is not None:
                self._items = self._scope.node(raw)
        return self._items

    @property
    def additional(self) -> Schema | None:
        """The schema of a map's values."""
        if self._additional is None:
            raw = self.raw.get("additionalProperties")
            if raw is None:
                return None
            self._additional = ANY_VALUE if isinstance(raw, bool) else self._scope.node(raw)
        return self._additional

    def child(self, name: str) -> Schema | None:
        """Return the schema of the value under a key, be it a property or a map's entry."""
        return self._fields.get(name) or self.field(name) or self.additional

    @property
    def defaults(self) -> tuple[tuple[str, object, bool], ...]:
        """The properties that have a default: name, default, whether null is a value of its own."""
        if self._defaults is None:
            self._defaults = tuple(self._find_defaults())
        return self._defaults

    def _find_defaults(self) -> list[tuple[str, object, bool]]:
        found = []
        for name, raw in self.fields.items():
            resolved = self._scope.resolved(raw) if "$ref" in raw else raw
            if resolved.get("default") is not None:
                found.append((name, resolved["default"], bool(resolved.get("nullable"))))
        return found

    @property
    def checks(self) -> tuple[Check, ...]:
        """What else a value has to satisfy besides its type, as small functions."""
        if self._checks is None:
            from kubewire.schema.checks import checks_of  # here, for most nodes are never asked

            self._checks = checks_of(self)
        return self._checks

    def branches(self, junctor: str) -> list[Schema]:
        """Return the compiled schemas under allOf, anyOf or oneOf, or the one under not."""
        branches = self._branches.get(junctor)
        if branches is None:
            alternatives = [self.raw["not"]] if junctor == "not" else self.raw.get(junctor) or ()
            branches = self._branches[junctor] = [self._scope.node(branch) for branch in alternatives]
        return branches

    @property
    def has_rules(self) -> bool:
        """Whether a rule stands here or anywhere below."""
        if self._has_rules is None:
            self._has_rules = _has_rules(self.raw, self._scope)
        return self._has_rules


def _has_rules(raw: Mapping[str, Any], scope: Scope) -> bool:
    """Search the uncompiled schema, so that asking does not compile a whole Pod."""
    waiting: list[Mapping[str, Any]] = [raw]
    followed: set[str] = set()
    while waiting:
        raw = waiting.pop()
        if raw.get("x-kubernetes-validations"):
            return True
        reference = raw.get("$ref")
        if reference is not None and reference not in followed:
            followed.add(reference)
            waiting.append(scope.resolved({"$ref": reference}))
        waiting.extend((raw.get("properties") or {}).values())
        for keyword in ("items", "additionalProperties"):
            below = raw.get(keyword)
            if below and not isinstance(below, bool):
                waiting.append(below)
    return False


# Stands where a schema says that there are values and not which.
ANY_VALUE = Schema({}, Scope({}))


def compile_schema(
    openapi: Mapping[str, object],
    definitions: Mapping[str, Mapping[str, object]] | Callable[[str], Mapping[str, object]] | None = None,
) -> Schema:
    """Return the compiled form of an OpenAPI v3 schema.

    Nothing is compiled before it is visited. `{"$ref": "#/definitions/NAME"}` is looked up in `definitions` when
    it is first visited; all who refer to a definition share its node, and a definition may contain itself.
    """
    return Scope({} if definitions is None else definitions).node(openapi)
