"""Calls: the overload that fits is chosen when the expression is compiled, or by the values where types are dyn."""

from collections.abc import Callable

from kubewire.cel.access import has_key
from kubewire.cel.cost import Run, smaller_traversal
from kubewire.cel.equality import concatenation_of, equal, equality_of
from kubewire.cel.errors import no_such_overload
from kubewire.cel.library import Overload
from kubewire.cel.syntax import Call, ListLiteral, Node
from kubewire.cel.types import BYTES, DYN, INT, STRING, CelType, ListType
from kubewire.cel.values import ABSENT, CLASSES, OptionalValue, UInt, Value, holds

Code = Callable[[Run], Value]
Constant = Callable[[Node], Code | None]

# Calls of these with a constant argument are made once, when the expression is compiled.
_CONVERSIONS = frozenset({
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
})  # fmt: skip
_MEMBERS = frozenset({bool, int, UInt, float, str, bytes})
_NUMBERS = frozenset({int, UInt, float})


def call_code(node: Call, operands: list[Code], constant: Constant) -> Code:
    """Return code for a call whose operands are compiled already."""
    special = _SPECIAL.get(node.function)
    if special is not None:
        return special(node, operands)
    if node.function == "@in":
        return _membership_code(node, operands, constant)
    if node.function == "_+_" and isinstance(node.type, ListType):
        return _concatenation_code(node, operands)
    dynamic = any(operand.type == DYN for operand in node.operands)
    if len(node.overloads) > 1 or dynamic:
        return _dispatched_code(node.overloads, operands)
    return _direct_code(node.overloads[0], operands)


def _direct_code(overload: Overload, operands: list[Code]) -> Code:
    """Return code for the one overload that the types allow."""
    implementation, price = overload.implementation, overload.price
    if len(operands) == 2 and price is None and not overload.with_run:
        left, right = operands
        classes = [CLASSES.get(parameter.name) for parameter in overload.parameters]
        if None not in classes:
            left_class, right_class = classes

            def run_operator(run: Run) -> Value:
                run.cost += 1
                one, other = left(run), right(run)
                if type(one) is left_class and type(other) is right_class:
                    return implementation(one, other)
                raise no_such_overload()

            return run_operator

    def run_call(run: Run) -> Value:
        values = [operand(run) for operand in operands]
        if not all(map(holds, values, overload.parameters)):  # null, where a value may be null
            raise no_such_overload()
        return _invoked(run, overload, values)

    return run_call


def _invoked(run: Run, overload: Overload, values: list[Value]) -> Value:
    run.charge(1 if overload.price is None else overload.price(*values))
    if overload.with_run:
        return overload.implementation(run, *values)
    return overload.implementation(*values)


def _dispatched_code(overloads: list[Overload], operands: list[Code]) -> Code:
    """Return code that lets the values choose among overloads."""

    def run_dispatched(run: Run) -> Value:
        values = [operand(run) for operand in operands]
        for overload in overloads:
            if all(map(holds, values, overload.parameters)):
                return _invoked(run, overload, values)
        raise no_such_overload()

    return run_dispatched


def folded(node: Call, value: Value) -> Value:
    """Return what a conversion makes of a constant, or ABSENT for other calls.

    EvaluationError means that the expression can never work.
    """
    if node.function in _CONVERSIONS and len(node.operands) == 1:
        for overload in node.overloads:
            if holds(value, overload.parameters[0]):
                return overload.implementation(value)
        raise no_such_overload()
    return ABSENT


def _equality_code(node: Call, operands: list[Code]) -> Code:
    left, right = operands
    types = node.arguments[0].type, node.arguments[1].type
    equality = equal if DYN in types else equality_of(types[0])
    wanted = node.function == "_==_"
    if types[0] in (STRING, BYTES) or types[0].parameters or equality is equal:

        def run_equality(run: Run) -> bool:
            one, other = left(run), right(run)
            run.charge(smaller_traversal(one, other))
            return equality(run, one, other) is wanted

        return run_equality

    def run_scalar_equality(run: Run) -> bool:
        run.cost += 1
        return equality(run, left(run), right(run)) is wanted

    return run_scalar_equality


def _membership_code(node: Call, operands: list[Code], constant: Constant) -> Code:
    """Return code for `in`; a list of literals becomes a set and costs nothing."""
    element, container = node.arguments
    needle, haystack = operands
    if isinstance(container, ListLiteral) and (literal := constant(container)):
        members = literal(Run([], 0))
        if not members:  # then nothing is looked for
            return lambda _: False
        if {type(member) for member in members} <= _MEMBERS:
            return _constant_membership_code(needle, members)
    dynamic = container.type == DYN
    of_texts = element.type == STRING and container.type == ListType(STRING)
    of_ints = element.type == INT and container.type == ListType(INT)
    equality = _member_equality(element.type, container.type)

    def run_membership(run: Run) -> bool:
        value, within = needle(run), haystack(run)
        if type(within) is list:
            run.charge(1 if dynamic else len(within))
            run.work(len(within))
            if of_texts or of_ints:
                return value in within
            return any(equality(run, item, value) for item in within)
        run.cost += 1
        if type(within) is not dict:
            raise no_such_overload()
        return has_key(run, within, value)

    return run_membership


def _member_equality(element: CelType, container: CelType) -> Callable[[Run, Value, Value], bool]:
    if isinstance(container, ListType) and DYN not in (element, container.element):
        return equality_of(container.element)
    return equal


def _constant_membership_code(needle: Code, members: list[Value]) -> Code:
    texts_and_flags = frozenset((type(member), member) for member in members)
    numbers = frozenset(member for member in members if type(member) in _NUMBERS)

    def run_constant_membership(run: Run) -> bool:
        value = needle(run)
        held = type(value)
        if held in _NUMBERS:
            return value in numbers
        return held in _MEMBERS and (held, value) in texts_and_flags

    return run_constant_membership


def _concatenation_code(node: Call, operands: list[Code]) -> Code:
    left, right = operands
    concatenate = concatenation_of(node.arguments[0].type)

    def run_concatenation(run: Run) -> list[Value]:
        run.cost += 1
        one, other = left(run), right(run)
        if type(one) is not list or type(other) is not list:
            raise no_such_overload()
        return concatenate(run, one, other)

    return run_concatenation


def _alternative_code(node: Call, operands: list[Code]) -> Code:
    """Return code for `or` and `orValue`, which evaluate their argument only when it is needed."""
    optional, alternative = operands
    unwraps = node.function == "orValue"

    def run_alternative(run: Run) -> Value:
        value = optional(run)
        if type(value) is not OptionalValue:
            raise no_such_overload()
        if not value.present:
            return alternative(run)
        return value.value if unwraps else value

    return run_alternative


_SPECIAL: dict[str, Callable[[Call, list[Code]], Code]] = {
    "_==_": _equality_code,
    "_!=_": _equality_code,
    "or": _alternative_code,
    "orValue": _alternative_code,
}
