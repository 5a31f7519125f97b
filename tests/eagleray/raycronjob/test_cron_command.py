"""`eagleray cron` in a cluster: what it shows, and what it changes."""

import argparse

import pytest

from eagleray.cli import cron
from eagleray.cli.cronactions import CronActions
from eagleray.kube.client import Client
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.raycronjob.situations import (
    MOMENT,
    children,
    condition_of,
    cron_world,
    patch,
    raycronjob,
    stamp,
    status_of,
    ticks,
    wait_until,
)
from tests.eagleray.world import PickyTransport

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
def ask(capsys):
    """Give what does an action and returns its exit status, its lines, and its complaint."""

    async def asked(world, *words, transport=None):
        parser = argparse.ArgumentParser()
        cron.configure(parser)
        client = Client(transport or world.place.transport(), world.clock, SeededEntropy("user"))
        actions = CronActions(client, world.clock, SeededEntropy("user"))
        code = await cron.perform(actions, parser.parse_args(words), "default")
        shown = capsys.readouterr()
        return code, shown.out.splitlines(), shown.err.strip()

    return asked


async def test_the_list_shows_last_and_next_runs(ask):
    async with cron_world() as world:
        await world.create(raycronjob("a-often"))
        await world.create(raycronjob("b-taipei", schedule="0 9 * * *", timeZone="Asia/Taipei"))
        await world.create(raycronjob("c-still", suspend=True))
        await world.create(raycronjob("d-broken", schedule="nonsense"))
        await world.create(raycronjob("e-never", schedule="0 0 30 2 *"))
        await wait_until(world, "00:07")
        code, (titles, *rows), _ = await ask(world, "list")
        assert code == 0
        assert titles.split() == ["NAME", "SCHEDULE", "ZONE", "LAST", "NEXT", "ACTIVE", "STATE"]
        assert [[cell.strip() for cell in row.split("   ") if cell] for row in rows] == [
            ["a-often", "*/5 * * * *", "UTC", "2m ago", "in 3m", "1", "Scheduled"],
            ["b-taipei", "0 9 * * *", "Asia/Taipei", "-", "in 53m", "0", "Scheduled"],
            ["c-still", "*/5 * * * *", "UTC", "-", "-", "0", "Suspended"],
            ["d-broken", "nonsense", "UTC", "-", "-", "0", "ValidationFailed"],
            ["e-never", "0 0 30 2 *", "UTC", "-", "never", "0", "NeverMatches"],
        ]
        _, (titles, *rows), _ = await ask(world, "list", "-A")
        assert titles.split()[0] == "NAMESPACE"
        assert {row.split()[0] for row in rows} == {"default"}


async def test_an_empty_list_says_so(ask):
    async with cron_world(operator=False) as world:
        assert await ask(world, "list") == (0, ["no RayCronJobs in default"], "")


async def test_next_shows_the_coming_runs_by_the_wall_clock_and_in_utc(ask):
    async with cron_world(operator=False) as world:
        await world.create(raycronjob(schedule="30 2 * * *", timeZone="Europe/Berlin"))
        code, lines, _ = await ask(world, "next", "test-cronjob", "-c", "2")
        assert code == 0
        assert lines == [
            "30 2 * * * in Europe/Berlin",
            "  Tue 2030-01-01 02:30:00 CET  2030-01-01T01:30:00Z",
            "  Wed 2030-01-02 02:30:00 CET  2030-01-02T01:30:00Z",
        ]
        _, lines, _ = await ask(world, "next", "test-cronjob", "-c", "100")
        (gap,) = (line for line in lines if "!" in line)
        assert gap == ("  ! 2030-03-31: 02:30 left out, because the clock goes forward from 02:00 to 03:00")


async def test_next_counts_an_interval_from_the_last_run(ask):
    async with cron_world() as world:
        await world.create(raycronjob(schedule="@every 10m"))
        await wait_until(world, "00:13")
        last = (await status_of(world))["lastScheduleTime"]
        assert last.startswith("2030-01-01T00:10:")
        _, lines, _ = await ask(world, "next", "test-cronjob", "-c", "1")
        assert lines[1].endswith(last.replace("00:10:", "00:20:"))


async def test_next_says_what_stands_in_the_way(ask):
    async with cron_world(operator=False) as world:
        quiet = raycronjob(suspend=True)
        del quiet["spec"]["timeZone"]
        await world.create(quiet)
        _, lines, _ = await ask(world, "next", "test-cronjob", "-c", "1", "--zone", "Asia/Taipei")
        assert lines[0] == "*/5 * * * * in Asia/Taipei"
        assert lines[-2:] == [
            "note: spec.timeZone is not set, so the operator's own zone counts; shown for Asia/Taipei (--zone)",
            "note: it is suspended; none of these takes place until it is resumed",
        ]
        await world.create(raycronjob("broken", schedule="@every never"))
        code, lines, complaint = await ask(world, "next", "broken")
        assert (code, lines) == (1, [])
        assert complaint.startswith("eagleray cron: default/broken has no runs: @every:")
        await world.create(raycronjob("never", schedule="0 0 30 2 *"))
        assert (await ask(world, "next", "never"))[1][-1] == "  no run within five years"


