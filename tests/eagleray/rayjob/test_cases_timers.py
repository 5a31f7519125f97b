"""Deadlines: the user's own, and how long Ray and a submitter may keep a job waiting."""

from datetime import timedelta

import pytest

from eagleray.runtime.environment import read_environment
from kubereef.node.scripted import Script, Waits
from kubewire.times import format_time
from tests.eagleray.dashboard.scripted import REFUSES, SERVER_ERROR
from tests.eagleray.rayjob.situations import (
    ROUND,
    head_of,
    host,
    ray_says,
    ray_world,
    reached,
    reported,
    running,
    set_status,
    state_of,
    status_of,
    waits_for,
)
from tests.eagleray.world import rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

NO_IMAGE = (Script(when={"ray.io/node-type": "head"}, steps=[Waits(reason="ErrImagePull")]),)
GRACE = "JobDeploymentStatusTransitionGracePeriodExceeded"
INTERACTIVE = {"submissionMode": "InteractiveMode"}


def ago(world, seconds):
    return format_time(world.clock.now() - timedelta(seconds=seconds))


@pytest.mark.case("RJ-43")
async def test_a_submitter_that_is_done_waits_so_long_for_the_job():
    async with running() as (world, ray):
        ray.let_go = True
        await world.pass_time(25)
        assert await state_of(world) == "Running"
        status = await reached(world, "Failed", seconds=10)
        assert (status["jobStatus"], status["reason"]) == ("FAILED", GRACE)
        assert status["message"].startswith("The RayJob submitter finished at 2030-01-01 00:00:0")
        assert status["message"].endswith("but the ray job did not reach terminal state within 30s")


@pytest.mark.case("RJ-44")
@pytest.mark.parametrize(
    ("word", "state"), [("FAILED", "Failed"), ("SUCCEEDED", "Complete"), ("STOPPED", "Complete")]
)
async def test_a_submitter_that_hangs_is_not_waited_for_for_ever(word, state):
    async with running() as (world, ray):
        ray.held = True
        await ray_says(world, word)
        await reported(world, word)
        await world.pass_time(290)
        assert await state_of(world) == "Running"
        status = await reached(world, state, seconds=10)
        assert (status["reason"], status["jobStatus"]) == (GRACE, word)
        assert "within the grace period" in status["message"]


@pytest.mark.case("RJ-44")
async def test_the_grace_period_is_an_option():
    variables = {"RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": "20"}
    async with running(variables=variables) as (world, ray):
        ray.held = True
        await ray_says(world, "SUCCEEDED")
        await reached(world, "Complete", seconds=25)


@pytest.mark.case("RJ-45")
async def test_an_end_without_a_time_starts_no_grace_period():
    async with running() as (world, ray):
        ray.held = True
        await ray_says(world, "SUCCEEDED")
        (await head_of(world)).jobs[(await status_of(world))["jobId"]]["end_time"] = 0
        await reported(world, "SUCCEEDED")
        await world.pass_time(1000)
        assert await state_of(world) == "Running"


@pytest.mark.case("RJ-46")
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
async def test_a_job_that_is_too_long_fails_at_its_deadline_and_is_not_retried(mode):
    async with ray_world(lasts=1000) as (world, _):
        await world.create(rayjob(submissionMode=mode, activeDeadlineSeconds=5, backoffLimit=2))
        start = world.clock.now()
        status = await reached(world, "Failed", seconds=20)
        assert (world.clock.now() - start).total_seconds() == pytest.approx(5, abs=1.1)
        assert (status["reason"], status["failed"]) == ("DeadlineExceeded", 1)
        began = status["startTime"].replace("T", " ").removesuffix("Z")
        assert status["message"] == (
            f"The RayJob has passed the activeDeadlineSeconds. StartTime: {began} +0000 UTC."
            " ActiveDeadlineSeconds: 5"
        )
        await world.pass_time(60)
        assert await state_of(world) == "Failed"


@pytest.mark.case("RJ-47")
async def test_a_cluster_that_never_comes_ends_at_the_pre_running_deadline():
    async with ray_world(scripts=NO_IMAGE) as (world, _):
        await world.create(rayjob(preRunningDeadlineSeconds=5))
        status = await reached(world, "Failed", seconds=10)
        assert (status["reason"], status["failed"]) == ("PreRunningDeadlineExceeded", 1)
        assert status["message"].endswith(" +0000 UTC. PreRunningDeadlineSeconds: 5")


