"""The scheduler in a cluster under virtual time: who is placed, who waits, and what brings those who wait back."""

import pytest

from kubereef.controllers.scheduling.podclaims import SELECTED_NODE
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubewire import errors
from tests.kubereef.controllers.making import CORE, PODS, items, messages, node, register

CLAIMS = f"{CORE}/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
NODES = "/api/v1/nodes"
FULL = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/1 nodes are available: 1 No preemption victims found for incoming pod."
)


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(ServiceAccountController, Scheduler)
    return simulated_cluster.client


async def add_node(client, name="n", **more):
    await register(client, node(name, **more))
    await client.patch(
        f"{NODES}/{name}", {"spec": {"taints": None}}
    )  # nobody else takes the taint of new nodes off


async def add_pod(client, name, cpu="1", **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    await client.create(PODS, {"metadata": {"name": name}, "spec": {"containers": containers, **spec}})


async def places(client):
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await items(client, PODS)}


async def scheduled(client, name):
    conditions = (await client.get(f"{PODS}/{name}"))["status"].get("conditions") or []
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


async def test_a_pod_is_bound_and_told_of(client, simulated_cluster):
    await add_node(client)
    await add_pod(client, "p")
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": "n"}
    assert (await scheduled(client, "p"))["status"] == "True"
    events = [event for event in await items(client, f"{CORE}/events") if event["reason"] == "Scheduled"]
    assert [event["message"] for event in events] == ["Successfully assigned default/p to n"]
    assert events[0]["source"]["component"] == "default-scheduler"


async def test_many_pods_spread_and_never_overbook(client, simulated_cluster):
    for name in ("a", "b", "c"):
        await add_node(client, name, cpu="4")
    for number in range(15):
        await add_pod(client, f"p{number}")
    await simulated_cluster.pass_time(1)
    found = list((await places(client)).values())
    assert sorted(found) == ["", "", "", *"aaaa", *"bbbb", *"cccc"]


async def test_a_pod_that_fits_nowhere_waits_with_a_reason_until_room_is_made(client, simulated_cluster):
    await add_node(client, cpu="2")
    await add_pod(client, "first", cpu="2")
    await add_pod(client, "second", cpu="2")
    await simulated_cluster.pass_time(1)
    why = await scheduled(client, "second")
    assert (why["status"], why["reason"], why["message"]) == ("False", "Unschedulable", FULL)
    assert await messages(client, "FailedScheduling") == [FULL]
    await client.delete(f"{PODS}/first?gracePeriodSeconds=0")
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"second": "n"}


async def test_a_pod_that_has_ended_makes_room(client, simulated_cluster):
    await add_node(client, cpu="2")
    await add_pod(client, "first", cpu="2")
    await add_pod(client, "second", cpu="2")
    await simulated_cluster.pass_time(1)
    await client.patch(f"{PODS}/first/status", {"status": {"phase": "Succeeded"}})
    await simulated_cluster.pass_time(1)
    assert (await places(client))["second"] == "n"


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        pytest.param({}, {"metadata": {"labels": {"disk": "ssd"}}}, id="a label comes"),
        pytest.param(
            {"taints": [{"key": "x", "effect": "NoSchedule"}]}, {"spec": {"taints": None}}, id="a taint goes"
        ),
        pytest.param({"unschedulable": True}, {"spec": {"unschedulable": False}}, id="the node is opened"),
    ],
)
async def test_a_change_of_the_node_brings_pods_back(client, simulated_cluster, spec, change):
    labels = {} if "metadata" in change else {"disk": "ssd"}
    await add_node(client, labels=labels)
    await client.patch(f"{NODES}/n", {"spec": spec})
    await add_pod(client, "p", nodeSelector={"disk": "ssd"})
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": ""}
    await client.patch(f"{NODES}/n", change)
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": "n"}


async def test_the_first_node_brings_pods_back(client, simulated_cluster):
    await add_pod(client, "p")
    await simulated_cluster.pass_time(1)
    assert (await scheduled(client, "p"))["message"] == "no nodes available to schedule pods"
    await add_node(client)
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": "n"}


async def test_while_nothing_changes_nothing_is_written(client, simulated_cluster):
    await add_node(client, cpu="1")
    for number in range(3):
        await add_pod(client, f"p{number}")
    await simulated_cluster.pass_time(1)
    before = simulated_cluster.store.revision
    await simulated_cluster.pass_time(3600)
    for field in ("annotations", "labels"):
        await client.patch(f"{NODES}/n", {"metadata": {field: {"touch": "1"}}})
        await simulated_cluster.pass_time(1)
    assert simulated_cluster.store.revision == before + 2, "the same reason is not told again"


