"""Clusters whose state lives in Redis: it is removed when they go, and nothing keeps them for ever."""

import pytest

from kubereef.node.scripted import Fails, Running, Script, Succeeds
from kubewire import errors
from tests.eagleray.raycluster.situations import FINALIZER, MOMENT, running, told
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

ANNOTATED = {"annotations": {"ray.io/ft-enabled": "true"}}
OPTIONS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
CLEANUP = {"ray.io/node-type": "redis-cleanup"}
JOB = "c-redis-cleanup"


def doing(*steps):
    """Return how the Pod of the cleanup lives."""
    return Script(CLEANUP, steps=[Running(), *steps])


def slow_head(seconds):
    return Script({"ray.io/node-type": "head"}, stops_after=seconds)


def patient(seconds):
    """Return a head that is given so much time to end."""
    pod = {"terminationGracePeriodSeconds": seconds, "containers": [{"name": "ray", "image": "r"}]}
    return {"template": {"spec": pod}}


async def finalizers(world):
    return (await world.get("RayCluster", "c"))["metadata"].get("finalizers", [])


@pytest.mark.case("RC-35")
@pytest.mark.parametrize(
    ("variables", "has"),
    [
        pytest.param({}, True, id="unset"),
        pytest.param({"ENABLE_GCS_FT_REDIS_CLEANUP": "true"}, True, id="on"),
        pytest.param({"ENABLE_GCS_FT_REDIS_CLEANUP": "FALSE"}, False, id="off"),
    ],
)
@pytest.mark.parametrize("tolerant", [{"metadata": ANNOTATED}, OPTIONS], ids=["annotation", "options"])
async def test_the_finalizer_is_there_before_anything_else_is_made(variables, has, tolerant):
    async with running(variables=variables, **tolerant) as world:
        assert await finalizers(world) == ([FINALIZER] if has else [])
        first = world.writes()[0]
        assert (first == ("patch", "rayclusters.ray.io")) is has
        assert (await world.get("RayCluster", "c"))["metadata"]["generation"] == 1


async def dropped_options(world):
    await world.patch_spec("c", {"gcsFaultToleranceOptions": None})


async def turned_off(world):
    await world.stop_operator()
    world.variables = {"ENABLE_GCS_FT_REDIS_CLEANUP": "false"}
    await world.start_operator()


async def moved_to_disk(world):
    await world.patch_spec("c", {"gcsFaultToleranceOptions": {"backend": "rocksdb", "redisAddress": None}})


@pytest.mark.case("RC-36")
@pytest.mark.parametrize("change", [dropped_options, turned_off, moved_to_disk])
async def test_a_finalizer_whose_cleanup_no_longer_applies_goes(change):
    async with running(**OPTIONS) as world:
        await change(world)
        await world.pass_time(MOMENT)
        await world.delete("RayCluster", "c")
        await world.pass_time(MOMENT)
        assert await world.get("RayCluster", "c") is None
        assert await world.list("Job") == []


@pytest.mark.case("RC-36")
async def test_a_cluster_that_stores_its_state_on_disk_never_has_the_finalizer():
    async with world_of() as world:
        await world.create(raycluster(gcsFaultToleranceOptions={"backend": "rocksdb"}))
        await world.pass_time(MOMENT)
        assert await finalizers(world) == []


@pytest.mark.case("RC-37")
@pytest.mark.parametrize("seconds", [60, 900], ids=["soon", "later than any deadline"])
async def test_the_cleanup_waits_until_the_head_is_gone(seconds):
    scripts = [slow_head(seconds), doing(Succeeds(after=10))]
    async with running(scripts=scripts, head=patient(seconds), **OPTIONS) as world:
        await world.delete("RayCluster", "c")
        await world.pass_time(seconds - 10)
        assert await world.workers() == []
        assert await world.head() is not None
        assert await world.list("Job") == []
        await world.pass_time(12)
        (job,) = await world.list("Job")
        assert (job["metadata"]["name"], job["spec"]["activeDeadlineSeconds"]) == (JOB, 300)
        assert job["spec"]["backoffLimit"] == 0
        assert await told(world, "CreatedRedisCleanupJob") == (
            "Normal",
            "Create",
            f"Created Redis cleanup Job default/{JOB}",
        )
        await world.pass_time(30)
        assert await world.get("RayCluster", "c") is None
        assert await world.events("RedisCleanupFailed") == []


@pytest.mark.case("RC-38")
async def test_a_cleanup_that_succeeds_lets_the_cluster_go():
    async with running(scripts=[doing(Succeeds(after=10))], **OPTIONS) as world:
        await world.delete("RayCluster", "c")
        await world.pass_time(5)
        assert await finalizers(world) == [FINALIZER]
        await world.pass_time(15)
        assert await world.get("RayCluster", "c") is None
        assert not {"RedisCleanupFailed", "ForceDeletedStuckCluster"} & set(await world.reasons("c"))


