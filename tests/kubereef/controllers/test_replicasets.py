"""ReplicaSets: how many Pods, which go first, whose they are, and what the status says."""

from datetime import timedelta

import pytest

from kubereef.controllers import replicasetplan as plan
from kubereef.controllers.replicasets import ReplicaSetController
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubewire import errors
from tests.kubereef.controllers.making import (
    APPS,
    PODS,
    START,
    items,
    messages,
    names,
    pod,
    run_pod,
    workload,
)

SETS = f"{APPS}/replicasets"
NOW = START + timedelta(seconds=10_000)


def replica_set(**spec):
    made = workload(**spec)
    made["metadata"] |= {"namespace": "default", "uid": "rs", "generation": 3}
    return made


# --- plans


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod("z"), pod("a", node="n"), id="a Pod without a node goes first"),
        pytest.param(pod("z", node="n"), pod("a", node="n", phase="Running"), id="a pending Pod goes first"),
        pytest.param(
            pod("z", node="n", phase="Unknown"),
            pod("a", node="n", phase="Running"),
            id="a lost Pod goes before a running one",
        ),
        pytest.param(
            pod("z", node="n", phase="Running"),
            pod("a", node="n", phase="Running", ready=5),
            id="an unready Pod goes first",
        ),
        pytest.param(
            pod("z", node="n", phase="Running", ready=5, annotations={plan.DELETION_COST: "-5"}),
            pod("a", node="n", phase="Running", ready=9_000),
            id="a Pod of lower deletion cost goes first",
        ),
        pytest.param(
            pod("z", node="n", phase="Running", ready=5),
            pod("a", node="m", phase="Running", ready=9_999),
            id="a Pod on a crowded node goes first",
        ),
        pytest.param(
            pod("z", node="n", phase="Running", ready=9_990),
            pod("a", node="n", phase="Running", ready=5),
            id="a Pod that is ready for a shorter time goes first",
        ),
        pytest.param(
            pod("z", node="n", phase="Running", ready=5, restarts=2),
            pod("a", node="n", phase="Running", ready=5),
            id="a Pod that was restarted goes first",
        ),
        pytest.param(
            pod("z", node="n", phase="Running", ready=5, created=9_990),
            pod("a", node="n", phase="Running", ready=5),
            id="a young Pod goes first",
        ),
        pytest.param(
            pod("a", node="n", phase="Running", ready=5_000),
            pod("z", node="n", phase="Running", ready=4_900),
            id="of Pods of about the same age the order of ids decides",
        ),
    ],
)
def test_which_of_two_pods_is_missed_least(first, second):
    crowd = [pod("x", node="n"), pod("y", node="n"), first, second]
    assert plan.least_missed([second, first], crowd, NOW) == [first, second]
    assert plan.least_missed([first, second], crowd, NOW) == [first, second]


@pytest.mark.parametrize("cost", ["", "much", "1e3", "99999999999", "+-1", "²"])
def test_a_deletion_cost_that_is_no_number_costs_nothing(cost):
    assert plan.deletion_cost(pod(annotations={plan.DELETION_COST: cost})) == 0


def test_a_plan_makes_what_is_missing_and_takes_what_is_too_much():
    running = [pod(name, node="n", phase="Running") for name in "abc"]
    assert plan.steps(replica_set(replicas=5), running, running, NOW) == plan.Steps(create=2)
    assert plan.steps(replica_set(replicas=3), running, running, NOW) == plan.Steps()
    assert len(plan.steps(replica_set(replicas=1), running, running, NOW).delete) == 2


def test_a_plan_does_not_do_everything_at_once():
    assert plan.steps(replica_set(replicas=10_000), [], [], NOW).create == plan.MOST_AT_ONCE


def test_a_pod_is_available_once_it_was_ready_long_enough():
    ready = [pod("old", ready=0), pod("new", ready=9_995)]
    counted = plan.tally(replica_set(minReadySeconds=30), ready, NOW)
    assert (counted.ready, counted.available, counted.next_available) == (2, 1, 25.0)
    assert plan.tally(replica_set(), ready, NOW).available == 2


def test_pods_that_have_ended_are_not_counted_and_those_that_end_are_counted_apart():
    ending = pod("ending", phase="Running")
    ending["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    counted = plan.tally(replica_set(), [pod("a"), pod("b", phase="Failed"), ending], NOW)
    assert (counted.replicas, counted.terminating) == (1, 1)


# --- in a cluster


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(ServiceAccountController, ReplicaSetController)
    return simulated_cluster.client


async def make(client, cluster, **spec):
    await client.create(SETS, workload(**spec))
    await cluster.pass_time(1)


async def status(client):
    return (await client.get(f"{SETS}/w"))["status"]


async def test_a_replica_set_makes_pods_of_its_template(client, simulated_cluster):
    await make(client, simulated_cluster, replicas=3)
    made = await items(client, PODS)
    assert len(made) == 3
    assert {one["metadata"]["generateName"] for one in made} == {"w-"}
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in made} == {"ReplicaSet"}
    assert {one["metadata"]["labels"]["app"] for one in made} == {"a"}
    assert len(await messages(client, "SuccessfulCreate")) == 3
    assert await status(client) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


