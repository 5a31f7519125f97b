"""What a change of a service does: to Serve, to its clusters, or nothing; and what becomes of clusters without use."""

import copy

import pytest

from eagleray.manifests.settings import VERSION
from tests.eagleray.rayservice.situations import (
    GRAPH,
    OTHER_CONFIG,
    ROUND,
    active,
    change,
    change_cluster,
    clusters,
    condition,
    configured,
    edit_group,
    head_at,
    is_ready,
    new_pending,
    pending,
    promoted,
    puts,
    selected,
    serving,
    set_image,
    told,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")

OTHER_GRAPH = {"applications": [{"name": "app", "import_path": "app.other", "route_prefix": "/"}]}
HASH = "ray.io/hash-without-replicas-and-workers-to-delete"


# --- the Serve configuration


@pytest.mark.case("RS-17")
async def test_another_configuration_is_handed_to_the_same_cluster():
    async with serving() as (world, _):
        name = await active(world)
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(ROUND)
        assert configured(world, name) == OTHER_GRAPH
        assert len(puts(world, name)) == 2
        assert (await active(world), await pending(world)) == (name, "")
        assert await told(world, "UpdatedServeApplications") == [
            f"Updated serve applications to the RayCluster default/{name}"
        ]
        await is_ready(world)


@pytest.mark.case("RS-16")
async def test_serve_is_handed_a_configuration_when_it_differs_is_lost_or_nobody_remembers():
    async with serving(rayservice(cluster={"workers": []})) as (world, _):
        name = await active(world)
        assert len(puts(world, name)) == 1  # nothing was remembered
        await world.pass_time(300)
        assert len(puts(world, name)) == 1  # the same text, and there are applications
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(ROUND)
        assert len(puts(world, name)) == 2  # another text
        head_at(world, name).applications.clear()
        await world.pass_time(ROUND)
        assert len(puts(world, name)) == 3  # the applications are gone
        await world.stop_operator()
        await world.start_operator()
        await world.pass_time(ROUND)
        assert len(puts(world, name)) == 4  # another operator, which remembers nothing
        assert configured(world, name) == OTHER_GRAPH


@pytest.mark.case("RS-18")
async def test_a_change_of_both_reaches_the_new_cluster_alone():
    async with serving(deploys=10) as (world, _):
        old = await active(world)
        service = await world.get("RayService", "s")
        config = copy.deepcopy(service["spec"]["rayClusterConfig"])
        config["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
        await change(world, serveConfigV2=OTHER_CONFIG, rayClusterConfig=config)
        new = await new_pending(world)
        await world.pass_time(5)
        assert await selected(world) == old
        assert configured(world, old) == GRAPH
        await promoted(world, new, seconds=60)
        assert configured(world, new) == OTHER_GRAPH
        assert configured(world, old) == GRAPH
        assert await selected(world) == await selected(world, "s-head-svc") == new


@pytest.mark.case("RS-19")
async def test_without_upgrades_the_configuration_alone_is_followed():
    async with serving(rayservice(upgradeStrategy={"type": "None"})) as (world, _):
        old = await active(world)
        before = await world.get("RayCluster", old)
        await change(world, serveConfigV2=OTHER_CONFIG)
        await set_image(world, "2.53.0")
        await world.pass_time(ROUND)
        assert configured(world, old) == OTHER_GRAPH
        assert await clusters(world) == [old]
        assert await world.get("RayCluster", old) == before


async def test_a_configuration_that_is_no_yaml_is_told_and_stops_nothing():
    async with serving() as (world, _):
        old = await active(world)
        await change(world, serveConfigV2="[")
        await world.pass_time(ROUND)
        (note,) = await told(world, "FailedToUpdateServeApplications")
        assert "serveConfigV2 is no YAML" in note
        assert len(puts(world, old)) == 1
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(ROUND)
        assert configured(world, old) == OTHER_GRAPH


# --- what makes another cluster, and what does not


@pytest.mark.case("RS-20")
@pytest.mark.parametrize("side", ["active", "pending"])
async def test_what_the_autoscaler_edits_makes_no_cluster(side):
    async with serving() as (world, ray):
        if side == "pending":
            ray.deploys = 3600
            await set_image(world, "2.53.0")
            await new_pending(world)
        names = (await active(world), await pending(world))
        await world.set_group(
            names[side == "pending"], replicas=3, scaleStrategy={"workersToDelete": ["nobody"]}
        )
        await world.pass_time(30)
        assert (await active(world), await pending(world)) == names
        assert len(await clusters(world)) == len([name for name in names if name])


@pytest.mark.case("RS-21", "RS-22")
@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": 4},
        {"minReplicas": 0, "maxReplicas": 9},
        {"scaleStrategy": {"workersToDelete": ["nobody"]}},
    ],
    ids=["replicas", "bounds", "workers to delete"],
)
async def test_numbers_of_workers_change_nothing(fields):
    async with serving() as (world, _):
        before = await world.list("RayCluster")
        await edit_group(world, **fields)
        await world.pass_time(30)
        assert await world.list("RayCluster") == before
        assert await pending(world) == ""


