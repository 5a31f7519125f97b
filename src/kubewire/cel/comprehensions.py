"""The macros that walk a list or the keys of a map: all, exists, exists_one, filter, map; and those of optionals.

Each is a loop of its own. The constants are what the loop costs in Kubernetes, where a macro is an accumulator
with a loop condition, a step and a result.
"""

from collections.abc import Callable, Iterable

from kubewire.cel.cost import LIST_COST, Run
from kubewire.cel.errors import EvaluationError, no_such_overload
from kubewire.cel.reading import reader_of
from kubewire.cel.syntax import Comprehension
from kubewire.cel.types import CelType, ListType
from kubewire.cel.values import NONE, OptionalValue, Value

Code = Callable[[Run], Value]
Elements = Callable[[Run], Iterable[Value]]

_CHECK_ALL = 2  # @not_strictly_false(accumulated)
_CHECK_EXISTS = 3  # @not_strictly_false(!accumulated)
_ACCUMULATED = 1  # the accumulator as an operand or as the result
_COUNT = 2  # accumulated + 1, and in the end accumulated == 1
_APPEND = LIST_COST + 2  # accumulated + [element], without the element


def comprehension_code(node: Comprehension, over: Code, condition: Code | None, result: Code | None) -> Code:
    """Return code for a macro whose parts are compiled already."""
    if node.macro in ("optMap", "optFlatMap"):
        assert result is not None
        return _optional_code(node.slot, over, result, wraps=node.macro == "optMap")
    elements = _elements_code(over, node.range.type)
    if node.macro == "map":
        assert result is not None
        return _map_code(node.slot, elements, condition, result)
    assert condition is not None
    return _MACROS[node.macro](node.slot, elements, condition)


def _elements_code(over: Code, declared: CelType) -> Elements:
    reader = reader_of(declared.element) if isinstance(declared, ListType) else None

    def run_elements(run: Run) -> Iterable[Value]:
        values = over(run)
        if type(values) is not list:
            if type(values) is not dict:
                raise no_such_overload()
            return list(values)
        if reader is None:
            return values
        ready, convert = reader
        return (value if type(value) is ready else convert(run, value) for value in values)

    return run_elements


def _decides_code(slot: int, elements: Elements, condition: Code, *, deciding: bool, check: int) -> Code:
    """Return code that ends at the first element that decides; an error counts only if none does."""

    def run_decides(run: Run) -> bool:
        problem: EvaluationError | None = None
        decided = False
        for element in elements(run):
            run.charge(check)
            if decided:
                break
            run.slots[slot] = element
            run.cost += _ACCUMULATED
            try:
                value = condition(run)
            except EvaluationError as error:
                problem = problem or error
                continue
            if value is deciding:
                decided = True
            elif type(value) is not bool:
                problem = problem or no_such_overload()
        run.cost += _ACCUMULATED
        if problem is not None and not decided:
            raise problem
        return decided is deciding

    return run_decides


def _all_code(slot: int, elements: Elements, condition: Code) -> Code:
    return _decides_code(slot, elements, condition, deciding=False, check=_CHECK_ALL)


def _exists_code(slot: int, elements: Elements, condition: Code) -> Code:
    return _decides_code(slot, elements, condition, deciding=True, check=_CHECK_EXISTS)


def _holds(run: Run, condition: Code) -> bool:
    value = condition(run)
    if type(value) is not bool:
        raise no_such_overload()
    return value


def _exists_one_code(slot: int, elements: Elements, condition: Code) -> Code:
    def run_exists_one(run: Run) -> bool:
        count = 0
        for element in elements(run):
            run.slots[slot] = element
            run.charge(0)
            if _holds(run, condition):
                run.cost += _COUNT
                count += 1
        run.cost += _COUNT
        return count == 1

    return run_exists_one


def _filter_code(slot: int, elements: Elements, condition: Code) -> Code:
    def run_filter(run: Run) -> list[Value]:
        kept: list[Value] = []
        for element in elements(run):
            run.slots[slot] = element
            run.charge(0)
            if _holds(run, condition):
                run.charge(_APPEND + 1)
                kept.append(element)
        run.cost += _ACCUMULATED
        return kept

    return run_filter


def _map_code(slot: int, elements: Elements, condition: Code | None, result: Code) -> Code:
    def run_map(run: Run) -> list[Value]:
        mapped: list[Value] = []
        for element in elements(run):
            run.slots[slot] = element
            run.charge(0)
            if condition is None or _holds(run, condition):
                run.charge(_APPEND)
                mapped.append(result(run))
        run.cost += _ACCUMULATED
        return mapped

    return run_map


def _optional_code(slot: int, over: Code, result: Code, *, wraps: bool) -> Code:
    """Return code for `optMap` and `optFlatMap`; the optional is charged twice, since Kubernetes looks twice."""

    def run_optional(run: Run) -> Value:
        before = run.cost
        value = over(run)
        if type(value) is not OptionalValue:
            raise no_such_overload()
        price = run.cost - before
        if not value.present:
            run.cost += 2  # hasValue() and optional.none()
            return NONE
        run.charge(price + (3 if wraps else 2))  # hasValue(), value() and optional.of()
        run.slots[slot] = value.value
        mapped = result(run)
        return OptionalValue(mapped) if wraps else mapped

    return run_optional


_MACROS: dict[str, Callable[[int, Elements, Code], Code]] = {
    "all": _all_code,
    "exists": _exists_code,
    "exists_one": _exists_one_code,
    "filter": _filter_code,
}
