"""One field of a schedule, such as `1-5` or `*/15`, as a set of numbers held in the bits of an int."""

from collections.abc import Mapping
from typing import NamedTuple

from eagleray.cron.errors import InvalidSchedule, quoted

_LARGEST = 2**63 - 1  # of Go's int


class Field(NamedTuple):
    """The numbers and names that one position of a schedule may hold."""

    name: str
    low: int
    high: int
    usage: str
    names: Mapping[str, int]

    def wrong(self, what: str, way_out: str = "") -> InvalidSchedule:
        return InvalidSchedule(f"{self.name}: {what}; {way_out or f'use {self.usage}'}")


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

FIELDS = (
    Field("minute", 0, 59, "0-59", {}),
    Field("hour", 0, 23, "0-23", {}),
    Field("day-of-month", 1, 31, "1-31", {}),
    Field("month", 1, 12, "1-12 or JAN-DEC", dict(zip(_MONTHS, range(1, 13), strict=True))),
    Field("day-of-week", 0, 6, "0-6 (Sunday is 0) or SUN-SAT", dict(zip(_WEEKDAYS, range(7), strict=True))),
)


class Numbers(NamedTuple):
    """The numbers that a field names: bit n of `bits` stands for n.

    `star` says that the field has an unstepped `*`, which decides how the two day fields are combined.
    """

    bits: int
    star: bool


def parse_field(text: str, field: Field) -> Numbers:
    """Return the numbers that a comma list names; empty entries, as in `1,,2`, name none."""
    bits = 0
    star = False
    for entry in text.split(","):
        if entry:
            numbers = _parse_entry(entry, field)
            bits |= numbers.bits
            star = star or numbers.star
    return Numbers(bits, star)


def _parse_entry(entry: str, field: Field) -> Numbers:
    """Return the numbers of one list entry: `*`, `n` or `a-b`, each with or without a `/step`."""
    span, *steps = entry.split("/")
    if len(steps) > 1:
        raise field.wrong(f"{quoted(entry)} has more than one /", "write a range and one step, as in 0-30/5")
    ends = span.split("-")
    star = ends[0] in ("*", "?")
    if star:
        # What follows the hyphen of `*-5` counts for nothing, as in robfig/cron.
        low, high = field.low, field.high
    elif len(ends) > 2:
        raise field.wrong(f"{quoted(entry)} has more than one -", "write a range as first-last")
    else:
        low = _number(ends[0], field)
        high = _number(ends[-1], field)
        if steps and len(ends) == 1:
            high = field.high
    step = _step(steps[0], entry, field) if steps else 1
    _check_span(low, high, field)
    bits = 0
    for number in range(low, high + 1, step):
        bits |= 1 << number
    return Numbers(bits, star and step == 1)


def _number(text: str, field: Field) -> int:
    number = field.names.get(text.lower())
    if number is None:
        number = _integer(text)
    if number is None:
        kind = "neither a number nor a name" if field.names else "not a number"
        raise field.wrong(f"{quoted(text)} is {kind}")
    return number


def _step(text: str, entry: str, field: Field) -> int:
    step = _integer(text)
    if step is None:
        raise field.wrong(f"the step {quoted(text)} of {quoted(entry)} is not a number", "use 1 or more")
    if step == 0:
        raise field.wrong(f"the step of {quoted(entry)} is 0", "use 1 or more")
    return step


def _integer(text: str) -> int | None:
    """Return the decimal number, which may carry a plus sign, or None when it is not one."""
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits)
    return number if number <= _LARGEST else None


def _check_span(low: int, high: int, field: Field) -> None:
    for number in (low, high):
        if number < field.low:
            raise field.wrong(f"{number} is below {field.low}")
        if number > field.high:
            raise field.wrong(f"{number} is above {field.high}")
    if low > high:
        wrapped = f"{low}-{field.high},{field.low}-{high}"
        raise field.wrong(f"the range {low}-{high} runs backwards", f"swap its ends or write {wrapped}")
