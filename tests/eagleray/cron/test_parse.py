"""Reading schedules: what is refused, and in which words; schedule and zone as one line."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from eagleray.cron import InvalidSchedule, UnknownZone, parse, schedule_text

DESCRIPTORS = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"
EVERY_NUMBER = [(60,), (24,), (1, 32), (1, 13), (7,)]


@pytest.mark.case("CJ-29")
@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param("0 0 * * * *", id="six fields"),
        pytest.param("60 * * * *", id="minute 60"),
        pytest.param("* * * * 7", id="weekday 7"),
        pytest.param("5-1 * * * *", id="a range that runs backwards"),
        pytest.param("*/0 * * * *", id="a step of 0"),
    ],
)
def test_a_wrong_schedule_is_refused(schedule):
    with pytest.raises(InvalidSchedule):
        parse(schedule)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("60 * * * *", "minute: 60 is above 59; use 0-59"),
        ("* 1,24 * * *", "hour: 24 is above 23; use 0-23"),
        ("* * 0 * *", "day-of-month: 0 is below 1; use 1-31"),
        ("* * * 1-13 *", "month: 13 is above 12; use 1-12 or JAN-DEC"),
        ("* * * * 7", "day-of-week: 7 is above 6; use 0-6 (Sunday is 0) or SUN-SAT"),
        ("x * * * *", 'minute: "x" is not a number; use 0-59'),
        ("5- * * * *", 'minute: "" is not a number; use 0-59'),
        ("* * * JANUARY *", 'month: "JANUARY" is neither a number nor a name; use 1-12 or JAN-DEC'),
        ("5-1 * * * *", "minute: the range 5-1 runs backwards; swap its ends or write 5-59,0-1"),
        ("* * * NOV-FEB *", "month: the range 11-2 runs backwards; swap its ends or write 11-12,1-2"),
        ("*/0 * * * *", 'minute: the step of "*/0" is 0; use 1 or more'),
        ("*/x * * * *", 'minute: the step "x" of "*/x" is not a number; use 1 or more'),
        ("*/5/5 * * * *", 'minute: "*/5/5" has more than one /; write a range and one step, as in 0-30/5'),
        ("1-2-3 * * * *", 'minute: "1-2-3" has more than one -; write a range as first-last'),
        (
            "0 0 * * * *",
            'expected 5 fields (minute hour day-of-month month day-of-week), found 6: "0 0 * * * *"',
        ),
        ("", "expected 5 fields (minute hour day-of-month month day-of-week), found none"),
        ("TZ=UTC 0 0 * * *", "a schedule cannot name its time zone with TZ= or CRON_TZ=; use timeZone"),
        ("CRON_TZ=UTC 0 0 * * *", "a schedule cannot name its time zone with TZ= or CRON_TZ=; use timeZone"),
        ("@Hourly", '"@Hourly" is not a descriptor; write @hourly, in lower case and without spaces'),
        (" @hourly", '" @hourly" is not a descriptor; write @hourly, in lower case and without spaces'),
        (
            "@reboot",
            f'"@reboot" is not a descriptor; use {DESCRIPTORS} or @every with a duration, such as @every 1h30m',
        ),
        (
            "@every 5",
            '@every: "5" is not a duration; use numbers with units, such as 90s, 5m or 1h30m',
        ),
    ],
)
def test_the_message_names_the_field_and_the_way_out(schedule, message):
    with pytest.raises(InvalidSchedule) as refused:
        parse(schedule)
    assert str(refused.value) == message


def test_a_wrong_schedule_is_reported_before_a_wrong_zone():
    with pytest.raises(InvalidSchedule):
        parse("60 * * * *", "Mars/Olympus")
    with pytest.raises(UnknownZone):
        parse("@every 5m", "Mars/Olympus")


@pytest.mark.case("CJ-21")
@pytest.mark.parametrize(
    ("schedule", "zone", "text"),
    [
        pytest.param("*/5 * * * *", None, "*/5 * * * *", id="no zone"),
        pytest.param("0 9 * * *", "Asia/Taipei", "TZ=Asia/Taipei 0 9 * * *", id="Taipei"),
        pytest.param("0 0 * * *", "UTC", "TZ=UTC 0 0 * * *", id="UTC"),
    ],
)
def test_schedule_and_zone_as_one_line(schedule, zone, text):
    assert schedule_text(schedule, zone) == text


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param("1," * 5_000_000 + "1 * * * *", id="ten million characters"),
        pytest.param("1," * 2000 + "99 * * * *", id="a long list"),
        pytest.param("9" * 4000 + " * * * *", id="a number of many digits"),
        pytest.param("* " * 2000, id="many fields"),
        pytest.param("@" + "x" * 4000, id="a long descriptor"),
        pytest.param("@every " + "0s" * 2000 + "!", id="a long duration"),
        pytest.param("@every " + "9" * 4000 + "s", id="a duration of many digits"),
        pytest.param("@every 1." + "9" * 4000, id="a fraction of many digits"),
        pytest.param("\0\n\x1b[31m\x7f * * * *", id="control characters"),
        pytest.param("\ud800 * * * *", id="half a surrogate pair"),
    ],
)
def test_a_hostile_schedule_is_refused_with_a_short_printable_message(schedule):
    with pytest.raises(InvalidSchedule) as refused:
        parse(schedule)
    assert len(str(refused.value)) < 250
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(
            " ".join(",".join(map(str, range(*bounds))) for bounds in EVERY_NUMBER), id="every number"
        ),
        pytest.param("0," * 2000 + "0 * * * *", id="one number two thousand times"),
    ],
)
def test_a_long_schedule_may_be_right(schedule):
    assert parse(schedule, "UTC").next(datetime(2024, 1, 1, 0, 59, tzinfo=UTC)) == datetime(
        2024, 1, 1, 1, tzinfo=UTC
    )


def test_a_schedule_has_at_most_4096_characters():
    parse("* * * * *".ljust(4096))
    with pytest.raises(InvalidSchedule, match="the schedule has 4097 characters; use at most 4096"):
        parse("* * * * *".ljust(4097))


def test_reading_schedules_does_not_load_what_only_times_and_mistakes_need():
    program = (
        "import sys; from eagleray.cron import parse; parse('0 9 * * MON', 'Asia/Taipei'); parse('@daily'); "
        "print(*{'zoneinfo', 'difflib', 'dataclasses', 'inspect', 'json', 'decimal'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
