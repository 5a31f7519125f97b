"""Arithmetic and order, with the overflow rules of 64-bit integers. Equality has a module of its own."""

from kubewire.cel.cost import Run, joint_traversal, smaller_traversal
from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function
from kubewire.cel.values import MAX_INT, MAX_UINT, MIN_INT, Duration, Timestamp, UInt, Value

_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", "string", "bytes", "timestamp", "duration")

MIN_TIMESTAMP = -62_135_596_800 * 10**9
MAX_TIMESTAMP = 253_402_300_800 * 10**9 - 1


def checked_int(number: int) -> int:
    if not MIN_INT <= number <= MAX_INT:
        raise EvaluationError("integer overflow")
    return number


def checked_uint(number: int) -> UInt:
    if not 0 <= number <= MAX_UINT:
        raise EvaluationError("unsigned integer overflow")
    return UInt(number)


def checked_duration(nanoseconds: int) -> Duration:
    if not MIN_INT <= nanoseconds <= MAX_INT:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def checked_timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    if not MIN_TIMESTAMP <= nanoseconds <= MAX_TIMESTAMP:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds, offset)


@function("_+_", "int, int -> int")
def add_ints(left: int, right: int) -> int:
    return checked_int(left + right)


@function("_-_", "int, int -> int")
def subtract_ints(left: int, right: int) -> int:
    return checked_int(left - right)


@function("_*_", "int, int -> int")
def multiply_ints(left: int, right: int) -> int:
    return checked_int(left * right)


@function("_/_", "int, int -> int")
def divide_ints(left: int, right: int) -> int:
    """Divide towards zero, where Python would round down."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


@function("_%_", "int, int -> int")
def remainder_of_ints(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend, where Python would take the divisor's."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == MIN_INT and right == -1:
        raise EvaluationError("integer overflow")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


@function("_+_", "uint, uint -> uint")
def add_uints(left: UInt, right: UInt) -> UInt:
    return checked_uint(left + right)


@function("_-_", "uint, uint -> uint")
def subtract_uints(left: UInt, right: UInt) -> UInt:
    return checked_uint(left - right)


@function("_*_", "uint, uint -> uint")
def multiply_uints(left: UInt, right: UInt) -> UInt:
    return checked_uint(left * right)


@function("_/_", "uint, uint -> uint")
def divide_uints(left: UInt, right: UInt) -> UInt:
    if right == 0:
        raise EvaluationError("division by zero")
    return UInt(left // right)


@function("_%_", "uint, uint -> uint")
def remainder_of_uints(left: UInt, right: UInt) -> UInt:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return UInt(left % right)


@function("_+_", "double, double -> double")
def add_doubles(left: float, right: float) -> float:
    return left + right


@function("_-_", "double, double -> double")
def subtract_doubles(left: float, right: float) -> float:
    return left - right


@function("_*_", "double, double -> double")
def multiply_doubles(left: float, right: float) -> float:
    return left * right


@function("_/_", "double, double -> double")
def divide_doubles(left: float, right: float) -> float:
    """Divide as IEEE 754 does: by zero there is an infinity, or no number at all."""
    if right:
        return left / right
    if left == 0 or left != left:  # only NaN differs from itself
        return float("nan")
    negative = (left < 0) != str(right).startswith("-")
    return float("-inf") if negative else float("inf")


@function("_+_", "string, string -> string", "bytes, bytes -> bytes", cost=joint_traversal)
def concatenate(left: Value, right: Value) -> Value:
    return left + right


@function("_+_", "list(A), list(A) -> list(A)", with_run=True)
def append_lists(run: Run, left: list[Value], right: list[Value]) -> list[Value]:
    """Join two lists; Kubernetes charges 1 for that whatever their size, the memory they take is our own affair."""
    run.work(len(left) + len(right))
    return left + right


@function("_+_", "duration, duration -> duration")
def add_durations(left: Duration, right: Duration) -> Duration:
    return checked_duration(left + right)


@function("_-_", "duration, duration -> duration")
def subtract_durations(left: Duration, right: Duration) -> Duration:
    return checked_duration(left - right)


@function("_+_", "timestamp, duration -> timestamp")
def later(moment: Timestamp, wait: Duration) -> Timestamp:
    return checked_timestamp(moment.nanoseconds + wait, moment.offset)


@function("_+_", "duration, timestamp -> timestamp")
def later_turned(wait: Duration, moment: Timestamp) -> Timestamp:
    return later(moment, wait)


@function("_-_", "timestamp, duration -> timestamp")
def earlier(moment: Timestamp, wait: Duration) -> Timestamp:
    return checked_timestamp(moment.nanoseconds - wait, moment.offset)


@function("_-_", "timestamp, timestamp -> duration")
def time_between(left: Timestamp, right: Timestamp) -> Duration:
    return checked_duration(left.nanoseconds - right.nanoseconds)


@function("-_", "int -> int")
def negate_int(number: int) -> int:
    return checked_int(-number)


@function("-_", "double -> double")
def negate_double(number: float) -> float:
    return -number


@function("!_", "bool -> bool")
def negate_bool(flag: bool) -> bool:
    return not flag


def _comparable(left: Value, right: Value) -> None:
    if left != left or right != right:  # only NaN differs from itself
        raise EvaluationError("NaN values cannot be ordered")


def less(left: Value, right: Value) -> bool:
    _comparable(left, right)
    return bool(left < right)


def less_or_equal(left: Value, right: Value) -> bool:
    _comparable(left, right)
    return bool(left <= right)


def greater(left: Value, right: Value) -> bool:
    return less(right, left)


def greater_or_equal(left: Value, right: Value) -> bool:
    return less_or_equal(right, left)


for _name, _implementation in (
    ("_<_", less),
    ("_<=_", less_or_equal),
    ("_>_", greater),
    ("_>=_", greater_or_equal),
):
    # Numbers of different kinds have one order: Python compares an int with a float exactly.
    _pairs = [(kind, kind) for kind in _ORDERED if kind not in ("string", "bytes")]
    _pairs += [(one, other) for one in _NUMBERS for other in _NUMBERS]
    function(_name, *(f"{one}, {other} -> bool" for one, other in _pairs))(_implementation)
    function(_name, "string, string -> bool", "bytes, bytes -> bool", cost=smaller_traversal)(_implementation)


def _compiled_elsewhere(*_: Value) -> Value:
    """Stand in for an operator whose meaning depends on the types of its operands; the compiler provides it."""
    raise AssertionError("the compiler provides this operator")  # pragma: no cover


function("_==_", "A, A -> bool")(_compiled_elsewhere)
function("_!=_", "A, A -> bool")(_compiled_elsewhere)
function("@in", "A, list(A) -> bool", "A, map(A, B) -> bool")(_compiled_elsewhere)
