"""Pods that live by scripts, under virtual time."""

import pytest

from kubereef.controllers.jobs import JobController
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubereef.node.scripted import (
    Evicted,
    Fails,
    NodeShape,
    NotReady,
    Ready,
    Running,
    Script,
    ScriptedNodes,
    Succeeds,
    Waits,
)
from tests.kubereef.controllers.making import PODS, at, items

NODES = "/api/v1/nodes"


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(ServiceAccountController)
    return simulated_cluster.client


@pytest.fixture
async def start(simulated_cluster, client):
    """Start one node, `node-1`, whose Pods live by scripts."""
    started = []

    async def start_nodes(*scripts, nodes=None):
        made = ScriptedNodes(client, simulated_cluster.clock, nodes or [NodeShape()], scripts)
        await made.start()
        started.append(made)
        return made

    yield start_nodes
    for nodes in started:
        await nodes.stop()


async def add_pod(client, name="p", labels=None, containers=("c",), **spec):
    listed = [{"name": one, "image": "i:1"} for one in containers]
    meta = {"name": name, "labels": labels or {}}
    await client.create(
        PODS, {"metadata": meta, "spec": {"nodeName": "node-1", "containers": listed, **spec}}
    )


async def status(client, name="p"):
    return (await client.get(f"{PODS}/{name}"))["status"]


async def phase(client, name="p"):
    return (await status(client, name))["phase"]


async def is_ready(client, name="p"):
    conditions = (await status(client, name)).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def container(client, name="p", index=0):
    return (await status(client, name))["containerStatuses"][index]


