"""Late watches, lost answers, lost nodes, Pods that fail again and again: nothing is done twice, and it is told."""

import logging
from itertools import pairwise

import pytest

from kubereef.node.scripted import Fails, NodeShape, Running, Script, Waits
from tests.eagleray.raycluster.situations import MOMENT, count, names, running, told, uids, worker_to_delete
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

WORKER = {"ray.io/node-type": "worker"}


OFTEN = {"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "10"}


@pytest.mark.case("RC-100")
async def test_no_pod_is_made_or_deleted_twice_while_the_watch_is_held_back():
    groups = [{"replicas": 0}, {"groupName": "other", "replicas": 0}]
    async with running(workers=groups, variables=OFTEN) as world:
        world.faults.hold("pods")
        await world.set_group("c", group=0, replicas=3)
        await world.pass_time(100)
        assert count(world, "create", "pods") == 1 + 3
        await world.set_group("c", group=1, replicas=2)  # not held up by what is not known of the first group
        await world.pass_time(100)
        assert len(await world.workers(group="other")) == 2
        victim = (await world.workers(group="small-group"))[0]["metadata"]["name"]
        await world.set_group("c", group=0, replicas=2, scaleStrategy=worker_to_delete(victim))
        await world.pass_time(100)
        assert (count(world, "create", "pods"), count(world, "delete", "pods")) == (6, 1)
        world.faults.release("pods")
        await world.pass_time(MOMENT)
        assert (count(world, "create", "pods"), count(world, "delete", "pods")) == (6, 1)
        assert len(await world.pods()) == 5


@pytest.mark.case("RC-100")
@pytest.mark.parametrize("held", [True, False], ids=["Pods that take long to end", "Pods that end at once"])
async def test_all_pods_are_deleted_once_while_the_watch_is_held_back(held):
    async with running(variables=OFTEN) as world:
        if held:
            for name in names(await world.pods()):
                await world.patch("Pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.pass_time(1)
        world.faults.hold("pods")
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(100)
        assert count(world, "deletecollection", "pods") == 1


async def test_a_lost_answer_makes_no_second_pod():
    async with world_of() as world:
        world.faults.next = ["answer lost"] * 2
        await world.create(raycluster(workers=[{"replicas": 3}]))
        world.faults.next = ["answer lost"] * 12
        await world.ready()
        assert len(await world.pods()) == 4


async def test_a_killed_operator_leaves_no_double():
    async with world_of() as world:
        await world.create(raycluster(workers=[{"replicas": 3}]))
        for _ in range(5):
            await world.pass_time(0.002)
            await world.kill_operator()
            await world.start_operator()
        await world.ready()
        assert len(await world.pods()) == 4
        assert len(await world.list("Service", "ray.io/cluster=c")) == 1


@pytest.mark.case("RC-106")
async def test_a_terminating_worker_is_neither_deleted_again_nor_replaced():
    slow = Script(WORKER, stops_after=25)
    async with running(scripts=[slow]) as world:
        first, *_ = names(await world.workers())
        await world.delete("Pod", first)
        await world.set_group("c", scaleStrategy=worker_to_delete(first))
        await world.pass_time(20)
        assert len(await world.workers()) == 3
        assert (count(world, "create", "pods"), count(world, "delete", "pods")) == (4, 0)
        await world.pass_time(10)
        assert first not in names(await world.workers())
        assert len(await world.workers()) == 3


@pytest.mark.case("RC-106")
async def test_a_worker_that_cannot_end_on_a_lost_node_is_replaced():
    nodes = (NodeShape("near"), NodeShape("far", labels={"place": "far"}))
    async with world_of(nodes=nodes) as world:
        pod = {"nodeSelector": {"place": "far"}, "containers": [{"name": "ray", "image": "r"}]}
        far = {"groupName": "far", "replicas": 1, "template": {"spec": pod}}
        near = {"kubernetes.io/hostname": "near"}
        head = {"template": {"spec": {"nodeSelector": near, "containers": [{"name": "ray", "image": "r"}]}}}
        await world.create(raycluster(head=head, workers=[far]))
        await world.ready()
        (lost,) = await world.workers()
        world.nodes.lose("far")
        await world.pass_time(60)
        await world.delete("Pod", lost["metadata"]["name"])
        await world.pass_time(20)
        assert len(await world.workers()) == 1  # its grace period is not over
        await world.pass_time(120)
        workers = await world.workers()
        assert len(workers) == 2
        assert uids([lost]) < uids(workers)
        condition = await world.condition("PodsBlocked")
        assert lost["metadata"]["name"] in condition["message"]
        assert "far" in condition["message"]
        await world.pass_time(600)
        assert len(await world.workers()) == 2  # one replacement is enough


@pytest.mark.case("RC-107")
async def test_a_group_that_fails_again_and_again_is_replaced_ever_more_slowly():
    crashing = Script(WORKER, steps=[Running(), Fails(after=1, exit_code=3)])
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "ray", "image": "r"}]}}
    groups = [{"replicas": 2, "template": template}, {"groupName": "other", "replicas": 0}]
    async with world_of(scripts=[crashing]) as world:
        await world.create(raycluster(workers=groups))
        made = []
        for _ in range(6):
            await world.pass_time(100)
            made.append(count(world, "create", "pods") - 1)
        assert made[0] >= 6
        rounds = [(after - before) // 2 for before, after in pairwise(made)]
        assert all(one <= 1 for one in rounds[2:])
        condition = await world.condition("PodsBlocked")
        assert (condition["status"], condition["reason"]) == ("True", "Crash")
        assert "exit code 3" in condition["message"]
        assert "in a row" in condition["message"]
        # Another group is not held up by it.
        await world.set_group("c", group=1, replicas=1)
        await world.pass_time(MOMENT)
        assert await world.workers(group="other")


@pytest.mark.case("RC-107")
@pytest.mark.parametrize(
    ("script", "group", "reason", "words"),
    [
        pytest.param(
            Script(WORKER, steps=[Waits(reason="ImagePullBackOff", message="no such image")]),
            {},
            "ImagePull",
            "check the image's name",
            id="an image that is not there",
        ),
        pytest.param(
            Script(WORKER),
            {"container": {"resources": {"requests": {"cpu": "1000"}}}},
            "Unschedulable",
            "ask for less",
            id="more than any node has",
        ),
        pytest.param(
            Script(WORKER, steps=[Running(), Fails(after=1, exit_code=7)], repeat=True),
            {},
            "Crash",
            "exit code 7",
            id="a container that crashes",
        ),
    ],
)
async def test_what_keeps_pods_from_running_is_told(script, group, reason, words):
    async with world_of(scripts=[script]) as world:
        await world.create(raycluster(workers=[group]))
        condition = await world.until(lambda: world.condition("PodsBlocked"), seconds=60)
        assert (condition["status"], condition["reason"]) == ("True", reason)
        assert words in condition["message"]
        kind, action, note = await told(world, "PodsBlocked")
        assert (kind, action) == ("Warning", "Reconcile")
        assert words in note


@pytest.mark.case("RC-110")
async def test_a_failed_step_is_named_in_the_log_in_the_event_and_in_a_metric(caplog):
    caplog.set_level(logging.ERROR)
    async with world_of() as world:
        world.faults.refuse("create", "services")
        await world.create(raycluster())
        await world.pass_time(MOMENT)
        kind, action, note = await told(world, "ReconcileFailed")
        assert (kind, action) == ("Warning", "Reconcile")
        assert note == "Step head-service failed: the quota is used up"
        assert any("Step head-service failed" in record.getMessage() for record in caplog.records)
        lines = world.operator.registry.render().splitlines()
        assert [line for line in lines if 'step="head-service"' in line and 'controller="raycluster"' in line]
