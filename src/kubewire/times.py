"""Times and durations as the API writes them: `metav1.Time`, `metav1.MicroTime` and Go durations."""

from datetime import UTC, datetime, timedelta
from typing import Final

from kubewire.gotext import INT64_MAX

NANOSECOND: Final = 1
MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_UNITS: Final = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # the micro sign
    "\u03bcs": MICROSECOND,  # the Greek letter mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
# What the most negative duration amounts to; a positive one has to stay below.
_MOST: Final = INT64_MAX + 1
_DIGITS: Final = "0123456789"
_DIGIT: Final = frozenset(_DIGITS)
_SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"


class TimeError(ValueError):
    """A text that is no time; the message is Go's."""


class DurationError(ValueError):
    """A text that is no duration; the message is Go's."""


def parse_time(text: str) -> datetime:
    """Return the moment that an RFC 3339 time names, in UTC; of its fraction, microseconds are kept.

    What Go accepts is accepted, and `z` for `Z` as in RFC 3339. A leap second is refused, as Go does.
    """
    return _TimeReader(text, _SECONDS_LAYOUT).read(micro=False)


def parse_micro_time(text: str) -> datetime:
    """Return the moment that a `metav1.MicroTime` names, in UTC; it has exactly six decimals."""
    return _TimeReader(text, _MICRO_LAYOUT).read(micro=True)


def format_time(moment: datetime) -> str:
    """Return the moment in UTC and whole seconds, as `metav1.Time` is written: `2030-01-31T12:00:00Z`."""
    return f"{_utc(moment).isoformat(timespec='seconds')}Z"


def format_micro_time(moment: datetime) -> str:
    """Return the moment in UTC with six decimals, as `metav1.MicroTime` is written."""
    return f"{_utc(moment).isoformat(timespec='microseconds')}Z"


def parse_go_duration(text: str) -> int:
    """Return the nanoseconds of a Go duration such as `1h2m3.5s`, `-5m` or `300ms`."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    if not unsigned:
        raise DurationError(f"time: invalid duration {_quote(text)}")
    total = 0
    rest = unsigned
    while rest:
        nanoseconds, rest = _duration_part(rest, text)
        total += nanoseconds
        if total > _MOST:
            raise DurationError(f"time: invalid duration {_quote(text)}")
    if text[0] == "-":
        return -total
    if total == _MOST:
        raise DurationError(f"time: invalid duration {_quote(text)}")
    return total


def format_go_duration(nanoseconds: int) -> str:
    """Return the duration as Go prints it: `1h2m3.5s`, `300ms`, `0s`."""
    sign = "-" if nanoseconds < 0 else ""
    amount = abs(nanoseconds)
    if amount == 0:
        return "0s"
    if amount < MICROSECOND:
        return f"{sign}{amount}ns"
    if amount < MILLISECOND:
        return f"{sign}{_decimal(amount, MICROSECOND)}\u00b5s"
    if amount < SECOND:
        return f"{sign}{_decimal(amount, MILLISECOND)}ms"
    minutes, rest = divmod(amount, MINUTE)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


class _TimeReader:
    """Reads a time from left to right, as Go's `time.Parse` does, so that errors name the same place."""

    __slots__ = ("_layout", "_rest", "_text")

    def __init__(self, text: str, layout: str) -> None:
        self._text = text
        self._rest = text
        self._layout = layout

    def read(self, *, micro: bool) -> datetime:
        year = self._number("2006", 4)
        self._literal("-")
        month = self._number("01", 2)
        if not 1 <= month <= 12:
            raise self._out_of_range("month")
        self._literal("-")
        day = self._number("02", 2)
        self._literal("T")
        hour = self._hour()
        self._literal(":")
        minute = self._number("04", 2)
        if minute > 59:
            raise self._out_of_range("minute")
        self._literal(":")
        second = self._number("05", 2)
        if second > 59:
            raise self._out_of_range("second")
        microsecond = self._six_decimals() if micro else self._fraction()
        offset = self._offset()
        if self._rest:
            raise TimeError(f"parsing time {_quote(self._text)}: extra text: {_quote(self._rest)}")
        try:
            moment = datetime(year, month, day, hour, minute, second, microsecond, UTC)
        except ValueError as error:  # all but day and year were checked above
            raise self._out_of_range("day" if year else "year") from error
        try:
            return moment - offset
        except OverflowError as error:
            raise self._out_of_range("year") from error

    def _number(self, element: str, width: int) -> int:
        digits = self._rest[:width]
        if len(digits) < width or digits.strip(_DIGITS):
            raise self._unexpected(element)
        self._rest = self._rest[width:]
        return int(digits)

    def _literal(self, character: str) -> None:
        if self._rest[:1].upper() != character:
            raise self._unexpected(character)
        self._rest = self._rest[1:]

    def _hour(self) -> int:
        # The one number that Go takes with a single digit, too.
        one_digit = self._rest[:1] in _DIGIT and self._rest[1:2] not in _DIGIT
        hour = self._number("15", 1 if one_digit else 2)
        if hour > 23:
            raise self._out_of_range("hour")
        return hour

    def _fraction(self) -> int:
        """Read the decimals that may follow the seconds, any number of them."""
        if self._rest[:1] not in (".", ",") or self._rest[1:2] not in _DIGIT:
            return 0
        after = self._rest[1:].lstrip(_DIGITS)
        digits = self._rest[1 : len(self._rest) - len(after)]
        self._rest = after
        return int(digits[:6].ljust(6, "0"))

    def _six_decimals(self) -> int:
        digits = self._rest[1:7]
        if self._rest[:1] not in (".", ",") or len(digits) < 6 or digits.strip(_DIGITS):
            raise self._unexpected(".000000")
        self._rest = self._rest[7:]
        return int(digits)

    def _offset(self) -> timedelta:
        if self._rest[:1] in ("Z", "z"):
            self._rest = self._rest[1:]
            return timedelta()
        sign, hours, colon, minutes = self._rest[:1], self._rest[1:3], self._rest[3:4], self._rest[4:6]
        digits = hours + minutes
        if sign not in ("+", "-") or colon != ":" or len(digits) != 4 or digits.strip(_DIGITS):
            raise self._unexpected("Z07:00")
        # Go lets 24 hours and 60 minutes pass, since some people write them.
        if int(minutes) > 60:
            raise self._out_of_range("time zone offset minute")
        if int(hours) > 24:
            raise self._out_of_range("time zone offset hour")
        self._rest = self._rest[6:]
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return -offset if sign == "-" else offset

    def _unexpected(self, element: str) -> TimeError:
        found = f"cannot parse {_quote(self._rest)} as {_quote(element)}"
        return TimeError(f"parsing time {_quote(self._text)} as {_quote(self._layout)}: {found}")

    def _out_of_range(self, what: str) -> TimeError:
        return TimeError(f"parsing time {_quote(self._text)}: {what} out of range")