@pytest.mark.case("RC-38")
async def test_a_cleanup_that_fails_lets_the_cluster_go_and_tells_what_is_left():
    options = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379", "externalStorageNamespace": "mine"}}
    async with running(scripts=[doing(Fails(after=10))], **options) as world:
        await world.delete("RayCluster", "c")
        await world.pass_time(30)
        assert await world.get("RayCluster", "c") is None
        kind, action, note = await told(world, "RedisCleanupFailed")
        assert (kind, action) == ("Warning", "Cleanup")
        assert note.startswith("Redis storage namespace mine of RayCluster default/c was not cleaned up: ")
        assert "by hand" in note


@pytest.mark.case("RC-39")
@pytest.mark.parametrize(("status", "goes"), [("True", True), ("False", False)])
async def test_a_job_that_is_certain_to_fail_has_ended(status, goes):
    async with running(scripts=[doing()], **OPTIONS) as world:
        await world.delete("RayCluster", "c")
        await world.pass_time(5)
        condition = {"type": "FailureTarget", "status": status, "reason": "BackoffLimitExceeded"}
        job = await world.get("Job", JOB)
        conditions = [*job["status"].get("conditions", []), condition]
        await world.patch("Job", JOB, {"status": {"conditions": conditions}}, part="/status")
        await world.pass_time(MOMENT)
        assert (await world.get("RayCluster", "c") is None) is goes
        assert bool(await world.events("RedisCleanupFailed")) is goes


@pytest.mark.case("RC-40")
@pytest.mark.case("RC-41")
@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        pytest.param("120", 120, id="120 seconds"),
        pytest.param(None, 300, id="missing"),
        pytest.param("soon", 300, id="text"),
        pytest.param("0", 300, id="zero"),
        pytest.param("-5", 300, id="negative"),
    ],
)
async def test_a_cleanup_that_does_not_end_in_time_lets_the_cluster_go(given, seconds):
    annotations = {"ray.io/ft-enabled": "true"}
    if given is not None:
        annotations["ray.io/gcs-ft-deletion-timeout"] = given
    # Nobody runs the Job's Pod, so that its own deadline does not end it either.
    async with running(scripts=[doing()], metadata={"annotations": annotations}) as world:
        await world.delete("RayCluster", "c")
        await world.pass_time(2)
        await world.patch("Job", JOB, {"spec": {"suspend": True}})
        await world.pass_time(seconds - 10)
        assert await finalizers(world) == [FINALIZER]
        await world.pass_time(15)
        assert await world.get("RayCluster", "c") is None
        for reason in ("ForceDeletedStuckCluster", "RedisCleanupFailed"):
            kind, action, _ = await told(world, reason)
            assert (kind, action) == ("Warning", "Cleanup")


@pytest.mark.case("RC-41")
async def test_a_cleanup_that_cannot_be_made_is_tried_until_its_time_is_up():
    async with running(**OPTIONS) as world:
        world.faults.refuse("create", "jobs.batch", errors.Forbidden("no Jobs here"))
        await world.delete("RayCluster", "c")
        await world.pass_time(250)
        assert await finalizers(world) == [FINALIZER]
        kind, action, note = await told(world, "FailedToCreateRedisCleanupJob")
        assert (kind, action) == ("Warning", "Create")
        assert note == f"Failed to create Redis cleanup Job default/{JOB}, no Jobs here"
        await world.pass_time(400)
        assert await world.get("RayCluster", "c") is None
        assert await world.events("RedisCleanupFailed")


@pytest.mark.case("RC-103")
async def test_an_invalid_cluster_that_is_deleted_goes():
    async with running(scripts=[doing(Succeeds(after=1))], **OPTIONS) as world:
        await world.set_group("c", minReplicas=5, maxReplicas=3)
        await world.pass_time(MOMENT)
        assert await world.events("InvalidRayClusterSpec")
        await world.delete("RayCluster", "c")
        await world.pass_time(60)
        assert await world.get("RayCluster", "c") is None
        assert await world.pods() == []


@pytest.mark.case("RC-77")
async def test_workers_of_a_cluster_with_redis_wait_longer_for_a_lost_head():
    async with running(**OPTIONS) as world:
        for pod, wanted in ((await world.head(), None), ((await world.workers())[0], "600")):
            env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
            assert env.get("RAY_gcs_rpc_server_reconnect_timeout_s") == wanted


async def test_a_namespace_that_is_deleted_does_not_wait_for_a_cleanup_that_it_does_not_take(caplog):
    async with world_of() as world:
        place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}}
        await world.api.create("/api/v1/namespaces", place)
        await world.create(raycluster("c", namespace="going", **OPTIONS))

        async def is_held():
            return (await world.get("RayCluster", "c", "going"))["metadata"].get("finalizers")

        await world.until(is_held)
        await world.pass_time(10)
        await world.api.delete("/api/v1/namespaces/going")
        await world.pass_time(60)
        with pytest.raises(errors.NotFound):
            await world.api.get("/api/v1/namespaces/going")
    assert "of RayCluster going/c was not cleaned up: its namespace is being deleted" in caplog.text
