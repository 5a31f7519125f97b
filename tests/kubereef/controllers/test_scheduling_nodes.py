"""Nodes that fall silent, taints, and the Pods on them."""

import pytest

from kubereef.controllers.scheduling.evictions import QUARANTINE, PodGarbageCollector, TaintEvictionController
from kubereef.controllers.scheduling.nodelifecycle import GRACE, NodeLifecycleController, wanted_taints
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubereef.node.scripted import NodeShape, ScriptedNodes
from tests.kubereef.controllers.making import PODS, START, at, items, messages, node

NODES = "/api/v1/nodes"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
PATIENCE = [{"key": "out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]


def taint(key, effect="NoSchedule", **more):
    return {"key": key, "effect": effect, **more}


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(node(taints=[taint(NOT_READY)]), [], id="a ready node loses the taint of new ones"),
        pytest.param(
            node(ready="False"),
            [taint(NOT_READY), taint(NOT_READY, "NoExecute", timeAdded=at(0))],
            id="a node that is not ready",
        ),
        pytest.param(
            node(ready="Unknown", taints=[taint(NOT_READY), taint(NOT_READY, "NoExecute")]),
            [taint(UNREACHABLE), taint(UNREACHABLE, "NoExecute", timeAdded=at(0))],
            id="a node that was not ready and is now lost",
        ),
        pytest.param(
            node(ready="False", taints=[taint(NOT_READY, "NoExecute", timeAdded=at(-9))]),
            [taint(NOT_READY, "NoExecute", timeAdded=at(-9)), taint(NOT_READY)],
            id="a taint keeps its time",
        ),
        pytest.param(
            node(taints=[taint("mine", value="1")]), [taint("mine", value="1")], id="others' taints stay"
        ),
        pytest.param(
            {**node(), "spec": {"unschedulable": True}},
            [taint("node.kubernetes.io/unschedulable")],
            id="a cordoned node",
        ),
    ],
)
def test_which_taints_a_node_has(made, want):
    assert wanted_taints(made, START) == want


@pytest.fixture
async def nodes(simulated_cluster):
    await simulated_cluster.run(
        ServiceAccountController,
        Scheduler,
        NodeLifecycleController,
        TaintEvictionController,
        PodGarbageCollector,
    )
    shapes = [NodeShape("n1"), NodeShape("n2")]
    async with ScriptedNodes(simulated_cluster.client, simulated_cluster.clock, shapes) as started:
        await simulated_cluster.pass_time(1)
        yield started


@pytest.fixture
def client(simulated_cluster):
    return simulated_cluster.client


async def add_pod(client, name, node_name, **spec):
    containers = [{"name": "c", "image": "i"}]
    await client.create(
        PODS, {"metadata": {"name": name}, "spec": {"containers": containers, "nodeName": node_name, **spec}}
    )


async def ready(client, url):
    conditions = (await client.get(url))["status"]["conditions"]
    return next(one for one in conditions if one["type"] == "Ready")


async def test_nodes_that_are_heard_stay_ready_for_hours(nodes, client, simulated_cluster):
    await simulated_cluster.pass_time(2 * 3600)
    for one in await items(client, NODES):
        assert "taints" not in one["spec"]
        assert (await ready(client, f"{NODES}/{one['metadata']['name']}"))["status"] == "True"