def _duration_part(rest: str, text: str) -> tuple[int, str]:
    """Read one number with its unit from the text; return its nanoseconds and what follows."""
    after_whole = rest.lstrip(_DIGITS)
    whole = rest[: len(rest) - len(after_whole)]
    fraction = ""
    after_number = after_whole
    if after_whole.startswith("."):
        after_number = after_whole[1:].lstrip(_DIGITS)
        fraction = after_whole[1 : len(after_whole) - len(after_number)]
    digits = whole.lstrip("0") or "0"
    if not (whole or fraction) or len(digits) > 19 or int(digits) > _MOST:
        raise DurationError(f"time: invalid duration {_quote(text)}")

    end = next((at for at, character in enumerate(after_number) if character in ".0123456789"), None)
    unit = after_number[:end]
    if not unit:
        raise DurationError(f"time: missing unit in duration {_quote(text)}")
    if unit not in _UNITS:
        raise DurationError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
    nanoseconds = int(digits) * _UNITS[unit] + _part_of(_UNITS[unit], fraction)
    return nanoseconds, after_number[len(unit) :]


def _part_of(unit: int, fraction: str) -> int:
    """Return what the decimals of a number make of its unit.

    Go computes this with floating point and stops reading digits before its integer overflows;
    anything else would differ in the last nanosecond.
    """
    number, scale = 0, 1.0
    for digit in fraction:
        if number > INT64_MAX // 10 or number * 10 + int(digit) > _MOST:
            break
        number = number * 10 + int(digit)
        scale *= 10
    return int(number * (unit / scale))


def _decimal(amount: int, unit: int) -> str:
    """Return amount/unit in decimals without trailing zeros; the unit is a power of ten."""
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest + unit}".replace(".1", ".", 1).rstrip("0")


def _utc(moment: datetime) -> datetime:
    """Return the moment in UTC, with no time zone attached any more."""
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone is ambiguous: datetime(…, tzinfo=UTC)")
    return moment.astimezone(UTC).replace(tzinfo=None)


def _quote(text: str) -> str:
    """Return the text in quotes as Go's time package prints it: all but ASCII as escaped bytes."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "\x7f":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
