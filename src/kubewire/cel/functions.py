"""The standard functions: size, conversions between types, and the parts of times."""

from collections.abc import Callable

from kubewire.cel.cost import traversal
from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function, method
from kubewire.cel.numbers import double_text
from kubewire.cel.operators import checked_int, checked_timestamp, checked_uint
from kubewire.cel.times import (
    SECOND,
    Calendar,
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
    zone_offset,
)
from kubewire.cel.values import Duration, Timestamp, TypeValue, UInt, Value, type_name

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


@function("size", "string -> int", "bytes -> int", "list(A) -> int", "map(A, B) -> int")
@method("size", "string -> int", "bytes -> int", "list(A) -> int", "map(A, B) -> int")
def size(value: Value) -> int:
    return len(value)


@function("type", "A -> type(A)")
def type_of(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


@function("dyn", "A -> dyn")
@function("bool", "bool -> bool")
@function("int", "int -> int")
@function("uint", "uint -> uint")
@function("double", "double -> double")
@function("string", "string -> string")
@function("bytes", "bytes -> bytes")
@function("timestamp", "timestamp -> timestamp")
@function("duration", "duration -> duration")
def unchanged(value: Value) -> Value:
    return value


def conversion_error(value: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'")


@function("bool", "string -> bool")
def bool_of_text(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise conversion_error(text, "bool")


def _whole_number(text: str, target: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 40):
        raise conversion_error(text, target)
    return int(text)


@function("int", "string -> int")
def int_of_text(text: str) -> int:
    try:
        return checked_int(_whole_number(text, "int"))
    except EvaluationError as problem:
        raise conversion_error(text, "int") from problem


@function("int", "double -> int")
def int_of_double(number: float) -> int:
    """Cut the fraction off; the ends of the range are out because a double cannot tell them from their neighbours."""
    if not -(2.0**63) < number < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(number)


@function("int", "uint -> int")
def int_of_uint(number: UInt) -> int:
    return checked_int(int(number))


@function("int", "timestamp -> int")
def int_of_timestamp(moment: Timestamp) -> int:
    return moment.nanoseconds // SECOND


@function("int", "duration -> int")
def int_of_duration(duration: Duration) -> int:
    return int(duration)


@function("uint", "int -> uint")
def uint_of_int(number: int) -> UInt:
    return checked_uint(number)


@function("uint", "double -> uint")
def uint_of_double(number: float) -> UInt:
    if not -1.0 < number < 2.0**64 or number < 0:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(number))


@function("uint", "string -> uint")
def uint_of_text(text: str) -> UInt:
    if text[:1] in ("-", "+"):
        raise conversion_error(text, "uint")
    try:
        return checked_uint(_whole_number(text, "uint"))
    except EvaluationError as problem:
        raise conversion_error(text, "uint") from problem


@function("double", "int -> double", "uint -> double")
def double_of_number(number: int) -> float:
    return float(number)


@function("double", "string -> double")
def double_of_text(text: str) -> float:
    # Python also reads blanks around a number and digits of other scripts, which Go does not.
    if not text.isascii() or text != text.strip():
        raise conversion_error(text, "double")
    try:
        number = float.fromhex(text) if "x" in text.lower() else float(text)
    except (ValueError, OverflowError) as bad:
        raise conversion_error(text, "double") from bad
    if number in (float("inf"), float("-inf")) and "inf" not in text.lower():
        raise conversion_error(text, "double")
    return number


@function("string", "bool -> string")
def text_of_bool(flag: bool) -> str:
    return "true" if flag else "false"


@function("string", "int -> string", "uint -> string")
def text_of_number(number: int) -> str:
    return int.__repr__(number)


@function("string", "double -> string")
def text_of_double(number: float) -> str:
    return double_text(number)


@function("string", "bytes -> string", cost=traversal)
def text_of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as bad:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from bad


@function("bytes", "string -> bytes", cost=traversal)
def bytes_of_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as bad:  # half of a surrogate pair, which JSON can smuggle in
        raise EvaluationError("invalid UTF-8 in string, cannot convert to bytes") from bad


function("string", "duration -> string")(duration_text)
function("string", "timestamp -> string")(timestamp_text)
function("duration", "string -> duration")(parse_duration)
function("timestamp", "string -> timestamp")(parse_timestamp)


@function("timestamp", "int -> timestamp")
def timestamp_of_int(seconds: int) -> Timestamp:
    return checked_timestamp(seconds * SECOND)


def _declare_part(name: str, part: Callable[[Calendar], int]) -> None:
    """Declare a method for a part of a timestamp, in UTC or in a zone that is given."""

    def in_utc(moment: Timestamp) -> int:
        return part(Calendar(moment))

    def in_zone(moment: Timestamp, zone: str) -> int:
        return part(Calendar(moment, zone_offset(moment, zone)))

    method(name, "timestamp -> int")(in_utc)
    method(name, "timestamp, string -> int")(in_zone)


_declare_part("getFullYear", lambda shown: shown.year)
_declare_part("getMonth", lambda shown: shown.month - 1)
_declare_part("getDate", lambda shown: shown.month_day)
_declare_part("getDayOfMonth", lambda shown: shown.month_day - 1)
_declare_part("getDayOfWeek", lambda shown: shown.day_of_week)
_declare_part("getDayOfYear", lambda shown: shown.day_of_year)
_declare_part("getHours", lambda shown: shown.hour)
_declare_part("getMinutes", lambda shown: shown.minute)
_declare_part("getSeconds", lambda shown: shown.second)
_declare_part("getMilliseconds", lambda shown: shown.nanosecond // 10**6)


def _declare_total(name: str, unit: int) -> None:
    """Declare a method for the whole units in a duration, counted towards zero."""

    def total(duration: Duration) -> int:
        count = abs(duration) // unit
        return -count if duration < 0 else count

    method(name, "duration -> int")(total)


_declare_total("getHours", 3600 * SECOND)
_declare_total("getMinutes", 60 * SECOND)
_declare_total("getSeconds", SECOND)


@method("getMilliseconds", "duration -> int")
def milliseconds_of(duration: Duration) -> int:
    """Return all of the duration in milliseconds, not only what is left after the seconds."""
    count = abs(duration) // 10**6
    return -count if duration < 0 else count