@pytest.mark.case("RS-22")
async def test_tolerations_and_gates_change_nothing():
    async with serving() as (world, _):
        before = await clusters(world)
        service = await world.get("RayService", "s")
        config = copy.deepcopy(service["spec"]["rayClusterConfig"])
        for group in (config["headGroupSpec"], *config["workerGroupSpecs"]):
            group["template"]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
            group["template"]["spec"]["schedulingGates"] = [{"name": "example.org/wait"}]
        await change(world, rayClusterConfig=config)
        await world.pass_time(30)
        assert await clusters(world) == before
        assert await pending(world) == ""


@pytest.mark.case("RS-22")
async def test_another_version_of_ray_is_another_cluster():
    async with serving() as (world, _):
        old = await active(world)
        await change_cluster(world, rayVersion="2.53.0")
        new = await new_pending(world)
        stamps = [
            (await world.get("RayCluster", name))["metadata"]["annotations"][HASH] for name in (old, new)
        ]
        assert stamps[0] != stamps[1]
        await promoted(world, new)


@pytest.mark.case("RS-23", "RS-24")
async def test_a_group_that_is_added_is_added_to_the_active_cluster():
    async with serving() as (world, _):
        old = await world.get("RayCluster", await active(world))
        await edit_group(world, index=1, groupName="more", replicas=2)
        await world.pass_time(30)
        new = await world.get("RayCluster", await active(world))
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        assert [one["groupName"] for one in new["spec"]["workerGroupSpecs"]] == ["small-group", "more"]
        assert await pending(world) == ""
        assert len(await world.workers(await active(world), "more")) == 2
        (note,) = await told(world, "UpdatedRayCluster")
        assert note == f"Updated the active RayCluster default/{await active(world)}"


@pytest.mark.case("RS-23")
async def test_a_group_that_is_added_together_with_other_numbers_is_added_in_place():
    async with serving() as (world, _):
        names = await clusters(world)
        service = await world.get("RayService", "s")
        groups = copy.deepcopy(service["spec"]["rayClusterConfig"]["workerGroupSpecs"])
        groups[0]["replicas"] = 3
        await change_cluster(world, workerGroupSpecs=[*groups, {**groups[0], "groupName": "more"}])
        await world.pass_time(30)
        assert await clusters(world) == names
        (cluster,) = await world.list("RayCluster")
        assert len(cluster["spec"]["workerGroupSpecs"]) == 2


@pytest.mark.case("RS-23")
async def test_a_group_that_is_added_together_with_another_image_is_another_cluster():
    async with serving() as (world, _):
        service = await world.get("RayService", "s")
        groups = copy.deepcopy(service["spec"]["rayClusterConfig"]["workerGroupSpecs"])
        more = {**copy.deepcopy(groups[0]), "groupName": "more"}
        groups[0]["template"]["spec"]["containers"][0]["image"] = "rayproject/ray:2.53.0"
        await change_cluster(world, workerGroupSpecs=[*groups, more])
        await new_pending(world)


@pytest.mark.case("RS-24")
async def test_a_group_that_is_added_during_an_upgrade_is_added_to_the_pending_cluster():
    async with serving() as (world, ray):
        ray.deploys = 3600
        old = await active(world)
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await edit_group(world, index=1, groupName="more")
        await world.pass_time(30)
        assert (await active(world), await pending(world)) == (old, new)
        counts = [
            len((await world.get("RayCluster", name))["spec"]["workerGroupSpecs"]) for name in (old, new)
        ]
        assert counts == [1, 2]


@pytest.mark.case("RS-26")
async def test_a_second_change_replaces_a_cluster_that_does_not_serve_yet():
    async with serving() as (world, ray):
        ray.deploys = 3600
        await set_image(world, "2.53.0")
        first = await new_pending(world)
        ray.deploys = 2
        await set_image(world, "2.54.0")
        second = await new_pending(world, other_than=first)
        await promoted(world, second)
        await world.pass_time(65)
        assert await clusters(world) == [second]


@pytest.mark.case("RS-26")
async def test_a_cluster_that_serves_already_becomes_the_active_one_before_another_is_made():
    async with serving() as (world, _):
        await world.stop_operator()
        old = await active(world)
        await world.start_operator()
        let_go = world.faults.refuse("patch", "rayservices.ray.io", named='"activeServiceStatus"')
        await set_image(world, "2.53.0")
        first = await new_pending(world)
        await world.pass_time(ROUND)
        assert await selected(world) == first  # it serves, and that is not on record yet
        await set_image(world, "2.54.0")
        await world.pass_time(ROUND)
        assert (await active(world), await pending(world)) == (old, first)
        assert len(await clusters(world)) == 2
        let_go()

        async def third():
            return len(await clusters(world)) == 3

        await world.until(third, 120)
        assert await active(world) == first


