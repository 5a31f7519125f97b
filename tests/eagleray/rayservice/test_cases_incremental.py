"""Incremental upgrades on the running operator: the way in, capacity and traffic step by step, and back again."""

import asyncio
from itertools import pairwise

import pytest

from eagleray.manifests.rayservice import RayService
from eagleray.rayservice.incremental import Ready, Share, Shares, next_capacity
from tests.eagleray.dashboard.scripted import slow
from tests.eagleray.ray import host_of
from tests.eagleray.rayservice.load import Load
from tests.eagleray.rayservice.scene import incremental as stored_service
from tests.eagleray.rayservice.scene import running
from tests.eagleray.rayservice.situations import (
    INCREMENTAL,
    OTHER_CONFIG,
    ROUND,
    active,
    change,
    change_cluster,
    clusters,
    condition,
    has_condition,
    head_at,
    incremental,
    is_ready,
    message,
    new_pending,
    pending,
    promoted,
    puts,
    selected,
    serve_world,
    serving,
    set_image,
    shares,
    side,
    told,
    weights,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")

OTHER_GRAPH = [{"name": "app", "import_path": "app.other", "route_prefix": "/"}]
GRAPH = [{"name": "app", "import_path": "app.graph", "route_prefix": "/"}]
# What a server adds to a listener.
FILLED_IN = {"namespaces": {"from": "Same"}}


async def traffic_reached(world, percent, which="pending", seconds=600):
    """Wait until a side gets so much of the traffic, or more."""

    async def is_so():
        return ((await side(world, which)).get("trafficRoutedPercent") or 0) >= percent

    await world.until(is_so, seconds, step=0.1)


async def upgrading(world, tag="2.53.0", *, traffic=0):
    """Begin an upgrade, and wait until the new cluster has some traffic; returns both clusters."""
    old = await active(world)
    await set_image(world, tag)
    new = await new_pending(world)
    if traffic:
        await traffic_reached(world, traffic)
    return old, new


def capacities(world, cluster):
    """Return the capacities that Serve on a cluster was handed."""
    return [one.get("target_capacity") for one in head_at(world, cluster).serve_configurations]


class Diary:
    """What the status and the route said, whenever either changed."""

    def __init__(self, world):
        self._world = world
        self.entries = []  # (seconds, capacities of both, traffic of the pending one)

    async def __aenter__(self):
        self._writing = asyncio.create_task(self._write(), name="diary")
        return self

    async def __aexit__(self, *_why):
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)

    async def _write(self):
        while True:
            old, new = await shares(self._world)
            if new != (None, None):
                entry = (old[0], new[0], new[1])
                if not self.entries or self.entries[-1][1:] != entry:
                    self.entries.append((self._world.clock.monotonic(), *entry))
            await asyncio.sleep(0.1)


# --- the way in


