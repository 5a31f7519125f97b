"""Lists: Kubernetes' functions over their elements, and the set functions."""

from collections.abc import Callable
from itertools import pairwise

from kubewire.cel.cost import LIST_COST, Run, deep_traversal, size_of
from kubewire.cel.equality import equal
from kubewire.cel.errors import EvaluationError, no_such_overload
from kubewire.cel.library import function, method
from kubewire.cel.operators import add_doubles, add_durations, add_ints, add_uints, less, less_or_equal
from kubewire.cel.values import Duration, UInt, Value

_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ADDITIONS: dict[type, Callable[[Value, Value], Value]] = {
    int: add_ints,
    UInt: add_uints,
    float: add_doubles,
    Duration: add_durations,
}
_ZEROS: dict[str, Value] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _in_order(ordered: Callable[[Value, Value], bool], one: Value, other: Value) -> bool:
    try:
        return ordered(one, other)
    except TypeError as different:  # elements of a dyn list that have no common order
        raise no_such_overload() from different


@method("isSorted", *(f"list({kind}) -> bool" for kind in _ORDERED), cost=deep_traversal)
def is_sorted(values: list[Value]) -> bool:
    return all(_in_order(less_or_equal, *pair) for pair in pairwise(values))


@method("min", *(f"list({kind}) -> {kind}" for kind in _ORDERED), cost=deep_traversal)
def smallest(values: list[Value]) -> Value:
    if not values:
        raise EvaluationError("min called on empty list")
    chosen = values[0]
    for value in values[1:]:
        if _in_order(less, value, chosen):
            chosen = value
    return chosen


@method("max", *(f"list({kind}) -> {kind}" for kind in _ORDERED), cost=deep_traversal)
def largest(values: list[Value]) -> Value:
    if not values:
        raise EvaluationError("max called on empty list")
    chosen = values[0]
    for value in values[1:]:
        if _in_order(less, chosen, value):
            chosen = value
    return chosen


def _declare_sum(kind: str, zero: Value) -> None:
    def total(values: list[Value]) -> Value:
        result = zero
        for position, value in enumerate(values):
            if type(value) is not type(result) and position > 0:
                raise no_such_overload()
            add = _ADDITIONS.get(type(value))
            if add is None:
                raise no_such_overload()
            # A dyn list shows the kind of its sum only with its first element.
            result = value if position == 0 else add(result, value)
        return result

    method("sum", f"list({kind}) -> {kind}", cost=deep_traversal)(total)


for _kind, _zero in _ZEROS.items():
    _declare_sum(_kind, _zero)


@method("indexOf", "list(A), A -> int", cost=deep_traversal, with_run=True)
def index_of(run: Run, values: list[Value], wanted: Value) -> int:
    return next((at for at, value in enumerate(values) if equal(run, value, wanted)), -1)


@method("lastIndexOf", "list(A), A -> int", cost=deep_traversal, with_run=True)
def last_index_of(run: Run, values: list[Value], wanted: Value) -> int:
    return next((at for at in reversed(range(len(values))) if equal(run, values[at], wanted)), -1)


def _pairs_price(one: list[Value], other: list[Value]) -> int:
    """The price of comparing each element of one list with each of the other."""
    return size_of(one) * size_of(other) + 1


@function("sets.contains", "list(A), list(A) -> bool", cost=_pairs_price, with_run=True)
def contains_all(run: Run, values: list[Value], wanted: list[Value]) -> bool:
    return all(_found(run, values, each) for each in wanted)


@function("sets.intersects", "list(A), list(A) -> bool", cost=_pairs_price, with_run=True)
def intersects(run: Run, one: list[Value], other: list[Value]) -> bool:
    return any(_found(run, other, each) for each in one)


@function(
    "sets.equivalent",
    "list(A), list(A) -> bool",
    cost=lambda *lists: 2 * _pairs_price(*lists) - 1,
    with_run=True,
)
def equivalent(run: Run, one: list[Value], other: list[Value]) -> bool:
    return contains_all(run, one, other) and contains_all(run, other, one)


def _found(run: Run, values: list[Value], wanted: Value) -> bool:
    return any(equal(run, value, wanted) for value in values)


@method(
    "slice",
    "list(A), int, int -> list(A)",
    cost=lambda _, start, end: LIST_COST + 1 + max(0, end - start),
    with_run=True,
)
def slice_of(run: Run, values: list[Value], start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    run.work(end - start)
    return values[start:end]