@pytest.mark.case("RS-27", "OP-61")
@pytest.mark.parametrize(
    ("kind", "switch", "is_followed"),
    [
        (None, None, True),
        (None, "true", True),
        (None, "false", False),
        (None, "FALSE", False),
        ("NewCluster", "false", True),
        ("None", "true", False),
        ("None", None, False),
    ],
)
async def test_whether_another_spec_makes_another_cluster(kind, switch, is_followed):
    service = rayservice(**({"upgradeStrategy": {"type": kind}} if kind else {}))
    variables = {} if switch is None else {"ENABLE_ZERO_DOWNTIME": switch}
    async with serving(service, variables=variables) as (world, _):
        await set_image(world, "2.53.0")
        await world.pass_time(1)
        assert bool(await pending(world)) is is_followed
        assert len(await clusters(world)) == 1 + is_followed


@pytest.mark.case("OP-44")
async def test_without_its_gate_an_incremental_strategy_upgrades_nothing():
    service = rayservice(upgradeStrategy={"type": "NewClusterWithIncrementalUpgrade"})
    flags = ("--feature-gates=RayServiceIncrementalUpgrade=false",)
    async with serving(service, flags=flags, gateways=True) as (world, _):
        await set_image(world, "2.53.0")
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(30)
        assert await pending(world) == ""
        assert configured(world, await active(world)) == OTHER_GRAPH
        assert await world.list("Gateway") == await world.list("HTTPRoute") == []
        assert await selected(world, "s-serve-svc") == await active(world)


# --- an operator of another version


@pytest.mark.case("RS-25", "RS-66")
async def test_another_operator_stamps_the_active_cluster_and_changes_nothing_else():
    async with serving() as (world, _):
        name = await active(world)
        before = await world.get("RayCluster", name)
        pods = await world.pods(name)
        await world.stop_operator()
        stamps = {"ray.io/kuberay-version": "1.4.0", HASH: "from another time"}
        await world.patch("RayCluster", name, {"metadata": {"annotations": stamps}})
        await world.start_operator()
        await world.pass_time(ROUND)
        after = await world.get("RayCluster", name)
        assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
        assert after["metadata"]["annotations"]["ray.io/kuberay-version"] == VERSION
        assert after["spec"] == before["spec"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert await world.pods(name) == pods
        assert (await active(world), await pending(world)) == (name, "")


@pytest.mark.case("RS-66")
@pytest.mark.parametrize(
    ("flags", "variables", "stamp"),
    [
        pytest.param(
            (), {"ENABLE_LOGIN_SHELL": "true", "ENABLE_PROBES_INJECTION": "false"}, "", id="switches"
        ),
        pytest.param((), {"CLUSTER_DOMAIN": "example.org"}, "", id="another domain"),
        pytest.param(("--feature-gates=RayServiceIncrementalUpgrade=false",), {}, "", id="other gates"),
        pytest.param((), {}, "1.4.0", id="after KubeRay"),
        pytest.param((), {"ENABLE_ZERO_DOWNTIME": "false"}, "1.4.0", id="after KubeRay, without upgrades"),
    ],
)
async def test_a_change_of_the_operator_alone_starts_no_cluster(flags, variables, stamp):
    async with serving() as (world, _):
        (before,) = await world.list("RayCluster")
        uids = {pod["metadata"]["uid"] for pod in await world.pods(before["metadata"]["name"])}
        await world.stop_operator()
        if stamp:
            name = before["metadata"]["name"]
            annotations = {"ray.io/kuberay-version": stamp, HASH: f"as {stamp} has it"}
            await world.patch("RayCluster", name, {"metadata": {"annotations": annotations}})
        world.flags, world.variables = (*world.flags, *flags), variables
        await world.start_operator()
        await world.pass_time(120)
        (after,) = await world.list("RayCluster")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"] == before["spec"]
        assert {pod["metadata"]["uid"] for pod in await world.pods(after["metadata"]["name"])} == uids
        assert await pending(world) == ""


async def test_a_change_that_came_while_no_operator_was_there_is_followed_by_the_next():
    async with serving() as (world, _):
        old = await active(world)
        await world.stop_operator()
        annotations = {"ray.io/kuberay-version": "1.4.0", HASH: "as KubeRay has it"}
        await world.patch("RayCluster", old, {"metadata": {"annotations": annotations}})
        await set_image(world, "2.53.0")
        await world.start_operator()
        await promoted(world, await new_pending(world))
