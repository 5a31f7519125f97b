"""Times and durations: the expected values and messages are those of Go 1.26."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.times import (
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    DurationError,
    TimeError,
    format_go_duration,
    format_micro_time,
    format_time,
    parse_go_duration,
    parse_micro_time,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("2020-02-29T23:59:59Z", "2020-02-29T23:59:59Z", id="a time in UTC"),
        pytest.param("2020-01-01T00:00:00z", "2020-01-01T00:00:00Z", id="a small z"),
        pytest.param("2020-01-01T00:00:00+02:00", "2019-12-31T22:00:00Z", id="an offset to the east"),
        pytest.param("2020-01-01T00:00:00-05:30", "2020-01-01T05:30:00Z", id="an offset to the west"),
        pytest.param("2020-01-01T00:00:00-00:00", "2020-01-01T00:00:00Z", id="an unknown offset"),
        pytest.param("2020-01-01T00:00:00+24:00", "2019-12-31T00:00:00Z", id="an offset of a whole day"),
        pytest.param("2020-01-01T00:00:00+00:60", "2019-12-31T23:00:00Z", id="an offset of sixty minutes"),
        pytest.param("2020-01-01T00:00:00.999999999Z", "2020-01-01T00:00:00Z", id="a fraction is cut off"),
        pytest.param(
            "2020-01-01T00:00:00.12345678912Z", "2020-01-01T00:00:00Z", id="more than nine decimals"
        ),
        pytest.param("2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00Z", id="a decimal comma"),
        pytest.param("2020-01-01T5:00:00Z", "2020-01-01T05:00:00Z", id="an hour of one digit"),
        pytest.param("0005-01-01T00:00:00Z", "0005-01-01T00:00:00Z", id="the fifth year"),
    ],
)
def test_reads_times_and_writes_them_in_utc(text, written):
    assert format_time(parse_time(text)) == written


def test_keeps_microseconds_of_a_fraction():
    assert parse_time("2020-01-01T00:00:00.123456789Z").microsecond == 123456
    assert parse_time("2020-01-01T00:00:00.5Z").microsecond == 500000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"', id="nothing"),
        pytest.param(
            "2020-01-01", 'as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"', id="a date alone"
        ),
        pytest.param(
            "2020-01-01 00:00:00Z",
            'as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00Z" as "T"',
            id="a space for the T",
        ),
        pytest.param(
            "2020-01-01T00:00:00",
            'as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
            id="no time zone",
        ),
        pytest.param(
            "2020-01-01T00:00:00+0200",
            'as "2006-01-02T15:04:05Z07:00": cannot parse "+0200" as "Z07:00"',
            id="an offset without a colon",
        ),
        pytest.param(
            "2020-01-01T00:00:00.Z",
            'as "2006-01-02T15:04:05Z07:00": cannot parse ".Z" as "Z07:00"',
            id="a point without decimals",
        ),
        pytest.param(
            "202a-01-01T00:00:00Z",
            'as "2006-01-02T15:04:05Z07:00": cannot parse "202a-01-01T00:00:00Z" as "2006"',
            id="a letter in the year",
        ),
        pytest.param(
            "20200-01-01T00:00:00Z",
            'as "2006-01-02T15:04:05Z07:00": cannot parse "0-01-01T00:00:00Z" as "-"',
            id="a year of five digits",
        ),
        pytest.param(
            "2020-1-01T00:00:00Z",
            'as "2006-01-02T15:04:05Z07:00": cannot parse "1-01T00:00:00Z" as "01"',
            id="a month of one digit",
        ),
        pytest.param("2020-01-01T00:00:00Zx", ': extra text: "x"', id="more text"),
        pytest.param("2020-01-01T00:00:00+02:00x", ': extra text: "x"', id="more text after an offset"),
        pytest.param("2020-13-01T00:00:00Z", ": month out of range", id="a thirteenth month"),
        pytest.param("2020-00-01T00:00:00Z", ": month out of range", id="month zero"),
        pytest.param("2021-02-29T00:00:00Z", ": day out of range", id="a leap day in a common year"),
        pytest.param("2020-01-00T00:00:00Z", ": day out of range", id="day zero"),
        pytest.param("2020-01-01T24:00:00Z", ": hour out of range", id="hour 24"),
        pytest.param("2020-01-01T00:60:00Z", ": minute out of range", id="minute 60"),
        pytest.param("2016-12-31T23:59:60Z", ": second out of range", id="a leap second"),
        pytest.param("2020-01-01T00:00:00+25:00", ": time zone offset hour out of range", id="25 hours off"),
        pytest.param(
            "2020-01-01T00:00:00+00:61", ": time zone offset minute out of range", id="61 minutes off"
        ),
        pytest.param("0000-01-01T00:00:00Z", ": year out of range", id="year zero, which Python lacks"),
        pytest.param("9999-12-31T23:59:59-01:00", ": year out of range", id="year 10000, which Python lacks"),
    ],
)
def test_refuses_what_is_no_time(text, message):
    with pytest.raises(TimeError) as refusal:
        parse_time(text)

    assert str(refusal.value) == f'parsing time "{text}"{"" if message[0] == ":" else " "}{message}'


def test_quotes_strange_text_byte_by_byte():
    with pytest.raises(TimeError) as refusal:
        parse_time('é"\\\n')

    assert str(refusal.value).startswith(r'parsing time "\xc3\xa9\"\\\x0a" as')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("2020-01-01T00:00:00.000001Z", "2020-01-01T00:00:00.000001Z", id="a microsecond"),
        pytest.param("2020-01-01T00:00:00.123456+01:30", "2019-12-31T22:30:00.123456Z", id="an offset"),
    ],
)
def test_reads_and_writes_micro_times(text, written):
    assert format_micro_time(parse_micro_time(text)) == written


@pytest.mark.parametrize(
    ("text", "unread", "element"),
    [
        pytest.param("2020-01-01T00:00:00Z", "Z", ".000000", id="no decimals"),
        pytest.param("2020-01-01T00:00:00.12345Z", ".12345Z", ".000000", id="five decimals"),
        pytest.param("2020-01-01T00:00:00.1234567Z", "7Z", "Z07:00", id="seven decimals"),
    ],
)
def test_refuses_micro_times_without_six_decimals(text, unread, element):
    with pytest.raises(TimeError) as refusal:
        parse_micro_time(text)

    layout = "2006-01-02T15:04:05.000000Z07:00"
    assert (
        str(refusal.value) == f'parsing time "{text}" as "{layout}": cannot parse "{unread}" as "{element}"'
    )


@pytest.mark.parametrize("write", [format_time, format_micro_time])
def test_does_not_guess_a_time_zone(write):
    with pytest.raises(ValueError, match="without a time zone"):
        write(datetime(2020, 1, 1))  # noqa: DTZ001 - that it has none is the point


moments = st.datetimes(
    datetime(2, 1, 1),  # noqa: DTZ001 - the strategy wants bounds without a time zone
    datetime(9998, 12, 31),  # noqa: DTZ001 - the strategy wants bounds without a time zone
    timezones=st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@given(moments)
def test_what_is_written_is_read_again(moment):
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)
    assert parse_micro_time(format_micro_time(moment)) == moment
    assert parse_time(moment.isoformat()) == moment
    assert parse_time(moment.isoformat()).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        pytest.param("0", 0, "0s", id="zero without a unit"),
        pytest.param("-0", 0, "0s", id="less than nothing"),
        pytest.param("+5s", 5 * SECOND, "5s", id="a plus"),
        pytest.param("1h2m3.5s", 3723_500 * MILLISECOND, "1h2m3.5s", id="hours, minutes and seconds"),
        pytest.param("3.5s2m1h", 3723_500 * MILLISECOND, "1h2m3.5s", id="units in any order"),
        pytest.param("-5m", -5 * MINUTE, "-5m0s", id="a negative one"),
        pytest.param("300ms", 300 * MILLISECOND, "300ms", id="milliseconds"),
        pytest.param("1us", 1000, "1\u00b5s", id="microseconds"),
        pytest.param("1\u00b5s", 1000, "1\u00b5s", id="with a micro sign"),
        pytest.param("1\u03bcs", 1000, "1\u00b5s", id="with a Greek mu"),
        pytest.param("1.5h", 90 * MINUTE, "1h30m0s", id="a fraction of an hour"),
        pytest.param(".5s", 500 * MILLISECOND, "500ms", id="no digit before the point"),
        pytest.param("5.s", 5 * SECOND, "5s", id="no digit after the point"),
        pytest.param("87600h", 87600 * HOUR, "87600h0m0s", id="ten years"),
        pytest.param(
            "0.3333333333333333333h", 20 * MINUTE, "20m0s", id="a third of an hour, as floats have it"
        ),
        pytest.param("0.9s", 900 * MILLISECOND, "900ms", id="a fraction of a second"),
        pytest.param("0.0000000001s", 0, "0s", id="less than a nanosecond"),
        pytest.param(
            "0." + "1" * 400 + "s", 111_111_111, "111.111111ms", id="more decimals than a number holds"
        ),
        pytest.param("0." + "0" * 400 + "1s", 0, "0s", id="more zeros than a number holds"),
        pytest.param("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s", id="the longest"),
        pytest.param("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s", id="the most negative"),
    ],
)
def test_reads_and_prints_durations_as_go_does(text, nanoseconds, printed):
    assert parse_go_duration(text) == nanoseconds
    assert format_go_duration(nanoseconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="nothing"),
        pytest.param("-", 'time: invalid duration "-"', id="a sign alone"),
        pytest.param("--5s", 'time: invalid duration "--5s"', id="two signs"),
        pytest.param(".s", 'time: invalid duration ".s"', id="no digits"),
        pytest.param("1", 'time: missing unit in duration "1"', id="no unit"),
        pytest.param("1h30", 'time: missing unit in duration "1h30"', id="no unit at the end"),
        pytest.param("1x", 'time: unknown unit "x" in duration "1x"', id="an unknown unit"),
        pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="days"),
        pytest.param("1h ", 'time: unknown unit "h " in duration "1h "', id="a space after"),
        pytest.param("1e3s", 'time: unknown unit "e" in duration "1e3s"', id="an exponent"),
        pytest.param("3000000h", 'time: invalid duration "3000000h"', id="too long"),
        pytest.param(
            "9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"', id="one too long"
        ),
        pytest.param("2562047h3000000h", 'time: invalid duration "2562047h3000000h"', id="too long in sum"),
        pytest.param(
            "1\u00e9", r'time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9"', id="strange letters"
        ),
    ],
)
def test_refuses_what_is_no_duration(text, message):
    with pytest.raises(DurationError) as refusal:
        parse_go_duration(text)

    assert str(refusal.value) == message


def test_refuses_a_very_long_number_quickly():
    with pytest.raises(DurationError):
        parse_go_duration("9" * 100_000 + "ns")


@pytest.mark.parametrize(
    ("nanoseconds", "printed"),
    [
        pytest.param(999, "999ns", id="nanoseconds"),
        pytest.param(1_000, "1\u00b5s", id="a microsecond"),
        pytest.param(1_500, "1.5\u00b5s", id="microseconds"),
        pytest.param(1_000_000, "1ms", id="a millisecond"),
        pytest.param(SECOND, "1s", id="a second"),
        pytest.param(MINUTE, "1m0s", id="a minute"),
        pytest.param(999_999_999, "999.999999ms", id="just below a second"),
        pytest.param(90 * SECOND, "1m30s", id="a minute and a half"),
        pytest.param(HOUR, "1h0m0s", id="an hour"),
        pytest.param(SECOND + 10, "1.00000001s", id="zeros within decimals stay"),
    ],
)
def test_prints_durations(nanoseconds, printed):
    assert format_go_duration(nanoseconds) == printed


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_printed_duration_is_read_again(nanoseconds):
    assert parse_go_duration(format_go_duration(nanoseconds)) == nanoseconds
