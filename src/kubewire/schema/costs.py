"""What a rule may cost at worst, estimated from its expression and from the bounds that the schema sets.

Kubernetes refuses definitions whose rules could become too expensive. The estimate follows its accounting: a
step through a list counts once for each item that the list can have, and a list without maxItems can have as many
as fit into the largest request. Functions that are not listed here count as one step, so where the estimate
differs from Kubernetes' it is the lower one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubewire.cel.parser import parse
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
    Select,
)
from kubewire.schema.nodes import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubewire.cel.syntax import Node
    from kubewire.schema.nodes import Schema

PER_RULE_LIMIT = 10_000_000
PER_DEFINITION_LIMIT = 100_000_000

_LARGEST_REQUEST = 3 * 1024 * 1024
_LONGEST_TEXT = _LARGEST_REQUEST - 2
# Texts of these formats cannot become longer: bytes of JSON, quotes included.
_FORMATTED_LENGTHS = {"date": 12, "date-time": 32, "datetime": 32, "duration": 34}
_SMALLEST = {"boolean": 4, "integer": 1, "number": 1, "string": 2, "array": 2}
_BYTES_PER_CHARACTER = 4

_LIST_COST, _MAP_COST = 10, 30


class Estimate(NamedTuple):
    """The most that an expression costs, how large its value can be, and the schema of that value if it has one."""

    cost: int
    size: int = 1
    schema: Schema | None = None


def estimated_cost(expression: str, schema: Schema) -> int:
    """Return the most that evaluating a rule on one value of the schema can cost."""
    return _Estimator(schema).visit(parse(expression)).cost


def largest_count(schema: Schema) -> int:
    """Return how many values of the schema fit into the largest request."""
    return _LARGEST_REQUEST // (_smallest_size(schema, 0) + 1)


def excess(subject: str, cost: int, limit: int) -> str:
    """Return the sentence that says by how much a limit is exceeded."""
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{subject} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties,"
        " and maxLength where arrays, maps, and strings are declared)"
    )


def _bound(schema: Schema, keyword: str) -> int | None:
    bound = schema.raw.get(keyword)
    return None if bound is None else max(0, bound)


def _largest_size(schema: Schema | None) -> int:
    """Return how many bytes, items or entries a value can have; 1 for what has no size."""
    if schema is None:
        return 1
    if schema.int_or_string:
        return _LONGEST_TEXT
    if schema.type == "string":
        longest = _bound(schema, "maxLength")
        if longest is not None:
            return longest * _BYTES_PER_CHARACTER
        if schema.raw.get("enum"):
            return max(len(str(value)) for value in schema.raw["enum"])
        return _FORMATTED_LENGTHS.get(schema.format, _LONGEST_TEXT)
    if schema.type == "array":
        bound = _bound(schema, "maxItems")
        room = 1 + (_smallest_size(schema.items, 0) if schema.items else 0)
    elif schema.type == "object" and schema.additional is not None:
        bound = _bound(schema, "maxProperties")
        room = 6 + _smallest_size(
            schema.additional, 0
        )  # an entry also has a key in quotes, a colon and a comma
    else:
        return 1
    return _LONGEST_TEXT // room if bound is None else bound


def _smallest_size(schema: Schema, depth: int) -> int:
    """Return the length of the shortest JSON that a value of the schema can be written in."""
    if schema.type != "object" or depth > MAX_DEPTH:
        return _SMALLEST.get(schema.type, 1)
    size = 2
    for name in schema.required:
        field = schema.field(name)
        if field is not None and field.raw.get("default") is None:
            size += len(name) + 4 + _smallest_size(field, depth + 1)
    return size


def _tenth(size: int) -> int:
    return -(-size // 10)


class _Estimator:
    """Estimates one expression; `scopes` knows what each variable stands for."""

    def __init__(self, schema: Schema) -> None:
        this = Estimate(1, _largest_size(schema), schema)
        self.scopes: dict[str, Estimate] = {"self": this, "oldSelf": this}
        self.visitors: dict[type[Node], Callable[..., Estimate]] = {
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

    def visit(self, node: Node) -> Estimate:
        return self.visitors[type(node)](node)

    def _literal(self, node: Literal) -> Estimate:
        return Estimate(0, len(node.value) if isinstance(node.value, (str, bytes)) else 1)

    def _identifier(self, node: Identifier) -> Estimate:
        return self.scopes.get(node.name, Estimate(1))

    def _select(self, node: Select) -> Estimate:
        from kubewire.cel import unescape_name

        operand = self.visit(node.operand)
        if node.test:
            return Estimate(operand.cost + 1)
        field = operand.schema and operand.schema.child(unescape_name(node.field) or node.field)
        return Estimate(operand.cost + 1, _largest_size(field), field)

    def _index(self, node: Index) -> Estimate:
        operand, index = self.visit(node.operand), self.visit(node.index)
        item = operand.schema and (operand.schema.items or operand.schema.additional)
        return Estimate(operand.cost + index.cost + 1, _largest_size(item), item)

    def _logical(self, node: Logical) -> Estimate:
        return Estimate(sum(self.visit(operand).cost for operand in node.operands))

    def _conditional(self, node: Conditional) -> Estimate:
        condition, then, otherwise = map(self.visit, (node.condition, node.then, node.otherwise))
        cost = condition.cost + max(then.cost, otherwise.cost)
        return Estimate(cost, max(then.size, otherwise.size), then.schema or otherwise.schema)

    def _list(self, node: ListLiteral) -> Estimate:
        return Estimate(_LIST_COST + sum(self.visit(item).cost for item in node.items), len(node.items))

    def _map(self, node: MapLiteral) -> Estimate:
        parts = [self.visit(part).cost for entry in node.entries for part in entry]
        return Estimate(_MAP_COST + sum(parts), len(node.entries))

    def _call(self, node: Call) -> Estimate:
        operands = [self.visit(operand) for operand in node.operands]
        price = _PRICES.get(node.function)
        sizes = [operand.size for operand in operands]
        if node.function == "@in" and operands[1].schema is not None and operands[1].schema.type == "object":
            price = None  # a map is looked up, not walked
        own = price(*sizes) if price and len(sizes) >= _OPERANDS.get(node.function, 1) else 1
        size = _RESULT_SIZES[node.function](*sizes) if node.function in _RESULT_SIZES else 1
        return Estimate(sum(operand.cost for operand in operands) + own, size)

    def _comprehension(self, node: Comprehension) -> Estimate:
        over = self.visit(node.range)
        item = over.schema and over.schema.items
        outer = self.scopes
        self.scopes = {**outer, node.variable: Estimate(1, _largest_size(item), item)}
        inner = sum(self.visit(part).cost for part in (node.condition, node.result) if part is not None)
        self.scopes = outer
        step, at_the_end = _MACROS.get(node.macro, (0, 0))
        keeps_size = node.macro in {"map", "filter"}
        cost = over.cost + over.size * (step + inner) + at_the_end
        return Estimate(cost, over.size if keeps_size else 1, over.schema if node.macro == "filter" else None)


# What a macro adds to its own parts for each item (looking whether to go on, joining the results) and once.
_MACROS = {"all": (3, 1), "exists": (4, 1), "exists_one": (2, 2), "map": (12, 1), "filter": (13, 1)}


def _traversal(size: int, *_: int) -> int:
    return _tenth(size)


def _smaller(left: int, right: int) -> int:
    return max(1, _tenth(min(left, right)))


def _both(left: int, right: int = 0) -> int:
    return max(1, _tenth(left + right))


def _search(text: int, part: int, *_: int) -> int:
    return _tenth(text) * max(1, _tenth(part))


def _match(text: int, pattern: int, *_: int) -> int:
    return _tenth(text + 1) * max(1, -(-pattern // 4))


# The expression that tests a named format is taken to be this long, whichever it is.
_FORMAT_SIZE = 128

# By the sizes of the operands; everything else costs one.
_PRICES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _smaller),
    **dict.fromkeys(("_+_", "join"), _both),
    **dict.fromkeys(
        ("lowerAscii", "upperAscii", "trim", "split", "replace", "substring", "url", "quantity"), _traversal
    ),
    **dict.fromkeys(
        ("isURL", "isQuantity", "isIP", "isCIDR", "ip", "cidr", "isSorted", "sum", "min", "max"), _traversal
    ),
    **dict.fromkeys(("semver", "isSemver"), _traversal),
    "validate": lambda _, text: _tenth(text) * _FORMAT_SIZE // 4,
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _search),
    **dict.fromkeys(("matches", "find", "findAll"), _match),
    **dict.fromkeys(
        ("sets.contains", "sets.intersects", "sets.equivalent"), lambda left, right: max(1, left * right)
    ),
    "startsWith": lambda _, part: max(1, _tenth(part)),
    "endsWith": lambda _, part: max(1, _tenth(part)),
    "@in": lambda _, elements: max(1, elements),
}
# Fewer operands than this and a name means another function, such as the negation of a number.
_OPERANDS = {"_==_": 2, "contains": 2, "matches": 2, "find": 2, "findAll": 2, "indexOf": 2, "lastIndexOf": 2}
_RESULT_SIZES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim", "substring", "find"), lambda text, *_: text),
    "_+_": lambda left, right: left + right,
}
