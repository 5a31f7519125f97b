"""Worker groups of a running cluster: how many Pods there are, which of them go, and when they are replaced."""

import pytest

from kubereef.node.scripted import Fails, Running, Script, Succeeds
from tests.eagleray.raycluster.situations import (
    MOMENT,
    RANDOM,
    SCALED,
    label,
    names,
    running,
    told,
    uids,
    worker_to_delete,
)
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.mark.parametrize(
    ("variables", "spec", "doomed", "wanted", "left"),
    [
        pytest.param(
            RANDOM, SCALED, (3, 4), 3, 3, marks=pytest.mark.case("RC-1"), id="the two that are named go"
        ),
        pytest.param(
            RANDOM,
            SCALED,
            (2, "x"),
            3,
            3,
            marks=pytest.mark.case("RC-2"),
            id="one is named, another is chosen",
        ),
        pytest.param(
            {}, SCALED, (2, 3), 3, 3, marks=pytest.mark.case("RC-3"), id="only those that are named"
        ),
        pytest.param(
            {}, SCALED, (2, "x"), 3, 4, marks=pytest.mark.case("RC-4"), id="no other for one that is missing"
        ),
        pytest.param({}, SCALED, ("x", "y"), 3, 5, marks=pytest.mark.case("RC-5"), id="none for two missing"),
        pytest.param({}, {}, (), 2, 2, marks=pytest.mark.case("RC-6"), id="without an autoscaler we choose"),
        pytest.param(
            {"ENABLE_RANDOM_POD_DELETE": "false"},
            SCALED,
            (3,),
            3,
            4,
            marks=pytest.mark.case("RC-7"),
            id="fewer named than needed, and no choice is ours",
        ),
        pytest.param(
            RANDOM,
            SCALED,
            (3,),
            3,
            3,
            marks=pytest.mark.case("RC-7"),
            id="fewer named than needed, and we choose",
        ),
    ],
)
async def test_of_five_workers_so_many_are_left(variables, spec, doomed, wanted, left):
    async with running(workers=[{"replicas": 5}], variables=variables, **spec) as world:
        five = names(await world.workers())
        named = [five[one - 1] if isinstance(one, int) else one for one in doomed]
        await world.set_group("c", replicas=wanted, scaleStrategy=worker_to_delete(*named))
        await world.pass_time(MOMENT)
        stayed = names(await world.workers())
        assert len(stayed) == left
        assert set(stayed) <= set(five) - set(named)
        group = (await world.get("RayCluster", "c"))["spec"]["workerGroupSpecs"][0]
        assert (
            group["scaleStrategy"].get("workersToDelete", []) == named
        )  # the autoscaler clears it, never we


@pytest.mark.case("RC-8")
async def test_as_many_workers_as_wanted_are_left_alone():
    async with running() as world:
        before = uids(await world.pods())
        await world.pass_time(700)
        assert uids(await world.pods()) == before
        assert {verb for verb, resource in world.writes() if resource == "pods"} == {"create"}


@pytest.mark.parametrize(
    ("group", "pods"),
    [
        pytest.param(
            {"replicas": 0, "minReplicas": 1}, 1, id="none asked for", marks=pytest.mark.case("RC-9")
        ),
        pytest.param({"replicas": None, "minReplicas": 1}, 1, id="unset", marks=pytest.mark.case("RC-9")),
        pytest.param({"replicas": 4, "maxReplicas": 3}, 3, id="too many", marks=pytest.mark.case("RC-9")),
        pytest.param(
            {"replicas": 0, "minReplicas": 1, "numOfHosts": 4},
            4,
            id="none of four hosts",
            marks=pytest.mark.case("RC-10"),
        ),
        pytest.param(
            {"replicas": 4, "maxReplicas": 3, "numOfHosts": 4},
            12,
            id="too many of four hosts",
            marks=pytest.mark.case("RC-10"),
        ),
        pytest.param(
            {"replicas": 1, "numOfHosts": 4}, 4, id="one of four hosts", marks=pytest.mark.case("RC-11")
        ),
    ],
)
async def test_a_group_is_kept_within_its_bounds(group, pods):
    async with running(workers=[group], flags=("--feature-gates=RayMultiHostIndexing=false",)) as world:
        workers = await world.workers()
        assert len(workers) == pods
        assert all(label(pod, "worker-group-replica-index") is None for pod in workers)


