"""Values without fields: text, numbers, times, quantities, bytes."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kubewire.gotypes.problems import DecodeError, Mismatch
from kubewire.quantity import Quantity, QuantityError
from kubewire.times import TimeError, format_micro_time, format_time, parse_micro_time, parse_time

ReadScalar = Callable[[Any], object]

_LARGEST_PLAIN_FLOAT = 10.0**21  # from here on Go writes an exponent


def text_reader(go_type: str) -> ReadScalar:
    def read(value: object) -> object:
        if isinstance(value, str):
            return value
        raise Mismatch(value, go_type, "string")

    return read


def bool_reader(go_type: str) -> ReadScalar:
    def read(value: object) -> object:
        if isinstance(value, bool):
            return value
        raise Mismatch(value, go_type, "bool")

    return read


def integer_reader(go_type: str, bits: int, shape: str = "", *, signed: bool = True) -> ReadScalar:
    """Return the reader of integers of a size. A number with a point or exponent is none, even if it is whole."""
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def read(value: object) -> object:
        if value.__class__ is int and least <= value <= most:
            return value
        raise Mismatch(value, go_type, shape, shows_number=True)

    return read


def float_reader(go_type: str) -> ReadScalar:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Mismatch(value, go_type, "float64")
        try:
            number = float(value)
        except OverflowError:
            raise Mismatch(value, go_type, "float64", shows_number=True) from None
        return int(number) if number.is_integer() and abs(number) < _LARGEST_PLAIN_FLOAT else number

    return read


def int_or_text(value: object) -> object:
    return value if isinstance(value, str) else _INT32(value)


def quantity(value: object) -> object:
    """Return a quantity in its canonical form."""
    try:
        return _canonical(value) if isinstance(value, str) else str(Quantity.of(value))
    except QuantityError as bad:
        raise DecodeError(str(bad)) from None


# The same few quantities are in most objects.
@lru_cache(maxsize=1024)
def _canonical(text: str) -> str:
    return str(Quantity.of(text))


def time(value: object) -> object:
    """Return a time in UTC and whole seconds; Go's zero time is null."""
    return _moment(value, 20, parse_time, format_time)


def micro_time(value: object) -> object:
    """Return a time in UTC with six decimals; Go's zero time is null."""
    return _moment(value, 27, parse_micro_time, format_micro_time)


_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def _moment(
    value: object, length: int, parse: Callable[[str], datetime], write: Callable[[datetime], str]
) -> object:
    if not isinstance(value, str):
        raise Mismatch(value, "string")
    if len(value) == length and value[0] != "0" and _is_canonical(value, write):
        return value
    try:
        moment = parse(value)
    except TimeError as bad:
        raise DecodeError(str(bad)) from None
    return None if moment == _ZERO_TIME else write(moment)


def _is_canonical(text: str, write: Callable[[datetime], str]) -> bool:
    """Tell quickly whether a text is a time as Go writes it; a no is only a perhaps."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is UTC and write(moment) == text


def base64_reader(go_type: str) -> ReadScalar:
    """Return the reader of bytes: base64 text, or as Go allows for any list, the numbers themselves."""
    byte = integer_reader("uint8", 8, signed=False)

    def read(value: object) -> object:
        if isinstance(value, list):
            numbers = [0 if item is None else byte(item) for item in value]
            return b2a_base64(bytes(numbers), newline=False).decode()  # type: ignore[arg-type]  # they are integers
        if not isinstance(value, str):
            raise Mismatch(value, go_type, "slice")
        wrong = _wrong_base64(value)
        if wrong is not None:
            message = f"illegal base64 data at input byte {wrong}"
            raise DecodeError(message, f"error decoding from json: {message}")
        return b2a_base64(a2b_base64(value), newline=False).decode()

    return read


def _wrong_base64(text: str) -> int | None:
    """Return where Go's decoder, which skips line ends, gives up on a text; None if it does not."""
    raw = text.encode("utf-8", "surrogatepass")
    body = raw.lstrip(_BASE64)
    at = len(raw) - len(body)
    begun = (at - raw.count(b"\n", 0, at) - raw.count(b"\r", 0, at)) % 4
    if not body:
        return at - begun if begun else None
    if not body.startswith(b"=") or begun < 2:
        return at
    rest = body[1:].lstrip(b"\r\n")
    if begun == 2:
        if not rest:
            return len(raw)
        if not rest.startswith(b"="):
            return len(raw) - len(rest) - 1
        rest = rest[1:].lstrip(b"\r\n")
    return len(raw) - len(rest) if rest else None


_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n"


_INT32 = integer_reader("int32", 32)