async def test_a_pod_that_ends_or_goes_is_replaced(client, simulated_cluster):
    await make(client, simulated_cluster, replicas=2)
    first, second = await names(client, PODS)
    await client.delete(f"{PODS}/{first}?gracePeriodSeconds=0")
    await client.patch(f"{PODS}/{second}/status", {"status": {"phase": "Failed"}})
    await simulated_cluster.pass_time(1)
    phases = sorted(one["status"]["phase"] for one in await items(client, PODS))
    assert phases == ["Failed", "Pending", "Pending"]


async def test_scaling_down_takes_the_pods_that_are_not_ready(client, simulated_cluster):
    await make(client, simulated_cluster, replicas=3)
    kept = (await names(client, PODS))[1]
    await run_pod(client, kept)
    await client.patch(f"{SETS}/w", {"spec": {"replicas": 1}})
    await simulated_cluster.pass_time(1)
    assert await names(client, PODS) == [kept]
    assert (await status(client))["readyReplicas"] == 1
    assert len(await messages(client, "SuccessfulDelete")) == 2


async def test_strays_are_adopted_and_strangers_released(client, simulated_cluster):
    stray = {
        "metadata": {"name": "stray", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await client.create(PODS, stray)
    await make(client, simulated_cluster, replicas=2)
    assert len(await names(client, PODS)) == 2
    adopted = await client.get(f"{PODS}/stray")
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "w"
    await client.patch(f"{PODS}/stray", {"metadata": {"labels": {"app": "b"}}})
    await simulated_cluster.pass_time(1)
    assert "ownerReferences" not in (await client.get(f"{PODS}/stray"))["metadata"]
    assert len(await names(client, PODS)) == 3


async def test_a_replica_set_that_is_going_adopts_nothing_and_releases_nothing(client, simulated_cluster):
    await make(client, simulated_cluster, replicas=1)
    own = (await names(client, PODS))[0]
    await client.patch(f"{SETS}/w", {"metadata": {"finalizers": ["example.com/wait"]}})
    await client.delete(f"{SETS}/w")
    stray = {
        "metadata": {"name": "stray", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await client.create(PODS, stray)
    await simulated_cluster.pass_time(1)
    assert "ownerReferences" not in (await client.get(f"{PODS}/stray"))["metadata"]
    await client.patch(f"{PODS}/{own}", {"metadata": {"labels": {"app": "b"}}})
    await simulated_cluster.pass_time(1)
    assert "ownerReferences" in (await client.get(f"{PODS}/{own}"))["metadata"]


async def test_a_refusal_is_told_once_and_tried_again(client, simulated_cluster, monkeypatch):
    attempts = []
    create = type(client).create

    async def refuse(self, url, body):
        if url == PODS and body["metadata"].get("generateName"):
            attempts.append(simulated_cluster.clock.monotonic())
            raise errors.forbidden("pods", "w-x", "no room")
        return await create(self, url, body)

    with monkeypatch.context() as refusing:
        refusing.setattr(type(client), "create", refuse)
        await make(client, simulated_cluster, replicas=4)
        failure = (await status(client))["conditions"][0]
        assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
        assert "no room" in failure["message"]
        assert 2 <= len(attempts) <= 10, "one Pod per pass is tried, later each time"
    await simulated_cluster.pass_time(60)
    assert len(await names(client, PODS)) == 4
    assert "conditions" not in await status(client)


async def test_availability_comes_by_time_alone(client, simulated_cluster):
    await make(client, simulated_cluster, replicas=1, minReadySeconds=20)
    await run_pod(client, (await names(client, PODS))[0], since=1)
    await simulated_cluster.pass_time(1)
    assert "availableReplicas" not in await status(client)
    await simulated_cluster.pass_time(20)
    assert (await status(client))["availableReplicas"] == 1


async def test_a_restart_or_late_news_lead_to_no_more_pods(simulated_cluster, late_news):
    late_news["pods"] = 5
    await simulated_cluster.run(ServiceAccountController, ReplicaSetController)
    client = simulated_cluster.client
    await make(client, simulated_cluster, replicas=20)
    await simulated_cluster.restart_controllers()
    await client.patch(f"{SETS}/w", {"metadata": {"labels": {"touch": "1"}}})
    await simulated_cluster.pass_time(10)
    assert len(await names(client, PODS)) == 20