@pytest.mark.case("RS-45")
async def test_the_gateway_is_made_and_follows_its_class():
    async with serving(incremental()) as (world, _):
        gateway = await world.get("Gateway", "s-gateway")
        assert gateway["spec"] == {
            "gatewayClassName": "g",
            "listeners": [{"name": "http", "protocol": "HTTP", "port": 80, "allowedRoutes": FILLED_IN}],
        }
        (owner,) = gateway["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("RayService", "s")
        assert await told(world, "CreatedGateway") == ["Created Gateway for RayService default/s-gateway"]
        await change(world, upgradeStrategy={"clusterUpgradeOptions": {"gatewayClassName": "other"}})
        await world.pass_time(1)
        assert (await world.get("Gateway", "s-gateway"))["spec"]["gatewayClassName"] == "other"
        assert await told(world, "UpdatedGateway") == ["Updated the Gateway default/s-gateway"]


@pytest.mark.case("RS-45")
async def test_without_options_an_incremental_strategy_is_refused():
    service = rayservice(upgradeStrategy={"type": INCREMENTAL}, cluster={"enableInTreeAutoscaling": True})
    async with serve_world(gateways=True) as (world, _):
        await world.create(service)
        await has_condition(world, "Ready", "False", "ValidationFailed", seconds=10)
        assert "clusterUpgradeOptions" in await message(world, "Ready")


@pytest.mark.case("RS-45")
async def test_what_somebody_else_has_changed_of_the_way_in_is_put_right():
    async with serving(incremental()) as (world, _):
        await world.delete("Gateway", "s-gateway")
        route = await world.get("HTTPRoute", "s-httproute")
        route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 1
        await world.patch("HTTPRoute", "s-httproute", {"spec": route["spec"]})
        await world.pass_time(ROUND)
        assert await world.get("Gateway", "s-gateway")
        assert await weights(world) == {await active(world): 100}


@pytest.mark.case("RS-46")
async def test_one_cluster_gets_everything():
    async with serving(incremental()) as (world, _):
        assert await weights(world) == {await active(world): 100}
        assert await shares(world) == ((100, 100), (None, None))
        route = await world.get("HTTPRoute", "s-httproute")
        assert route["spec"]["parentRefs"][0]["name"] == "s-gateway"
        (rule,) = route["spec"]["rules"]
        assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
        (backend,) = rule["backendRefs"]
        assert (backend["port"], backend["namespace"]) == (8000, "default")


@pytest.mark.case("RS-46", "RS-47")
async def test_traffic_moves_a_step_when_the_new_cluster_serves_and_the_interval_is_over():
    async with serving(incremental(step=10, interval=20, surge=50)) as (world, ray):
        ray.deploys = 30
        old, new = await upgrading(world)
        await world.pass_time(25)
        assert await weights(world) == {old: 100, new: 0}  # it does not serve yet
        await traffic_reached(world, 10, seconds=60)
        assert await weights(world) == {old: 90, new: 10}
        await world.pass_time(15)
        assert await weights(world) == {old: 90, new: 10}  # within the interval
        await world.pass_time(8)
        assert await weights(world) == {old: 80, new: 20}


@pytest.mark.case("RS-46")
async def test_no_more_traffic_than_there_is_capacity_for():
    async with serving(incremental(step=5, interval=5, surge=5)) as (world, _):
        await change(
            world, upgradeStrategy={"clusterUpgradeOptions": {"stepSizePercent": 5, "maxSurgePercent": 5}}
        )
        old, new = await upgrading(world)
        await traffic_reached(world, 5)
        assert (await shares(world))[1] == (5, 5)
        assert await weights(world) == {old: 95, new: 5}


@pytest.mark.case("RS-53")
async def test_without_a_route_traffic_is_not_noted():
    async with serve_world(gateways=True) as (world, _):
        world.faults.refuse("create", "httproutes.gateway.networking.k8s.io")
        await world.create(incremental())
        await is_ready(world)
        await world.pass_time(ROUND)
        assert await shares(world) == ((100, None), (None, None))
        world.faults.refusals.clear()
        await world.pass_time(300)
        assert await shares(world) == ((100, 100), (None, None))


@pytest.mark.case("RS-50")
async def test_each_cluster_has_a_serve_service_of_its_own_which_is_left_alone():
    async with serving(incremental()) as (world, ray):
        ray.deploys = 3600
        old, new = await upgrading(world)
        for name in (old, new):
            service = await world.get("Service", f"{name}-serve-svc")
            (owner,) = service["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("RayCluster", name)
            assert service["spec"]["selector"] == {"ray.io/cluster": name, "ray.io/serve": "true"}
            assert service["metadata"]["labels"]["ray.io/serve"] == f"{name}-serve"
        assert await world.get("Service", "s-serve-svc") is None
        assert await selected(world, "s-head-svc") == old
        await world.patch(
            "Service", f"{old}-serve-svc", {"metadata": {"annotations": {"example.org/mine": "yes"}}}
        )
        before = await world.get("Service", f"{old}-serve-svc")
        await world.pass_time(60)
        assert await world.get("Service", f"{old}-serve-svc") == before
        assert not any("serve-svc" in note for note in await told(world, "CreatedService"))


@pytest.mark.case("RS-49")
async def test_capacity_waits_for_the_way_in():
    async with serving(incremental(), accepts=False) as (world, _):
        old, new = await upgrading(world)
        await world.pass_time(60)
        assert await shares(world) == ((100, 100), (0, 0))
        assert "Gateway s-gateway is not accepted" in await message(world, "UpgradeInProgress")
        gateway = await world.get("Gateway", "s-gateway")
        accepted = [{"type": kind, "status": "True"} for kind in ("Accepted", "Programmed")]
        await world.patch(
            "Gateway",
            gateway["metadata"]["name"],
            {"status": {"conditions": accepted}},
            part="/status",
        )
        await world.pass_time(30)
        assert await shares(world) == ((100, 100), (0, 0))
        assert "HTTPRoute s-httproute is not accepted" in await message(world, "UpgradeInProgress")
        await world.gateways.accept()
        await promoted(world, new)
        assert await clusters(world) == sorted([old, new])


@pytest.mark.case("OP-70")
async def test_where_the_gateway_api_is_missing_a_service_serves_and_says_what_it_lacks():
    async with serving(incremental(), gateways=False) as (world, _):
        (note, *_) = await told(world, "FailedToCreateGateway")
        assert "gateways.gateway.networking.k8s.io" in note
        assert "install the Gateway API" in note
        old = await active(world)
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert "install the Gateway API" in await message(world, "UpgradeInProgress")
        assert await active(world) == old
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")


# --- going on


@pytest.mark.case("RS-48")
@pytest.mark.parametrize(
    ("before", "needed", "after"),
    [
        pytest.param(Shares(Share(70, 90), Share(10, 10)), 90, (70, 30), id="room for the new one"),
        pytest.param(Shares(Share(80, 70), Share(30, 30)), 0, (60, 30), id="taken from the old one"),
        pytest.param(Shares(Share(80, 70), Share(30, 30)), 70, (70, 30), id="but not what its traffic needs"),
    ],
)
async def test_the_next_step_of_capacity(before, needed, after):
    got = next_capacity(before, 20, Ready(True, True), rolling_back=False, needed=needed)
    assert (got.active.capacity, got.pending.capacity) == after


@pytest.mark.case("RS-48", "RS-49")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(((70, 90), (10, 10)), (70, 30), id="70/10 is not all: 20 more for the new one"),
        pytest.param(
            ((80, 70), (30, 30)), (70, 30), id="80/30 is more than all: the old one keeps what it needs"
        ),
        pytest.param(((70, 70), (30, 30)), (70, 50), id="70/30 goes on"),
    ],
)
async def test_a_plan_changes_capacity_a_step_at_a_time(before, after):
    """The status is set in the middle of an upgrade, and the next step is read from what is handed to Serve."""
    scene = running(stored_service(step=10, interval=3600, surge=20))
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending)
    status = dict(scene.status)
    for which, (capacity, traffic) in zip(("active", "pending"), before, strict=True):
        field = f"{which}ServiceStatus"
        status[field] = {**status[field], "targetCapacity": capacity, "trafficRoutedPercent": traffic}
    scene.obj = {**scene.obj, "status": status}
    rule = scene.children[("HTTPRoute", "s-httproute")]["spec"]["rules"][0]
    for backend, (_, traffic) in zip(rule["backendRefs"], before, strict=True):
        backend["weight"] = traffic
    capacities_before = tuple(capacity for capacity, _ in before)
    found = capacities_before
    while found == capacities_before and scene.step():
        found = tuple(capacity for capacity, _ in scene.shares)
    assert found == after
    assert RayService(scene.obj).pending.traffic == before[1][1]


