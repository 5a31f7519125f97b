"""Deployments in a cluster under virtual time, with Pods on scripted nodes."""

import time

import pytest

from kubereef.controllers.deployments import DeploymentController
from kubereef.controllers.garbage import GarbageCollector
from kubereef.controllers.replicasets import ReplicaSetController
from kubereef.controllers.scheduling.nodelifecycle import NodeLifecycleController
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubereef.node.scripted import NodeShape, NotReady, Running, Script, ScriptedNodes, Waits
from tests.kubereef.controllers.making import APPS, PODS, items, messages, workload

DEPLOYMENTS = f"{APPS}/deployments"
SETS = f"{APPS}/replicasets"
REVISION = "deployment.kubernetes.io/revision"
CONTROLLERS = (
    ServiceAccountController,
    GarbageCollector,
    ReplicaSetController,
    DeploymentController,
    Scheduler,
    NodeLifecycleController,
)


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(*CONTROLLERS)
    return simulated_cluster.client


@pytest.fixture
async def start_nodes(simulated_cluster, client):
    """Start nodes whose Pods live by scripts."""
    started = []

    async def start(*scripts):
        nodes = ScriptedNodes(client, simulated_cluster.clock, [NodeShape("n1"), NodeShape("n2")], scripts)
        await nodes.start()
        await simulated_cluster.pass_time(1)
        started.append(nodes)
        return nodes

    yield start
    for nodes in started:
        await nodes.stop()


async def status(client):
    return (await client.get(f"{DEPLOYMENTS}/w"))["status"]


async def conditions(client):
    return {one["type"]: one["reason"] for one in (await status(client))["conditions"]}


async def set_image(client, image):
    containers = [{"name": "c", "image": image}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await client.patch(f"{DEPLOYMENTS}/w", patch, "strategic")


async def images(client):
    return sorted(one["spec"]["containers"][0]["image"] for one in await items(client, PODS))


async def sizes(client):
    return {
        one["metadata"]["annotations"][REVISION]: one["spec"]["replicas"] for one in await items(client, SETS)
    }


async def test_a_hundred_pods_run_within_a_second(client, simulated_cluster, start_nodes):
    """Measured in the time that this process computes, so that a busy machine does not fail it."""
    await start_nodes(Script(steps=[Running(after=1)]))
    began = time.process_time()
    await client.create(DEPLOYMENTS, workload(replicas=100))
    await simulated_cluster.pass_time(10)
    took = time.process_time() - began
    assert (await status(client))["availableReplicas"] == 100
    assert took < 1, f"{took:.2f} s"


async def test_a_rollout_keeps_enough_pods_and_not_too_many(client, simulated_cluster, start_nodes):
    await start_nodes(Script(steps=[Running(after=3, ready=True)], stops_after=2))
    await client.create(DEPLOYMENTS, workload(replicas=8))
    await simulated_cluster.pass_time(20)
    await set_image(client, "i:2")
    ready, present = [], []
    for _ in range(60):
        await simulated_cluster.pass_time(0.5)
        made = [one for one in await items(client, PODS) if "deletionTimestamp" not in one["metadata"]]
        present.append(len(made))
        ready.append(sum(_is_ready(one) for one in made))
    assert max(present) == 10, "a quarter more"
    assert min(ready) == 6, "a quarter less"
    assert await images(client) == ["i:2"] * 8
    assert await sizes(client) == {"1": 0, "2": 8}
    assert (await conditions(client))["Progressing"] == "NewReplicaSetAvailable"
    assert (await client.get(f"{DEPLOYMENTS}/w"))["metadata"]["annotations"][REVISION] == "2"


def _is_ready(pod):
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ())
    )


async def test_recreating_ends_all_old_pods_before_the_first_new_one(client, simulated_cluster, start_nodes):
    await start_nodes(Script(stops_after=5))
    await client.create(DEPLOYMENTS, workload(replicas=3, strategy={"type": "Recreate"}))
    await simulated_cluster.pass_time(5)
    await set_image(client, "i:2")
    seen = []
    for _ in range(20):
        await simulated_cluster.pass_time(0.5)
        seen.append(tuple(dict.fromkeys(await images(client))))
    assert ("i:1", "i:2") not in seen
    assert seen[0] == ("i:1",)
    assert await images(client) == ["i:2"] * 3


async def test_going_back_takes_the_old_replica_set_again(client, simulated_cluster, start_nodes):
    await start_nodes()
    await client.create(DEPLOYMENTS, workload(replicas=2))
    for image in ("i:2", "i:1"):
        await simulated_cluster.pass_time(5)
        await set_image(client, image)
    await simulated_cluster.pass_time(5)
    assert await sizes(client) == {"3": 2, "2": 0}
    annotations = [one["metadata"]["annotations"] for one in await items(client, SETS)]
    assert "1" in [one.get("deployment.kubernetes.io/revision-history") for one in annotations]


async def test_old_replica_sets_beyond_the_history_go(client, simulated_cluster, start_nodes):
    await start_nodes()
    await client.create(DEPLOYMENTS, workload(replicas=1, revisionHistoryLimit=1))
    for number in range(2, 6):
        await simulated_cluster.pass_time(5)
        await set_image(client, f"i:{number}")
    await simulated_cluster.pass_time(5)
    assert await sizes(client) == {"4": 0, "5": 1}


