"""How an attempt reaches Ray: once, whatever is lost on the way; and how many dashboards are asked, and how often."""

import pytest

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import DashboardError
from tests.eagleray.dashboard.places import place
from tests.eagleray.dashboard.scripted import (
    ANSWER_HANGS,
    ANSWER_LOST,
    HANGS,
    SERVER_ERROR,
    WRONG_JSON,
    says,
    slow,
)
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.rayjob.situations import (
    KINDS,
    MODES,
    MOMENT,
    ROUND,
    head_of,
    head_pod,
    host,
    ray_world,
    reached,
    reported,
    running,
    set_status,
    state_of,
    states_written,
    status_of,
    waits_for,
)
from tests.eagleray.world import raycluster, rayjob, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

HTTP = {"submissionMode": "HTTPMode"}
HEAD = place()
INTERACTIVE = {"submissionMode": "InteractiveMode"}
RESUBMIT = {"annotations": {"eagleray.io/resubmit-lost-job": "true"}}


async def lose_head(world):
    """Delete the head's Pod, and wait until another one answers."""
    pod = await head_pod(world)
    await world.delete("Pod", pod["metadata"]["name"])
    await world.pass_time(ROUND)


# --- HTTPMode


@pytest.mark.case("RJ-53")
async def test_a_submission_is_recorded_and_clears_the_failure_timer():
    async with ray_world(lasts=None) as (world, ray):
        let_go = world.faults.refuse("patch", "rayjobs.ray.io", named='"submission"')
        await world.create(rayjob(**HTTP))
        await reached(world, "Running")
        await set_status(world, jobStatusCheckFailureStartTime="2030-01-01T00:00:00Z")
        let_go()
        status = await reported(world, "RUNNING")
        assert "jobStatusCheckFailureStartTime" not in status
        head = await head_of(world)
        assert (
            status["submission"].items()
            >= {
                "attempt": 1,
                "submissionId": status["jobId"],
                "headSession": head.session,
            }.items()
        )
        assert status["submission"]["requestedAt"]
        assert ray.ledger.started == [(status["jobId"], head.session)]
        posts = [i for i, (_, method, _) in enumerate(world.dashboards.requests) if method == "POST"]
        assert len(posts) == 1


@pytest.mark.parametrize("mode", [HTTP, {}], ids=["HTTPMode", "K8sJobMode"])
async def test_a_job_is_submitted_once_to_a_dashboard_that_names_no_session(monkeypatch, mode):
    monkeypatch.setattr(RayOnPods, "_session_at", lambda self, host: "")
    async with ray_world(lasts=None) as (world, ray):
        await world.create(rayjob(**mode))
        status = await reported(world, "RUNNING")
        assert "headSession" not in status["submission"]
        assert ray.ledger.started == [(status["jobId"], "")]


@pytest.mark.case("RJ-53")
async def test_nothing_is_submitted_before_it_is_recorded():
    async with ray_world(lasts=None) as (world, ray):
        stop = world.faults.refuse("patch", "rayjobs.ray.io", named='"submission"')
        await world.create(rayjob(**HTTP))
        await world.pass_time(120)
        assert ray.ledger.started == []
        stop()
        await reported(world, "RUNNING")
        assert len(ray.ledger.started) == 1


@pytest.mark.case("RJ-53")
async def test_a_submission_that_ray_refuses_starts_the_timer_and_is_repeated():
    async with ray_world(lasts=None) as (world, ray):
        await world.create(rayjob(**HTTP, entrypointResources='{"a": 1}'))
        where = host_of((await reached(world, "Running"))["rayClusterName"])
        world.dashboards.fault(where, says(500, b"ValueError: no agent"), times=1)
        status = await reported(world, "RUNNING", seconds=120)
        assert "jobStatusCheckFailureStartTime" not in status
        assert len(ray.ledger.started) == 1


@pytest.mark.case("RJ-89")
async def test_a_job_whose_head_was_replaced_is_lost():
    async with running(mode="HTTPMode") as (world, ray):
        old = (await head_of(world)).session
        await lose_head(world)
        status = await reached(world, "Failed", seconds=60)
        assert status["reason"] == "JobLost"
        assert old in status["message"]
        assert (await head_of(world)).session in status["message"]
        assert len(ray.ledger.started) == 1


