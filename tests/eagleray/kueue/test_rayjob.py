"""RayJobs that Kueue suspends and resumes, whatever they are doing."""

import pytest

from kubereef.node.scripts import Running, Script
from tests.eagleray.kueue.quota import kueue_world, nodes_of
from tests.eagleray.rayjob.situations import MODES, head_of, reached, reported, state_of, status_of, waits_for
from tests.eagleray.world import rayjob

RAY = {"app.kubernetes.io/name": "kuberay"}
# Pods that take so long to start and to end that every state can be met in the middle.
SLOW = (Script(RAY, steps=(Running(after=3),), stops_after=5),)
SHUT_DOWN = {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 3600}


def job(mode="K8sJobMode", **spec):
    return rayjob(submissionMode=mode, **{**SHUT_DOWN, **spec})


async def pods(world):
    return await world.list("Pod")


async def suspended(world):
    """Wait until a job is suspended, and see that nothing of it runs then or comes back."""
    status = await reached(world, "Suspended", seconds=120)
    assert not await pods(world)
    assert not await world.list("RayCluster")
    assert not await world.list("Job")
    await world.pass_time(60)
    assert await state_of(world) == "Suspended"
    assert not await pods(world)
    return status


async def submit_if_asked(world, mode):
    """Do as the user of an interactive job does."""
    if mode == "InteractiveMode":
        status = await reached(world, "Waiting")
        name = f"by-hand-{status['rayClusterName']}"
        (await head_of(world)).submit(name)
        await world.patch("RayJob", "j", {"spec": {"jobId": name}})


@pytest.mark.case("OP-164")
@pytest.mark.parametrize("mode", MODES)
async def test_a_job_in_a_queue_waits_and_runs_where_it_is_admitted(mode):
    async with kueue_world(lasts=5) as (world, kueue, ray):
        await kueue.create(job(mode))
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        await submit_if_asked(world, mode)
        status = await reported(world, "RUNNING")
        assert await nodes_of(world, status["rayClusterName"]) == {"node-a"}
        await reached(world, "Complete")
        assert (len(ray.ledger.started), ray.ledger.repeated) == (1, [])


@pytest.mark.case("OP-164")
@pytest.mark.parametrize(
    ("mode", "state"),
    [
        *[(mode, "Initializing") for mode in MODES],
        ("InteractiveMode", "Waiting"),
        *[(mode, "Running") for mode in MODES],
    ],
)
async def test_a_job_is_preempted_in_the_middle_and_admitted_again(mode, state):
    async with kueue_world(lasts=None, scripts=SLOW) as (world, kueue, ray):
        await kueue.create(job(mode))
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        if state == "Running":
            await submit_if_asked(world, mode)
        before = await reached(world, state)
        if state == "Running":
            await reported(world, "RUNNING")
        await kueue.evict("RayJob", "j")
        status = await suspended(world)
        assert not {"rayClusterName", "jobId", "dashboardURL", "submission"} & set(status)
        executed = len(ray.ledger.started)
        assert executed == (1 if state == "Running" else 0)
        await world.patch("RayJob", "j", {"spec": {"jobId": None}})
        await kueue.admit("RayJob", "j", "b")
        await submit_if_asked(world, mode)
        after = await reported(world, "RUNNING")
        assert after["rayClusterName"] != before["rayClusterName"]
        assert await nodes_of(world, after["rayClusterName"]) == {"node-b"}
        assert len(ray.ledger.started) == executed + 1
        assert ray.ledger.repeated == []


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
@pytest.mark.parametrize("tenths", range(0, 42, 6))
async def test_a_preemption_at_any_moment_costs_at_most_the_one_execution(mode, tenths):
    """From before the first Pod runs until after the job does."""
    async with kueue_world(lasts=10, scripts=SLOW) as (world, kueue, ray):
        await kueue.create(job(mode))
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        await world.pass_time(tenths / 4)
        await kueue.evict("RayJob", "j")
        await suspended(world)
        executed = len(ray.ledger.started)
        await kueue.admit("RayJob", "j", "b")
        await reached(world, "Complete")
        assert len(ray.ledger.started) == executed + 1 <= 2
        assert ray.ledger.repeated == []


