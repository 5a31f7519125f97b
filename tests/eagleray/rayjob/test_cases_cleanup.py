"""What is taken away after the end of a job, and when."""

import asyncio

import pytest

from tests.eagleray.rayjob.situations import (
    MOMENT,
    ROUND,
    SHUT_DOWN,
    ended,
    host,
    ray_says,
    ray_world,
    reached,
    running,
    status_of,
    told,
)
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

DELETE_SELF = {"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "True"}
ALL = {"RayJob": 1, "RayCluster": 1, "Job": 1, "head": 1, "worker": 1}
NO_WORKERS = {**ALL, "worker": 0}
NO_CLUSTER = {**ALL, "RayCluster": 0, "head": 0, "worker": 0}
NOTHING = dict.fromkeys(ALL, 0)


def legacy(success, failure):
    return {"deletionStrategy": {"onSuccess": {"policy": success}, "onFailure": {"policy": failure}}}


def rules(*given):
    """Return a strategy of rules, each given as (policy, condition)."""
    return {
        "deletionStrategy": {
            "deletionRules": [{"policy": policy, "condition": when} for policy, when in given]
        }
    }


def after(word, seconds=0):
    return {"jobStatus": word, "ttlSeconds": seconds}


async def left(world):
    """Return how many objects of each sort there are."""
    found = {kind: len(await world.list(kind)) for kind in ("RayJob", "RayCluster", "Job")}
    for node in ("head", "worker"):
        found[node] = len(await world.list("Pod", f"ray.io/node-type={node}"))
    return found


STRATEGIES = [
    pytest.param("SUCCEEDED", {}, ALL, id="nothing is asked for", marks=pytest.mark.case("RJ-79")),
    pytest.param("SUCCEEDED", SHUT_DOWN, NO_CLUSTER, id="shut down", marks=pytest.mark.case("RJ-78")),
    pytest.param(
        "FAILED", SHUT_DOWN, NO_CLUSTER, id="shut down after a failure", marks=pytest.mark.case("RJ-78")
    ),
    *(
        pytest.param(
            word,
            strategy,
            left_over,
            id=f"{policy} {how} on {word}",
            marks=pytest.mark.case("RJ-80") if policy == "DeleteWorkers" else pytest.mark.case("RJ-81"),
        )
        for policy, left_over in {
            "DeleteWorkers": NO_WORKERS,
            "DeleteCluster": NO_CLUSTER,
            "DeleteSelf": NOTHING,
            "DeleteNone": ALL,
        }.items()
        for word in ("SUCCEEDED", "FAILED")
        for how, strategy in {
            "by a legacy strategy": legacy(
                *((policy, "DeleteNone") if word == "SUCCEEDED" else ("DeleteNone", policy))
            ),
            "by a rule": rules((policy, after(word))),
        }.items()
    ),
    pytest.param(
        "SUCCEEDED",
        rules(("DeleteCluster", after("FAILED")), ("DeleteSelf", {"jobDeploymentStatus": "Failed"})),
        ALL,
        id="rules about another end",
        marks=pytest.mark.case("RJ-81"),
    ),
    pytest.param(
        "FAILED",
        rules(("DeleteWorkers", after("FAILED")), ("DeleteCluster", {"jobDeploymentStatus": "Failed"})),
        NO_CLUSTER,
        id="of two rules that are due the one that deletes more",
        marks=pytest.mark.case("RJ-83"),
    ),
    pytest.param(
        "STOPPED",
        rules(("DeleteCluster", after("SUCCEEDED")), ("DeleteSelf", after("FAILED"))),
        ALL,
        id="a job that was stopped is neither",
        marks=pytest.mark.case("RJ-85"),
    ),
    pytest.param(
        "STOPPED",
        legacy("DeleteCluster", "DeleteCluster"),
        ALL,
        id="a job that was stopped is neither for a legacy strategy",
        marks=pytest.mark.case("RJ-85"),
    ),
]


@pytest.mark.case("OP-42")
@pytest.mark.parametrize(("ends", "spec", "remains"), STRATEGIES)
async def test_what_is_left_after_the_end(ends, spec, remains):
    async with ray_world(lasts=2, ends=ends) as (world, _):
        await world.create(rayjob(**spec))
        await world.pass_time(20)
        assert await left(world) == remains
        await world.stop_operator()
        await world.start_operator()
        await world.pass_time(700)
        assert await left(world) == remains


@pytest.mark.case("RJ-78", "OP-32", "OP-62")
@pytest.mark.parametrize("how", ["the environment", "the configuration"])
async def test_the_job_itself_is_deleted_if_the_operator_is_told_so(how, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\ndeleteRayJobAfterJobFinishes: true\n"
        "metricsAddr: '0'\nprobeAddr: '0'\nenableLeaderElection: false\n"
    )
    by_file = how == "the configuration"
    flags, variables = (("--config", str(file)), {}) if by_file else ((), DELETE_SELF)
    async with ray_world(lasts=2, flags=flags, variables=variables) as (world, _):
        await world.create(rayjob(**SHUT_DOWN))
        await world.create(rayjob("kept"))
        await world.pass_time(30)
        assert [job["metadata"]["name"] for job in await world.list("RayJob")] == ["kept"]


@pytest.mark.case("RJ-77")
async def test_nothing_is_deleted_after_a_job_on_a_chosen_cluster_not_even_the_job():
    async with ray_world(lasts=2, variables=DELETE_SELF) as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.create(rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}, **SHUT_DOWN))
        await reached(world, "Complete")
        await world.pass_time(60)
        assert await left(world) == ALL