async def test_trigger_starts_a_run_now_that_belongs_to_the_schedule(ask):
    async with cron_world() as world:
        await world.create(raycronjob(suspend=True, template={"entrypoint": "python by_hand.py"}))
        code, (line,), _ = await ask(world, "trigger", "test-cronjob")
        assert code == 0
        (job,) = await children(world)
        name = job["metadata"]["name"]
        assert line == f"rayjob.ray.io/{name} created"
        assert name.startswith("test-cronjob-now-")
        assert job["spec"]["entrypoint"] == "python by_hand.py"
        assert job["metadata"]["labels"] == {"ray.io/cronjob-name": "test-cronjob"}
        await world.pass_time(MOMENT)
        assert [one["name"] for one in (await status_of(world))["active"]] == [name]
        assert "lastScheduleTime" not in await status_of(world), "it is no tick"
        await world.delete("RayCronJob", "test-cronjob")
        await world.pass_time(60)
        assert await children(world) == []


async def test_trigger_says_what_runs_besides(ask):
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        _, lines, _ = await ask(world, "trigger", "test-cronjob")
        assert lines[1:] == ["note: besides it test-cronjob-31557605 of the same RayCronJob has not ended"]


async def test_trigger_makes_one_run_even_if_the_answer_is_lost(ask):
    async with cron_world(operator=False) as world:
        await world.create(raycronjob())
        transport = PickyTransport(world.place.transport())
        transport.next = [None, "answer lost"]  # of the get and of the creation
        code, lines, complaint = await ask(world, "trigger", "test-cronjob", transport=transport)
        assert (code, complaint) == (0, "")
        (job,) = await children(world)
        assert lines == [f"rayjob.ray.io/{job['metadata']['name']} created"]


async def test_trigger_refuses_what_would_not_run(ask):
    async with cron_world(operator=False) as world:
        await world.create(raycronjob(template={"shutdownAfterJobFinishes": False}))
        code, lines, complaint = await ask(world, "trigger", "test-cronjob")
        assert (code, lines) == (1, [])
        assert complaint.startswith(
            "eagleray cron: default/test-cronjob is invalid, so no RayJob of it would run:"
        )
        assert await children(world) == []


async def test_suspend_and_resume_turn_the_schedule_off_and_on(ask):
    async with cron_world() as world:
        await world.create(raycronjob())
        await wait_until(world, "00:06")
        assert await ask(world, "suspend", "test-cronjob") == (
            0,
            ["raycronjob.ray.io/test-cronjob suspended"],
            "",
        )
        assert await ask(world, "suspend", "test-cronjob") == (
            0,
            ["raycronjob.ray.io/test-cronjob was suspended already"],
            "",
        )
        await wait_until(world, "00:17")
        assert await ticks(world) == ["00:05"]
        assert (await condition_of(world, "Suspended"))[0] == "True"
        code, lines, _ = await ask(world, "resume", "test-cronjob")
        assert (code, lines) == (
            0,
            [
                "raycronjob.ray.io/test-cronjob resumed",
                f"note: the run of {stamp('00:15')}, the latest that was missed, is made up now",
            ],
        )
        await world.pass_time(MOMENT)
        assert await ticks(world) == ["00:05", "00:15"]
        assert (await ask(world, "resume", "test-cronjob"))[1] == [
            "raycronjob.ray.io/test-cronjob was not suspended"
        ]


async def test_resume_promises_no_run_that_is_too_late(ask):
    async with cron_world() as world:
        await world.create(raycronjob(suspend=True, startingDeadlineSeconds=30))
        await wait_until(world, "00:06")
        assert (await ask(world, "resume", "test-cronjob"))[1] == ["raycronjob.ray.io/test-cronjob resumed"]
        await patch(world, suspend=True, schedule="nonsense")
        assert (await ask(world, "resume", "test-cronjob"))[1] == ["raycronjob.ray.io/test-cronjob resumed"]


@pytest.mark.parametrize("action", ["next", "trigger", "suspend", "resume"])
async def test_what_is_not_there_is_told(ask, action):
    async with cron_world(operator=False) as world:
        sentence = "eagleray cron: there is no RayCronJob default/nothing, or its CRD is not installed"
        assert await ask(world, action, "nothing") == (2, [], sentence)


async def test_what_is_forbidden_is_told(ask):
    async with cron_world(operator=False) as world:
        transport = PickyTransport(world.place.transport())
        transport.refuse("list", "raycronjobs.ray.io", errors.Forbidden("you may not list raycronjobs"))
        complaint = "eagleray cron: you may not list raycronjobs"
        assert await ask(world, "list", transport=transport) == (2, [], complaint)