@pytest.mark.case("RS-52")
@pytest.mark.parametrize(
    ("step", "interval", "surge"),
    [
        pytest.param(100, 1, 100, id="blue and green"),
        pytest.param(25, 5, 50, id="fast"),
        pytest.param(5, 10, 25, id="slow"),
    ],
)
async def test_an_upgrade_goes_step_by_step_and_loses_no_request(step, interval, surge):
    service = incremental(step=step, interval=interval, surge=surge)
    async with serving(service) as (world, _), Load(world, routed=True) as load, Diary(world) as diary:
        old, new = await upgrading(world)
        await promoted(world, new, seconds=600)
        await world.pass_time(70)
        assert await clusters(world) == [new]
        assert load.failed == []
        assert load.answered_by[0] == {old}
        assert load.answered_by[-1] == {new}
        if step < 100:
            assert {old, new} in load.answered_by
        steps = [entry[1:] for entry in diary.entries]
        for before, after in pairwise(steps):
            assert after[0] <= before[0]
            assert after[1] >= before[1]
            assert after[2] >= before[2]
            assert after[2] - before[2] <= step
        for old_capacity, new_capacity, traffic in steps:
            assert traffic <= new_capacity
            assert 100 - traffic <= old_capacity
            assert old_capacity + new_capacity <= 100 + surge
        moves = [
            later[0]
            for earlier, later in pairwise(diary.entries)
            if later[3] != earlier[3] and later[3] is not None
        ]
        assert all(later - earlier >= interval - 0.15 for earlier, later in pairwise(moves))
        assert all(sum(shared.values()) == 100 for shared in world.gateways.weights)