async def test_a_lost_node_loses_its_pods_after_what_they_tolerate(nodes, client, simulated_cluster):
    await add_pod(client, "usual", "n1")
    await add_pod(client, "loyal", "n1", tolerations=[{"operator": "Exists"}])
    await add_pod(client, "elsewhere", "n2")
    await simulated_cluster.pass_time(1)
    nodes.lose("n1")
    await simulated_cluster.pass_time(GRACE + 11)
    assert (await ready(client, f"{NODES}/n1"))["reason"] == "NodeStatusUnknown"
    assert {one["key"] for one in (await client.get(f"{NODES}/n1"))["spec"]["taints"]} == {UNREACHABLE}
    assert (await ready(client, f"{PODS}/usual"))["status"] == "False"
    assert (await ready(client, f"{PODS}/elsewhere"))["status"] == "True"
    usual = await client.get(f"{PODS}/usual")
    assert "deletionTimestamp" not in usual["metadata"]
    await simulated_cluster.pass_time(300)
    usual = await client.get(f"{PODS}/usual")
    assert "deletionTimestamp" in usual["metadata"], "nobody confirms that it has ended"
    reasons = {one["type"]: one.get("reason") for one in usual["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "DeletionByTaintManager"
    assert "deletionTimestamp" not in (await client.get(f"{PODS}/loyal"))["metadata"]


async def test_a_node_that_comes_back_is_ready_and_so_are_its_pods(nodes, client, simulated_cluster):
    await add_pod(client, "p", "n1")
    await simulated_cluster.pass_time(1)
    nodes.lose("n1")
    await simulated_cluster.pass_time(120)
    assert (await ready(client, f"{PODS}/p"))["status"] == "False"
    nodes.restore("n1")
    await simulated_cluster.pass_time(60)
    assert "taints" not in (await client.get(f"{NODES}/n1"))["spec"]
    assert (await ready(client, f"{PODS}/p"))["status"] == "True"
    await simulated_cluster.pass_time(600)
    assert "deletionTimestamp" not in (await client.get(f"{PODS}/p"))["metadata"]


async def test_a_node_that_never_spoke_is_unknown_after_a_while(nodes, client, simulated_cluster):
    await client.create(NODES, {"metadata": {"name": "silent"}})
    await simulated_cluster.pass_time(59)
    assert not (await client.get(f"{NODES}/silent"))["status"].get("conditions")
    await simulated_cluster.pass_time(2)
    assert (await ready(client, f"{NODES}/silent"))["reason"] == "NodeStatusNeverUpdated"


async def test_a_taint_by_hand_drives_pods_away_at_once(nodes, client, simulated_cluster):
    await add_pod(client, "p", "n1")
    await add_pod(client, "patient", "n1", tolerations=PATIENCE)
    await simulated_cluster.pass_time(1)
    await client.patch(f"{NODES}/n1", {"spec": {"taints": [taint("out", "NoExecute")]}})
    await simulated_cluster.pass_time(1)
    assert [one["metadata"]["name"] for one in await items(client, PODS)] == ["patient"]
    assert await messages(client, "TaintManagerEviction") == ["Marking for deletion Pod default/p"]
    await simulated_cluster.pass_time(20)
    assert await items(client, PODS) == []


async def test_a_taint_that_goes_in_time_does_nothing(nodes, client, simulated_cluster):
    await add_pod(client, "patient", "n1", tolerations=PATIENCE)
    for _ in range(3):
        await client.patch(f"{NODES}/n1", {"spec": {"taints": [taint("out", "NoExecute")]}})
        await simulated_cluster.pass_time(15)
        await client.patch(f"{NODES}/n1", {"spec": {"taints": None}})
        await simulated_cluster.pass_time(1)
    assert len(await items(client, PODS)) == 1


async def test_pods_of_a_node_that_is_gone_are_removed_after_a_while(nodes, client, simulated_cluster):
    nodes.lose("n1")
    await add_pod(client, "p", "n1")
    await add_pod(client, "held", "n1")
    await client.patch(f"{PODS}/held", {"metadata": {"finalizers": ["example.com/wait"]}})
    await client.delete(f"{NODES}/n1")
    await simulated_cluster.pass_time(QUARANTINE - 1)
    assert len(await items(client, PODS)) == 2
    await simulated_cluster.pass_time(2)
    held = (await items(client, PODS))[0]
    assert (held["metadata"]["name"], held["status"]["phase"]) == ("held", "Failed")
    await simulated_cluster.pass_time(600)
    touched = await client.patch(f"{PODS}/held", {"metadata": {"annotations": {"touch": "1"}}})
    await simulated_cluster.pass_time(600)
    left = await client.get(f"{PODS}/held")
    assert left["metadata"]["resourceVersion"] == touched["metadata"]["resourceVersion"], (
        "it is given up once"
    )
