"""Timestamps and durations: Python's calendar is the oracle for the parts of a timestamp."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewire.cel import Duration, EvaluationError, Timestamp
from kubewire.cel.times import (
    Calendar,
    duration_text,
    parse_duration,
    parse_lenient_duration,
    parse_timestamp,
    timestamp_text,
    zone_offset,
)

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
moments = st.builds(
    lambda microseconds, offset: (EPOCH + dt.timedelta(microseconds=microseconds)).astimezone(offset),
    st.integers(-62_100_000_000 * 10**6, 253_300_000_000 * 10**6),
    offsets,
)


def nanoseconds(moment):
    return (moment - EPOCH) // dt.timedelta(microseconds=1) * 1000


@settings(derandomize=True)
@given(moments)
def test_a_timestamp_reads_as_python_reads_it(moment):
    parsed = parse_timestamp(moment.isoformat())
    assert parsed.nanoseconds == nanoseconds(moment)
    assert dt.datetime.fromisoformat(timestamp_text(parsed)) == moment


@settings(derandomize=True)
@given(moments)
def test_the_calendar_shows_what_pythons_shows(moment):
    offset = moment.utcoffset()
    assert offset is not None
    shown = Calendar(Timestamp(nanoseconds(moment)), int(offset.total_seconds()))
    assert (shown.year, shown.month, shown.month_day) == (moment.year, moment.month, moment.day)
    assert (shown.hour, shown.minute, shown.second) == (moment.hour, moment.minute, moment.second)
    assert shown.nanosecond == moment.microsecond * 1000
    assert shown.day_of_week == moment.isoweekday() % 7
    assert shown.day_of_year == moment.timetuple().tm_yday - 1


@pytest.mark.parametrize("year", [1600, 1900, 2000, 2023, 2024, 2100])
def test_every_year_has_its_leap_day_or_not(year):
    march = Calendar(parse_timestamp(f"{year}-03-01T00:00:00Z"))
    assert march.day_of_year == dt.date(year, 3, 1).timetuple().tm_yday - 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2020-02-30T00:00:00Z", id="a day that is not"),
        pytest.param("1900-02-29T00:00:00Z", id="a leap day that is not"),
        pytest.param("2020-13-01T00:00:00Z", id="a month that is not"),
        pytest.param("2020-01-01T24:00:00Z", id="an hour that is not"),
        pytest.param("2020-01-01T00:00:00", id="no offset"),
        pytest.param("2020-01-01T00:00:00+24:00", id="an offset that is not"),
        pytest.param("2020-01-01T00:00:00.Z", id="a fraction of nothing"),
        pytest.param("2020-01-01 00:00:00Z", id="a space"),
        pytest.param("2020-01-01t00:00:00z", id="small letters"),
        pytest.param("", id="nothing"),
        pytest.param("0000-01-01T00:00:00Z", id="the year 0"),
        pytest.param("\u0662020-01-01T00:00:00Z", id="other digits"),
    ],
)
def test_what_is_no_timestamp_is_refused(text):
    with pytest.raises(EvaluationError):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0", 0),
        ("1h2m3s", 3723 * 10**9),
        ("1.5h", 5400 * 10**9),
        ("-1.5s", -1500 * 10**6),
        ("+2ms", 2 * 10**6),
        (".5s", 5 * 10**8),
        ("3us4ns", 3004),
        ("1µs", 1000),
        ("100ms100ms", 2 * 10**8),
    ],
)
def test_durations(text, length):
    assert parse_duration(text) == Duration(length)


@pytest.mark.parametrize(
    "text", ["", "1", "s", "1x", "1h ", "1 h", "--1s", "1.s.", "1d", "9" * 30 + "h", "1e3s", "٣s"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(EvaluationError):
        parse_duration(text)


@pytest.mark.parametrize(("text", "hours"), [("2d", 48), ("1 w", 168), ("90 m", 1.5)])
def test_schemas_know_days_and_weeks(text, hours):
    assert parse_lenient_duration(text) == Duration(int(hours * 3600) * 10**9)


@pytest.mark.parametrize(
    ("length", "text"), [(0, "0s"), (1, "0.000000001s"), (-90 * 10**9, "-90s"), (15 * 10**8, "1.5s")]
)
def test_durations_are_written_in_seconds(length, text):
    assert duration_text(Duration(length)) == text


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("", 0), ("UTC", 0), ("+05:30", 5.5), ("-02:00", -2), ("Europe/Berlin", 2), ("Asia/Kolkata", 5.5)],
)
def test_zones(zone, hours):
    assert zone_offset(parse_timestamp("2024-07-01T00:00:00Z"), zone) == hours * 3600


@pytest.mark.parametrize("zone", ["Mars/Olympus", "5:30", "../../etc/passwd", "25:00"])
def test_a_zone_that_is_not_is_an_error(zone):
    with pytest.raises(EvaluationError, match="unknown time zone"):
        zone_offset(Timestamp(0), zone)
