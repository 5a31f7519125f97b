"""The minutes that five cron fields name on a wall clock that is never set: a calendar without time zones."""

from datetime import date, timedelta

from eagleray.cron.fields import Numbers

_MINUTES_PER_DAY = 24 * 60
_ORDINAL_OF_1970 = date(1970, 1, 1).toordinal()
_EVERY_SEVENTH_DAY = 0b10000001000000100000010000001


class WallTimes:
    """The minutes that the fields name, each the number of minutes since 1970-01-01 00:00 on the wall."""

    __slots__ = ("_days", "_either_day", "_hours", "_minutes", "_months", "_weekdays")

    def __init__(
        self, minutes: Numbers, hours: Numbers, days: Numbers, months: Numbers, weekdays: Numbers
    ) -> None:
        self._minutes = minutes.bits
        self._hours = hours.bits
        self._days = days.bits
        self._months = months.bits
        self._weekdays = weekdays.bits
        # Two restricted day fields add up, as they always did in cron: `0 0 1 * 1` is every first and every
        # Monday. One that is `*` leaves the choice to the other.
        self._either_day = not (days.star or weekdays.star)

    def at_or_after(self, minute: int, last_year: int) -> int | None:
        """Return the first named minute that is not earlier, or None when that year ends without one."""
        first_of_day = self._minute_of_day(0)
        if first_of_day is None:
            return None
        number, minute_of_day = divmod(minute, _MINUTES_PER_DAY)
        today = date.fromordinal(_ORDINAL_OF_1970 + number)
        day = self._day(today, last_year)
        if day == today:
            later_today = self._minute_of_day(minute_of_day)
            if later_today is not None:
                return number * _MINUTES_PER_DAY + later_today
            day = self._day(today + timedelta(days=1), last_year)
        if day is None:
            return None
        return (day.toordinal() - _ORDINAL_OF_1970) * _MINUTES_PER_DAY + first_of_day

    def _minute_of_day(self, earliest: int) -> int | None:
        earliest_hour, earliest_minute = divmod(earliest, 60)
        hour = _lowest(self._hours, earliest_hour)
        if hour == earliest_hour:
            minute = _lowest(self._minutes, earliest_minute)
            if minute is not None:
                return hour * 60 + minute
            hour = _lowest(self._hours, earliest_hour + 1)
        minute = _lowest(self._minutes, 0)
        return None if hour is None or minute is None else hour * 60 + minute

    def _day(self, earliest: date, last_year: int) -> date | None:
        """Return the first matching day that is not earlier, a month at a step."""
        year, month, day = earliest.year, earliest.month, earliest.day
        while year <= last_year:
            matching_month = _lowest(self._months, month)
            if matching_month is None:
                year, month, day = year + 1, 1, 1
                continue
            if matching_month != month:
                month, day = matching_month, 1
            matching_day = _lowest(self._days_of_month(year, month), day)
            if matching_day is not None:
                return date(year, month, matching_day)
            month, day = month + 1, 1
        return None

    def _days_of_month(self, year: int, month: int) -> int:
        """Return the matching days of a month, day n as bit n."""
        first = date(year, month, 1)
        length = (date(year + month // 12, month % 12 + 1, 1) - first).days
        every_day = (1 << length + 1) - 2
        # The week, turned so that it begins with the weekday of the first, repeats through the month.
        turn = first.isoweekday() % 7
        week = (self._weekdays >> turn | self._weekdays << 7 - turn) & 0b1111111
        on_weekdays = week * _EVERY_SEVENTH_DAY << 1
        days = self._days | on_weekdays if self._either_day else self._days & on_weekdays
        return days & every_day


def _lowest(bits: int, least: int) -> int | None:
    """Return the number of the lowest bit that is set, of those at `least` and above."""
    rest = bits >> least
    return least + (rest & -rest).bit_length() - 1 if rest else None
