"""Schedules whose times robfig/cron itself has given, and the few where it goes wrong."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eagleray.cron import InvalidSchedule, UnknownZone, parse
from tests.eagleray.cron import brute_force

CASES = json.loads(
    (Path(__file__).parents[2] / "data" / "cron" / "hard-cases.json").read_text(encoding="utf-8")
)


def cases(wanted):
    return [pytest.param(case, id=case["about"]) for case in CASES if wanted(case)]


def following(case):
    """Return the case's times in its own form: as many as it asks for, with a None where they end."""
    schedule = parse(case["schedule"], case.get("zone"), local=UTC)
    after = datetime.fromisoformat(case["after"])
    times: list[str | None] = []
    while len(times) < case.get("count", 3):
        time = schedule.next(after)
        if time is None:
            return [*times, None]
        times.append(time.isoformat().replace("+00:00", "Z"))
        after = time
    return times


@pytest.mark.parametrize("case", cases(lambda case: "next" in case and "why" not in case))
def test_is_due_when_robfig_cron_says(case):
    assert following(case) == case["next"]


@pytest.mark.parametrize("case", cases(lambda case: "error" in case))
def test_is_refused_as_robfig_cron_refuses_it(case):
    wrong = UnknownZone if "zone" in case else InvalidSchedule
    with pytest.raises(wrong):
        parse(case["schedule"], case.get("zone"))


@pytest.mark.parametrize("case", cases(lambda case: "why" in case))
def test_is_due_where_robfig_cron_goes_wrong(case):
    assert following(case) == case["eagleray"]
    assert case.get("next") != case["eagleray"], "robfig/cron says the same: this is no difference"


@pytest.mark.parametrize("case", cases(lambda case: "why" in case))
def test_brute_force_confirms_where_robfig_cron_goes_wrong(case):
    times = [datetime.fromisoformat(time) for time in case["eagleray"]]
    # Half hours are enough where the schedule wants the full hour, and make a year short.
    step = timedelta(minutes=30 if case["schedule"].startswith("0 ") else 1)
    after = datetime.fromisoformat(case["after"])
    assert list(brute_force.times(case["schedule"], case["zone"], after, times[-1], step)) == times


def test_the_table_covers_many_zones_and_kinds_of_answers():
    assert len(CASES) >= 300
    assert len({case.get("zone") for case in CASES if "next" in case}) >= 25
    assert sum("error" in case for case in CASES) >= 70
    assert sum(None in case.get("next", ()) for case in CASES) >= 10