@pytest.mark.case("RC-15")
@pytest.mark.parametrize("ending", [Fails(after=20), Succeeds(after=20)], ids=["failed", "succeeded"])
async def test_an_ended_worker_is_deleted_and_replaced_once_it_is_gone(ending):
    bad = Script({"ray.io/group": "small-group"}, nth=2, steps=[Running(), ending])
    groups = [
        {"replicas": 3, "pod": {"restartPolicy": "Never"}},
        {"groupName": "other", "replicas": 0},
    ]
    async with world_of(scripts=[bad]) as world:
        ours = raycluster(workers=groups)
        pod = ours["spec"]["workerGroupSpecs"][0]["template"]["spec"]
        pod["containers"] = [{"name": "ray", "image": "r"}]
        await world.create(ours)
        await world.ready()
        # Somebody holds on to all of them, so that the one that ends stays for a while after its deletion.
        for pod in await world.workers():
            await world.patch(
                "Pod", pod["metadata"]["name"], {"metadata": {"finalizers": ["example.com/hold"]}}
            )
        await world.pass_time(30)
        held = await world.workers(group="small-group")  # the ended one, and two that run
        assert len(held) == 3
        (second,) = (pod["metadata"] for pod in held if "deletionTimestamp" in pod["metadata"])
        await world.set_group("c", group=1, replicas=1)
        await world.pass_time(MOMENT)
        assert len(await world.workers(group="other")) == 1
        assert len(await world.workers(group="small-group")) == 3
        for pod in held:
            await world.patch("Pod", pod["metadata"]["name"], {"metadata": {"finalizers": None}})
        await world.pass_time(MOMENT)
        workers = await world.workers(group="small-group")
        assert len(workers) == 3
        assert second["uid"] not in uids(workers)
        phase, end = ("Failed", "1 (Error)") if isinstance(ending, Fails) else ("Succeeded", "0 (Completed)")
        assert await told(world, "DeletedWorkerPod") == (
            "Normal",
            "Delete",
            (
                f"Deleted worker Pod default/{second['name']}; Pod status: {phase}; Pod restart policy: Never; "
                f"Ray container terminated status: exit code {end}"
            ),
        )


@pytest.mark.case("RC-16")
async def test_a_suspended_group_loses_its_pods_and_the_head_stays():
    async with running(workers=[{"replicas": 2}, {"groupName": "other", "replicas": 1}]) as world:
        head = await world.head()
        await world.set_group("c", suspend=True)
        await world.pass_time(MOMENT)
        assert await world.workers(group="small-group") == []
        assert len(await world.workers(group="other")) == 1
        assert uids([await world.head()]) == uids([head])
        note = "Deleted all pods for suspended worker group small-group in RayCluster default/c"
        assert await told(world, "DeletedWorkerPod") == ("Normal", "Delete", note)
        await world.set_group("c", suspend=False)
        await world.pass_time(MOMENT)
        assert len(await world.workers(group="small-group")) == 2


@pytest.mark.case("RC-17")
async def test_a_group_of_an_autoscaled_cluster_is_not_suspended():
    async with running(workers=[{"replicas": 2}], **SCALED) as world:
        before = uids(await world.pods())
        await world.set_group("c", suspend=True)
        await world.pass_time(MOMENT)
        assert uids(await world.pods()) == before
        kind, action, note = await told(world, "InvalidRayClusterSpec")
        assert (kind, action) == ("Warning", "Validate")
        assert note.startswith("The RayCluster spec is invalid default/c: ")


@pytest.mark.case("RC-104")
async def test_the_pods_of_a_removed_group_go_and_the_cluster_is_ready_again():
    async with running(workers=[{"replicas": 1}, {"groupName": "old", "replicas": 1}]) as world:
        (old,) = await world.workers(group="old")
        cluster = await world.get("RayCluster", "c")
        await world.patch_spec("c", {"workerGroupSpecs": cluster["spec"]["workerGroupSpecs"][:1]})
        await world.pass_time(MOMENT)
        assert await world.workers(group="old") == []
        name = old["metadata"]["name"]
        note = f"Deleted worker Pod default/{name} for group old: group removed from the spec"
        assert await told(world, "DeletedWorkerPod") == ("Normal", "Delete", note)
        status = await world.status()
        assert (status["state"], status["desiredWorkerReplicas"]) == ("ready", 1)
        assert status["readyWorkerReplicas"] == 1


@pytest.mark.case("RC-105")
async def test_a_name_to_delete_of_another_group_or_cluster_is_ignored():
    async with running(workers=[{"replicas": 1}, {"groupName": "other", "replicas": 1}]) as world:
        await world.create(raycluster("d"))
        await world.ready("d")
        everyone = uids([*await world.pods(), *await world.pods("d")])
        head = await world.head()
        victims = names([*await world.workers(group="other"), *await world.workers("d"), head])
        await world.set_group("c", scaleStrategy=worker_to_delete(*victims))
        await world.pass_time(MOMENT)
        assert uids([*await world.pods(), *await world.pods("d")]) == everyone


async def test_what_happens_to_named_and_surplus_workers_is_told():
    async with running(workers=[{"replicas": 3}]) as world:
        _, two, _ = names(await world.workers())
        await world.set_group("c", replicas=2, scaleStrategy=worker_to_delete(two))
        await world.pass_time(MOMENT)
        assert await told(world, "DeletedWorkerPod") == ("Normal", "Delete", f"Deleted pod default/{two}")
    async with running(workers=[{"replicas": 3}]) as world:
        indexed = {label(pod, "worker-group-replica-index"): pod for pod in await world.workers()}
        (last,) = names([indexed["2"]])
        await world.set_group("c", replicas=2)
        await world.pass_time(MOMENT)
        assert await told(world, "DeletedWorkerPod") == ("Normal", "Delete", f"Deleted Pod default/{last}")
