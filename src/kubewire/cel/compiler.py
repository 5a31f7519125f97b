"""A checked tree into nested Python functions: each node becomes one function of the run, made once.

Cost follows Kubernetes' accounting. An attribute, that is a variable with everything selected from it, costs 1
plus 1 for each selection; where it is only looked through (a branch of a conditional, an index), the 1 is saved.
"""

from collections.abc import Callable

from kubewire.cel.access import index_code, select_code, test_code
from kubewire.cel.calls import call_code, folded
from kubewire.cel.comprehensions import comprehension_code
from kubewire.cel.cost import LIST_COST, MAP_COST, Run
from kubewire.cel.errors import EvaluationError, no_such_overload
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
from kubewire.cel.values import ABSENT, OptionalValue, TypeValue, Value

Code = Callable[[Run], Value]


def compiled(node: Node, *, looked_through: bool = False) -> Code:
    """Return the function that evaluates a node; `looked_through` saves the price of an attribute."""
    return _COMPILERS[type(node)](node, looked_through)


def constant_of(node: Node) -> Code | None:
    """Return code for a node that has the same value in every run, and so costs nothing."""
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, Identifier | Select) and node.type_name:
        return _constant(TypeValue(node.type_name))
    if isinstance(node, ListLiteral) and not node.optional:
        items = [constant_of(item) for item in node.items]
        if all(item is not None for item in items):
            return _constant([item(_NOWHERE) for item in items if item is not None])
    if isinstance(node, MapLiteral) and not node.optional:
        parts = [(constant_of(key), constant_of(value)) for key, value in node.entries]
        if all(key is not None and value is not None for key, value in parts):
            pairs = [(key(_NOWHERE), value(_NOWHERE)) for key, value in parts if key and value]
            return _constant(_map_of(pairs))
    if isinstance(node, Call) and len(node.operands) == 1 and (argument := constant_of(node.operands[0])):
        value = folded(node, argument(_NOWHERE))
        return None if value is ABSENT else _constant(value)
    return None


_NOWHERE = Run([], 0)


def _constant(value: Value) -> Code:
    return lambda _: value


def _literal(node: Literal, _: bool = False) -> Code:
    return _constant(node.value)


def _identifier(node: Identifier, looked_through: bool) -> Code:
    if constant := constant_of(node):
        return constant
    slot, price = node.slot, 0 if looked_through else 1

    def run_variable(run: Run) -> Value:
        run.cost += price
        return run.slots[slot]

    return run_variable


def _select(node: Select, looked_through: bool) -> Code:
    if constant := constant_of(node):
        return constant
    if node.test:
        attribute = isinstance(node.operand, Identifier | Select | Index | Conditional)
        return test_code(node, compiled(node.operand), price=0 if attribute else 1)
    operand = compiled(node.operand, looked_through=True)
    return select_code(node, operand, _price(node, looked_through))


def _price(node: Node, looked_through: bool) -> int:
    """Return the price of a selection: 1, and 1 for the attribute unless that is a conditional."""
    base = node
    while isinstance(base, Select | Index):
        base = base.operand
    return 1 if looked_through or isinstance(base, Conditional) else 2


def _index(node: Index, looked_through: bool) -> Code:
    operand = compiled(node.operand, looked_through=True)
    index = compiled(node.index, looked_through=True)
    return index_code(node, operand, index, _price(node, looked_through))


def _call(node: Call, _: bool) -> Code:
    if constant := constant_of(node):
        return constant
    return call_code(node, [compiled(operand) for operand in node.operands], constant_of)


def _logical(node: Logical, _: bool) -> Code:
    """Evaluate from the left until one operand decides; an error counts only if none does."""
    operands = [compiled(operand) for operand in node.operands]
    deciding = node.operator == "||"

    def run_logical(run: Run) -> Value:
        problem: EvaluationError | None = None
        for operand in operands:
            try:
                value = operand(run)
            except EvaluationError as error:
                problem = problem or error
                continue
            if value is deciding:
                return deciding
            if type(value) is not bool:
                problem = problem or no_such_overload()
        if problem is not None:
            raise problem
        return not deciding

    return run_logical


def _conditional(node: Conditional, _: bool) -> Code:
    condition = compiled(node.condition)
    then = compiled(node.then, looked_through=True)
    otherwise = compiled(node.otherwise, looked_through=True)

    def run_conditional(run: Run) -> Value:
        chosen = condition(run)
        if chosen is True:
            return then(run)
        if chosen is False:
            return otherwise(run)
        raise no_such_overload()

    return run_conditional


def _list(node: ListLiteral, _: bool) -> Code:
    if constant := constant_of(node):
        return constant
    items = [compiled(item) for item in node.items]
    if not node.optional:

        def run_list(run: Run) -> list[Value]:
            run.charge(LIST_COST)
            return [item(run) for item in items]

        return run_list
    optional = node.optional

    def run_optional_list(run: Run) -> list[Value]:
        run.charge(LIST_COST)
        values: list[Value] = []
        for position, item in enumerate(items):
            value = item(run)
            if position not in optional:
                values.append(value)
            elif _filled(value):
                values.append(value.value)
        return values

    return run_optional_list


def _map(node: MapLiteral, _: bool) -> Code:
    if constant := constant_of(node):
        return constant
    entries = [(compiled(key), compiled(value)) for key, value in node.entries]
    optional = node.optional

    def run_map(run: Run) -> dict[Value, Value]:
        run.charge(MAP_COST)
        pairs: list[tuple[Value, Value]] = []
        for position, (key_code, value_code) in enumerate(entries):
            key, value = key_code(run), value_code(run)
            if position not in optional:
                pairs.append((key, value))
            elif _filled(value):
                pairs.append((key, value.value))
        return _map_of(pairs)

    return run_map


def _filled(value: Value) -> bool:
    if not isinstance(value, OptionalValue):
        raise no_such_overload()
    return value.present


def _map_of(pairs: list[tuple[Value, Value]]) -> dict[Value, Value]:
    try:
        return dict(pairs)
    except TypeError as unhashable:
        raise EvaluationError("unsupported key type") from unhashable


def _comprehension(node: Comprehension, _: bool) -> Code:
    condition = None if node.condition is None else compiled(node.condition)
    # `p ? accumulated + [x] : accumulated` is what these macros stand for, so the element is not looked through.
    result = None if node.result is None else compiled(node.result)
    return comprehension_code(node, compiled(node.range), condition, result)


_COMPILERS: dict[type[Node], Callable[..., Code]] = {
    Literal: _literal,
    Identifier: _identifier,
    Select: _select,
    Index: _index,
    Call: _call,
    Logical: _logical,
    Conditional: _conditional,
    ListLiteral: _list,
    MapLiteral: _map,
    Comprehension: _comprehension,
}