async def test_a_job_that_is_admitted_while_it_still_goes_is_suspended_first_and_then_runs():
    async with kueue_world(lasts=10, scripts=SLOW) as (world, kueue, ray):
        await kueue.create(job())
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        before = await reported(world, "RUNNING")
        await kueue.evict("RayJob", "j")
        await reached(world, "Suspending")
        await world.pass_time(1)
        assert await pods(world)
        await kueue.admit("RayJob", "j", "b")
        await reached(world, "Initializing")
        after = await reported(world, "RUNNING")
        assert after["rayClusterName"] != before["rayClusterName"]
        assert await nodes_of(world, after["rayClusterName"]) == {"node-b"}
        assert ray.ledger.repeated == []


async def test_a_job_is_preempted_while_it_is_retried():
    async with kueue_world(lasts=3, ends="FAILED", scripts=SLOW) as (world, kueue, ray):
        await kueue.create(job(backoffLimit=2))
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        name = (await reported(world, "RUNNING"))["rayClusterName"]
        await world.patch("RayCluster", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await reached(world, "Retrying")
        await kueue.evict("RayJob", "j")
        await world.pass_time(5)
        assert await state_of(world) == "Retrying"
        await world.patch("RayCluster", name, {"metadata": {"finalizers": []}})
        status = await suspended(world)
        assert status["failed"] == 1
        ray.ends = "SUCCEEDED"
        await kueue.admit("RayJob", "j", "b")
        status = await reached(world, "Complete")
        assert (status["failed"], status["succeeded"]) == (1, 1)
        assert (len(ray.ledger.started), ray.ledger.repeated) == (2, [])


@pytest.mark.parametrize(("ends", "state"), [("SUCCEEDED", "Complete"), ("FAILED", "Failed")])
async def test_a_job_that_has_ended_is_not_touched_by_quota(ends, state):
    async with kueue_world(lasts=3, ends=ends) as (world, kueue, ray):
        await kueue.create(job())
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        await reached(world, state)
        await world.pass_time(10)
        before = await status_of(world)
        await kueue.evict("RayJob", "j")
        await world.pass_time(30)
        after = await status_of(world)
        assert {**after, "observedGeneration": 0, "conditions": []} == {
            **before,
            "observedGeneration": 0,
            "conditions": [],
        }
        assert len(ray.ledger.started) == 1


async def test_a_preempted_job_survives_the_operator():
    async with kueue_world(lasts=None, scripts=SLOW) as (world, kueue, ray):
        await kueue.create(job())
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        await reported(world, "RUNNING")
        await world.kill_operator()
        await kueue.evict("RayJob", "j")
        await world.pass_time(20)
        assert await pods(world), "nobody is there to do it"
        await world.start_operator()
        await suspended(world)
        await world.kill_operator()
        await kueue.admit("RayJob", "j", "b")
        await world.start_operator()
        await reported(world, "RUNNING")
        assert (len(ray.ledger.started), ray.ledger.repeated) == (2, [])


async def test_a_job_is_suspended_as_soon_as_the_last_pod_is_gone_and_says_so_until_then():
    async with kueue_world(lasts=None, scripts=SLOW) as (world, kueue, _):
        await kueue.create(job())
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        await reported(world, "RUNNING")
        await kueue.evict("RayJob", "j")
        await world.pass_time(4)
        reason, message = await waits_for(world)
        assert reason == "WaitingForDeletion"
        assert message.startswith("still there: Pod j-")
        await world.pass_time(1.5)
        assert await state_of(world) == "Suspended"


async def test_pods_of_a_node_that_tells_nothing_are_not_waited_for_for_ever():
    async with kueue_world(lasts=None) as (world, kueue, _):
        await kueue.create(job())
        await suspended(world)
        await kueue.admit("RayJob", "j", "a")
        await reported(world, "RUNNING")
        world.nodes.lose("node-a")
        await kueue.evict("RayJob", "j")
        await world.pass_time(60)
        assert await state_of(world) == "Suspending", "30 s of grace, and 60 s for the node to tell"
        await reached(world, "Suspended", seconds=70)
        assert await pods(world)
