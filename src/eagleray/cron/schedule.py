"""A schedule that was read, and the times at which it is due."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from eagleray.cron.wall import WallTimes
from eagleray.cron.zones import first_move, load_zone, offset_at

_YEARS_AHEAD = 5
# Between these two Python can show every instant in any zone, with room to look ahead.
_FIRST_SECOND = int(datetime(1, 1, 2, tzinfo=UTC).timestamp())
_LAST_YEAR = 9998

# No zone ever moved its clocks by more than a day, and none moved them twice within three days. So two
# instants no further apart than this have at most one move between them, and a move disturbs nothing further
# away.
_REACH = 2 * 24 * 60 * 60


class Schedule(ABC):
    """When something is due. Times come in with any time zone and go out in UTC, where comparing is safe."""

    __slots__ = ()

    @abstractmethod
    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly later than `after`, in whole seconds; None means never.

        Never is what matches nothing up to the end of the fifth year ahead, such as 30 February.
        """

    def times(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield every time later than `after` and not later than `until`, in order."""
        time = self.next(after)
        while time is not None and time <= until:
            yield time
            time = self.next(time)

    def last(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last time later than `after` and not later than `until`, if there is one.

        However many times lie between the two, a few dozen are looked at.
        """
        found = self.next(after)
        if found is None or found > until:
            return None
        empty = until  # nothing is due after this one and not later than `until`
        while True:
            later = self.next(found)
            if later is None or later > until:
                return found
            found = later
            middle = self.next(found + (empty - found) / 2)
            if middle is None or middle > until:
                empty = found + (empty - found) / 2
            else:
                found = middle


class Interval(Schedule):
    """Due a fixed number of seconds after the last time, whatever the clock on the wall shows."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def next(self, after: datetime) -> datetime | None:
        try:
            return _whole_second(after) + timedelta(seconds=self._seconds)
        except OverflowError:
            return None  # beyond the year 9999

    def last(self, after: datetime, until: datetime) -> datetime | None:
        start = _whole_second(after)
        periods = (until - start) // timedelta(seconds=self._seconds)
        return start + timedelta(seconds=periods * self._seconds) if periods > 0 else None


class Calendar(Schedule):
    """Due whenever the clock on the wall of a zone shows one of the named minutes.

    Minutes that the zone skips are never shown; those that it repeats are shown twice, and so are due twice.
    """

    __slots__ = ("_local", "_wall", "_zone", "_zone_name")

    def __init__(self, wall: WallTimes, zone_name: str | None, local: tzinfo | None) -> None:
        self._wall = wall
        self._zone_name = zone_name
        self._local = local
        self._zone: tzinfo | None = None

    def next(self, after: datetime) -> datetime | None:
        last = _whole_second(after)
        if last.year > _LAST_YEAR:
            return None
        if self._zone is None:
            self._zone = load_zone(self._zone_name, self._local)
        due = self._first_due(max(int(last.timestamp()) + 1, _FIRST_SECOND), self._zone)
        return None if due is None else datetime.fromtimestamp(due, UTC)

    def _first_due(self, instant: int, zone: tzinfo) -> int | None:
        """Return the first matching instant that is not earlier; instants are seconds since 1970 in UTC.

        While the zone's offset stays the same, the wall clock alone decides. So the search runs on the wall
        clock, looks whether the offset moves on the way to what it found, and if so goes on from that move.
        The middle of a long way is left out: a move there shifts the wall clock by less than the way to
        either end, so it shows nothing but times between the two, of which none matches.
        """
        last_year = min(datetime.fromtimestamp(instant, zone).year + _YEARS_AHEAD, _LAST_YEAR)
        while True:
            offset = offset_at(instant, zone)
            minute = self._wall.at_or_after(-(-(instant + offset) // 60), last_year)
            due = None if minute is None else minute * 60 - offset
            near = instant + _REACH if due is None else min(due, instant + _REACH)
            if offset_at(near, zone) != offset:
                instant = first_move(instant, near, zone)
            elif due is None or due == near:
                return due
            else:
                instant = max(near, due - _REACH)


def _whole_second(time: datetime) -> datetime:
    """Return the time in UTC without its fraction of a second."""
    if time.tzinfo is None:
        raise ValueError(f"{time.isoformat()} has no time zone, so it names no instant; give it one")
    return time.astimezone(UTC).replace(microsecond=0)
