"""Further attempts, and jobs that are suspended and resumed."""

from typing import Any

import pytest

from eagleray.kube.resources import SERVICES
from eagleray.operator import assembly
from eagleray.rayjob.look import Config
from eagleray.runtime.actions import Create, Refuse
from eagleray.schedulers.interface import NoScheduler
from tests.eagleray.rayjob.situations import (
    MOMENT,
    ROUND,
    SHUT_DOWN,
    condition_of,
    ended,
    names,
    ray_says,
    ray_world,
    reached,
    running,
    state_of,
    states_written,
    status_of,
    told,
    waits_for,
)
from tests.eagleray.world import rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

RESET = ("rayClusterName", "dashboardURL", "jobId", "message", "reason", "jobStatus", "submission")


# --- further attempts


@pytest.mark.case("RJ-57")
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
async def test_a_job_that_always_fails_has_so_many_attempts_on_clusters_of_their_own(mode):
    async with ray_world(lasts=2, ends="FAILED") as (world, ray):
        await world.create(rayjob(submissionMode=mode, backoffLimit=2))
        status = await reached(world, "Failed")
        assert (status["failed"], status["succeeded"], status["reason"]) == (3, 0, "AppFailed")
        assert status["submission"]["attempt"] == 3
        made = {body["metadata"]["name"] for body in world.bodies("create", "rayclusters.ray.io")}
        assert len(made) == 3
        assert len(ray.ledger.started) == 3
        assert ray.ledger.repeated == []
        assert len(await world.list("RayCluster")) == 1
        await world.pass_time(60)
        assert (await status_of(world))["failed"] == 3


@pytest.mark.case("RJ-58")
async def test_a_submitter_that_always_fails_has_so_many_attempts():
    async with ray_world(submitter_faults=["dies before"] * 3) as (world, ray):
        await world.create(rayjob(backoffLimit=2, submitterConfig={"backoffLimit": 0}))
        status = await reached(world, "Failed")
        assert (status["failed"], status["reason"]) == (3, "SubmissionFailed")
        assert ray.ledger.started == []


@pytest.mark.case("RJ-59")
async def test_a_second_attempt_may_succeed():
    async with running(backoffLimit=1) as (world, _):
        first = await status_of(world)
        await ray_says(world, "FAILED")
        await world.pass_time(ROUND)
        second = await reached(world, "Running")
        assert second["rayClusterName"] != first["rayClusterName"]
        assert second["jobId"] != first["jobId"]
        assert second["failed"] == 1
        assert "endTime" not in second
        await ray_says(world, "SUCCEEDED")
        status = await reached(world, "Complete")
        assert (status["failed"], status["succeeded"]) == (1, 1)
        assert states_written(world) == [
            "", "Initializing", "Running", "Retrying", "", "Initializing", "Running", "Complete",
        ]  # fmt: skip
        assert await told(world, "DeletedRayCluster") == (
            "Normal",
            "Delete",
            f"Deleted cluster default/{first['rayClusterName']}",
        )
        assert await told(world, "DeletedRayJobSubmitter") == (
            "Normal",
            "Delete",
            "Deleted submitter K8s Job default/j",
        )