@pytest.mark.case("RJ-89")
@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode"])
async def test_a_lost_job_is_retried_if_that_is_asked_for(mode):
    async with running(mode=mode, backoffLimit=1) as (world, ray):
        first = await status_of(world)
        await lose_head(world)
        second = await reached(world, "Running", seconds=60)
        await world.pass_time(ROUND)
        assert second["rayClusterName"] != first["rayClusterName"]
        assert "Retrying" in states_written(world)
        assert len(ray.ledger.started) == 2
        assert ray.ledger.repeated == []


@pytest.mark.case("RJ-90")
async def test_a_lost_job_is_submitted_again_where_the_user_wants_it():
    async with running(mode="HTTPMode", job=rayjob(**HTTP, metadata=RESUBMIT)) as (world, ray):
        job_id = (await status_of(world))["jobId"]
        await lose_head(world)
        await world.pass_time(ROUND)
        status = await status_of(world)
        assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Running", "RUNNING")
        assert status["submission"]["headSession"] == (await head_of(world)).session
        assert ray.ledger.executions(job_id) == 2
        await world.pass_time(120)
        assert ray.ledger.executions(job_id) == 2


@pytest.mark.case("RJ-91")
@pytest.mark.parametrize("fault", [ANSWER_LOST, ANSWER_HANGS], ids=["lost", "never comes"])
async def test_a_submission_whose_answer_is_lost_is_one_job(fault):
    async with ray_world(lasts=60) as (world, ray):
        lost = lose_answer(world, "POST", fault)
        await world.create(rayjob(**HTTP))
        status = await reached(world, "Complete", seconds=300)
        assert lost == ["/api/jobs/"]
        assert ray.ledger.executions(status["jobId"]) == 1


def lose_answer(world, method, fault):
    """Have the answer to the first request of this method lost; returns where its path will be found."""
    lost: list[str] = []
    answer = world.dashboards._answer

    async def losing(host, request, *others):
        if request.method == method and not lost:
            lost.append(request.path)
            world.dashboards.fault(host, fault, times=1)
        return await answer(host, request, *others)

    world.dashboards._answer = losing
    return lost


# --- restarts


@pytest.mark.case("RJ-92")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("moment", [0.0, 0.002, 0.01, 1.0, 3.5])
async def test_an_operator_that_restarts_around_the_submission_makes_one_job(mode, moment):
    async with ray_world(lasts=20) as (world, ray):
        await world.create(rayjob(submissionMode=mode))
        if mode == "InteractiveMode":
            await reached(world, "Waiting")
            (await head_of(world)).submit("by-hand")
            await world.patch("RayJob", "j", {"spec": {"jobId": "by-hand"}})
        else:
            await world.until(lambda: _is_recorded(world), step=0.001)
        await world.pass_time(moment)
        await world.kill_operator()
        await world.pass_time(2)
        await world.start_operator()
        status = await reached(world, "Complete", "Failed", seconds=120)
        assert (status["jobDeploymentStatus"], status["succeeded"]) == ("Complete", 1)
        assert len(ray.ledger.started) == 1


async def _is_recorded(world):
    return (await status_of(world)).get("submission")


# --- K8sJobMode


@pytest.mark.case("RJ-93")
async def test_a_submitter_that_finds_another_head_does_not_submit():
    async with ray_world(lasts=None, submitter_faults=["dies after"]) as (world, ray):
        await world.create(rayjob())
        await reached(world, "Running")
        # The operator hears nothing for a while, so that only the submitter can tell one head from the other.
        where = await host(world)
        world.dashboards.fault(where, HANGS)
        await lose_head(world)

        async def has_checked():
            return len(ray.exit_codes) > 1

        await world.until(has_checked, 120)
        assert ray.exit_codes[:2] == [1, 86]
        world.dashboards.heal(where)
        status = await reached(world, "Failed", seconds=120)
        assert status["reason"] == "JobLost"
        await world.pass_time(120)
        assert len(ray.ledger.started) == 1