@pytest.mark.case("RJ-47")
async def test_a_pre_running_deadline_is_retried():
    async with ray_world(scripts=NO_IMAGE) as (world, _):
        await world.create(rayjob(preRunningDeadlineSeconds=5, backoffLimit=1))
        status = await reached(world, "Failed", seconds=30)
        assert (status["reason"], status["failed"]) == ("PreRunningDeadlineExceeded", 2)


@pytest.mark.case("RJ-47")
async def test_a_job_that_runs_has_kept_its_pre_running_deadline():
    async with running(preRunningDeadlineSeconds=5) as (world, _):
        await world.pass_time(60)
        assert await state_of(world) == "Running"


@pytest.mark.case("RJ-48", "RJ-99")
@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"preRunningDeadlineSeconds": 5}, "PreRunningDeadlineExceeded"),
        ({"activeDeadlineSeconds": 5}, "DeadlineExceeded"),
        ({"activeDeadlineSeconds": 5, "preRunningDeadlineSeconds": 5}, "DeadlineExceeded"),
    ],
    ids=["before it runs", "in all", "both at once"],
)
async def test_a_user_who_never_submits_ends_at_the_deadline(spec, reason):
    async with ray_world() as (world, _):
        await world.create(rayjob(**INTERACTIVE, **spec))
        await reached(world, "Waiting")
        assert (await reached(world, "Failed", seconds=10))["reason"] == reason


@pytest.mark.case("RJ-50")
@pytest.mark.parametrize("fault", [REFUSES, SERVER_ERROR], ids=["refuses", "errors"])
async def test_the_first_failure_to_ask_is_kept(fault):
    async with running() as (world, _):
        world.dashboards.fault(await host(world), fault)
        await world.pass_time(ROUND)
        since = (await status_of(world))["jobStatusCheckFailureStartTime"]
        await world.pass_time(100)
        assert (await status_of(world))["jobStatusCheckFailureStartTime"] == since
        assert (await waits_for(world))[0] == "DashboardUnreachable"
        world.dashboards.heal(await host(world))
        await world.pass_time(40)
        assert "jobStatusCheckFailureStartTime" not in await status_of(world)
        assert (await waits_for(world))[0] == "JobRunning"


@pytest.mark.case("RJ-51")
async def test_a_dashboard_that_was_silent_for_too_long_ends_the_job():
    async with running(backoffLimit=2) as (world, _):
        world.dashboards.fault(await host(world), REFUSES)
        await world.pass_time(290)
        assert await state_of(world) == "Running"
        status = await reached(world, "Failed", seconds=20)
        assert (status["reason"], status["jobStatus"], status["failed"]) == (
            "JobStatusCheckTimeoutExceeded",
            "RUNNING",
            1,
        )
        assert "exceeded timeout of 300s" in status["message"]


@pytest.mark.case("RJ-51")
async def test_a_failure_of_ten_minutes_ago_ends_the_job_of_a_new_operator():
    async with running() as (world, _):
        await world.stop_operator()
        world.dashboards.fault(await host(world), REFUSES)
        await set_status(world, jobStatusCheckFailureStartTime=ago(world, 600))
        await world.start_operator()
        assert (await reached(world, "Failed", seconds=5))["reason"] == "JobStatusCheckTimeoutExceeded"


@pytest.mark.case("RJ-51", "OP-67")
async def test_the_timeout_is_an_option():
    async with running(variables={"RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": "1"}) as (world, _):
        world.dashboards.fault(await host(world), REFUSES)
        status = await reached(world, "Failed", seconds=10)
        assert status["message"].startswith("Job status checks have been failing since 2030-01-01 00:0")
        assert status["message"].endswith("exceeded timeout of 1s")


@pytest.mark.case("RJ-52", "OP-67")
@pytest.mark.parametrize(
    ("text", "seconds"), [("120", 120), ("invalid", 300), (None, 300), ("0", 300), ("-1", 300)]
)
def test_the_timeout_of_status_checks_is_read(text, seconds):
    variables = {} if text is None else {"RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": text}
    environment, notices = read_environment(variables)
    assert environment.rayjob_status_check_seconds == seconds
    assert bool(notices) == (text not in (None, "120"))
