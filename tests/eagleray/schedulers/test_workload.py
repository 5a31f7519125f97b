"""Kubernetes' workload API on a running operator: a Workload and a PodGroup for clusters that ask for them."""

import pytest

from tests.eagleray.rayjob.situations import reached
from tests.eagleray.schedulers.standins import gang_world
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

GANG = "ray.io/gang-scheduling-enabled"
ASKED = {"labels": {GANG: "true"}}
PROTECTION = "scheduling.k8s.io/podgroup-protection"
WORKLOADS, GROUPS = "workloads.scheduling.k8s.io", "podgroups.scheduling.k8s.io"
BOTH = [("Workload", "c"), ("PodGroup", "c-cluster")]


async def uids(world):
    return {key: obj["metadata"]["uid"] for key, obj in (await world.made()).items()}


async def counts(world):
    made = await world.made()
    (template,) = made["Workload", "c"]["spec"]["podGroupTemplates"]
    policies = (template["schedulingPolicy"], made["PodGroup", "c-cluster"]["spec"]["schedulingPolicy"])
    return [policy["gang"]["minCount"] for policy in policies]


async def protect(world):
    """Do as Kubernetes does with a PodGroup that Pods refer to."""
    url = f"{world.url('PodGroup')}/c-cluster"
    await world.api.patch(url, {"metadata": {"finalizers": [PROTECTION]}})


def groups_of(world):
    """Return the scheduling groups of the Pods that the operator asked for; the test server does not keep them."""
    return [pod["spec"].get("schedulingGroup") for pod in world.bodies("create", "pods")]


@pytest.mark.case("OP-156")
@pytest.mark.parametrize("value", ["true", "TRUE"])
async def test_a_cluster_that_asks_has_a_workload_and_a_pod_group(value):
    async with gang_world("kubernetes-was") as (world, _):
        workers = [{"replicas": 3}]
        made = await world.create(raycluster(workers=workers, metadata={"labels": {GANG: value}}))
        await world.ready()
        found = await world.made()
        assert list(found) == BOTH
        for obj in found.values():
            assert obj["metadata"]["labels"] == {"ray.io/cluster": "c"}
            (owner,) = obj["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
        policy = {"gang": {"minCount": 4}}
        assert found["Workload", "c"]["spec"] == {
            "controllerRef": {"apiGroup": "ray.io", "kind": "RayCluster", "name": "c"},
            "podGroupTemplates": [{"name": "cluster", "schedulingPolicy": policy}],
        }
        assert found["PodGroup", "c-cluster"]["spec"] == {
            "podGroupTemplateRef": {"workload": {"workloadName": "c", "podGroupTemplateName": "cluster"}},
            "schedulingPolicy": policy,
        }
        assert groups_of(world) == [{"podGroupName": "c-cluster"}] * 4
        for pod in await world.pods():
            assert pod["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.case("OP-157")
@pytest.mark.parametrize(
    ("labels", "spec"),
    [
        pytest.param({GANG: "true"}, {"enableInTreeAutoscaling": True}, id="with autoscaling"),
        pytest.param({}, {}, id="without the label"),
        pytest.param({GANG: "yes"}, {}, id="with another value"),
    ],
)
async def test_other_clusters_have_neither(labels, spec):
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}, **spec))
        await world.ready()
        assert not await world.made()
        assert groups_of(world) == [None, None]


@pytest.mark.case("OP-158")
@pytest.mark.parametrize(
    ("change", "count"),
    [
        pytest.param({"replicas": 3}, 4, id="replicas"),
        pytest.param({"numOfHosts": 4}, 5, id="hosts"),
    ],
)
async def test_both_are_made_anew_when_the_gang_changes_its_size(change, count):
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED))
        await world.ready()
        await protect(world)
        before = await uids(world)
        world.faults.sent.clear()
        await world.set_group("c", **change)
        await world.pass_time(10)
        assert await counts(world) == [count, count]
        assert not set(before.values()) & set((await uids(world)).values())
        writes = [write for write in world.writes() if write[1] in (WORKLOADS, GROUPS)]
        assert writes == [
            ("delete", GROUPS),
            ("patch", GROUPS),
            ("delete", WORKLOADS),
            ("create", WORKLOADS),
            ("create", GROUPS),
        ]


@pytest.mark.case("OP-158")
async def test_a_new_group_makes_the_gang_larger():
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED))
        cluster = await world.ready()
        groups = cluster["spec"]["workerGroupSpecs"]
        await world.patch_spec("c", {"workerGroupSpecs": [*groups, {**groups[0], "groupName": "more"}]})
        await world.pass_time(10)
        assert await counts(world) == [3, 3]