@pytest.mark.case("RJ-59")
@pytest.mark.parametrize("kind", ["RayCluster", "Job"])
async def test_nothing_of_an_attempt_is_left_when_the_next_begins(kind):
    async with running(backoffLimit=1) as (world, _):
        name = {"RayCluster": (await status_of(world))["rayClusterName"], "Job": "j"}[kind]
        await world.patch(kind, name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await ray_says(world, "FAILED")
        await reached(world, "Retrying")
        await world.pass_time(60)
        assert await state_of(world) == "Retrying"
        reason, message = await waits_for(world)
        assert reason == "WaitingForDeletion"
        assert f"{kind} {name}" in message
        assert ("create", "rayclusters.ray.io") not in world.writes()[-5:]
        await world.patch(kind, name, {"metadata": {"finalizers": None}})
        await reached(world, "Running", seconds=20)


@pytest.mark.case("RJ-60")
@pytest.mark.parametrize(
    ("config", "limit"), [({"backoffLimit": 1}, 1), ({"backoffLimit": 0}, 0), (None, 2), ({}, 2)]
)
async def test_the_backoff_limit_of_the_submitter(config, limit):
    async with running(**({"submitterConfig": config} if config is not None else {})) as (world, _):
        assert (await world.get("Job", "j"))["spec"]["backoffLimit"] == limit


# --- suspend and resume


@pytest.mark.case("RJ-61", "RJ-95")
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"])
async def test_a_running_job_gives_everything_back_when_it_is_suspended(mode):
    async with running(mode=mode, **SHUT_DOWN) as (world, _):
        before = await status_of(world)
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        status = await reached(world, "Suspended", seconds=30)
        assert await world.list("RayCluster") == []
        assert await world.list("Job") == []
        assert not set(RESET) & set(status)
        assert status["rayJobInfo"] == {}
        assert status["rayClusterStatus"]["head"] == {}
        assert status["startTime"] == before["startTime"]
        assert (await condition_of(world, "Suspended"))[0] == "True"
        assert (await condition_of(world, "Progressing"))[0] == "False"
        assert states_written(world)[-3:] == ["Running", "Suspending", "Suspended"]


@pytest.mark.case("RJ-62")
async def test_suspending_is_seen_through_whatever_the_flag_says_meanwhile():
    async with running(**SHUT_DOWN) as (world, _):
        name = (await status_of(world))["rayClusterName"]
        await world.patch("RayCluster", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        for suspend in (True, False, True):
            await world.patch("RayJob", "j", {"spec": {"suspend": suspend}})
            await world.pass_time(30)
            assert await state_of(world) == "Suspending"
        await world.patch("RayCluster", name, {"metadata": {"finalizers": None}})
        await reached(world, "Suspended", seconds=10)
        assert names(await world.list("RayCluster")) == []


@pytest.mark.case("RJ-63")
async def test_a_job_that_is_made_suspended_makes_nothing_until_it_is_resumed():
    async with ray_world(lasts=None) as (world, _):
        await world.create(rayjob(suspend=True, **SHUT_DOWN))
        await reached(world, "Suspended", seconds=5)
        assert states_written(world) == ["", "Initializing", "Suspending", "Suspended"]
        await world.pass_time(60)
        assert ("create", "rayclusters.ray.io") not in world.writes()
        await world.patch("RayJob", "j", {"spec": {"suspend": False}})
        await reached(world, "Running", seconds=20)
        writes = world.writes()
        made = writes.index(("create", "rayclusters.ray.io"))
        ready = next(i for i in range(made, len(writes)) if writes[i] == ("patch", "rayclusters.ray.io"))
        assert made < ready < writes.index(("create", "jobs.batch"))
        assert (await condition_of(world, "Suspended"))[0] == "False"


@pytest.mark.case("RJ-64")
async def test_a_suspended_job_is_left_alone_until_it_is_resumed_as_a_new_one():
    async with running(**SHUT_DOWN) as (world, _):
        before = await status_of(world)
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await reached(world, "Suspended")
        await world.pass_time(MOMENT)
        writes = len(world.writes())
        await world.pass_time(1000)
        assert len(world.writes()) == writes
        await world.patch("RayJob", "j", {"spec": {"suspend": False}})
        after = await reached(world, "Running")
        assert "" in states_written(world)[-3:]
        for field in ("jobId", "rayClusterName", "startTime"):
            assert after[field] != before[field]


@pytest.mark.case("RJ-65")
@pytest.mark.parametrize("ends", ["SUCCEEDED", "FAILED"])
async def test_an_ended_job_is_not_suspended(ends):
    async with ended(ends=ends, **SHUT_DOWN, ttlSecondsAfterFinished=10_000) as (world, _):
        before = await status_of(world)
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await world.pass_time(60)
        after = await status_of(world)
        for status in (before, after):
            for entry in (status, *status["conditions"]):
                del entry["observedGeneration"]
        assert after == before
        assert len(await world.list("RayCluster")) == 1


@pytest.mark.case("RJ-99")
async def test_a_job_that_waits_for_its_user_can_be_suspended():
    async with ray_world() as (world, _):
        await world.create(rayjob(submissionMode="InteractiveMode", **SHUT_DOWN))
        await reached(world, "Waiting")
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await reached(world, "Suspended", seconds=20)
        assert await world.list("RayCluster") == []


# --- the scheduler


class Leaving(NoScheduler):
    """A scheduler that has something to take back as long as a test says so, and may not be able to."""

    def __init__(self, *, works):
        self.works = works
        self.is_left = True

    def clean_up(self, job, cluster):
        if not self.is_left:
            return ()
        if not self.works:
            return (Refuse("the queue is away"),)
        self.is_left = False
        metadata = {"name": "taken-back", "namespace": job.namespace}
        service: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"port": 1}]},
        }
        service["metadata"]["ownerReferences"] = [
            {"apiVersion": "ray.io/v1", "kind": "RayJob", "controller": True}
            | {"name": job.name, "uid": job.uid}
        ]
        return (Create(SERVICES, service),)


