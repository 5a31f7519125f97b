"""The end of a RayJob as an object: Ray's job is asked to stop, for a while, and then the object is let go."""

import pytest

from tests.eagleray.dashboard.scripted import HANGS, REFUSES, SERVER_ERROR
from tests.eagleray.rayjob.situations import (
    MODES,
    MOMENT,
    ended,
    head_of,
    host,
    ray_world,
    reached,
    running,
    status_of,
    told,
)
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")


async def seconds_until_gone(world, name="j", most=60):
    """Delete a job and return how long it stays."""
    await world.delete("RayJob", name)
    start = world.clock.now()

    async def is_gone():
        return await world.get("RayJob", name) is None

    await world.until(is_gone, most, step=0.5)
    return (world.clock.now() - start).total_seconds()


@pytest.mark.case("RJ-79")
@pytest.mark.parametrize("mode", MODES)
async def test_the_ray_job_of_a_deleted_job_is_stopped(mode):
    async with running(mode=mode) as (world, _):
        head, job_id = await head_of(world), (await status_of(world))["jobId"]
        assert await seconds_until_gone(world) < 2
        assert head.jobs[job_id]["status"] == "STOPPED"
        assert await world.events("FailedToStopRayJob") == []


@pytest.mark.case("RJ-96")
@pytest.mark.parametrize("fault", [HANGS, REFUSES, SERVER_ERROR], ids=["hangs", "refuses", "errors"])
async def test_a_dashboard_that_never_answers_holds_a_job_for_half_a_minute(fault):
    async with running() as (world, _):
        job_id = (await status_of(world))["jobId"]
        world.dashboards.fault(await host(world), fault)
        assert 29 <= await seconds_until_gone(world) <= 32
        kind, action, note = await told(world, "FailedToStopRayJob")
        assert (kind, action) == ("Warning", "Delete")
        assert note.startswith(f"Could not stop Ray job {job_id} of RayJob default/j within 30s: ")


@pytest.mark.case("RJ-96")
async def test_a_dashboard_that_comes_back_in_time_is_asked_again():
    async with running() as (world, _):
        head, job_id = await head_of(world), (await status_of(world))["jobId"]
        world.dashboards.fault(await host(world), REFUSES, times=2)
        assert await seconds_until_gone(world) < 25
        assert head.jobs[job_id]["status"] == "STOPPED"


@pytest.mark.case("RJ-96")
async def test_a_missing_secret_holds_a_job_for_half_a_minute():
    options = {"authOptions": {"mode": "token", "secretName": "mine"}, "rayVersion": "2.52.0"}
    async with ray_world(lasts=None, token="t") as (world, _):
        await world.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "mine"},
                "stringData": {"auth_token": "t"},
            }
        )
        await world.create(rayjob(cluster=options))
        await reached(world, "Running")
        await world.pass_time(MOMENT)
        await world.delete("Secret", "mine")
        (await head_of(world)).token = "another"
        assert await seconds_until_gone(world) <= 32
        assert (await told(world, "FailedToStopRayJob"))[:2] == ("Warning", "Delete")


@pytest.mark.case("RJ-96")
async def test_an_operator_that_starts_late_counts_from_the_deletion():
    async with running() as (world, _):
        world.dashboards.fault(await host(world), HANGS)
        await world.kill_operator()
        await world.delete("RayJob", "j")
        await world.pass_time(40)
        assert await world.get("RayJob", "j") is not None
        await world.start_operator()
        await world.pass_time(2)
        assert await world.get("RayJob", "j") is None


async def test_a_job_that_has_ended_is_let_go_at_once():
    async with ended() as (world, _):
        world.dashboards.fault(await host(world), HANGS)
        assert await seconds_until_gone(world) < 1


async def test_a_job_without_a_cluster_yet_is_let_go_at_once():
    async with ray_world() as (world, _):
        await world.create(rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}))
        await world.pass_time(MOMENT)
        assert await seconds_until_gone(world) < 1


async def test_an_invalid_job_that_was_valid_once_is_let_go():
    async with running() as (world, _):
        await world.patch("RayJob", "j", {"spec": {"backoffLimit": -1}})
        await reached(world, "ValidationFailed")
        assert await seconds_until_gone(world) < 35


async def test_a_deleted_job_on_a_chosen_cluster_is_stopped_there():
    async with ray_world(lasts=None) as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.create(
            rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}, submissionMode="HTTPMode")
        )
        await reached(world, "Running")
        await world.pass_time(MOMENT)
        head, job_id = await head_of(world), (await status_of(world))["jobId"]
        assert await seconds_until_gone(world) < 2
        assert head.jobs[job_id]["status"] == "STOPPED"


async def test_a_job_that_ray_does_not_have_is_let_go_at_once():
    async with ray_world(lasts=None, health_delay=1000) as (world, ray):
        await world.create(rayjob())
        await reached(world, "Running")
        await world.pass_time(MOMENT)
        assert await seconds_until_gone(world) < 2
        assert await world.events("FailedToStopRayJob") == []
        assert ray.ledger.started == []


@pytest.mark.parametrize(
    ("change", "state"),
    [({"activeDeadlineSeconds": 1}, "Failed"), ({"backoffLimit": -1}, "ValidationFailed")],
    ids=["past its deadline", "invalid"],
)
async def test_what_still_runs_in_a_chosen_cluster_is_stopped_whatever_the_state(change, state):
    async with ray_world(lasts=None) as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.create(
            rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}, submissionMode="HTTPMode")
        )
        await reached(world, "Running")
        await world.pass_time(MOMENT)
        await world.patch("RayJob", "j", {"spec": change})
        job_id = (await reached(world, state))["jobId"]
        head = await head_of(world)
        assert head.jobs[job_id]["status"] == "RUNNING"
        assert await seconds_until_gone(world) < 2
        assert head.jobs[job_id]["status"] == "STOPPED"


async def test_a_job_whose_cluster_is_gone_is_let_go_at_once():
    async with running(activeDeadlineSeconds=10, shutdownAfterJobFinishes=True) as (world, _):
        await reached(world, "Failed")
        await world.pass_time(MOMENT)
        assert await world.list("RayCluster") == []
        assert await seconds_until_gone(world) < 1
