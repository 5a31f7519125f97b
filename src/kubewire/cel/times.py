"""Timestamps and durations as text, and the parts of a timestamp in a time zone."""

from kubewire.cel.errors import EvaluationError
from kubewire.cel.operators import checked_duration, checked_timestamp
from kubewire.cel.values import Duration, Timestamp

SECOND = 10**9
DAY = 86_400

_UNITS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND,
    "h": 3600 * SECOND,
}  # fmt: skip
_LONG_UNITS = {"d": DAY * SECOND, "w": 7 * DAY * SECOND}
_DIGITS = frozenset("0123456789")
_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def _conversion_error(target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to 'google.protobuf.{target}'")


def parse_duration(text: str) -> Duration:
    """Return the length of time that `1h30m` or `-1.5s` says."""
    return _parse_duration(text, _UNITS)


def parse_lenient_duration(text: str) -> Duration:
    """Return a duration as schemas accept it: also days and weeks, and spaces between number and unit."""
    return _parse_duration(text.replace(" ", ""), _UNITS | _LONG_UNITS)


def _parse_duration(text: str, units: dict[str, int]) -> Duration:
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    if not rest or len(rest) > 200:
        raise _conversion_error("Duration")
    total = 0
    while rest:
        whole = _leading_digits(rest)
        rest = rest[len(whole) :]
        fraction = ""
        if rest.startswith("."):
            fraction = _leading_digits(rest[1:])
            rest = rest[1 + len(fraction) :]
        unit = next((rest[:size] for size in (2, 1) if rest[:size] in units), None)
        if unit is None or not (whole or fraction):
            raise _conversion_error("Duration")
        rest = rest[len(unit) :]
        total += int(whole or "0") * units[unit]
        total += int(fraction or "0") * units[unit] // 10 ** len(fraction)
    return checked_duration(sign * total)


def _leading_digits(text: str) -> str:
    end = 0
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return text[:end]


def duration_text(duration: Duration) -> str:
    """Return a duration in seconds, as in `3723.004s`."""
    whole, rest = divmod(abs(duration), SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if duration < 0 else ''}{whole}{fraction}s"


def parse_date_or_time(text: str) -> Timestamp:
    """Return the point in time that a date or a date with a time of RFC 3339 names."""
    return parse_timestamp(f"{text}T00:00:00Z" if len(text) == 10 else text)


def parse_timestamp(text: str) -> Timestamp:
    """Return the point in time that `2011-08-18T19:03:37.01+01:00` names."""
    try:
        seconds = _seconds(text)
        fraction, offset = _fraction_and_offset(text[19:])
    except ValueError as bad:
        raise _conversion_error("Timestamp") from bad
    return checked_timestamp((seconds - offset) * SECOND + fraction, offset)


def _seconds(text: str) -> int:
    """Return the seconds since 1970 of the first 19 characters, taken as UTC."""
    shape = "".join("0" if character in _DIGITS else character for character in text[:19])
    if shape != "0000-00-00T00:00:00":
        raise ValueError(text)
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month)):
        raise ValueError(text)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    return _days_since_1970(year, month, day) * DAY + hour * 3600 + minute * 60 + second


def _fraction_and_offset(rest: str) -> tuple[int, int]:
    """Return the nanoseconds and the offset in seconds that follow the seconds of a timestamp."""
    nanoseconds = 0
    if rest.startswith((".", ",")):
        digits = _leading_digits(rest[1:])
        if not digits:
            raise ValueError(rest)
        nanoseconds = int(digits[:9].ljust(9, "0"))
        rest = rest[1 + len(digits) :]
    if rest == "Z":
        return nanoseconds, 0
    if len(rest) != 6 or rest[0] not in "+-":
        raise ValueError(rest)
    return nanoseconds, parse_offset(rest)


def parse_offset(text: str) -> int:
    """Return the seconds that `+01:00` or `01:00` is ahead of UTC; raises ValueError."""
    sign = -1 if text.startswith("-") else 1
    hours, colon, minutes = text.lstrip("+-").partition(":")
    if not (colon and len(hours) == len(minutes) == 2 and _DIGITS.issuperset(hours + minutes)):
        raise ValueError(text)
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(text)
    return sign * (int(hours) * 3600 + int(minutes) * 60)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if _is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_since_1970(year: int, month: int, day: int) -> int:
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400
    in_year = _BEFORE_MONTH[month - 1] + (1 if month > 2 and _is_leap(year) else 0) + day - 1
    return before * 365 + leap_days + in_year - 719_162


class Calendar:
    """A timestamp as a calendar and a clock in some time zone show it."""

    __slots__ = (
        "day_of_week",
        "day_of_year",
        "hour",
        "minute",
        "month",
        "month_day",
        "nanosecond",
        "second",
        "year",
    )

    def __init__(self, moment: Timestamp, offset: int = 0) -> None:
        seconds, self.nanosecond = divmod(moment.nanoseconds, SECOND)
        days, clock = divmod(seconds + offset, DAY)
        self.hour, clock = divmod(clock, 3600)
        self.minute, self.second = divmod(clock, 60)
        self.day_of_week = (days + 4) % 7  # 1970 began on a Thursday; Sunday is 0
        # A first guess from the mean length of a year is at most one year off.
        year = 1970 + days * 400 // 146_097
        while _days_since_1970(year, 1, 1) > days:
            year -= 1
        while _days_since_1970(year + 1, 1, 1) <= days:
            year += 1
        self.year = year
        self.day_of_year = days - _days_since_1970(year, 1, 1)
        self.month, self.month_day = 1, self.day_of_year + 1
        while self.month_day > _days_in(year, self.month):
            self.month_day -= _days_in(year, self.month)
            self.month += 1


def timestamp_text(moment: Timestamp) -> str:
    """Return a timestamp as RFC 3339 writes it, in the offset it was given in."""
    shown = Calendar(moment, moment.offset)
    fraction = f".{shown.nanosecond:09d}".rstrip("0") if shown.nanosecond else ""
    hours, minutes = divmod(abs(moment.offset) // 60, 60)
    zone = f"{'-' if moment.offset < 0 else '+'}{hours:02d}:{minutes:02d}" if moment.offset else "Z"
    date = f"{shown.year:04d}-{shown.month:02d}-{shown.month_day:02d}"
    return f"{date}T{shown.hour:02d}:{shown.minute:02d}:{shown.second:02d}{fraction}{zone}"


def zone_offset(moment: Timestamp, zone: str) -> int:
    """Return the seconds a zone is ahead of UTC at a moment; a zone is `+01:00` or a name such as `Europe/Rome`."""
    if not zone or zone in ("UTC", "Z"):
        return 0
    if ":" in zone:
        try:
            return parse_offset(zone)
        except ValueError as bad:
            raise EvaluationError(f"unknown time zone {zone}") from bad
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        there = ZoneInfo(zone)
    except (ValueError, ZoneInfoNotFoundError, OSError) as unknown:
        raise EvaluationError(f"unknown time zone {zone}") from unknown
    try:
        at = datetime.fromtimestamp(moment.nanoseconds // SECOND, UTC)
        offset = at.astimezone(there).utcoffset() or timedelta()
    except (OverflowError, ValueError) as out_of_range:
        raise EvaluationError("timestamp overflow") from out_of_range
    return int(offset.total_seconds())