async def test_the_more_important_pod_is_first(client, simulated_cluster):
    value = {"metadata": {"name": "high"}, "value": 1000}
    await client.create("/apis/scheduling.k8s.io/v1/priorityclasses", value)
    await add_pod(client, "low")
    await add_pod(client, "high", priorityClassName="high")
    await simulated_cluster.pass_time(1)
    await add_node(client, cpu="1")
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"low": "", "high": "n"}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"schedulerName": "mine"}, id="of another scheduler"),
        pytest.param({"schedulingGates": [{"name": "example.com/wait"}]}, id="behind a gate"),
    ],
)
async def test_a_pod_is_left_alone(client, simulated_cluster, spec):
    await add_node(client)
    await add_pod(client, "p", **spec)
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": ""}
    assert (await scheduled(client, "p")).get("reason") != "Unschedulable"


async def test_an_open_gate_lets_the_pod_go(client, simulated_cluster):
    await add_node(client)
    await add_pod(client, "p", schedulingGates=[{"name": "example.com/wait"}])
    await simulated_cluster.pass_time(1)
    await client.patch(f"{PODS}/p", {"spec": {"schedulingGates": []}})
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": "n"}


async def test_pods_that_were_placed_by_hand_take_room(client, simulated_cluster):
    await add_node(client, cpu="2")
    await add_pod(client, "placed", cpu="2", nodeName="n")
    await add_pod(client, "p", cpu="1")
    await simulated_cluster.pass_time(1)
    assert (await places(client))["p"] == ""


async def test_a_binding_that_fails_is_tried_again(client, simulated_cluster, monkeypatch):
    create = type(client).create
    refusals: list[str] = []

    async def refuse_once(self, url, body):
        if url.endswith("/binding") and not refusals:
            refusals.append(url)
            raise errors.internal_error("the disk is on fire")
        return await create(self, url, body)

    monkeypatch.setattr(type(client), "create", refuse_once)
    await add_node(client, cpu="1")
    await add_pod(client, "p")
    await simulated_cluster.pass_time(5)
    assert refusals
    assert await places(client) == {"p": "n"}


async def test_late_news_and_a_restart_do_not_overbook(simulated_cluster, late_news):
    late_news["pods"] = 3
    await simulated_cluster.run(ServiceAccountController, Scheduler)
    client = simulated_cluster.client
    await add_node(client, cpu="4")
    for number in range(6):
        await add_pod(client, f"p{number}")
        await simulated_cluster.pass_time(1)
    await simulated_cluster.restart_controllers()
    await simulated_cluster.pass_time(20)
    assert sorted((await places(client)).values()) == ["", "", "n", "n", "n", "n"]


# --- volumes

VOLUME = [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]


async def add_claim(client, storage_class):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await client.create(CLAIMS, {"metadata": {"name": "v"}, "spec": spec})


async def test_a_pod_waits_for_its_claim(client, simulated_cluster):
    await add_node(client)
    await add_pod(client, "p", volumes=VOLUME)
    await simulated_cluster.pass_time(1)
    assert 'persistentvolumeclaim "v" not found' in (await scheduled(client, "p"))["message"]
    await add_claim(client, "")
    await simulated_cluster.pass_time(1)
    message = (await scheduled(client, "p"))["message"]
    assert message.startswith("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. ")
    await client.patch(f"{CLAIMS}/v", {"spec": {"volumeName": "pv"}})
    await client.patch(f"{CLAIMS}/v/status", {"status": {"phase": "Bound"}})
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": "n"}


async def test_a_claim_that_waits_for_its_consumer_is_given_the_node(client, simulated_cluster):
    mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "example.com/disk"}
    await client.create(CLASSES, {"metadata": {"name": "slow"}, **mode})
    await add_node(client)
    await add_claim(client, "slow")
    await add_pod(client, "p", volumes=VOLUME)
    await simulated_cluster.pass_time(1)
    assert (await client.get(f"{CLAIMS}/v"))["metadata"]["annotations"] == {SELECTED_NODE: "n"}
    assert await places(client) == {"p": ""}
    await client.patch(f"{CLAIMS}/v", {"spec": {"volumeName": "pv"}})
    await client.patch(f"{CLAIMS}/v/status", {"status": {"phase": "Bound"}})
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": "n"}