@pytest.mark.case("RS-52")
async def test_the_example_of_the_specification():
    async with serving(incremental(step=25, interval=10, surge=50)) as (world, _), Diary(world) as diary:
        old, new = await upgrading(world)
        await promoted(world, new)
        seen = [{old: 100}, {old: 100, new: 0}, {old: 75, new: 25}, {old: 50, new: 50}]
        seen += [{old: 25, new: 75}, {old: 0, new: 100}, {new: 100}]
        told_of = [
            {name.removesuffix("-serve-svc"): share for name, share in one.items()}
            for one in world.gateways.weights
        ]
        assert told_of == seen
        assert capacities(world, new) == [50, 100]
        assert capacities(world, old) == [100, 50, 0]
        assert (50, 100, 50) in [entry[1:] for entry in diary.entries]
        assert await shares(world) == ((100, 100), (None, None))
        assert len(await told(world, "UpdatedServeTargetCapacity")) >= 1
        assert head_at(world, old).serve_configurations[-1]["applications"] == GRAPH


async def test_the_first_cluster_gets_everything_at_once():
    async with serving(incremental()) as (world, _):
        name = await active(world)
        assert capacities(world, name) == [100]
        assert await selected(world, "s-head-svc") == name


async def test_a_new_cluster_begins_with_the_fewest_workers():
    workers = [{"replicas": 3, "minReplicas": 1}]
    async with serving(incremental(cluster={"workers": workers})) as (world, _):
        old, new = await upgrading(world)
        counts = [len(await world.workers(name)) for name in (old, new)]
        assert counts == [3, 1]


@pytest.mark.case("RS-64")
async def test_an_incremental_service_at_rest_writes_nothing():
    async with serving(incremental()) as (world, _):
        await world.pass_time(310)
        before, asked = len(world.writes()), len(world.dashboards.asked(method="PUT"))
        await world.pass_time(600)
        assert world.writes()[before:] == []
        assert len(world.dashboards.asked(method="PUT")) == asked


async def test_the_old_cluster_keeps_its_own_configuration_across_a_restart():
    async with serving(incremental()) as (world, _), Load(world, routed=True) as load:
        old = await active(world)
        service = await world.get("RayService", "s")
        config = service["spec"]["rayClusterConfig"]
        config["rayVersion"] = "2.53.0"
        await change(world, rayClusterConfig=config, serveConfigV2=OTHER_CONFIG)
        new = await new_pending(world)
        await traffic_reached(world, 25)
        await world.kill_operator()
        await world.start_operator()
        await promoted(world, new)
        assert [one["applications"] for one in head_at(world, old).serve_configurations] == [GRAPH] * 3
        assert capacities(world, old) == [100, 50, 0]
        assert load.failed == []
        assert {str(one["applications"]) for one in head_at(world, new).serve_configurations} == {
            str(OTHER_GRAPH)
        }