async def test_a_node_is_registered_with_what_it_offers(client, start):
    shape = NodeShape("big", {"nvidia.com/gpu": "8"}, {"zone": "a"}, [{"key": "gpu", "effect": "NoSchedule"}])
    await start(nodes=[shape])
    made = await client.get(f"{NODES}/big")
    assert made["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert made["status"]["allocatable"]["pods"] == "250"
    assert made["metadata"]["labels"]["zone"] == "a"
    assert {"key": "gpu", "effect": "NoSchedule"} in made["spec"]["taints"]
    conditions = {one["type"]: one["status"] for one in made["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    lease = await client.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/big")
    assert lease["spec"]["holderIdentity"] == "big"


async def test_a_pod_without_a_script_runs_at_once_and_has_all_a_client_looks_for(
    client, start, simulated_cluster
):
    await start()
    await add_pod(client, containers=("c", "d"), initContainers=[{"name": "i", "image": "i"}])
    await simulated_cluster.pass_time(1)
    found = await status(client)
    assert found["phase"] == "Running"
    assert found["podIP"] == found["podIPs"][0]["ip"]
    assert found["hostIP"]
    assert found["startTime"] == at(0)
    assert [one["ready"] for one in found["containerStatuses"]] == [True, True]
    assert found["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    states = {one["type"]: one["status"] for one in found["conditions"]}
    assert all(states[kind] == "True" for kind in ("Initialized", "ContainersReady", "Ready"))


async def test_pods_have_addresses_of_their_own_unless_they_use_the_nodes(client, start, simulated_cluster):
    await start()
    await add_pod(client, "a")
    await add_pod(client, "b")
    await add_pod(client, "host", hostNetwork=True)
    await simulated_cluster.pass_time(1)
    found = {name: await status(client, name) for name in ("a", "b", "host")}
    assert len({one["podIP"] for one in found.values()}) == 3
    assert found["host"]["podIP"] == found["host"]["hostIP"]


async def test_the_third_pod_of_a_group_fails_after_five_seconds(client, start, simulated_cluster):
    small = {"ray.io/group": "small"}
    await start(
        Script(when=small, nth=3, steps=[Running(after=1), Fails(after=5, exit_code=7)]),
        Script(when=small, steps=[Running(after=2)]),
    )
    for number in range(1, 5):
        await add_pod(client, f"p{number}", small, restartPolicy="Never")
        await add_pod(client, f"other{number}", {"ray.io/group": "large"}, restartPolicy="Never")
    await simulated_cluster.pass_time(0.5)
    assert [await phase(client, name) for name in ("p1", "p3", "other1")] == ["Pending", "Pending", "Running"]
    await simulated_cluster.pass_time(1)
    assert [await phase(client, name) for name in ("p1", "p3")] == ["Pending", "Running"]
    await simulated_cluster.pass_time(5)
    assert [await phase(client, f"p{n}") for n in range(1, 5)] == ["Running", "Running", "Failed", "Running"]
    ended = (await container(client, "p3"))["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (7, "Error")


async def test_readiness_comes_and_goes(client, start, simulated_cluster):
    await start(Script(steps=[Running(ready=False), Ready(after=10), NotReady(after=10), Ready(after=10)]))
    await add_pod(client)
    seen = []
    for _ in range(4):
        await simulated_cluster.pass_time(5)
        seen.append(await is_ready(client))
        await simulated_cluster.pass_time(5)
    assert seen == [False, True, False, True]


@pytest.mark.parametrize(
    ("policy", "step", "want"),
    [
        pytest.param("Never", Succeeds(after=5), "Succeeded", id="done"),
        pytest.param("Never", Fails(after=5), "Failed", id="failed"),
        pytest.param(
            "OnFailure", Succeeds(after=5), "Succeeded", id="done, and a failure would be restarted"
        ),
        pytest.param("OnFailure", Fails(after=5), "Running", id="failed and restarted"),
        pytest.param("Always", Succeeds(after=5), "Running", id="done and restarted"),
        pytest.param("Always", Evicted(after=5), "Failed", id="evicted, whatever the policy"),
    ],
)
async def test_how_a_pod_ends(client, start, simulated_cluster, policy, step, want):
    await start(Script(steps=[Running(), step]))
    await add_pod(client, restartPolicy=policy)
    await simulated_cluster.pass_time(6)
    assert await phase(client) == want
    restarts = (await container(client))["restartCount"]
    assert restarts == (1 if want == "Running" else 0)


async def test_crashes_are_restarted_later_and_later(client, start, simulated_cluster):
    await start(Script(steps=[Running(), Fails(after=1)], repeat=True))
    await add_pod(client)
    counts = []
    for seconds in (1.5, 1, 10, 11, 21, 41):
        await simulated_cluster.pass_time(seconds)
        counts.append((await container(client))["restartCount"])
    assert counts == [1, 1, 2, 2, 3, 4]
    await simulated_cluster.pass_time(2)
    last = await container(client)
    assert last["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert last["lastState"]["terminated"]["exitCode"] == 1
    assert not await is_ready(client)
    assert await phase(client) == "Running"


async def test_one_container_of_two_fails(client, start, simulated_cluster):
    await start(Script(steps=[Running(), Fails(after=5, container="d")]))
    await add_pod(client, containers=("c", "d"), restartPolicy="Never")
    await simulated_cluster.pass_time(6)
    assert await phase(client) == "Running"
    assert not await is_ready(client)
    assert "running" in (await container(client, index=0))["state"]
    assert "terminated" in (await container(client, index=1))["state"]


async def test_an_image_that_cannot_be_had(client, start, simulated_cluster):
    await start(Script(steps=[Waits(reason="ErrImagePull", message="no such image"), Running(after=60)]))
    await add_pod(client)
    await simulated_cluster.pass_time(30)
    assert await phase(client) == "Pending"
    assert (await container(client))["state"] == {
        "waiting": {"reason": "ErrImagePull", "message": "no such image"}
    }
    await simulated_cluster.pass_time(31)
    assert await phase(client) == "Running"


async def test_an_eviction_tells_its_reason(client, start, simulated_cluster):
    await start(Script(steps=[Running(), Evicted(after=1, message="out of memory")]))
    await add_pod(client)
    await simulated_cluster.pass_time(2)
    found = await status(client)
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", "Evicted", "out of memory")


async def test_a_pod_has_a_deadline(client, start, simulated_cluster):
    await start()
    await add_pod(client, activeDeadlineSeconds=30)
    await simulated_cluster.pass_time(29)
    assert await phase(client) == "Running"
    await simulated_cluster.pass_time(2)
    assert (await status(client))["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("takes", "grace", "gone_after"),
    [
        pytest.param(0, 30, 1, id="at once"),
        pytest.param(10, 30, 11, id="in its own time"),
        pytest.param(60, 30, 31, id="killed when its time is over"),
    ],
)
async def test_a_pod_ends_gracefully(client, start, simulated_cluster, takes, grace, gone_after):
    await start(Script(stops_after=takes))
    await add_pod(client, terminationGracePeriodSeconds=grace)
    await simulated_cluster.pass_time(1)
    await client.delete(f"{PODS}/p")
    await simulated_cluster.pass_time(gone_after - 1.5)
    assert len(await items(client, PODS)) == (1 if takes else 0)
    await simulated_cluster.pass_time(1)
    assert await items(client, PODS) == []


async def test_the_last_words_of_a_pod_that_is_kept(client, start, simulated_cluster):
    await start(Script(stops_after=60))
    await add_pod(client)
    await client.patch(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/wait"]}})
    await simulated_cluster.pass_time(1)
    await client.delete(f"{PODS}/p?gracePeriodSeconds=5")
    await simulated_cluster.pass_time(6)
    assert await phase(client) == "Failed"
    assert (await container(client))["state"]["terminated"]["exitCode"] == 137


async def test_a_shorter_grace_period_counts(client, start, simulated_cluster):
    await start(Script(stops_after=60))
    await add_pod(client, terminationGracePeriodSeconds=60)
    await simulated_cluster.pass_time(1)
    await client.delete(f"{PODS}/p")
    await simulated_cluster.pass_time(5)
    await client.delete(f"{PODS}/p?gracePeriodSeconds=2")
    await simulated_cluster.pass_time(3)
    assert await items(client, PODS) == []


async def test_a_pod_that_is_removed_by_force_lives_no_longer(client, start, simulated_cluster):
    await start(Script(steps=[Running(after=10)]))
    await add_pod(client)
    await simulated_cluster.pass_time(5)
    await client.delete(f"{PODS}/p?gracePeriodSeconds=0")
    await add_pod(client)
    await simulated_cluster.pass_time(6)
    assert await phase(client) == "Pending", "another Pod of its name is not told of the first one's life"
    await simulated_cluster.pass_time(5)
    assert await phase(client) == "Running"


async def test_news_that_come_late_do_not_mix_up_pods_of_one_name(
    late_news, client, start, simulated_cluster
):
    late_news["pods"] = 3
    await start(Script(steps=[Running(after=2)]))
    await simulated_cluster.pass_time(1)
    await add_pod(client)
    await simulated_cluster.pass_time(3.5)
    await client.delete(f"{PODS}/p?gracePeriodSeconds=0")
    await add_pod(client)
    await simulated_cluster.pass_time(2)
    assert await phase(client) == "Pending"
    await simulated_cluster.pass_time(30)
    assert await phase(client) == "Running"


async def test_a_pod_that_is_ending_follows_its_script_no_longer(client, start, simulated_cluster):
    await start(Script(steps=[Running(), Fails(after=3)], stops_after=10))
    await add_pod(client, restartPolicy="Never")
    await simulated_cluster.pass_time(1)
    await client.delete(f"{PODS}/p")
    await simulated_cluster.pass_time(5)
    assert await phase(client) == "Running"


async def test_a_container_that_ran_for_long_is_started_again_at_once(client, start, simulated_cluster):
    await start(Script(steps=[Running(), Fails(after=700)], repeat=True))
    await add_pod(client)
    await simulated_cluster.pass_time(4 * 700 + 1)
    assert (await container(client))["restartCount"] == 4


async def test_a_lost_node_says_nothing_until_it_is_back(client, start, simulated_cluster):
    nodes = await start(Script(steps=[Running(), Fails(after=5)]))
    await add_pod(client, restartPolicy="Never")
    await simulated_cluster.pass_time(1)
    nodes.lose("node-1")
    before = simulated_cluster.store.revision
    await simulated_cluster.pass_time(300)
    assert simulated_cluster.store.revision == before
    assert await phase(client) == "Running"
    nodes.restore("node-1")
    await simulated_cluster.pass_time(1)
    assert await phase(client) == "Failed"


async def test_pods_of_other_nodes_are_not_touched(client, start, simulated_cluster):
    await start()
    await add_pod(client, "elsewhere", nodeName="node-2")
    await simulated_cluster.pass_time(60)
    assert await phase(client, "elsewhere") == "Pending"


async def test_a_job_counts_pods_that_end_by_script(simulated_cluster, client, start):
    await simulated_cluster.run(JobController)
    await start(
        Script(nth=1, steps=[Running(), Fails(after=2)]),
        Script(steps=[Running(), Succeeds(after=2)]),
    )
    spec = {"restartPolicy": "Never", "nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}
    job = {"metadata": {"name": "j"}, "spec": {"completions": 2, "template": {"spec": spec}}}
    await client.create("/apis/batch/v1/namespaces/default/jobs", job)
    await simulated_cluster.pass_time(60)
    found = (await client.get("/apis/batch/v1/namespaces/default/jobs/j"))["status"]
    assert (found["succeeded"], found["failed"]) == (2, 1)


async def test_the_same_script_leads_to_the_same_life(client, start, simulated_cluster):
    await start(Script(steps=[Running(after=1), Fails(after=1)], repeat=True))
    for number in range(5):
        await add_pod(client, f"p{number}")
    await simulated_cluster.pass_time(600)
    counts = {(await container(client, f"p{number}"))["restartCount"] for number in range(5)}
    assert len(counts) == 1
