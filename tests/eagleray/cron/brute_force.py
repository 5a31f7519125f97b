"""The slow and plain way to run a schedule: look at the wall clock every minute and ask whether it matches.

It shares nothing with the code under test, so that the two can be held against each other.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
NAMES = {
    name: str(number)
    for start, names in (
        (1, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
        (0, "SUN MON TUE WED THU FRI SAT"),
    )
    for number, name in enumerate(names.split(), start)
}


def times(
    schedule: str, zone: str, after: datetime, until: datetime, step: timedelta = timedelta(minutes=1)
) -> Iterator[datetime]:
    """Yield the whole minutes (or steps) after `after` and not after `until` whose local time matches."""
    place = ZoneInfo(zone)
    words = schedule.split()
    minutes, hours, days, months, weekdays = map(_numbers, words, BOUNDS)
    both = any(_has_star(word) for word in (words[2], words[4]))
    time = after.replace(second=0, microsecond=0)
    while time <= until:
        wall = time.astimezone(place)
        in_days, in_weekdays = wall.day in days, wall.isoweekday() % 7 in weekdays
        on_day = in_days and in_weekdays if both else in_days or in_weekdays
        if time > after and on_day and wall.month in months and wall.hour in hours and wall.minute in minutes:
            yield time.astimezone(UTC)
        time += step


def _numbers(text: str, bounds: tuple[int, int]) -> set[int]:
    low, high = bounds
    return {number for number in range(low, high + 1) if _field_matches(text, number, low, high)}


def _field_matches(text: str, value: int, low: int, high: int) -> bool:
    return any(_entry_matches(entry, value, low, high) for entry in text.split(","))


def _entry_matches(entry: str, value: int, low: int, high: int) -> bool:
    span, slash, step = entry.partition("/")
    if span == "*":
        first, last = low, high
    else:
        start, hyphen, end = span.partition("-")
        first = int(NAMES.get(start, start))
        last = int(NAMES.get(end, end)) if hyphen else high if slash else first
    return first <= value <= last and (value - first) % int(step or 1) == 0


def _has_star(text: str) -> bool:
    return bool({"*", "*/1"} & set(text.split(",")))
