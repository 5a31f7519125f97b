"""The head of a running cluster: when it goes, when a new one comes, and what happens if it cannot."""

import pytest

from kubereef.node.scripted import Evicted, Fails, Running, Script
from tests.eagleray.raycluster.situations import MOMENT, count, names, running, told, uids
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

HEAD = {"ray.io/node-type": "head"}


@pytest.mark.case("RC-18")
@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
async def test_a_failed_head_goes_and_a_new_one_comes_once_it_is_gone(policy):
    evicted = Script(HEAD, nth=1, steps=[Running(), Evicted(after=20)])
    head = {"template": {"spec": {"restartPolicy": policy, "containers": [{"name": "ray", "image": "r"}]}}}
    async with running(head=head, scripts=[evicted]) as world:
        first = await world.head()
        workers = uids(await world.workers())
        name = first["metadata"]["name"]
        await world.patch("Pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.pass_time(40)
        assert names(await world.pods(node_type="head")) == [name]
        assert (await world.head())["metadata"]["deletionTimestamp"]
        await world.patch("Pod", name, {"metadata": {"finalizers": None}})
        await world.pass_time(MOMENT)
        (second,) = await world.pods(node_type="head")
        assert uids([second]) != uids([first])
        assert uids(await world.workers()) == workers
        assert await told(world, "DeletedHeadPod") == (
            "Normal",
            "Delete",
            (
                f"Deleted head Pod default/{name}; Pod status: Failed; Pod restart policy: {policy}; "
                "Ray container terminated status: exit code 137 (Error)"
            ),
        )


@pytest.mark.case("RC-19")
@pytest.mark.parametrize(("policy", "goes"), [("Never", True), ("Always", False)])
async def test_a_head_whose_ray_container_ended_goes_only_if_nothing_restarts_it(policy, goes):
    ended = Script(HEAD, nth=1, steps=[Running(), Fails(after=20, container="ray")])
    containers = [{"name": "ray", "image": "r"}, {"name": "side", "image": "s"}]
    head = {"template": {"spec": {"restartPolicy": policy, "containers": containers}}}
    async with running(head=head, scripts=[ended]) as world:
        before = uids(await world.pods(node_type="head"))
        await world.pass_time(60)
        assert (uids(await world.pods(node_type="head")) != before) is goes


@pytest.mark.case("RC-20")
@pytest.mark.case("RC-46")
@pytest.mark.parametrize(
    ("part", "named", "event"),
    [
        pytest.param("Head", "c-head-", "Failed to create head Pod default/c-head-", id="head"),
        pytest.param(
            "Worker", "-worker-", "Failed to create worker Pod for the cluster default/c, ", id="worker"
        ),
    ],
)
async def test_a_pod_that_cannot_be_made_is_told_and_tried_again_ever_more_slowly(part, named, event):
    async with world_of() as world:
        allow = world.faults.refuse("create", "pods", named=named)
        await world.create(raycluster())
        await world.pass_time(1)
        quick = count(world, "create", "pods")
        assert quick > 3
        kind, action, note = await told(world, f"FailedToCreate{part}Pod")
        assert (kind, action) == ("Warning", "Create")
        assert note.startswith(event)
        assert note.endswith(", the quota is used up")
        condition = await world.condition("ReplicaFailure")
        reason = f"FailedCreate{part}Pod"
        assert (condition["status"], condition["reason"]) == ("True", reason)
        assert condition["message"] == f"{reason}\nthe quota is used up"
        await world.pass_time(60)
        slow = count(world, "create", "pods")
        await world.pass_time(1)
        assert count(world, "create", "pods") - slow <= 1 < quick
        if part == "Head":
            assert await world.workers() == []
        status = await world.status()
        assert status["head"]["serviceName"] == "c-head-svc"
        allow()
        await world.ready()
        assert await world.condition("ReplicaFailure") is None


@pytest.mark.case("RC-46")
async def test_without_the_gate_a_failure_is_no_condition():
    async with world_of(flags=("--feature-gates=RayClusterStatusConditions=false",)) as world:
        world.faults.refuse("create", "pods")
        await world.create(raycluster())
        await world.pass_time(MOMENT)
        assert "conditions" not in await world.status()
        assert await world.events("FailedToCreateHeadPod")


@pytest.mark.case("RC-48")
async def test_several_heads_are_named_and_none_is_deleted():
    async with running() as world:
        head = await world.head()
        twin = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "twin",
                "labels": head["metadata"]["labels"],
                "ownerReferences": head["metadata"]["ownerReferences"],
            },
            "spec": {"containers": [{"name": "ray", "image": "r"}]},
        }
        await world.create(twin)
        await world.pass_time(MOMENT)
        both = names(await world.pods(node_type="head"))
        assert len(both) == 2
        note = f"RayCluster default/c has more than one head Pod: {', '.join(both)}; delete all but one"
        assert await told(world, "MultipleHeadPods") == ("Warning", "Reconcile", note)
        condition = await world.condition("HeadPodReady")
        assert (condition["status"], condition["reason"]) == ("False", "MultipleHeadPods")
        assert all(name in condition["message"] for name in both)
        assert count(world, "delete", "pods") == 0
        await world.delete("Pod", "twin")
        await world.pass_time(60)
        assert (await world.condition("HeadPodReady"))["status"] == "True"


@pytest.mark.case("RC-48")
async def test_a_missing_head_is_told():
    async with world_of() as world:
        world.faults.refuse("create", "pods")
        await world.create(raycluster())
        await world.pass_time(1)
        condition = await world.condition("HeadPodReady")
        assert (condition["status"], condition["reason"]) == ("False", "HeadPodNotFound")
        assert condition["message"] == "Head Pod not found"


async def test_a_head_is_lost_for_good_where_that_was_asked_for():
    keep = {"annotations": {"ray.io/disable-provisioned-head-restart": "true"}}
    async with running(metadata=keep) as world:
        await world.delete("Pod", (await world.head())["metadata"]["name"])
        await world.pass_time(60)
        assert await world.head() is None
        assert len(await world.workers()) == 3