# --- back again


@pytest.mark.case("RS-54", "RS-57")
@pytest.mark.parametrize("traffic", [0, 25, 75], ids=["before any traffic", "early", "late"])
async def test_an_upgrade_that_is_taken_back_ends_where_it_began(traffic):
    async with serving(incremental()) as (world, _), Load(world, routed=True) as load:
        old, new = await upgrading(world, traffic=traffic)
        await set_image(world, "2.52.0")
        await world.pass_time(1)
        if traffic:
            assert await condition(world, "RollbackInProgress") == ("True", "DesiredClusterSpecChanged")
            assert (
                await message(world, "RollbackInProgress")
                == "Goal state reverted to original cluster, rolling back."
            )
        await promoted(world, old, seconds=300)
        assert await condition(world, "RollbackInProgress") is None
        assert await condition(world, "UpgradeInProgress") == ("False", "NoPendingCluster")
        assert await weights(world) == {old: 100}
        await world.pass_time(70)
        assert await clusters(world) == [old]
        assert new not in await clusters(world)
        assert load.failed == []


@pytest.mark.case("RS-54", "RS-57")
async def test_an_upgrade_that_is_wanted_after_all_goes_on():
    async with serving(incremental()) as (world, _), Load(world, routed=True) as load:
        old, new = await upgrading(world, traffic=50)
        await set_image(world, "2.52.0")
        await has_condition(world, "RollbackInProgress", "True", "DesiredClusterSpecChanged", seconds=5)
        await set_image(world, "2.53.0")
        await world.pass_time(1)
        assert await condition(world, "RollbackInProgress") is None
        await promoted(world, new, seconds=300)
        await world.pass_time(70)
        assert await clusters(world) == [new]
        assert load.failed == []
        assert old != new


