"""Quantities: `quantity('1.5Gi').isLessThan(quantity('2Gi'))`."""

from kubewire.cel.cost import traversal
from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function, method
from kubewire.cel.types import QUANTITY
from kubewire.cel.values import MAX_INT, MIN_INT, held_by
from kubewire.quantity import Quantity, QuantityError

_ONE = 10**9

held_by(QUANTITY, Quantity)


@function("quantity", "string -> quantity", cost=traversal)
def quantity_of(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as bad:
        raise EvaluationError(str(bad)) from bad


@function("isQuantity", "string -> bool", cost=traversal)
def is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


@function("sign", "quantity -> int")
@method("sign", "quantity -> int")
def sign(quantity: Quantity) -> int:
    return (quantity.nano > 0) - (quantity.nano < 0)


@method("isGreaterThan", "quantity, quantity -> bool")
def is_greater(one: Quantity, other: Quantity) -> bool:
    return one > other


@method("isLessThan", "quantity, quantity -> bool")
def is_less(one: Quantity, other: Quantity) -> bool:
    return one < other


@method("compareTo", "quantity, quantity -> int")
def compare(one: Quantity, other: Quantity) -> int:
    return (one > other) - (one < other)


@method("asApproximateFloat", "quantity -> double")
def as_float(quantity: Quantity) -> float:
    return float(quantity)


@method("isInteger", "quantity -> bool")
def is_integer(quantity: Quantity) -> bool:
    return quantity.nano % _ONE == 0 and MIN_INT <= quantity.nano // _ONE <= MAX_INT


@method("asInteger", "quantity -> int")
def as_integer(quantity: Quantity) -> int:
    if not is_integer(quantity):
        raise EvaluationError("cannot convert value to integer")
    return quantity.nano // _ONE


@method("add", "quantity, quantity -> quantity")
def add(one: Quantity, other: Quantity) -> Quantity:
    return one + other


@method("add", "quantity, int -> quantity")
def add_int(one: Quantity, other: int) -> Quantity:
    return one + Quantity(other * _ONE, "DecimalExponent")


@method("sub", "quantity, quantity -> quantity")
def subtract(one: Quantity, other: Quantity) -> Quantity:
    return one - other


@method("sub", "quantity, int -> quantity")
def subtract_int(one: Quantity, other: int) -> Quantity:
    return one - Quantity(other * _ONE, "DecimalExponent")