@pytest.mark.case("RJ-78")
async def test_a_shutdown_waits_for_its_delay():
    async with ended(**SHUT_DOWN, ttlSecondsAfterFinished=60) as (world, _):
        await world.pass_time(58)
        assert await left(world) == ALL
        await world.pass_time(MOMENT)
        assert await left(world) == NO_CLUSTER
        name = (await status_of(world))["rayClusterName"]
        assert await told(world, "DeletedRayCluster") == (
            "Normal",
            "Delete",
            f"Deleted cluster default/{name}",
        )


@pytest.mark.case("RJ-79")
async def test_what_a_job_has_made_goes_with_it():
    async with ended() as (world, _):
        await world.delete("RayJob", "j")
        await world.pass_time(MOMENT)
        assert await left(world) == NOTHING
        assert await world.get("Service", "j-head-svc") is None


@pytest.mark.case("RJ-80")
async def test_deleting_workers_is_told():
    async with ended(**rules(("DeleteWorkers", after("SUCCEEDED")))) as (world, _):
        await world.pass_time(MOMENT)
        name = (await status_of(world))["rayClusterName"]
        words = f"Set the `suspend` field to true for all worker groups in cluster default/{name}"
        assert await told(world, "UpdatedRayCluster") == ("Normal", "Update", words)
        assert all(
            one["suspend"] for one in (await world.get("RayCluster", name))["spec"]["workerGroupSpecs"]
        )


STAGED = rules(
    ("DeleteWorkers", after("SUCCEEDED", 15)),
    ("DeleteCluster", after("SUCCEEDED", 35)),
    ("DeleteSelf", after("SUCCEEDED", 55)),
)


@pytest.mark.case("RJ-82")
@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "with a new operator each time"])
async def test_rules_are_followed_each_at_its_time(restarts):
    async with ended(**STAGED) as (world, _):
        start = world.clock.now()
        for moment, remains in [
            (13, ALL),
            (18, NO_WORKERS),
            (33, NO_WORKERS),
            (38, NO_CLUSTER),
            (53, NO_CLUSTER),
            (58, NOTHING),
        ]:
            await asyncio.sleep(moment - (world.clock.now() - start).total_seconds())
            assert await left(world) == remains, moment
            if restarts:
                await world.kill_operator()
                await world.start_operator()


@pytest.mark.case("RJ-83")
async def test_of_rules_that_are_all_overdue_only_the_last_is_followed():
    async with ended(**STAGED) as (world, _):
        await world.stop_operator()
        await world.pass_time(100)
        sent = len(world.faults.sent)
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert await left(world) == NOTHING
        writes = [
            (one.verb, one.resource)
            for one in world.faults.sent[sent:]
            if one.verb not in ("get", "list", "watch") and "events" not in one.resource
        ]
        assert ("delete", "rayclusters.ray.io") not in writes
        assert writes[0] == ("delete", "rayjobs.ray.io")


@pytest.mark.case("RJ-84")
async def test_a_job_that_its_deadline_has_ended_has_failed_whatever_ray_says():
    strategy = rules(
        ("DeleteSelf", after("FAILED")),
        ("DeleteSelf", after("SUCCEEDED")),
        ("DeleteCluster", {"jobDeploymentStatus": "Failed", "ttlSeconds": 5}),
    )
    async with running(activeDeadlineSeconds=20, **strategy) as (world, _):
        status = await reached(world, "Failed", seconds=30)
        assert (status["jobStatus"], status["reason"]) == ("RUNNING", "DeadlineExceeded")
        await world.pass_time(ROUND)
        assert await left(world) == NO_CLUSTER


@pytest.mark.case("RJ-81")
async def test_a_strategy_is_about_the_last_attempt_alone():
    async with running(mode="HTTPMode", backoffLimit=1, **rules(("DeleteCluster", after("FAILED")))) as (
        world,
        _,
    ):
        await ray_says(world, "FAILED")
        await world.pass_time(ROUND)
        await reached(world, "Running")
        await world.pass_time(ROUND)
        await ray_says(world, "SUCCEEDED")
        await reached(world, "Complete")
        await world.pass_time(60)
        assert len(await world.list("RayCluster")) == 1


@pytest.mark.case("RJ-101")
async def test_an_ended_job_asks_nothing_more():
    async with ended() as (world, _):
        asked = len(world.dashboards.requests)
        await world.pass_time(1000)
        assert len(world.dashboards.requests) == asked


@pytest.mark.case("RJ-101")
async def test_nothing_is_asked_once_the_end_is_known_though_the_submitter_goes_on():
    async with running() as (world, ray):
        ray.held = True
        await ray_says(world, "SUCCEEDED")
        await world.pass_time(ROUND)
        asked = len(world.dashboards.requests)
        await world.pass_time(200)
        await world.kill_operator()
        await world.start_operator()
        await world.pass_time(30)
        assert len(world.dashboards.requests) == asked
        ray.held = False
        assert (await reached(world, "Complete", seconds=20))["succeeded"] == 1


@pytest.mark.case("RJ-101")
@pytest.mark.parametrize("change", ["suspend", "delete"])
async def test_nothing_is_asked_once_a_job_is_suspended_or_gone(change):
    async with running(**SHUT_DOWN) as (world, _):
        where = await host(world)
        if change == "suspend":
            await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        else:
            await world.delete("RayJob", "j")
        await world.pass_time(ROUND)
        asked = world.dashboards.asked(where)
        await world.pass_time(200)
        assert world.dashboards.asked(where) == asked