@pytest.fixture
def scheduler(monkeypatch):
    """Give the operator a scheduler of the test's."""

    def choose(chosen):
        monkeypatch.setattr(assembly, "JobConfig", lambda **given: CONFIG(**{**given, "scheduler": chosen}))
        return chosen

    return choose


CONFIG = Config
FAILURE = (
    "Warning",
    "Cleanup",
    "Failed to cleanup batch scheduler resources for RayJob default/j: the queue is away",
)
SUCCESS = ("Normal", "Cleanup", "Cleaned up batch scheduler resources for RayJob default/j")


@pytest.mark.case("RJ-66")
async def test_a_scheduler_that_cannot_clean_up_holds_up_a_suspension(scheduler):
    chosen = scheduler(Leaving(works=False))
    async with running(**SHUT_DOWN) as (world, _):
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await world.pass_time(60)
        assert await state_of(world) == "Suspending"
        assert await told(world, "FailedToCleanupBatchScheduler") == FAILURE
        chosen.works = True
        await reached(world, "Suspended", seconds=120)
        assert await told(world, "BatchSchedulerCleanedUp") == SUCCESS


@pytest.mark.case("RJ-66")
async def test_a_scheduler_that_cannot_clean_up_holds_up_a_retry(scheduler):
    chosen = scheduler(Leaving(works=False))
    async with running(backoffLimit=1) as (world, _):
        await ray_says(world, "FAILED")
        await world.pass_time(60)
        assert await state_of(world) == "Retrying"
        chosen.works = True
        await reached(world, "Running", seconds=120)


@pytest.mark.case("RJ-66")
@pytest.mark.parametrize("word", ["SUCCEEDED", "FAILED"])
async def test_a_scheduler_that_cannot_clean_up_after_an_end_is_only_told_of(scheduler, word):
    scheduler(Leaving(works=False))
    async with running() as (world, _):
        await ray_says(world, word)
        await reached(world, "Complete", "Failed")
        await world.pass_time(60)
        assert await told(world, "FailedToCleanupBatchScheduler") == FAILURE
        assert await world.events("ReconcileFailed") == []


@pytest.mark.case("RJ-66")
async def test_a_scheduler_that_cleans_up_says_so_once_and_one_that_need_not_says_nothing(scheduler):
    chosen = scheduler(Leaving(works=True))
    async with running() as (world, _):
        await ray_says(world, "SUCCEEDED")
        await reached(world, "Complete")
        await world.patch("RayJob", "j", {"metadata": {"labels": {"a": "b"}}})
        await world.pass_time(60)
        assert not chosen.is_left
        (event,) = await world.events("BatchSchedulerCleanedUp")
        assert (event["type"], event["action"], event["note"]) == SUCCESS
        assert "series" not in event
        assert await world.get("Service", "taken-back") is not None
