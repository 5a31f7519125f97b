"""When schedules are due: the next time, all times of a span, and never."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from eagleray.cron import parse


def at(text):
    return datetime.fromisoformat(text)


@pytest.mark.case("CJ-22")
def test_nine_in_taipei_is_one_in_utc():
    assert parse("0 9 * * *", "Asia/Taipei").next(at("2024-01-01T00:00:00Z")) == at("2024-01-01T01:00:00Z")


@pytest.mark.case("CJ-27")
def test_hourly_is_on_the_hour():
    assert parse("@hourly", "UTC").next(at("2024-01-01T10:20:00Z")) == at("2024-01-01T11:00:00Z")


@pytest.mark.case("CJ-27")
def test_every_counts_from_the_start():
    every = parse("@every 90s")
    start = at("2024-01-01T10:20:07Z")
    assert list(every.times(start, start + timedelta(seconds=180))) == [
        start + timedelta(seconds=90),
        start + timedelta(seconds=180),
    ]


@pytest.mark.case("CJ-28")
@pytest.mark.parametrize(
    ("schedule", "days"),
    [
        pytest.param("0 0 1 * 1", [1, 5, 12, 19, 26], id="the first and Mondays"),
        pytest.param("0 0 1 * *", [1], id="only the first"),
    ],
)
def test_two_restricted_day_fields_add_up(schedule, days):
    february = parse(schedule, "UTC").times(at("2024-01-31T12:00:00Z"), at("2024-02-29T23:59:59Z"))
    assert [time.day for time in february] == days


def test_times_are_later_than_the_start_and_not_later_than_the_end():
    minutes = parse("*/5 * * * *", "UTC")
    times = minutes.times(at("2024-01-01T00:05:00Z"), at("2024-01-01T00:15:00Z"))
    assert [time.minute for time in times] == [10, 15]


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "@every 5m"])
def test_times_come_out_in_utc_whatever_zone_went_in(schedule):
    after = at("2024-06-01T12:00:00.25+05:30")
    time = parse(schedule, "America/New_York").next(after)
    assert time == at("2024-06-01T06:35:00Z")
    assert time.tzinfo is UTC


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "@every 5m"])
def test_a_time_without_a_zone_is_refused(schedule):
    with pytest.raises(ValueError, match=r"2024-01-01T00:00:00 has no time zone"):
        parse(schedule).next(datetime(2024, 1, 1))  # noqa: DTZ001 - the mistake under test


@pytest.mark.parametrize("zone", [None, "Local"])
def test_without_a_zone_the_clock_is_the_local_one(zone):
    local = timezone(timedelta(hours=-3))
    assert parse("0 9 * * *", zone, local=local).next(at("2024-01-01T00:00:00Z")) == at(
        "2024-01-01T12:00:00Z"
    )


def test_a_named_zone_wins_over_the_local_one():
    local = timezone(timedelta(hours=-3))
    assert parse("0 9 * * *", "UTC", local=local).next(at("2024-01-01T00:00:00Z")) == at(
        "2024-01-01T09:00:00Z"
    )


@pytest.mark.parametrize(
    ("schedule", "after"),
    [
        pytest.param("0 0 30 2 *", "2024-01-01T00:00:00Z", id="30 February"),
        pytest.param("0 0 29 2 *", "2096-03-01T00:00:00Z", id="a leap day eight years ahead"),
        pytest.param("* * * * *", "9999-12-31T23:59:59Z", id="beyond the end of all dates"),
        pytest.param("@every 1h", "9999-12-31T23:30:00Z", id="an interval beyond the end of all dates"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_never_is_none_and_has_no_times(schedule, zone, after):
    parsed = parse(schedule, zone)
    assert parsed.next(at(after)) is None
    assert list(parsed.times(at(after), at("9999-12-31T23:59:59Z"))) == []


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_the_first_and_last_days_that_exist_do_no_harm(zone):
    minutely = parse("* * * * *", zone)
    first = minutely.next(datetime.min.replace(tzinfo=UTC))
    assert first is not None
    assert first.year == 1
    assert minutely.next(at("9998-06-30T00:00:00Z")) == at("9998-06-30T00:01:00Z")
    assert minutely.next(datetime.max.replace(tzinfo=UTC)) is None


class CountingZone(tzinfo):
    """A zone that counts how often it is asked for its offset."""

    def __init__(self, zone):
        self.zone = zone
        self.asked = 0

    def fromutc(self, dt):
        self.asked += 1
        return dt.replace(tzinfo=self.zone).astimezone(UTC).astimezone(self.zone).replace(tzinfo=self)

    def utcoffset(self, dt):
        return dt.replace(tzinfo=self.zone).utcoffset()

    def dst(self, dt):
        return self.zone.dst(dt)

    def tzname(self, dt):
        return self.zone.tzname(dt)


@pytest.mark.parametrize("schedule", ["0 12 29 2 *", "0 0 30 2 *", ", * * * *", "0 2 * * *", "59 23 31 12 6"])
def test_years_ahead_are_searched_with_a_handful_of_looks_at_the_zone(schedule):
    zone = CountingZone(ZoneInfo("Europe/Berlin"))
    parse(schedule, local=zone).next(at("2024-03-30T20:00:00Z"))
    assert 0 < zone.asked < 60
