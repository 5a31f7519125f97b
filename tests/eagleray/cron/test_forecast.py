"""The coming runs for people, with a word where the clock is set."""

from datetime import datetime

import pytest

from eagleray.cron.forecast import Gap, Run, forecast


def lines(schedule, zone, after, count):
    found = forecast(schedule, zone, datetime.fromisoformat(after), count)
    return [
        f"! {one.note}"
        if isinstance(one, Gap)
        else f"{one.at:%m-%d %H:%M}{f' ! {one.note}' if one.note else ''}"
        for one in found
    ]


FORWARD = "left out, because the clock goes forward from 02:00 to 03:00"
TWICE = "the clock goes back and shows 02:30 twice; this is the {} time, and both are run"


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "want"),
    [
        pytest.param(
            "30 2 * * *",
            "Europe/Berlin",
            "2024-03-29T12:00:00Z",
            ["03-30 02:30", f"! 2024-03-31: 02:30 {FORWARD}", "04-01 02:30", "04-02 02:30"],
            id="a time that is left out",
        ),
        pytest.param(
            "30 2 * * *",
            "Europe/Berlin",
            "2024-10-26T12:00:00Z",
            [
                f"10-27 02:30 ! {TWICE.format('first')}",
                f"10-27 02:30 ! {TWICE.format('second')}",
                "10-28 02:30",
            ],
            id="a time that comes twice",
        ),
        pytest.param(
            "* * * * *",
            "Europe/Berlin",
            "2024-03-31T00:58:30Z",
            [
                "03-31 01:59",
                f"! 2024-03-31: 60 times of the schedule {FORWARD}",
                "03-31 03:00",
                "03-31 03:01",
            ],
            id="many times that are left out",
        ),
        pytest.param(
            "0 0 * * *",
            "Asia/Beirut",
            "2024-03-29T12:00:00Z",
            [
                "03-30 00:00",
                "! 2024-03-31: 00:00 left out, because the clock goes forward from 00:00 to 01:00",
                "04-01 00:00",
                "04-02 00:00",
            ],
            id="a midnight that is left out",
        ),
        pytest.param(
            "0 12 1 1 *",
            "Europe/Berlin",
            "2024-01-01T12:00:00Z",
            ["01-01 12:00", "01-01 12:00", "01-01 12:00"],
            id="clocks that are set between runs and concern none",
        ),
        pytest.param(
            "@every 1h",
            "Europe/Berlin",
            "2024-03-31T00:30:00Z",
            ["03-31 03:30", "03-31 04:30", "03-31 05:30"],
            id="an interval does not mind the clock",
        ),
        pytest.param("0 0 30 2 *", "UTC", "2024-01-01T00:00:00Z", [], id="never"),
    ],
)
def test_what_is_told(schedule, zone, after, want):
    assert lines(schedule, zone, after, 3) == want


def test_without_a_zone_the_local_one_counts():
    after = datetime.fromisoformat("2024-01-01T00:00:00Z")
    (run,) = forecast(
        "0 9 * * *", None, after, 1, local=datetime.fromisoformat("2024-01-01T00:00:00+08:00").tzinfo
    )
    assert isinstance(run, Run)
    assert run.at.isoformat() == "2024-01-01T09:00:00+08:00"
