"""Fields, indexes and `has()`: reaching into objects, maps, lists and optionals."""

from collections.abc import Callable

from kubewire.cel.cost import Run
from kubewire.cel.errors import EvaluationError, no_such_key, no_such_overload
from kubewire.cel.reading import Reader, reader_of
from kubewire.cel.syntax import Index, Select
from kubewire.cel.types import DYN, CelType, ListType, MapType, ObjectType, is_optional
from kubewire.cel.values import ABSENT, NONE, OptionalValue, UInt, Value, type_name

Code = Callable[[Run], Value]
# Reaches into a container; answers ABSENT where there is nothing.
Find = Callable[[Run, Value, Value], Value]


def select_code(node: Select, operand: Code, price: int) -> Code:
    """Return code for `operand.field`."""
    within, through_optional = _within(node.operand.type)
    key = node.key
    if node.optional or through_optional:
        return _optional_code(_finder(within, key), operand, lambda _: key, price)
    if isinstance(within, ObjectType):
        return _field_code(operand, key, reader_of(within.field(key) or DYN), price)
    find = _finder(within, key)

    def run_select(run: Run) -> Value:
        run.cost += price
        value = find(run, operand(run), key)
        if value is ABSENT:
            raise no_such_key(key)
        return value

    return run_select


def _field_code(operand: Code, key: str, reader: Reader | None, price: int) -> Code:
    """Return code for a field of an object, the most frequent access of all; null counts as missing."""
    ready, convert = reader or (None, None)

    def run_field(run: Run) -> Value:
        run.cost += price
        container = operand(run)
        value = container.get(key) if type(container) is dict else None
        if value is None:
            raise no_such_key(key)
        if convert is None or type(value) is ready:
            return value
        return convert(run, value)

    return run_field


def test_code(node: Select, operand: Code, price: int) -> Code:
    """Return code for `has(operand.field)`."""
    within, through_optional = _within(node.operand.type)
    find, key = _finder(within, node.key), node.key

    def run_test(run: Run) -> bool:
        run.cost += price
        container = operand(run)
        if through_optional or type(container) is OptionalValue:
            container = container.value
        return container is not ABSENT and find(run, container, key) is not ABSENT

    return run_test


def index_code(node: Index, operand: Code, index: Code, price: int) -> Code:
    """Return code for `operand[index]`."""
    within, through_optional = _within(node.operand.type)
    find = _element_finder(within)
    if node.optional or through_optional:
        return _optional_code(find, operand, index, price)

    def run_index(run: Run) -> Value:
        run.cost += price
        container, key = operand(run), index(run)
        value = find(run, container, key)
        if value is ABSENT:
            raise missing(container, key)
        return value

    return run_index


def missing(container: Value, key: Value) -> EvaluationError:
    """Return the error for an index or key that is not there."""
    return EvaluationError(f"index out of bounds: {key}") if type(container) is list else no_such_key(key)


def _within(declared: CelType) -> tuple[CelType, bool]:
    return (declared.parameters[0], True) if is_optional(declared) else (declared, False)


def _optional_code(find: Find, operand: Code, key: Code, price: int) -> Code:
    """Return code for access that answers an optional; what is not there costs one less."""

    def run_optional(run: Run) -> Value:
        run.cost += price - 1
        container = operand(run)
        if type(container) is OptionalValue:
            if not container.present:
                return NONE
            container = container.value
        value = find(run, container, key(run))
        if value is ABSENT:
            return NONE
        run.cost += 1
        return OptionalValue(value)

    return run_optional


def _finder(within: CelType, key: str) -> Find:
    if isinstance(within, ObjectType):
        return _reading(_object_find, reader_of(within.field(key) or DYN))
    if isinstance(within, MapType):
        return _reading(_map_find, reader_of(within.value))
    return _dynamic_select


def _element_finder(within: CelType) -> Find:
    if isinstance(within, ListType):
        return _reading(_list_find, reader_of(within.element))
    if isinstance(within, MapType):
        return _reading(_map_find, reader_of(within.value))
    return _dynamic_find


def _reading(find: Find, reader: Reader | None) -> Find:
    """Return a finder whose values are read as their declared type; null stays null."""
    if reader is None:
        return find
    ready, convert = reader

    def find_and_read(run: Run, container: Value, key: Value) -> Value:
        value = find(run, container, key)
        if type(value) is ready or value is ABSENT or value is None:
            return value
        return convert(run, value)

    return find_and_read


def _object_find(_: Run, container: Value, key: Value) -> Value:
    value = container.get(key) if type(container) is dict else None
    return ABSENT if value is None else value


def _map_find(run: Run, container: Value, key: Value) -> Value:
    if type(container) is not dict:
        raise no_such_overload()
    try:
        value = container.get(key, ABSENT)
    except TypeError as unhashable:
        raise no_such_overload() from unhashable
    if value is not ABSENT and type(key) is not str and not has_key(run, container, key):
        return ABSENT
    return value


def has_key(run: Run, container: dict[Value, Value], key: Value) -> bool:
    """Tell whether a map has a key that is equal in CEL too: for Python, `true` and 1 are one key."""
    if type(key) is str:
        return key in container
    run.work(len(container))
    return any(own == key and (type(own) is bool) == (type(key) is bool) for own in container)


def _list_find(_: Run, container: Value, index: Value) -> Value:
    if type(container) is not list:
        raise no_such_overload()
    if type(index) is float and index.is_integer():
        index = int(index)
    if type(index) not in (int, UInt):
        raise EvaluationError(f"unsupported index type '{type_name(index)}' in list")
    return container[index] if 0 <= index < len(container) else ABSENT


def _dynamic_find(run: Run, container: Value, key: Value) -> Value:
    return (_list_find if type(container) is list else _map_find)(run, container, key)


def _dynamic_select(run: Run, container: Value, key: Value) -> Value:
    if type(container) is OptionalValue:
        container = container.value
    return _map_find(run, container, key) if type(container) is dict else ABSENT