@pytest.mark.case("RJ-93")
async def test_a_head_that_is_replaced_before_the_first_submitter_runs_gets_no_job():
    async with ray_world(lasts=None, health_delay=15) as (world, ray):
        await world.create(rayjob())
        await reached(world, "Running")
        await world.pass_time(2)
        await lose_head(world)
        assert (await reached(world, "Failed", seconds=300))["reason"] == "JobLost"
        await world.pass_time(200)
        assert set(ray.exit_codes) <= {86}
        assert ray.ledger.started == []


# --- InteractiveMode


@pytest.mark.case("RJ-94")
async def test_a_job_that_ray_does_not_know_yet_is_waited_for():
    async with ray_world(lasts=5) as (world, _):
        await world.create(rayjob(**INTERACTIVE, jobId="soon"))
        await reached(world, "Running")
        await world.pass_time(400)
        assert await state_of(world) == "Running"
        reason, message = await waits_for(world)
        assert reason == "JobNotFound"
        assert "soon" in message
        (await head_of(world)).submit("soon")
        assert (await reached(world, "Complete", seconds=30))["succeeded"] == 1


@pytest.mark.case("RJ-94")
async def test_a_job_that_ray_has_forgotten_is_lost():
    async with running(mode="InteractiveMode") as (world, _):
        (await head_of(world)).forget_jobs()
        assert (await reached(world, "Failed", seconds=30))["reason"] == "JobLost"


# --- the client


@pytest.mark.case("RJ-88")
async def test_stopping_a_job_that_has_ended_is_no_error():
    async with world_of(kinds=KINDS, operator=False) as world:
        head = world.dashboards.start(HEAD.host)
        head.submit("done")
        head.set_status("done", "SUCCEEDED")
        await Dashboard(HEAD, world.dashboards).stop("done")


@pytest.mark.case("RJ-88")
@pytest.mark.parametrize(("fault", "words"), [(SERVER_ERROR, "500"), (WRONG_JSON, "cannot be read")])
async def test_an_answer_that_is_none_is_an_error_with_its_words(fault, words):
    async with world_of(kinds=KINDS, operator=False) as world:
        world.dashboards.start(HEAD.host)
        world.dashboards.fault(HEAD.host, fault)
        with pytest.raises(DashboardError, match=words):
            await Dashboard(HEAD, world.dashboards).info("j")


@pytest.mark.case("RJ-88")
async def test_an_answer_that_is_none_is_told_in_the_status():
    async with running() as (world, _):
        world.dashboards.fault(await host(world), SERVER_ERROR)
        await world.pass_time(30)
        assert "GetJobInfo fail" in (await waits_for(world))[1]


# --- many at once


async def many(world, count):
    """Have so many jobs run on clusters that only exist on paper, each with a dashboard of its own."""
    for number in range(count):
        name = f"c{number}"
        await world.create(raycluster(name, managedBy="kueue.x-k8s.io/multikueue", workers=[]))
        await world.patch("RayCluster", name, {"status": {"state": "ready"}}, part="/status")
        world.dashboards.start(host_of(name), lasts=None)
        selector = {"clusterSelector": {"ray.io/cluster": name}}
        await world.create(rayjob(f"j{number}", cluster=False, **HTTP, **selector))


async def all_are(world, word):
    jobs = await world.list("RayJob")
    return all((job.get("status") or {}).get("jobStatus") == word for job in jobs) and jobs


@pytest.mark.case("RJ-102")
async def test_so_many_dashboards_are_asked_at_once_and_each_once():
    async with world_of(kinds=KINDS, flags=("--dashboard-poll-interval=500ms",)) as world:
        await many(world, 300)
        await world.until(lambda: all_are(world, "RUNNING"), step=5)
        world.dashboards.most_at_once = 0
        for number in range(300):
            world.dashboards.fault(host_of(f"c{number}"), slow(1.5))
        await world.pass_time(30)
        assert 200 < world.dashboards.most_at_once <= 256
        assert world.dashboards.most_at_one_host == 1
        assert await all_are(world, "RUNNING")