@pytest.mark.case("OP-158")
async def test_suspend_resume_and_recreate_keep_both():
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED, upgradeStrategy={"type": "Recreate"}))
        await world.ready()
        before = await uids(world)
        await world.patch_spec("c", {"suspend": True})
        await world.until(lambda: _is_empty(world))
        assert await uids(world) == before
        await world.patch_spec("c", {"suspend": False})
        await world.ready()
        assert await uids(world) == before
        await world.patch_spec("c", {"rayVersion": "2.53.0"})
        await world.pass_time(20)
        await world.ready()
        assert await uids(world) == before
        assert len(groups_of(world)) == 6, "the Pods were made anew twice"


async def _is_empty(world):
    return not await world.pods()


@pytest.mark.case("OP-159")
@pytest.mark.parametrize("protected", [True, False], ids=["protected", "not protected"])
async def test_both_go_with_the_label(protected):
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED))
        await world.ready()
        if protected:
            await protect(world)
        before = await uids(world)
        await world.patch("RayCluster", "c", {"metadata": {"labels": {GANG: None}}})
        await world.pass_time(5)
        assert not await world.made()
        deleted = [body["preconditions"]["uid"] for body in world.bodies("delete", GROUPS)]
        assert deleted == [before["PodGroup", "c-cluster"]]
        assert [body["preconditions"]["uid"] for body in world.bodies("delete", WORKLOADS)] == [
            before["Workload", "c"]
        ]


async def test_a_finalizer_of_somebody_else_is_waited_for():
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED))
        await world.ready()
        url = f"{world.url('PodGroup')}/c-cluster"
        await world.api.patch(url, {"metadata": {"finalizers": [PROTECTION, "example.com/mine"]}})
        await world.set_group("c", replicas=2)
        await world.pass_time(5)
        group = await world.get("PodGroup", "c-cluster")
        assert group["metadata"]["finalizers"] == ["example.com/mine"]
        assert len(await world.workers()) == 1, "no Pod is made for a gang of another size"
        await world.api.patch(url, {"metadata": {"finalizers": []}})
        await world.pass_time(5)
        assert await counts(world) == [3, 3]
        assert len(await world.workers()) == 2


async def test_a_workload_that_was_deleted_by_hand_comes_back_under_its_pod_group():
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED))
        await world.ready()
        before = await uids(world)
        await world.api.delete(f"{world.url('Workload')}/c")
        await world.pass_time(2)
        after = await uids(world)
        assert after["Workload", "c"] != before["Workload", "c"]
        assert after["PodGroup", "c-cluster"] == before["PodGroup", "c-cluster"]


async def test_a_workload_with_another_template_is_replaced_and_its_pod_group_first():
    async with gang_world("kubernetes-was") as (world, _):
        await world.create(raycluster(metadata=ASKED))
        await world.ready()
        await world.kill_operator()
        workload = await world.get("Workload", "c")
        await world.api.delete(f"{world.url('Workload')}/c")
        workload["spec"]["podGroupTemplates"][0]["name"] = "other"
        workload["metadata"] = {
            field: workload["metadata"][field] for field in ("name", "labels", "ownerReferences")
        }
        await world.api.create(world.url("Workload"), workload)
        before = await uids(world)
        world.faults.sent.clear()
        await world.start_operator()
        await world.pass_time(2)
        assert not set(before.values()) & set((await uids(world)).values())
        deleted = [resource for verb, resource in world.writes() if verb == "delete"]
        assert deleted == [GROUPS, WORKLOADS]


@pytest.mark.case("OP-160")
@pytest.mark.parametrize(("kind", "name"), BOTH, ids=["workload", "pod group"])
async def test_an_object_of_that_name_that_is_not_ours_is_named(kind, name):
    async with gang_world("kubernetes-was") as (world, _):
        await world.create_foreign(kind, name, {})
        await world.create(raycluster(metadata=ASKED))
        await world.pass_time(5)
        assert not await world.pods()
        event, *_ = await world.events("FailedToSubmitBatchScheduler", "c")
        assert event["note"] == (
            f"kubernetes-was: {kind} default/{name} has the name that is needed and belongs to nobody;"
            " delete or rename it"
        )


@pytest.mark.case("OP-162")
async def test_a_job_has_nothing_for_itself_and_its_cluster_goes_with_both():
    async with gang_world("kubernetes-was", lasts=3) as (world, _):
        await world.create(rayjob(metadata=ASKED, shutdownAfterJobFinishes=True))
        status = await reached(world, "Running")
        name = status["rayClusterName"]
        assert list(await world.made()) == [("Workload", name), ("PodGroup", f"{name}-cluster")]
        await reached(world, "Complete")
        await world.pass_time(10)
        assert not await world.made()
