"""Another cluster takes over, or does not; what becomes of the old one; and a service at rest."""

import copy

import pytest

from tests.eagleray.rayservice.load import Load
from tests.eagleray.rayservice.situations import (
    GRAPH,
    active,
    clusters,
    condition,
    configured,
    has_condition,
    head_at,
    incremental,
    is_ready,
    message,
    new_pending,
    pending,
    promoted,
    puts,
    serve_world,
    serving,
    set_image,
    told,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")


# --- clusters without use


@pytest.mark.case("RS-29")
@pytest.mark.parametrize(("delay", "seconds"), [(None, 60), (0, 0), (5, 5), (10, 10)])
async def test_a_replaced_cluster_is_kept_for_its_delay(delay, seconds):
    given = {} if delay is None else {"rayClusterDeletionDelaySeconds": delay}
    async with serving(rayservice(**given)) as (world, _):
        old = await active(world)
        await set_image(world, "2.53.0")
        new = await new_pending(world)

        async def switched():
            return await active(world) == new

        await world.until(switched, 60, step=0.1)
        if seconds:
            await world.pass_time(seconds - 1)
            assert old in await clusters(world)
            await world.pass_time(1)
        await world.pass_time(2)
        assert await clusters(world) == [new]
        assert await told(world, "DeletedRayCluster") == [f"Deleted the RayCluster default/{old}"]


@pytest.mark.case("RS-29")
async def test_the_delay_goes_on_when_the_operator_is_started_again():
    async with serving(rayservice(rayClusterDeletionDelaySeconds=30)) as (world, _):
        old = await active(world)
        await set_image(world, "2.53.0")
        await promoted(world, await new_pending(world))
        await world.pass_time(15)
        await world.kill_operator()
        await world.pass_time(5)
        await world.start_operator()
        await world.pass_time(5)
        assert old in await clusters(world)
        await world.pass_time(8)
        assert old not in await clusters(world)


async def test_a_cluster_that_cannot_be_deleted_holds_nothing_up():
    async with serving(rayservice(rayClusterDeletionDelaySeconds=0)) as (world, _):
        world.faults.refuse("delete", "rayclusters.ray.io")
        old = await active(world)
        await set_image(world, "2.53.0")
        second = await new_pending(world)
        await promoted(world, second)
        assert any(f"default/{old}" in note for note in await told(world, "FailedToDeleteRayCluster"))
        await set_image(world, "2.54.0")
        await promoted(world, await new_pending(world, other_than=second))
        assert len(await clusters(world)) == 3


# --- upgrades that go well, or not


@pytest.mark.case("RS-33")
async def test_no_request_is_lost_over_an_upgrade():
    async with serving() as (world, _), Load(world) as load:
        old = await active(world)
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await promoted(world, new)
        await world.pass_time(70)
        assert await clusters(world) == [new]
        assert load.failed == []
        assert load.answered_by == [{old}, {new}]
        assert load.count > 120


async def test_the_load_notices_a_switch_that_comes_too_early():
    async with serving() as (world, ray), Load(world) as load:
        ray.deploys = 3600
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await world.stop_operator()
        await world.patch("Service", "s-serve-svc", {"spec": {"selector": {"ray.io/cluster": new}}})
        await world.pass_time(5)
        assert load.failed


@pytest.mark.case("RS-33")
async def test_a_head_with_storage_of_its_own_is_started_again_and_nothing_else_happens():
    service = rayservice(cluster={"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}})
    async with serving(service, keeps_jobs=True) as (world, _), Load(world) as load:
        name = await active(world)
        head = await world.head(name)
        status = copy.deepcopy(head["status"])
        status["containerStatuses"][0]["restartCount"] = 1
        await world.patch("Pod", head["metadata"]["name"], {"status": status}, part="/status")
        await world.pass_time(60)
        after = await world.head(name)
        assert after["metadata"]["uid"] == head["metadata"]["uid"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 1
        assert await active(world) == name
        assert len(puts(world, name)) == 1
        assert load.failed == []


@pytest.mark.case("RS-32")
async def test_a_head_that_is_lost_is_configured_again():
    async with serving(rayservice(cluster={"workers": []})) as (world, _):
        name = await active(world)
        old = await world.head(name)
        await world.delete("Pod", old["metadata"]["name"])
        await has_condition(world, "Ready", "False", "ZeroServeEndpoints", seconds=60)
        await is_ready(world, seconds=60)
        new = await world.head(name)
        assert new["metadata"]["uid"] != old["metadata"]["uid"]
        assert configured(world, name) == GRAPH
        assert len(puts(world, name)) == 2
        slices = await world.list("EndpointSlice", "kubernetes.io/service-name=s-serve-svc")
        targets = {one["targetRef"]["name"] for found in slices for one in found.get("endpoints") or ()}
        assert targets == {new["metadata"]["name"]}


@pytest.mark.case("RS-31")
async def test_an_old_head_that_takes_no_traffic_is_left_out_until_the_new_cluster_serves():
    async with serving(rayservice(cluster={"workers": []})) as (world, ray):
        ray.deploys = 30
        old = await active(world)
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        head_at(world, old).takes_traffic = False
        await has_condition(world, "Ready", "False", "ZeroServeEndpoints", seconds=20)
        assert (await world.head(old))["metadata"]["labels"]["ray.io/serve"] == "false"
        await is_ready(world, seconds=120)
        assert await active(world) == new


@pytest.mark.parametrize("make", [rayservice, incremental], ids=["switched", "incremental"])
async def test_nobody_is_led_to_a_cluster_whose_applications_run_where_nobody_takes_requests(make):
    is_routed = make is incremental
    async with serving(make(cluster={"workers": []})) as (world, ray), Load(world, routed=is_routed) as load:
        ray.takes_traffic = False
        old = await active(world)
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await world.pass_time(60)
        assert (await active(world), await pending(world)) == (old, new)
        assert "none of its Pods is ready to take requests" in await message(world, "UpgradeInProgress")
        head_at(world, new).takes_traffic = True
        await promoted(world, new, seconds=300)
        assert load.failed == []


@pytest.mark.case("RS-59")
async def test_an_upgrade_that_gets_nowhere_is_kept_and_says_why():
    faults = {"app": ("DEPLOY_FAILED", "ModuleNotFoundError: no torch")}
    async with serving() as (world, ray), Load(world, every=10) as load:
        old = await active(world)
        ray.application_faults = faults
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await world.pass_time(1800)
        assert (await active(world), await pending(world)) == (old, new)
        assert await condition(world, "UpgradeInProgress") == ("True", "BothActivePendingClustersExist")
        told_why = await message(world, "UpgradeInProgress")
        assert new in told_why
        assert "app is DEPLOY_FAILED: ModuleNotFoundError: no torch" in told_why
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")
        assert load.failed == []


@pytest.mark.case("RS-60")
async def test_an_upgrade_past_its_deadline_is_given_up_until_the_spec_changes():
    metadata = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}
    async with serving(rayservice(metadata=metadata)) as (world, ray), Load(world, every=2) as load:
        old = await active(world)
        ray.application_faults = {"app": ("DEPLOY_FAILED", "no torch")}
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await world.pass_time(55)
        assert await pending(world) == new
        await world.pass_time(10)
        assert (await active(world), await pending(world)) == (old, "")
        (note,) = await told(world, "UpgradeDeadlineExceeded")
        assert new in note
        assert "no torch" in note
        await world.pass_time(600)
        assert await clusters(world) == [old]
        await world.stop_operator()
        await world.start_operator()
        await world.pass_time(60)
        assert await clusters(world) == [old]
        ray.application_faults = {}
        await set_image(world, "2.54.0")
        await promoted(world, await new_pending(world))
        assert load.failed == []


async def test_an_upgrade_is_not_forgotten_by_halves_when_giving_it_up_is_refused():
    metadata = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}
    async with serving(rayservice(metadata=metadata)) as (world, ray):
        old = await active(world)
        ray.application_faults = {"app": ("DEPLOY_FAILED", "no torch")}
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        let_go = world.faults.refuse("patch", "rayclusters.ray.io", named="abandoned-upgrade")
        await world.pass_time(120)
        assert (await active(world), await pending(world)) == (old, new)
        let_go()
        await world.pass_time(300)
        assert (await active(world), await pending(world)) == (old, "")
        assert await clusters(world) == [old]


# --- rest


def passes(world):
    """Return how many passes over services the operator has made, by their outcomes."""
    page = world.operator.registry.render().splitlines()
    return [
        line for line in page if line.startswith('controller_runtime_reconcile_total{controller="rayservice"')
    ]


@pytest.mark.case("RS-64")
async def test_a_service_at_rest_is_looked_at_by_nobody():
    async with serving() as (world, _):
        await world.pass_time(310)  # counts of events are written, and the last recheck is over
        before_passes = passes(world)
        assert before_passes
        before, asked = len(world.writes()), len(world.faults.sent)
        puts_before = len(world.dashboards.asked(method="PUT"))
        await world.pass_time(600)
        assert world.writes()[before:] == []
        assert {request.verb for request in world.faults.sent[asked:]} <= {"watch"}
        assert len(world.dashboards.asked(method="PUT")) == puts_before
        assert passes(world) == before_passes


@pytest.mark.case("RS-66")
async def test_an_operator_that_is_started_again_writes_nothing():
    async with serving() as (world, _):
        await world.pass_time(60)
        await world.stop_operator()
        before = len(world.writes())
        await world.start_operator()
        await world.pass_time(30)
        assert world.writes()[before:] == []


@pytest.mark.case("OP-70")
async def test_without_gateways_services_that_want_none_work():
    async with serve_world(gateways=False) as (world, _):
        await world.create(rayservice())
        await is_ready(world)
        await set_image(world, "2.53.0")
        await promoted(world, await new_pending(world))
