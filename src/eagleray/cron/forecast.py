"""The coming runs of a schedule for people: by the clock on their wall, with a word where that clock is set."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from eagleray.cron.parser import is_interval, parse
from eagleray.cron.zones import first_move, load_zone, offset_at

_DAY = 86_400
# Of the times that do not exist on a day so many are named; of more, their number.
_MOST_NAMED = 3


class Run(NamedTuple):
    """A coming run, by the wall clock of its zone; `note` says what is special about it."""

    at: datetime
    note: str = ""


class Gap(NamedTuple):
    """Times that the schedule names and no clock will show, between the runs around it."""

    note: str


def forecast(
    schedule: str, zone: str | None, after: datetime, count: int, *, local: tzinfo | None = None
) -> Iterator[Run | Gap]:
    """Yield the next `count` runs, fewer if there are no more, and what is left out between them.

    Raises what `parse` does.
    """
    parsed = parse(schedule, zone, local=local)
    wall = load_zone(zone, local)
    for _ in range(count):
        time = parsed.next(after)
        if time is None:
            return
        if not is_interval(schedule):
            yield from _gaps(schedule, wall, after, time)
        yield Run(time.astimezone(wall), "" if is_interval(schedule) else _repetition(time, wall))
        after = time


def _gaps(schedule: str, wall: tzinfo, start: datetime, end: datetime) -> Iterator[Gap]:
    """Yield what falls into the hours that the clock leaves out between two instants."""
    for instant in _moves(wall, int(start.timestamp()), int(end.timestamp())):
        before, after = offset_at(instant - 1, wall), offset_at(instant, wall)
        if after <= before:
            continue
        # A clock that nobody set would have shown these times.
        unset = timezone(timedelta(seconds=before))
        first = datetime.fromtimestamp(instant, UTC)
        last = first + timedelta(seconds=after - before - 1)
        times = list(parse(schedule, local=unset).times(first - timedelta(seconds=1), last))
        if times:
            yield Gap(_gap_note([time.astimezone(unset) for time in times], first, wall, unset))


def _gap_note(missing: list[datetime], move: datetime, wall: tzinfo, unset: tzinfo) -> str:
    named = ", ".join(f"{time:%H:%M}" for time in missing)
    what = named if len(missing) <= _MOST_NAMED else f"{len(missing)} times of the schedule"
    return (
        f"{missing[0]:%Y-%m-%d}: {what} left out, because the clock goes forward"
        f" from {move.astimezone(unset):%H:%M} to {move.astimezone(wall):%H:%M}"
    )


def _repetition(time: datetime, wall: tzinfo) -> str:
    """Say whether the clock shows the time of a run twice."""
    shown = time.astimezone(wall)
    if shown.replace(fold=0).utcoffset() == shown.replace(fold=1).utcoffset():
        return ""
    turn = "second" if shown.fold else "first"
    return f"the clock goes back and shows {shown:%H:%M} twice; this is the {turn} time, and both are run"


def _moves(wall: tzinfo, start: int, end: int) -> Iterator[int]:
    """Yield the instants after `start`, and not after `end`, at which the clock is set. None is set twice a day."""
    low = start
    while low < end:
        high = min(low + _DAY, end)
        if offset_at(low, wall) != offset_at(high, wall):
            yield first_move(low, high, wall)
        low = high
