"""The scripted heads themselves: other tests believe them."""

import asyncio

import pytest

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import Unreachable
from eagleray.dashboard.requests import Submission
from tests.eagleray.dashboard.places import place
from tests.eagleray.dashboard.scripted import late

HOST = place().host


async def test_a_job_ends_after_as_long_as_it_lasts(heads):
    heads.start(HOST, lasts=60, ends="FAILED")
    dashboard = Dashboard(place(), heads)
    await dashboard.submit(Submission("x", "job"))
    await asyncio.sleep(59)
    assert (await dashboard.info("job")).status == "RUNNING"
    await asyncio.sleep(2)
    info = await dashboard.info("job")
    assert info.status == "FAILED"
    assert info.ended_at is not None
    assert info.started_at is not None
    assert (info.ended_at - info.started_at).total_seconds() == 60


async def test_the_ledger_counts_over_all_heads(heads):
    heads.start(HOST).submit("job")
    new = heads.restart(HOST)
    assert new.jobs == {}
    new.submit("job")
    new.submit("other")
    assert heads.ledger.executions("job") == 2
    assert heads.ledger.repeated == ["job"]
    assert heads.ledger.started == [("job", "session_1"), ("job", "session_2"), ("other", "session_2")]


async def test_a_head_with_external_storage_knows_the_old_jobs(heads):
    heads.start(HOST).submit("job")
    new = heads.restart(HOST, keeps_jobs=True)
    assert set(new.jobs) == {"job"}
    with pytest.raises(ValueError, match="already exists"):
        new.submit("job")


async def test_a_late_submission_runs_when_nobody_waits_for_it_any_more(heads):
    heads.start(HOST)
    heads.fault(HOST, late(30), times=1)
    with pytest.raises(Unreachable):
        await Dashboard(place(), heads).submit(Submission("x", "job"))
    assert heads.ledger.executions("job") == 0
    await asyncio.sleep(30)
    assert heads.ledger.executions("job") == 1


async def test_a_killed_head_refuses_connections(heads):
    heads.start(HOST)
    heads.kill(HOST)
    with pytest.raises(Unreachable) as caught:
        await Dashboard(place(), heads).version()
    assert not caught.value.timed_out
