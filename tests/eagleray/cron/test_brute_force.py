"""Random schedules around moves of the clock, against a search that looks at every minute."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from eagleray.cron import parse
from tests.eagleray.cron import brute_force

MOVES = [
    ("UTC", "2024-02-29T00:00:00Z"),
    ("America/New_York", "2024-03-10T07:00:00Z"),
    ("America/New_York", "2024-11-03T06:00:00Z"),
    ("Europe/Berlin", "2024-03-31T01:00:00Z"),
    ("Europe/Berlin", "2024-10-27T01:00:00Z"),
    ("Europe/Dublin", "2024-10-27T01:00:00Z"),
    ("Australia/Lord_Howe", "2024-10-05T15:30:00Z"),
    ("Australia/Lord_Howe", "2024-04-06T15:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00Z"),
    ("Asia/Beirut", "2022-03-26T22:00:00Z"),
    ("Asia/Amman", "2021-10-28T22:00:00Z"),
    ("America/Havana", "2024-03-10T05:00:00Z"),
    ("America/Havana", "2024-11-03T05:00:00Z"),
    ("America/St_Johns", "2010-11-07T02:31:00Z"),
    ("America/Asuncion", "2023-10-01T04:00:00Z"),
    ("Antarctica/Troll", "2024-03-31T01:00:00Z"),
    ("Asia/Pyongyang", "2018-05-04T15:00:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
]
WHOLE_HOURS = ["America/New_York", "Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia"]


@st.composite
def entries(draw, low, high):
    """One entry of a field: a star, a number or a range, with a step or without."""
    first, last = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
    span = draw(st.sampled_from(["*", "*", f"{first}", f"{first}-{last}"]))
    step = draw(st.sampled_from(["", "", f"/{draw(st.integers(1, high))}"]))
    return span + step


def fields(low, high):
    return st.lists(entries(low, high), min_size=1, max_size=3).map(",".join)


@settings(max_examples=80, deadline=None, database=None)
@given(
    schedule=st.tuples(*(fields(low, high) for low, high in brute_force.BOUNDS)).map(" ".join),
    move=st.sampled_from(MOVES),
    before=st.integers(0, 30 * 60 * 60),
)
def test_every_minute_around_a_move_of_the_clock_is_due_or_not_as_its_local_time_says(schedule, move, before):
    zone, moved = move
    after = datetime.fromisoformat(moved) - timedelta(seconds=before)
    until = after + timedelta(hours=36)
    expected = list(brute_force.times(schedule, zone, after, until))
    assert list(parse(schedule, zone).times(after, until)) == expected


@settings(max_examples=40, deadline=None, database=None)
@given(
    hour=st.integers(0, 23),
    days=st.tuples(*(fields(low, high) for low, high in brute_force.BOUNDS[2:])).map(" ".join),
    zone=st.sampled_from(WHOLE_HOURS),
    start=st.integers(0, 4 * 365 * 24),
)
def test_rare_times_are_found_across_months_and_moves_of_the_clock(hour, days, zone, start):
    schedule = f"0 {hour} {days}"
    after = datetime(2010, 1, 1, tzinfo=UTC) + timedelta(hours=start)
    until = after + timedelta(days=200)
    expected = list(brute_force.times(schedule, zone, after, until, step=timedelta(hours=1)))
    assert list(parse(schedule, zone).times(after, until)) == expected
