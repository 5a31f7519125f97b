"""A node's place in the cluster, under virtual time."""

import asyncio
import shutil
from typing import Any, NamedTuple

import pytest

from kubereef.node.images import Present
from kubereef.node.machine import registration
from kubereef.node.machine.registration import (
    HEARTBEAT,
    MOST_IMAGES,
    STATUS_SECONDS,
    NodeDescription,
    Registration,
    limits_message,
)
from kubereef.server.requests import User
from kubewire import errors

NODE = "/api/v1/nodes/n"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
AS_NODE = User("system:node:n", ("system:nodes", "system:authenticated"))


def describe(**changes):
    facts = {
        "name": "n",
        "address": "10.244.0.1",
        "port": 10250,
        "pod_cidr": "10.244.0.0/16",
        "capacity": {"cpu": "8", "memory": "1Gi", "pods": "250"},
        "info": {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "v1"},
    }
    return NodeDescription(**{**facts, **changes})


class World(NamedTuple):
    """The cluster's administrator, the node's client and its registration."""

    admin: Any
    client: Any
    node: Registration
    clock: Any
    images: list[Present]


class Usage(NamedTuple):
    """Of a disk."""

    total: int
    used: int
    free: int


class Flaky:
    """A client that can be cut off."""

    def __init__(self, client):
        self._client = client
        self.is_away = False
        self.sent = []

    async def _pass(self, name, *arguments):
        if self.is_away:
            raise errors.service_unavailable("away")
        self.sent.append((name, arguments[0]))
        return await getattr(self._client, name)(*arguments)

    async def create(self, url, body):
        return await self._pass("create", url, body)

    async def patch(self, url, body, kind="merge"):
        return await self._pass("patch", url, body, kind)


def registered(client, clock, directory, images=(), **changes):
    async def present():
        return list(images)

    return Registration(describe(**changes), client, clock, directory, present)


@pytest.fixture
async def world(simulated_cluster, tmp_path):
    cluster = simulated_cluster.cluster
    client = Flaky(cluster.client(AS_NODE))
    images: list[Present] = []
    made = registered(client, cluster.clock, tmp_path, images)
    return World(cluster.client(), client, made, cluster.clock, images)


@pytest.fixture
async def beating(world):
    await world.node.register()
    task = asyncio.create_task(world.node.beat())
    yield world
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def conditions(world):
    node = await world.admin.get(NODE)
    return {one["type"]: one for one in node["status"]["conditions"]}


async def test_a_node_registers_with_the_rights_of_nodes_alone(world):
    await world.node.register()
    node = await world.admin.get(NODE)
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n"
    assert node["spec"]["podCIDR"] == "10.244.0.0/16"
    status = node["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "8", "memory": "1Gi", "pods": "250"}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert {one["type"]: one["address"] for one in status["addresses"]} == {
        "InternalIP": "10.244.0.1",
        "Hostname": "n",
    }
    lease = await world.admin.get(LEASE)
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("n", 40)


async def test_a_node_of_that_name_is_taken_over(world):
    await world.admin.create("/api/v1/nodes", {"metadata": {"name": "n", "labels": {"mine": "yes"}}})
    await world.node.register()
    labels = (await world.admin.get(NODE))["metadata"]["labels"]
    assert (labels["mine"], labels["kubernetes.io/os"]) == ("yes", "linux")


async def test_all_is_well_unless_something_is_not(world):
    await world.node.register()
    told = {kind: one["status"] for kind, one in (await conditions(world)).items()}
    assert told == {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "LimitsEnforced": "True",
    }


async def test_limits_that_are_not_enforced_are_told_with_the_reason(world, tmp_path):
    why = limits_message({"memory": "no cgroup hierarchy has it"})
    await registered(world.client, world.clock, tmp_path, unenforced=why).register()
    told = (await conditions(world))["LimitsEnforced"]
    assert (told["status"], told["reason"]) == ("False", "CgroupsNotWritable")
    assert told["message"] == "limits of Pods are not enforced here (memory: no cgroup hierarchy has it)"


async def test_the_lease_is_renewed_with_every_heartbeat(beating):
    before = (await beating.admin.get(LEASE))["spec"]["renewTime"]
    await asyncio.sleep(HEARTBEAT + 1)
    assert (await beating.admin.get(LEASE))["spec"]["renewTime"] > before


async def test_a_status_without_news_is_told_only_now_and_then(beating):
    beating.client.sent.clear()
    await asyncio.sleep(STATUS_SECONDS - HEARTBEAT)
    assert ("patch", f"{NODE}/status") not in beating.client.sent
    await asyncio.sleep(2 * HEARTBEAT)
    assert beating.client.sent.count(("patch", f"{NODE}/status")) == 1


async def test_a_disk_that_fills_up_is_told_at_the_next_heartbeat(beating, monkeypatch):
    before = await conditions(beating)
    full = Usage(10**9, 10**9, registration.LEAST_DISK - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    await asyncio.sleep(HEARTBEAT + 1)
    after = await conditions(beating)
    assert after["DiskPressure"]["status"] == "True"
    assert after["DiskPressure"]["lastTransitionTime"] > before["DiskPressure"]["lastTransitionTime"]
    assert after["Ready"]["lastTransitionTime"] == before["Ready"]["lastTransitionTime"]


async def test_images_are_told_as_they_come_and_of_many_the_first(beating):
    assert (await beating.admin.get(NODE))["status"].get("images") is None
    names = ("docker.io/library/busybox@sha256:1", "docker.io/library/busybox:latest")
    beating.images.append(Present(names, 20480))
    await asyncio.sleep(HEARTBEAT + 1)
    assert (await beating.admin.get(NODE))["status"]["images"] == [{"names": list(names), "sizeBytes": 20480}]
    beating.images.extend(Present((f"more:{number}",), 1) for number in range(2 * MOST_IMAGES))
    await asyncio.sleep(HEARTBEAT + 1)
    assert len((await beating.admin.get(NODE))["status"]["images"]) == MOST_IMAGES


async def test_heartbeats_go_on_after_the_server_was_away(beating):
    beating.client.is_away = True
    await asyncio.sleep(3 * HEARTBEAT)
    before = (await beating.admin.get(LEASE))["spec"]["renewTime"]
    beating.client.is_away = False
    await asyncio.sleep(HEARTBEAT + 1)
    assert (await beating.admin.get(LEASE))["spec"]["renewTime"] > before


async def test_a_lease_that_somebody_removed_comes_back(beating):
    await beating.admin.delete(LEASE)
    await asyncio.sleep(HEARTBEAT + 1)
    assert (await beating.admin.get(LEASE))["spec"]["holderIdentity"] == "n"


async def test_a_node_that_somebody_removed_registers_again(beating):
    await beating.admin.delete(NODE)
    await asyncio.sleep(STATUS_SECONDS + 2 * HEARTBEAT)
    assert (await conditions(beating))["Ready"]["status"] == "True"


async def test_a_node_that_goes_says_that_it_is_not_ready(world):
    await world.node.register()
    await world.node.tell_status(is_ready=False)
    told = (await conditions(world))["Ready"]
    assert (told["status"], told["message"]) == ("False", "node is shutting down")