async def test_a_paused_deployment_scales_but_does_not_roll_out(client, simulated_cluster, start_nodes):
    await start_nodes()
    await client.create(DEPLOYMENTS, workload(replicas=2))
    await simulated_cluster.pass_time(5)
    await client.patch(f"{DEPLOYMENTS}/w", {"spec": {"paused": True, "replicas": 4}})
    await set_image(client, "i:2")
    await simulated_cluster.pass_time(5)
    assert await images(client) == ["i:1"] * 4
    assert (await conditions(client))["Progressing"] == "DeploymentPaused"
    await client.patch(f"{DEPLOYMENTS}/w", {"spec": {"paused": False}})
    await simulated_cluster.pass_time(5)
    assert await images(client) == ["i:2"] * 4
    assert (await conditions(client))["Progressing"] == "NewReplicaSetAvailable"


async def test_a_rollout_that_cannot_go_on_misses_its_deadline(client, simulated_cluster, start_nodes):
    await start_nodes(Script(nth=1), Script(steps=[Waits()]))
    await client.create(DEPLOYMENTS, workload(replicas=1, progressDeadlineSeconds=30))
    await simulated_cluster.pass_time(5)
    await set_image(client, "i:2")
    await simulated_cluster.pass_time(25)
    assert (await conditions(client))["Progressing"] == "ReplicaSetUpdated"
    await simulated_cluster.pass_time(10)
    assert await conditions(client) == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "ProgressDeadlineExceeded",
    }
    assert await images(client) == ["i:1", "i:2"]


async def test_a_deployment_is_unavailable_while_too_few_pods_are_ready(
    client, simulated_cluster, start_nodes
):
    await start_nodes(Script(nth=1, steps=[Running(), NotReady(after=10)]), Script())
    await client.create(DEPLOYMENTS, workload(replicas=2, strategy={"rollingUpdate": {"maxUnavailable": 0}}))
    await simulated_cluster.pass_time(5)
    assert (await conditions(client))["Available"] == "MinimumReplicasAvailable"
    await simulated_cluster.pass_time(10)
    assert (await conditions(client))["Available"] == "MinimumReplicasUnavailable"
    assert (await status(client))["unavailableReplicas"] == 1


async def test_scaling_is_told_in_events(client, simulated_cluster, start_nodes):
    await start_nodes()
    await client.create(DEPLOYMENTS, workload(replicas=2))
    await simulated_cluster.pass_time(2)
    await client.patch(f"{DEPLOYMENTS}/w", {"spec": {"replicas": 1}})
    await simulated_cluster.pass_time(2)
    name = (await items(client, SETS))[0]["metadata"]["name"]
    assert await messages(client, "ScalingReplicaSet") == [
        f"Scaled up replica set {name} from 0 to 2",
        f"Scaled down replica set {name} from 2 to 1",
    ]


async def test_a_deleted_deployment_takes_everything_along(client, simulated_cluster, start_nodes):
    await start_nodes()
    await client.create(DEPLOYMENTS, workload(replicas=3))
    await simulated_cluster.pass_time(5)
    await client.delete(f"{DEPLOYMENTS}/w?propagationPolicy=Foreground")
    await simulated_cluster.pass_time(5)
    for url in (DEPLOYMENTS, SETS, PODS):
        assert await items(client, url) == []


async def test_another_template_of_the_same_hash_gets_another_name(
    client, simulated_cluster, start_nodes, monkeypatch
):
    await start_nodes()
    monkeypatch.setattr(
        "kubereef.controllers.deploymentplan.template_hash",
        lambda _template, collisions: f"h{collisions or 0}",
    )
    await client.create(DEPLOYMENTS, workload(replicas=1))
    await simulated_cluster.pass_time(5)
    await set_image(client, "i:2")
    await simulated_cluster.pass_time(5)
    assert {one["metadata"]["name"] for one in await items(client, SETS)} == {"w-h0", "w-h1"}
    assert (await status(client))["collisionCount"] == 1
    assert await images(client) == ["i:2"]


async def test_a_restart_in_the_middle_of_a_rollout_changes_nothing_about_its_end(
    client, simulated_cluster, start_nodes
):
    await start_nodes(Script(steps=[Running(after=1)]))
    await client.create(DEPLOYMENTS, workload(replicas=6))
    await simulated_cluster.pass_time(10)
    await set_image(client, "i:2")
    for _ in range(8):
        await simulated_cluster.pass_time(0.4)
        await simulated_cluster.restart_controllers()
    await simulated_cluster.pass_time(30)
    assert await images(client) == ["i:2"] * 6
    assert await sizes(client) == {"1": 0, "2": 6}


async def test_a_deployment_in_a_namespace_that_is_going_makes_no_replica_set_and_no_noise(
    client, simulated_cluster, caplog
):
    url = "/apis/apps/v1/namespaces/doomed/deployments"
    await client.create("/api/v1/namespaces", {"metadata": {"name": "doomed"}})
    late = workload("late", paused=True)
    late["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(url, late)
    await simulated_cluster.pass_time(1)
    await client.delete("/api/v1/namespaces/doomed")
    await client.patch(f"{url}/late", {"spec": {"paused": False}})
    await simulated_cluster.pass_time(60)
    assert (await client.get("/apis/apps/v1/namespaces/doomed/replicasets"))["items"] == []
    assert caplog.text == ""


async def test_a_deployment_that_is_born_paused_makes_a_replica_set_once_it_goes_on(
    client, simulated_cluster, caplog
):
    await client.create(DEPLOYMENTS, workload(paused=True))
    await simulated_cluster.pass_time(10)
    assert await items(client, SETS) == []
    assert (await conditions(client))["Progressing"] == "DeploymentPaused"
    await client.patch(f"{DEPLOYMENTS}/w", {"spec": {"paused": False}})
    await simulated_cluster.pass_time(1)
    assert len(await items(client, SETS)) == 1
    assert caplog.text == ""
