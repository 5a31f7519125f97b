"""The last time of a schedule in a span: as if all of them had been looked at, but without looking."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleray.cron import parse
from eagleray.cron.schedule import Schedule

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]
SCHEDULES = [
    "* * * * *",
    "*/7 * * * *",
    "30 2 * * *",
    "0 0 1 * 1",
    "0 0 * * *",
    "5 4 29 2 *",
    "@every 1h7m",
    "@every 1s",
]


@given(
    schedule=st.sampled_from(SCHEDULES),
    zone=st.sampled_from(ZONES),
    after=st.datetimes(datetime(2024, 1, 1), datetime(2024, 12, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds
    length=st.timedeltas(timedelta(), timedelta(hours=3)) | st.timedeltas(timedelta(), timedelta(days=3)),
)
def test_it_is_the_last_of_all_times(schedule, zone, after, length):
    parsed = parse(schedule, zone)
    length = min(length, timedelta(minutes=10)) if schedule == "@every 1s" else length
    found = list(parsed.times(after, after + length))
    assert parsed.last(after, after + length) == (found[-1] if found else None)


class Counting(Schedule):
    """A schedule that counts how often it is asked."""

    def __init__(self, inner):
        self.inner = inner
        self.asked = 0

    def next(self, after):
        self.asked += 1
        return self.inner.next(after)


@pytest.mark.parametrize("schedule", ["* * * * *", "0 3 * * *", "* * 1 1 *", "0 0 30 2 *"])
def test_ten_years_take_a_few_dozen_looks(schedule):
    counting = Counting(parse(schedule, "Europe/Berlin"))
    counting.last(datetime(2014, 1, 1, tzinfo=UTC), datetime(2024, 6, 1, 12, 30, tzinfo=UTC))
    assert counting.asked < 80


def test_a_span_that_ends_before_it_begins_has_no_times():
    late, early = datetime(2024, 2, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)
    assert parse("* * * * *", "UTC").last(late, early) is None
    assert parse("@every 1s", "UTC").last(late, early) is None
