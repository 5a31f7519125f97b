"""A year of twenty schedules in five time zones, run tick by tick, against what robfig/cron says."""

import json
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from eagleray.manifests.raycronjob import RayCronJob, child_name
from eagleray.raycronjob.look import Look
from eagleray.raycronjob.planning import plan
from eagleray.raycronjob.status import next_status
from eagleray.runtime.actions import Create
from kubewire.times import format_time, parse_time
from tests.eagleray.raycronjob.situations import raycronjob

YEAR = json.loads((Path(__file__).parents[2] / "data" / "cron" / "year.json").read_text(encoding="utf-8"))


def lived(case, *, late=timedelta(), awake=None):
    """Return the ticks that are run by a controller that looks whenever its last plan told it to, a little late.

    `awake` says when it looks instead, given the time that the plan named.
    """
    cron = raycronjob("c", case["schedule"], timeZone=case["zone"])
    cron["metadata"] |= {"uid": "u", "generation": 1, "creationTimestamp": case["after"]}
    now, until = parse_time(case["after"]), parse_time(case["until"])
    made = []
    while now <= until + late:
        look = Look(RayCronJob(cron), now)
        planned = plan(look)
        assert planned.tick is None or planned.tick <= now
        made += [
            (planned.tick, action.obj["metadata"]["name"])
            for stage in planned.stages
            for action in stage.actions
            if isinstance(action, Create)
        ]
        cron["status"] = next_status(look.cron, (), planned.standing, planned.tick, now)
        if planned.next is None:
            break
        assert planned.next > now
        now = awake(planned.next) if awake else planned.next + late
    return cron, made


@pytest.mark.parametrize("case", [pytest.param(case, id=case["about"]) for case in YEAR])
def test_every_tick_of_a_year_is_run_once_and_no_other(case):
    cron, made = lived(case)
    months = [0] * 12
    digest = sha256()
    for tick, name in made:
        assert name == child_name(RayCronJob(cron), tick)
        months[tick.month - 1] += 1
        digest.update(f"{format_time(tick)}\n".encode())
    assert months == case["months"]
    assert digest.hexdigest() == case["digest"]
    assert len({name for _, name in made}) == len(made)


def test_the_year_has_twenty_schedules_in_five_zones():
    assert len({case["schedule"] for case in YEAR}) == 20
    assert len({case["zone"] for case in YEAR}) == 5
    assert len(YEAR) == 100


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Adelaide"])
def test_a_controller_that_always_looks_late_runs_the_same_ticks(zone):
    (case,) = (one for one in YEAR if (one["schedule"], one["zone"]) == ("15 1,2,3 * * *", zone))
    assert lived(case, late=timedelta(minutes=17, microseconds=3)) == lived(case)


def test_a_controller_that_sleeps_through_most_ticks_runs_the_latest_of_each_sleep():
    (case,) = (one for one in YEAR if (one["schedule"], one["zone"]) == ("0 */6 * * *", "America/New_York"))
    _, all_of_them = lived(case)
    _, made = lived(case, awake=lambda due: due + timedelta(days=3))
    assert set(made) < set(all_of_them)
    assert 100 < len(made) < 130
