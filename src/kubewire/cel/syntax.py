"""The shape of an expression. The checker writes `type` and what it resolved into the nodes; the compiler reads it."""

from typing import TYPE_CHECKING

from kubewire.cel.types import DYN, CelType
from kubewire.cel.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubewire.cel.library import Overload


class Node:
    """A part of an expression; `depth` is the length of the longest way down to a leaf."""

    __slots__ = ("depth", "offset", "type")

    def __init__(self, offset: int, children: "Sequence[Node]" = ()) -> None:
        self.offset = offset
        self.depth: int = 1 + max((child.depth for child in children), default=0)
        self.type: CelType = DYN


class Literal(Node):
    __slots__ = ("value",)

    def __init__(self, offset: int, value: Value) -> None:
        super().__init__(offset)
        self.value = value


class Identifier(Node):
    """A name; the checker sets `slot` for a variable and `type_name` for a type such as `int`."""

    __slots__ = ("name", "slot", "type_name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.slot = -1
        self.type_name = ""


class Select(Node):
    """`operand.field`, `operand.?field`, or with `test` the macro `has(operand.field)`."""

    __slots__ = ("field", "key", "operand", "optional", "test", "type_name")

    def __init__(
        self, offset: int, operand: Node, field: str, *, optional: bool = False, test: bool = False
    ) -> None:
        super().__init__(offset, (operand,))
        self.operand = operand
        self.field = field
        self.optional = optional
        self.test = test
        self.key = field
        self.type_name = ""


class Index(Node):
    """`operand[index]` or `operand[?index]`."""

    __slots__ = ("index", "operand", "optional")

    def __init__(self, offset: int, operand: Node, index: Node, *, optional: bool = False) -> None:
        super().__init__(offset, (operand, index))
        self.operand = operand
        self.index = index
        self.optional = optional


class Call(Node):
    """A function, method or operator; operators have names such as `_+_`. The checker finds the overloads."""

    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> None:
        super().__init__(offset, arguments if target is None else (target, *arguments))
        self.function = function
        self.target = target
        self.arguments = arguments
        self.overloads: list[Overload] = []

    @property
    def operands(self) -> list[Node]:
        return self.arguments if self.target is None else [self.target, *self.arguments]


class Logical(Node):
    """A chain of `&&` or of `||`, kept flat so that a long chain is not deep."""

    __slots__ = ("operands", "operator")

    def __init__(self, offset: int, operator: str, operands: list[Node]) -> None:
        super().__init__(offset, operands)
        self.operator = operator
        self.operands = operands


class Conditional(Node):
    __slots__ = ("condition", "otherwise", "then")

    def __init__(self, offset: int, condition: Node, then: Node, otherwise: Node) -> None:
        super().__init__(offset, (condition, then, otherwise))
        self.condition = condition
        self.then = then
        self.otherwise = otherwise


class ListLiteral(Node):
    """`[a, b]`; `optional` holds the positions written `?a`, which are left out when empty."""

    __slots__ = ("items", "optional")

    def __init__(self, offset: int, items: list[Node], optional: frozenset[int]) -> None:
        super().__init__(offset, items)
        self.items = items
        self.optional = optional


class MapLiteral(Node):
    """`{key: value}`; `optional` holds the positions of entries written `?key: value`."""

    __slots__ = ("entries", "optional")

    def __init__(self, offset: int, entries: list[tuple[Node, Node]], optional: frozenset[int]) -> None:
        super().__init__(offset, [part for entry in entries for part in entry])
        self.entries = entries
        self.optional = optional


class Comprehension(Node):
    """A macro over a range: all, exists, exists_one, filter or map; `optMap` and `optFlatMap` over an optional.

    `condition` is the predicate and `result` what map makes of each element; each may be missing.
    """

    __slots__ = ("condition", "macro", "range", "result", "slot", "variable")

    def __init__(
        self, offset: int, macro: str, over: Node, variable: str, condition: Node | None, result: Node | None
    ) -> None:
        super().__init__(offset, [node for node in (over, condition, result) if node is not None])
        self.macro = macro
        self.range = over
        self.variable = variable
        self.condition = condition
        self.result = result
        self.slot = -1
