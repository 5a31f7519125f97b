"""Services that stop: suspended and resumed, or out of time before they ever served."""

import pytest

from kubereef.node.scripted import Script, Waits
from tests.eagleray.rayservice.situations import (
    ROUND,
    active,
    change,
    clusters,
    condition,
    has_condition,
    incremental,
    is_ready,
    message,
    new_pending,
    pending,
    serve_world,
    serving,
    set_image,
    status_of,
    told,
    whole_condition,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")

TIMEOUT = "ray.io/initializing-timeout"
RAYS_OWN = "ray.io/originated-from-crd=RayService"
NO_IMAGE = Script(when={"ray.io/node-type": "head"}, steps=[Waits(reason="ImagePullBackOff")])


def timed(text, **more):
    return rayservice(metadata={"annotations": {TIMEOUT: text}}, **more)


async def suspended(world):
    await change(world, suspend=True)
    await has_condition(world, "Suspended", "True", "SuspendComplete", seconds=60)


# --- suspending


@pytest.mark.case("RS-40")
async def test_a_suspended_service_has_nothing_and_says_so():
    async with serving() as (world, _):
        old = await active(world)
        await suspended(world)
        assert await clusters(world) == []
        assert await world.list("Service", RAYS_OWN) == []
        status = await status_of(world)
        assert (
            status["activeServiceStatus"].keys()
            == status["pendingServiceStatus"].keys()
            == {"rayClusterStatus"}
        )
        assert "numServeEndpoints" not in status
        assert "serviceStatus" not in status
        for kind in ("Suspending", "Ready", "UpgradeInProgress", "RollbackInProgress"):
            assert await condition(world, kind) == ("False", "SuspendComplete")
        assert await told(world, "DeletedRayCluster") == [
            f"Deleted the RayCluster default/{old} during suspend"
        ]
        assert len(await world.events("DeletedService", "s")) >= 1
        before = len(world.dashboards.requests)
        await world.pass_time(60)
        assert len(world.dashboards.requests) == before
        await change(world, suspend=False)
        await is_ready(world)
        assert await condition(world, "Suspended") == ("False", "RayServiceResumed")
        assert await active(world) not in ("", old)


async def test_nothing_is_deleted_before_suspending_is_on_record():
    async with serving() as (world, _):
        name = await active(world)
        let_go = world.faults.refuse("patch", "rayservices.ray.io", named="SuspendRequested")
        await change(world, suspend=True)
        await world.pass_time(30)
        assert await clusters(world) == [name]
        let_go()
        await has_condition(world, "Suspended", "True", "SuspendComplete", seconds=120)


@pytest.mark.case("RS-41")
async def test_suspending_is_finished_whatever_is_wanted_meanwhile():
    async with serving() as (world, _):
        old = await active(world)
        await world.patch("RayCluster", old, {"metadata": {"finalizers": ["example.org/held"]}})
        await change(world, suspend=True)
        await world.pass_time(ROUND)
        assert await condition(world, "Suspending") == ("True", "SuspendInProgress")
        await change(world, suspend=False)
        await world.pass_time(30)
        assert await condition(world, "Suspending") == ("True", "SuspendInProgress")
        assert await clusters(world) == [old]
        await world.patch("RayCluster", old, {"metadata": {"finalizers": None}})
        await is_ready(world, seconds=60)
        assert await clusters(world) == [await active(world)] != [old]


@pytest.mark.case("RS-42")
async def test_a_service_made_suspended_has_nothing_until_it_is_resumed():
    async with serve_world() as (world, _):
        await world.create(rayservice(suspend=True))
        await has_condition(world, "Suspended", "True", "SuspendComplete", seconds=10)
        await world.pass_time(60)
        assert ("create", "rayclusters.ray.io") not in world.writes()
        assert ("create", "services") not in world.writes()
        kinds = [one["type"] for one in (await status_of(world))["conditions"]]
        assert kinds == ["Suspending", "Ready", "UpgradeInProgress", "RollbackInProgress", "Suspended"]
        await change(world, suspend=False)
        await is_ready(world)


@pytest.mark.case("RS-43")
@pytest.mark.parametrize("make", [rayservice, incremental], ids=["switched", "incremental"])
async def test_suspending_in_the_middle_of_an_upgrade_ends_both_clusters(make):
    async with serving(make()) as (world, ray):
        ray.deploys = 20
        await set_image(world, "2.53.0")
        names = {await active(world), await new_pending(world)}
        await suspended(world)
        assert await clusters(world) == []
        if make is incremental:
            assert await world.list("Gateway") == await world.list("HTTPRoute") == []
            assert len(await told(world, "DeletedGateway")) == len(await told(world, "DeletedHTTPRoute")) == 1
        ray.deploys = 2
        await change(world, suspend=False)
        await is_ready(world)
        await world.pass_time(ROUND)
        (cluster,) = await world.list("RayCluster")
        assert cluster["metadata"]["name"] not in names
        (container,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
        assert container["image"] == "rayproject/ray:2.53.0"
        if make is incremental:
            assert len(await world.list("Gateway")) == len(await world.list("HTTPRoute")) == 1


@pytest.mark.case("RS-44")
async def test_a_resumed_service_begins_anew():
    async with serving() as (world, ray):
        await suspended(world)
        bodies = [body["status"] for body in world.bodies("patch", "rayservices.ray.io") if "status" in body]
        entering = next(one for one in bodies if "SuspendRequested" in str(one.get("conditions")))
        assert entering["observedGeneration"] == 2
        before = len(world.writes())
        await world.pass_time(600)
        assert ("patch", "rayservices.ray.io") not in world.writes()[before:]
        ray.deploys = 3600
        resumed_at = world.clock.now()
        await change(world, suspend=False)
        await has_condition(world, "Ready", "False", "Initializing", seconds=10)
        for kind in ("Ready", "UpgradeInProgress"):
            found = await whole_condition(world, kind)
            assert found["reason"] == "Initializing"
            assert found["lastTransitionTime"] >= f"{resumed_at:%Y-%m-%dT%H:%M:%SZ}"
            assert found["message"].startswith("RayService is initializing after resuming from suspend")


@pytest.mark.case("RS-44")
async def test_another_generation_of_a_suspended_service_is_observed():
    async with serve_world() as (world, _):
        await world.create(rayservice(suspend=True))
        await has_condition(world, "Suspended", "True", "SuspendComplete", seconds=10)
        await change(world, rayClusterDeletionDelaySeconds=1)
        await world.pass_time(1)
        assert (await status_of(world))["observedGeneration"] == 2
        assert await clusters(world) == []


# --- the initializing timeout


@pytest.mark.case("RS-38")
async def test_a_service_that_takes_too_long_is_given_up_with_one_word():
    async with serve_world(deploys=7200) as (world, _):
        await world.create(timed("30m"))
        await world.pass_time(600)
        assert await condition(world, "Ready") == ("False", "Initializing")
        (name,) = await clusters(world)
        await world.pass_time(1500)
        assert await condition(world, "Ready") == ("False", "InitializingTimeout")
        assert (await message(world, "Ready")).startswith(
            "RayService failed to become ready within the configured timeout of 30m0s."
        )
        assert (await active(world), await pending(world)) == ("", "")
        assert await clusters(world) == []
        (event,) = await world.events("RayServiceInitializingTimeout")
        assert event["type"] == "Warning"
        assert f"default/{name}" in (await told(world, "DeletedRayCluster"))[0]
        before = len(world.writes())
        await world.pass_time(600)
        assert world.writes()[before:] == []


@pytest.mark.case("RS-38", "RS-39")
async def test_a_service_that_is_ready_in_time_never_times_out():
    async with serving(timed("60")) as (world, _):
        await world.pass_time(300)
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")
        assert await told(world, "RayServiceInitializingTimeout") == []


@pytest.mark.case("RS-39")
async def test_a_better_spec_comes_too_late():
    async with serve_world(scripts=[NO_IMAGE]) as (world, _):
        await world.create(timed("10s"))
        await world.pass_time(5)
        assert "ImagePullBackOff" in await message(world, "Ready")
        await world.pass_time(10)
        assert await condition(world, "Ready") == ("False", "InitializingTimeout")
        await set_image(world, "2.53.0")
        await world.pass_time(120)
        assert await condition(world, "Ready") == ("False", "InitializingTimeout")
        assert await clusters(world) == []
        assert (await status_of(world))["observedGeneration"] == 2


async def test_suspending_and_resuming_gives_a_service_that_timed_out_another_chance():
    async with serve_world(deploys=7200) as (world, ray):
        await world.create(timed("10s"))
        await world.pass_time(30)
        assert await condition(world, "Ready") == ("False", "InitializingTimeout")
        await suspended(world)
        ray.deploys = 2
        await change(world, suspend=False)
        await is_ready(world)
