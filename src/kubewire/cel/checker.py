"""Types for every part of an expression, and the overloads its calls mean; refuses what cannot work on any value."""

from collections.abc import Callable, Mapping

from kubewire.cel.assignability import Inference
from kubewire.cel.errors import CompileError
from kubewire.cel.lexer import compile_error
from kubewire.cel.library import UNSUPPORTED, Overload, overloads_of
from kubewire.cel.syntax import (
    Call,
    Comprehension,
    Conditional,
    Identifier,
    Index,
    ListLiteral,
    Literal,
    Logical,
    MapLiteral,
    Node,
    Select,
)
from kubewire.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    CelType,
    ListType,
    MapType,
    ObjectType,
    TypeParameter,
    is_optional,
    optional_type,
    type_type,
)
from kubewire.cel.values import TYPE_IDENTIFIERS, UInt

_LITERAL_TYPES: dict[type, CelType] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


class Checker:
    """Checks one expression; afterwards the nodes carry types, slots and overloads.

    Variables live in slots: those of the expression first, then those of macros, which share a slot when
    they cannot be alive together.
    """

    def __init__(self, source: str, variables: Mapping[str, CelType]) -> None:
        self.source = source
        self.inference = Inference()
        self.used: set[str] = set()
        self.nodes: list[Node] = []
        self.uniform: list[ListLiteral | MapLiteral] = []
        self._in_format = 0
        self.slots = len(variables)
        self._visitors: dict[type[Node], Callable[..., CelType]] = {
            Literal: self._literal,
            Identifier: self._identifier,
            Select: self._select,
            Index: self._index,
            Call: self._call,
            Logical: self._logical,
            Conditional: self._conditional,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Comprehension: self._comprehension,
        }
        self._scopes: list[tuple[str, CelType, int]] = [
            (name, kind, slot) for slot, (name, kind) in enumerate(variables.items())
        ]

    def check(self, root: Node) -> CelType:
        """Return the type of the whole expression."""
        self._visit(root)
        for node in self.nodes:
            node.type = self.inference.known(node.type, final=True)
        return root.type

    def _error(self, message: str, node: Node) -> CompileError:
        return compile_error(message, self.source, node.offset)

    def _undeclared(self, name: str, node: Node) -> CompileError:
        if name in UNSUPPORTED:
            return self._error(f"'{name}' is part of Kubernetes' CEL that is not supported here", node)
        return self._error(f"undeclared reference to '{name}' (in container '')", node)

    def _visit(self, node: Node) -> CelType:
        node.type = self._visitors[type(node)](node)
        self.nodes.append(node)
        return node.type

    def _known(self, node: Node) -> CelType:
        return self.inference.known(self._visit(node))

    def _literal(self, node: Literal) -> CelType:
        return _LITERAL_TYPES[type(node.value)]

    def _lookup(self, name: str) -> tuple[CelType, int] | None:
        for declared, kind, slot in reversed(self._scopes):
            if declared == name:
                self.used.add(name)
                return kind, slot
        return None

    def _identifier(self, node: Identifier) -> CelType:
        if found := self._lookup(node.name):
            node.slot = found[1]
            return found[0]
        if node.name in TYPE_IDENTIFIERS:
            node.type_name = node.name
            return type_type(TYPE_IDENTIFIERS[node.name])
        raise self._undeclared(node.name, node)

    def _select(self, node: Select) -> CelType:
        qualified = _qualified_name(node)
        if qualified in TYPE_IDENTIFIERS and not node.test and self._lookup(qualified.split(".")[0]) is None:
            node.type_name = qualified
            return type_type(TYPE_IDENTIFIERS[qualified])
        operand = self._known(node.operand)
        through_optional = is_optional(operand)
        field = self._field(node, operand.parameters[0] if through_optional else operand)
        if node.test:
            return BOOL
        return optional_type(field) if through_optional or node.optional else field

    def _field(self, node: Select, operand: CelType) -> CelType:
        if isinstance(operand, ObjectType):
            name = operand.key_of(node.field)
            found = operand.field(name) if name is not None else None
            if name is not None and found is not None:
                node.key = name
                return found
            raise self._error(f"undefined field '{node.field}'", node)
        if isinstance(operand, MapType):
            return operand.value
        if operand == DYN or isinstance(operand, TypeParameter):
            return DYN
        raise self._error(f"type '{operand}' does not support field selection", node)

    def _index(self, node: Index) -> CelType:
        operand, index = self._known(node.operand), self._known(node.index)
        through_optional = is_optional(operand)
        within = operand.parameters[0] if through_optional else operand
        element = self._element(within, index)
        if element is None:
            shown = "_[?_]" if node.optional else "_[_]"
            raise self._no_overload(shown, [operand, index], node, is_method=False)
        return optional_type(element) if through_optional or node.optional else element

    def _element(self, container: CelType, index: CelType) -> CelType | None:
        if container == DYN or isinstance(container, TypeParameter):
            return DYN
        if isinstance(container, ListType) and self.inference.accepts((INT,), (index,)):
            return container.element
        if isinstance(container, MapType) and self.inference.accepts((container.key,), (index,)):
            return container.value
        return None

    def _call(self, node: Call) -> CelType:
        if node.target is not None and (named := self._namespaced(node)):
            node.function, node.target = named, None
        declared = overloads_of(node.function)
        if not declared and node.function in UNSUPPORTED:
            raise self._undeclared(node.function, node)
        self._in_format += node.function == "format"
        types = [self._known(operand) for operand in node.operands]
        self._in_format -= node.function == "format"
        is_method = node.target is not None
        if not declared:
            raise self._undeclared(node.function, node)
        result: CelType | None = None
        for overload in declared:
            if overload.is_method != is_method or len(overload.parameters) != len(types):
                continue
            result = self._matched(node, overload, tuple(types), result)
        if result is None:
            raise self._no_overload(node.function, types, node, is_method=is_method)
        return result

    def _matched(
        self, node: Call, overload: Overload, types: tuple[CelType, ...], before: CelType | None
    ) -> CelType | None:
        """Return the result so far, given that one more overload may match; two that differ give dyn."""
        *wanted, result = self.inference.instance((*overload.parameters, overload.result))
        if not self.inference.accepts(tuple(wanted), types):
            return before
        node.overloads.append(overload)
        known = self.inference.known(result)
        if node.function == "_+_" and isinstance(known, ListType) and isinstance(types[0], ListType):
            known = types[0].rebuilt(known.parameters)  # the left list decides how the lists are merged
        return known if before is None or before == known else DYN

    def _namespaced(self, node: Call) -> str | None:
        """Return `sets.contains` for a call that is written like a method but is a function with dots."""
        qualified = _qualified_name(node.target) if node.target is not None else ""
        if not qualified or self._lookup(qualified.split(".")[0]) is not None:
            return None
        name = f"{qualified}.{node.function}"
        return name if overloads_of(name) else None

    def _no_overload(
        self, function: str, types: list[CelType], node: Node, *, is_method: bool
    ) -> CompileError:
        shown = [str(self.inference.known(each, final=True)) for each in types]
        arguments = ", ".join(shown[1:] if is_method else shown)
        signature = f"{shown[0]}.({arguments})" if is_method else f"({arguments})"
        return self._error(f"found no matching overload for '{function}' applied to '{signature}'", node)

    def _logical(self, node: Logical) -> CelType:
        for operand in node.operands:
            self._require_bool(operand, self._known(operand))
        return BOOL

    def _require_bool(self, node: Node, found: CelType) -> None:
        if not self.inference.accepts((BOOL,), (found,)):
            raise self._error(f"expected type 'bool' but found '{found}'", node)

    def _conditional(self, node: Conditional) -> CelType:
        types = [self._known(part) for part in (node.condition, node.then, node.otherwise)]
        branch = self.inference.fresh()
        if not self.inference.accepts((BOOL, branch, branch), tuple(types)):
            raise self._no_overload("_?_:_", types, node, is_method=False)
        return branch

    def _list(self, node: ListLiteral) -> CelType:
        self._remember(node)
        element: CelType | None = None
        for position, item in enumerate(node.items):
            found = self._unwrapped(item, optional=position in node.optional)
            element = self._joined(element, found)
        return ListType(element or self.inference.fresh())

    def _map(self, node: MapLiteral) -> CelType:
        self._remember(node)
        key_type: CelType | None = None
        value_type: CelType | None = None
        for position, (key, value) in enumerate(node.entries):
            key_type = self._joined(key_type, self._known(key))
            found = self._unwrapped(value, optional=position in node.optional)
            value_type = self._joined(value_type, found)
        return MapType(key_type or self.inference.fresh(), value_type or self.inference.fresh())

    def _remember(self, node: ListLiteral | MapLiteral) -> None:
        """Note a literal whose parts must be of one type; only the arguments of `format` may be mixed."""
        if not self._in_format:
            self.uniform.append(node)

    def _unwrapped(self, node: Node, *, optional: bool) -> CelType:
        found = self._known(node)
        if not optional or found == DYN:
            return found
        if not is_optional(found):
            raise self._error(f"expected type 'optional_type({found})' but found '{found}'", node)
        return found.parameters[0]

    def _joined(self, so_far: CelType | None, found: CelType) -> CelType:
        if so_far is None:
            return found
        return self.inference.joined(so_far, found) or DYN

    def _comprehension(self, node: Comprehension) -> CelType:
        over = self._known(node.range)
        if node.macro in ("optMap", "optFlatMap"):
            element = self._optional_content(node, over)
        elif isinstance(over, ListType):
            element = over.element
        elif isinstance(over, MapType):
            element = over.key
        elif over == DYN or isinstance(over, TypeParameter):
            element = DYN
        else:
            raise self._error(
                f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)",
                node.range,
            )
        node.slot = len(self._scopes)
        self._scopes.append((node.variable, element, node.slot))
        self.slots = max(self.slots, len(self._scopes))
        condition = BOOL if node.condition is None else self._known(node.condition)
        result = BOOL if node.result is None else self._visit(node.result)
        self._scopes.pop()
        outcome = self._outcome(node, element, result)
        self._check_condition(node, condition, outcome)
        return outcome

    def _optional_content(self, node: Comprehension, over: CelType) -> CelType:
        content = self.inference.fresh()
        if not self.inference.accepts((optional_type(content),), (over,)):
            raise self._no_overload(node.macro, [over], node, is_method=True)
        return self.inference.known(content)

    def _check_condition(self, node: Comprehension, found: CelType, outcome: CelType) -> None:
        """Refuse a predicate that is not a bool, in the words of the operator the macro stands for."""
        if node.condition is None or self.inference.accepts((BOOL,), (found,)):
            return
        if node.macro in ("all", "exists"):
            raise self._error(f"expected type 'bool' but found '{found}'", node.condition)
        accumulated = INT if node.macro == "exists_one" else outcome
        raise self._no_overload("_?_:_", [found, accumulated, accumulated], node, is_method=False)

    def _outcome(self, node: Comprehension, element: CelType, result: CelType) -> CelType:
        if node.macro == "map":
            return ListType(result)
        if node.macro == "filter":
            return ListType(element)
        if node.macro == "optMap":
            return optional_type(result)
        if node.macro == "optFlatMap":
            content = self.inference.fresh()
            if not self.inference.accepts((optional_type(content),), (result,)):
                raise self._error(f"expected type 'optional_type' but found '{result}'", node)
            return optional_type(content)
        return BOOL


def _qualified_name(node: Node) -> str:
    """Return `a.b.c` for a chain of plain selections, or an empty string."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Identifier):
        return ""
    return ".".join((node.name, *reversed(parts)))