@pytest.mark.case("OP-37")
async def test_how_many_dashboards_are_asked_at_once_is_an_option():
    async with world_of(kinds=KINDS, flags=("--dashboard-poll-concurrency=2",)) as world:
        await many(world, 10)
        for number in range(10):
            world.dashboards.fault(host_of(f"c{number}"), slow(0.3))
        await world.until(lambda: all_are(world, "RUNNING"), step=1)
        await world.pass_time(60)
        assert world.dashboards.most_at_once == 2


@pytest.mark.case("OP-38")
async def test_how_often_a_dashboard_is_asked_is_an_option():
    async with world_of(kinds=KINDS, flags=("--dashboard-poll-interval=10s",)) as world:
        await many(world, 1)
        await world.until(lambda: all_are(world, "RUNNING"))
        before = len(questions(world))
        await world.pass_time(100)
        assert 8 <= len(questions(world)) - before <= 11


@pytest.mark.parametrize(("interval", "questions_in_ten_minutes"), [("30s", 20), ("60s", 10), ("120s", 5)])
async def test_how_seldom_a_calm_dashboard_is_asked_is_an_option(interval, questions_in_ten_minutes):
    async with world_of(kinds=KINDS, flags=(f"--dashboard-calm-interval={interval}",)) as world:
        await many(world, 1)
        await world.until(lambda: all_are(world, "RUNNING"))
        await world.pass_time(1000)
        before = len(questions(world))
        await world.pass_time(600)
        assert abs(len(questions(world)) - before - questions_in_ten_minutes) <= 2


def questions(world):
    return [path for path in world.dashboards.asked(host_of("c0"), "GET") if "/api/jobs/" in path]


@pytest.mark.case("OP-39")
async def test_a_cache_that_is_too_small_costs_time_and_no_job():
    async with world_of(kinds=KINDS, flags=("--dashboard-cache-size=2",)) as world:
        await many(world, 3)
        await world.until(lambda: all_are(world, "RUNNING"), step=1)
        for number in range(3):
            job_id = (await status_of(world, f"j{number}"))["jobId"]
            world.dashboards.heads[host_of(f"c{number}")].set_status(job_id, "SUCCEEDED")
        await world.until(lambda: all_are(world, "SUCCEEDED"), step=1)
        assert {(await status_of(world, f"j{number}"))["jobDeploymentStatus"] for number in range(3)} == {
            "Complete"
        }


@pytest.mark.case("OP-40")
async def test_nothing_is_kept_about_objects_that_are_gone():
    async with world_of(kinds=KINDS, flags=("--dashboard-cache-expiry=1s",)) as world:
        await many(world, 3)
        await world.until(lambda: all_are(world, "RUNNING"), step=1)
        for number in range(3):
            await world.delete("RayJob", f"j{number}")
        await world.pass_time(MOMENT)
        poller = world.operator._poller
        assert (len(poller._cache), len(poller._lines), len(poller._book)) == (0, 0, 0)


@pytest.mark.case("RJ-98")
async def test_a_head_that_never_answers_delays_no_other_job():
    ends = {}
    for hanging in (False, True):
        async with world_of(kinds=KINDS) as world:
            await many(world, 8)
            await world.until(lambda: all_are(world, "RUNNING"), step=1)
            if hanging:
                world.dashboards.fault(host_of("c0"), HANGS)
                await world.pass_time(30)
            start = world.clock.now()
            for number in range(1, 8):
                job_id = (await status_of(world, f"j{number}"))["jobId"]
                world.dashboards.heads[host_of(f"c{number}")].set_status(job_id, "SUCCEEDED")

            async def others_are_complete():
                found = [await state_of(world, f"j{number}") for number in range(1, 8)]
                return set(found) == {"Complete"}

            await world.until(others_are_complete, 60, step=0.1)
            ends[hanging] = (world.clock.now() - start).total_seconds()
            assert await state_of(world, "j0") == "Running"
    assert ends[True] <= 3.5
    assert ends[False] <= 3.5
