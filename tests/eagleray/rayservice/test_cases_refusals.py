"""Services that are refused or let be, and Rays that refuse."""

import pytest

from eagleray.manifests.hashing import service_hash
from tests.eagleray.dashboard.scripted import HANGS, WRONG_JSON, says
from tests.eagleray.ray import host_of
from tests.eagleray.rayservice.situations import (
    ROUND,
    active,
    change,
    change_cluster,
    clusters,
    condition,
    has_condition,
    head_at,
    is_ready,
    message,
    new_pending,
    pending,
    selected,
    serve_world,
    serving,
    set_image,
    status_of,
    told,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")


async def created(world, obj):
    await world.create(obj)
    await world.pass_time(ROUND)


# --- who is refused, or let be


@pytest.mark.case("RS-1", "RS-68")
async def test_a_name_that_is_too_long_is_refused():
    async with serve_world() as (world, _):
        await created(world, rayservice("a" * 48))
        assert await condition(world, "Ready", "a" * 48) == ("False", "ValidationFailed")
        (event,) = await world.events("InvalidRayServiceMetadata")
        assert (event["type"], event["action"]) == ("Warning", "Validate")
        assert "47" in event["note"]
        assert await message(world, "Ready", "a" * 48) in event["note"]
        assert await clusters(world) == []


@pytest.mark.case("RS-68", "RS-63")
async def test_a_refused_edit_is_told_and_leaves_what_runs_alone():
    async with serving() as (world, _):
        before = (await active(world), await world.pods(await active(world)))
        await change(world, upgradeStrategy={"type": "Sideways"})
        await has_condition(world, "Ready", "False", "ValidationFailed", seconds=10)
        status = await status_of(world)
        assert status["observedGeneration"] == 2
        assert all(one["observedGeneration"] == 2 for one in status["conditions"])
        assert "Sideways" in await message(world, "Ready")
        assert len(await world.events("InvalidRayServiceSpec")) == 1
        assert (await active(world), await world.pods(await active(world))) == before
        assert await selected(world) == before[0]
        await change(world, upgradeStrategy={"type": "NewCluster"})
        await is_ready(world, seconds=10)
        assert (await active(world), await world.pods(await active(world))) == before


async def test_a_service_that_runs_is_only_warned_of_a_rule_that_is_our_own():
    workers = [{"groupName": "one", "minReplicas": 1}, {"groupName": "two", "minReplicas": 1}]
    async with serving(rayservice(cluster={"workers": workers})) as (world, _):
        name = await active(world)
        await world.stop_operator()
        service = await world.get("RayService", "s")
        config = service["spec"]["rayClusterConfig"]
        config["workerGroupSpecs"][1]["groupName"] = "one"
        await change(world, rayClusterConfig=config)
        stamp = {"ray.io/hash-without-replicas-and-workers-to-delete": service_hash(config)}
        await world.patch("RayCluster", name, {"metadata": {"annotations": stamp}})
        await world.start_operator()
        await world.pass_time(ROUND)
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")
        (note,) = await told(world, "InvalidRayServiceSpec")
        assert "warning" in note
        assert (await status_of(world))["observedGeneration"] == 2


@pytest.mark.case("RS-63")
async def test_a_generation_is_observed_once_it_was_handled():
    async with serving() as (world, _):
        for number in (2, 3):
            await change(world, rayClusterDeletionDelaySeconds=number)
            await world.pass_time(1)
            assert (await status_of(world))["observedGeneration"] == number


@pytest.mark.case("RS-62")
async def test_a_service_that_was_refused_and_mended_initializes_and_may_time_out():
    metadata = {"annotations": {"ray.io/initializing-timeout": "60"}}
    service = rayservice(metadata=metadata, upgradeStrategy={"type": "Sideways"})
    async with serve_world(deploys=3600) as (world, _):
        await created(world, service)
        assert await condition(world, "Ready") == ("False", "ValidationFailed")
        await world.pass_time(100)
        await change(world, upgradeStrategy=None)
        await world.pass_time(50)
        assert await condition(world, "Ready") == ("False", "Initializing")
        assert len(await clusters(world)) == 1
        await world.pass_time(15)
        assert await condition(world, "Ready") == ("False", "InitializingTimeout")


async def test_a_cluster_without_use_goes_although_its_service_is_refused():
    async with serving(rayservice(rayClusterDeletionDelaySeconds=20)) as (world, _):
        old = await active(world)
        await set_image(world, "2.53.0")
        await new_pending(world)

        async def switched():
            return await active(world) != old

        await world.until(switched, 60)
        await change(world, upgradeStrategy={"type": "Sideways"})
        await world.pass_time(10)
        assert old in await clusters(world)
        await world.pass_time(15)
        assert await clusters(world) == [await active(world)]


@pytest.mark.case("RS-7")
@pytest.mark.parametrize("manager", [None, "ray.io/kuberay-operator"])
async def test_a_service_of_ours_is_looked_after(manager):
    given = {} if manager is None else {"managedBy": manager}
    async with serving(rayservice(**given)) as (world, _):
        assert await active(world)


@pytest.mark.case("RS-7")
async def test_a_service_of_another_manager_is_not_touched():
    async with serve_world() as (world, _):
        await created(world, rayservice(managedBy="kueue.x-k8s.io/multikueue"))
        service = await world.get("RayService", "s")
        assert "finalizers" not in service["metadata"]
        assert "status" not in service
        assert await clusters(world) == []


# --- dashboards that fail


@pytest.mark.case("RS-58", "RS-65")
@pytest.mark.parametrize(
    "fault",
    [says(400, b"bad request"), says(500, b"RuntimeError: GCS is away"), WRONG_JSON, HANGS],
    ids=["400", "500", "wrong JSON", "hangs"],
)
async def test_a_dashboard_that_fails_holds_up_its_own_service_alone(fault):
    async with serve_world() as (world, _):
        let_go = world.faults.refuse("create", "pods")
        await world.create(rayservice("bad"))
        await world.pass_time(1)
        world.dashboards.fault(host_of(await pending(world, "bad")), fault)
        let_go()
        await world.pass_time(30)
        await world.create(rayservice("good"))
        await world.pass_time(5)
        assert await condition(world, "Ready", "good") == ("True", "NonZeroServeEndpoints")
        assert await world.get("Service", "bad-serve-svc") is None
        assert await condition(world, "Ready", "bad") == ("False", "Initializing")
        assert "Serve cannot be asked" in await message(world, "Ready", "bad")
        world.dashboards.heal(host_of(await pending(world, "bad")))
        await is_ready(world, "bad", seconds=60)


@pytest.mark.case("RS-58")
async def test_the_condition_of_an_upgrade_names_how_the_dashboard_fails():
    async with serving() as (world, _):
        let_go = world.faults.refuse("create", "pods")
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        world.dashboards.fault(host_of(new), says(500, b"RuntimeError: GCS is away"))
        let_go()
        await world.pass_time(60)
        assert "GCS is away" in await message(world, "UpgradeInProgress")
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")


@pytest.mark.case("RS-65")
async def test_services_switch_while_another_ones_head_never_answers():
    async with serve_world() as (world, ray):
        await world.create(rayservice("bad"))
        await world.create(rayservice("good"))
        await is_ready(world, "good")
        await is_ready(world, "bad")
        world.dashboards.fault(host_of(await active(world, "bad")), HANGS)
        await world.pass_time(30)
        old = await active(world, "good")
        ray.deploys = 5
        await set_image(world, "2.53.0", "good")
        new = await new_pending(world, "good")
        head_at(world, old).takes_traffic = False
        await world.pass_time(4)
        assert (await world.head(old))["metadata"]["labels"]["ray.io/serve"] == "false"
        await world.pass_time(5)
        assert await active(world, "good") == new


async def test_a_configuration_that_serve_refuses_is_told_and_tried_again_ever_more_rarely():
    async with serving() as (world, _):
        name = await active(world)
        head = head_at(world, name)
        refused = []

        def refuse(configuration):
            refused.append(configuration)
            return says(400, b"ValidationError: no such field").answer

        head._put_serve, put = refuse, head._put_serve
        await change(world, serveConfigV2="applications: [{name: app, nonsense: 1}]")
        await world.pass_time(60)
        assert 3 <= len(refused) <= 8
        notes = await told(world, "FailedToUpdateServeApplications")
        assert "no such field" in notes[0]
        head._put_serve = put
        await world.pass_time(60)
        assert head.serve_configurations[-1] == {"applications": [{"name": "app", "nonsense": 1}]}


async def test_a_changed_label_of_the_described_cluster_alone_is_no_news():
    async with serving() as (world, _):
        before = await world.list("RayCluster")
        await world.patch("RayService", "s", {"metadata": {"labels": {"new": "label"}}})
        await world.pass_time(ROUND)
        assert await world.list("RayCluster") == before
        await change_cluster(world, suspend=False)
        await world.pass_time(ROUND)
        assert await pending(world) == ""