@pytest.mark.case("RS-54", "RS-57")
async def test_a_third_spec_rolls_back_first():
    async with serving(incremental()) as (world, _), Load(world, routed=True) as load:
        old, second = await upgrading(world, traffic=50)
        await set_image(world, "2.54.0")
        await has_condition(world, "RollbackInProgress", "True", "DesiredClusterSpecChanged", seconds=5)
        assert (
            await message(world, "RollbackInProgress")
            == "Goal state changed mid-upgrade, rolling back to original cluster."
        )
        third = await new_pending(world, other_than=second, seconds=300)
        assert await active(world) == old
        await promoted(world, third, seconds=300)
        (cluster,) = [one for one in await world.list("RayCluster") if one["metadata"]["name"] == third]
        (container,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
        assert container["image"] == "rayproject/ray:2.54.0"
        assert load.failed == []


@pytest.mark.case("RS-55", "RS-57")
async def test_rolling_back_from_a_cluster_whose_head_is_gone_ends():
    async with serving(incremental()) as (world, _):
        old, new = await upgrading(world, traffic=25)
        world.faults.refuse("create", "pods", named=new)
        head = await world.head(new)
        await world.delete("Pod", head["metadata"]["name"])
        await set_image(world, "2.52.0")
        await promoted(world, old, seconds=300)
        assert await weights(world) == {old: 100}


@pytest.mark.case("RS-55")
async def test_a_rollback_is_not_over_while_the_new_cluster_has_capacity():
    async with serving(incremental(surge=25, step=25, interval=30)) as (world, _):
        old, new = await upgrading(world, traffic=50)
        world.dashboards.fault(host_of(new), slow(0.5))  # its capacity takes a moment to go
        await set_image(world, "2.52.0")

        async def is_back():
            both = await shares(world)
            return both[0][1] == 100 and (both[1][0] or 0) > 0

        await world.until(is_back, 300, step=0.05)
        assert await pending(world) == new
        await promoted(world, old, seconds=300)


@pytest.mark.case("RS-56")
async def test_a_configuration_goes_to_the_new_cluster_and_to_the_old_one_while_rolling_back():
    async with serving(incremental(interval=30)) as (world, _):
        old, new = await upgrading(world, traffic=25)
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(ROUND)
        assert head_at(world, new).serve_configurations[-1]["applications"] == OTHER_GRAPH
        assert head_at(world, old).serve_configurations[-1]["applications"] == GRAPH
        await set_image(world, "2.52.0")
        await has_condition(world, "RollbackInProgress", "True", "DesiredClusterSpecChanged", seconds=5)
        third = OTHER_CONFIG.replace("app.other", "app.third")
        await change(world, serveConfigV2=third)
        await world.pass_time(ROUND)
        assert head_at(world, old).serve_configurations[-1]["applications"][0]["import_path"] == "app.third"
        assert head_at(world, new).serve_configurations[-1]["applications"] == OTHER_GRAPH


@pytest.mark.case("RS-61")
async def test_no_traffic_goes_back_to_a_cluster_that_does_not_serve():
    async with serving(incremental()) as (world, _):
        old, new = await upgrading(world, traffic=50)
        head_at(world, old).set_application("app", "UNHEALTHY", "it broke")
        await world.pass_time(4)
        before = await weights(world)
        await set_image(world, "2.52.0")
        await world.pass_time(120)
        assert await weights(world) == before
        assert "it broke" in await message(world, "UpgradeInProgress")
        head_at(world, old).set_application("app", "RUNNING")
        await promoted(world, old, seconds=300)
        assert new not in await weights(world)


async def test_an_old_cluster_that_is_lost_ends_the_upgrade_in_favour_of_the_new_one():
    async with serving(incremental()) as (world, _):
        old, new = await upgrading(world, traffic=25)
        await world.delete("RayCluster", old)
        await promoted(world, new, seconds=120)
        assert len(await told(world, "RollbackImpossible")) == 1
        await world.pass_time(ROUND)
        assert await weights(world) == {new: 100}
        assert capacities(world, new)[-1] == 100


async def test_an_old_cluster_that_loses_its_head_in_the_middle_is_handed_its_own_configuration_again():
    async with serving(incremental(interval=30)) as (world, _):
        old = await active(world)
        service = await world.get("RayService", "s")
        config = {**service["spec"]["rayClusterConfig"], "rayVersion": "2.53.0"}
        await change(world, rayClusterConfig=config, serveConfigV2=OTHER_CONFIG)
        new = await new_pending(world)
        await traffic_reached(world, 25)
        await world.delete("Pod", (await world.head(old))["metadata"]["name"])
        await world.pass_time(40)
        assert head_at(world, old).serve_configurations[0]["applications"] == GRAPH
        assert capacities(world, old)[0] == 100
        await promoted(world, new)


async def test_an_incremental_upgrade_past_its_deadline_is_rolled_back():
    metadata = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}
    async with serving(incremental(metadata=metadata)) as (world, ray):
        ray.application_faults = {"app": ("DEPLOY_FAILED", "no torch")}
        old, _new = await upgrading(world)
        await world.pass_time(90)
        assert (await active(world), await pending(world)) == (old, "")
        (note,) = await told(world, "UpgradeDeadlineExceeded")
        assert "no torch" in note
        await world.pass_time(300)
        assert await clusters(world) == [old]


async def test_a_strategy_without_gateways_takes_over_in_the_middle():
    async with serving(incremental()) as (world, _):
        _old, new = await upgrading(world, traffic=25)
        await change(world, upgradeStrategy={"type": "NewCluster", "clusterUpgradeOptions": None})
        await promoted(world, new, seconds=120)
        assert await selected(world, "s-serve-svc") == new
        assert len(puts(world, new)) >= 1
        await change_cluster(world, rayVersion="2.53.0")
        await promoted(world, await new_pending(world, other_than=new))
