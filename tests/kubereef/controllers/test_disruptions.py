"""Pod disruption budgets: what they count, and the evictions that they allow."""

import asyncio

import pytest

from kubereef.controllers.deployments import DeploymentController
from kubereef.controllers.disruptions import DisruptionController
from kubereef.controllers.replicasets import ReplicaSetController
from kubereef.kinds.behaviours.disruptions import POD_DISRUPTION_BUDGETS
from kubereef.kinds.resource import TableMoment
from kubewire import errors
from tests.kubereef.controllers.making import APPS, CORE, PODS, messages, names, run_pod, workload

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SELECTOR = {"matchLabels": {"app": "a"}}
REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."


def budget(name="b", **spec):
    return {"metadata": {"name": name}, "spec": {"selector": SELECTOR, **spec}}


def pod(name, labels=None):
    meta = {"name": name, "labels": labels if labels is not None else {"app": "a"}}
    spec = {"containers": [{"name": "c", "image": "x:1"}], "nodeName": "n"}
    return {"metadata": meta, "spec": spec}


@pytest.fixture
async def cluster(simulated_cluster):
    client = simulated_cluster.client
    await client.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    await simulated_cluster.run(DisruptionController, ReplicaSetController, DeploymentController)
    return simulated_cluster


async def run(cluster, *pods, ready=True):
    for name in pods:
        await cluster.client.create(PODS, pod(name))
        await run_pod(cluster.client, name, ready=ready)


async def deploy(cluster, replicas=4):
    """Have a Deployment whose Pods all run."""
    await cluster.client.create(f"{APPS}/deployments", workload(replicas=replicas))
    await cluster.pass_time(1)
    for name in await names(cluster.client, PODS):
        await run_pod(cluster.client, name)


async def status(cluster, name="b"):
    await cluster.pass_time(0)
    return (await cluster.client.get(f"{BUDGETS}/{name}"))["status"]


async def counts(cluster):
    found = await status(cluster)
    return tuple(
        found[one] for one in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    )


async def evict(cluster, name, query="", **more):
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return await cluster.client.create(f"{PODS}/{name}/eviction{query}", eviction)


async def refusal(cluster, name):
    with pytest.raises(errors.TooManyRequests) as refused:
        await evict(cluster, name)
    assert refused.value.message == REFUSAL
    (cause,) = refused.value.causes
    assert cause.reason == "DisruptionBudget"
    return cause.message


async def test_a_budget_tells_how_many_pods_could_be_spared(cluster):
    await run(cluster, "p1", "p2", "p3")
    await cluster.client.create(BUDGETS, budget(minAvailable=2))
    found = await status(cluster)
    (condition,) = found.pop("conditions")
    assert found == {
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "disruptionsAllowed": 1,
        "expectedPods": 3,
        "observedGeneration": 1,
    }
    del condition["lastTransitionTime"]
    assert condition == {
        "type": "DisruptionAllowed",
        "status": "True",
        "reason": "SufficientPods",
        "message": "",
        "observedGeneration": 1,
    }


async def test_an_eviction_is_counted_before_the_pod_is_gone(cluster):
    await run(cluster, "p1", "p2", "p3")
    await cluster.client.create(BUDGETS, budget(minAvailable=2))
    await cluster.pass_time(0)
    answers = await asyncio.gather(
        *(evict(cluster, name) for name in ("p1", "p2", "p3")), return_exceptions=True
    )
    assert [isinstance(one, errors.TooManyRequests) for one in answers] == [False, True, True]
    evicted = await cluster.client.get(f"{PODS}/p1")
    assert "deletionTimestamp" in evicted["metadata"]
    reasons = [
        one.get("reason") for one in evicted["status"]["conditions"] if one["type"] == "DisruptionTarget"
    ]
    assert reasons == ["EvictionByEvictionAPI"]
    assert await counts(cluster) == (3, 2, 2, 0)
    assert await refusal(cluster, "p2") == "The disruption budget b needs 2 healthy pods and has 2 currently"
    assert (await status(cluster))["conditions"][0]["reason"] == "InsufficientPods"
    await cluster.client.delete(f"{PODS}/p1?gracePeriodSeconds=0")
    assert await counts(cluster) == (2, 2, 2, 0)


async def test_a_budget_that_nobody_has_counted_for_refuses(simulated_cluster):
    client = simulated_cluster.client
    await client.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    await run(simulated_cluster, "p1")
    await client.create(BUDGETS, budget(minAvailable=0))
    assert (
        await refusal(simulated_cluster, "p1")
        == "The disruption budget b is still being processed by the server."
    )


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"maxUnavailable": 1}, (4, 4, 3, 1), id="at most one away"),
        pytest.param({"maxUnavailable": "30%"}, (4, 4, 2, 2), id="a share away is rounded up"),
        pytest.param({"minAvailable": "60%"}, (4, 4, 3, 1), id="a share that stays is rounded up"),
        pytest.param({"minAvailable": "100%"}, (4, 4, 4, 0), id="all of them stay"),
        pytest.param({"minAvailable": 9}, (4, 4, 9, 0), id="more than there are"),
        pytest.param({"maxUnavailable": 9}, (4, 4, 0, 4), id="all may be away"),
        pytest.param({}, (0, 4, 0, 0), id="a budget that says nothing allows nothing"),
    ],
)
async def test_shares_are_of_what_the_controllers_want(cluster, spec, want):
    await deploy(cluster)
    await cluster.client.create(BUDGETS, budget(**spec))
    assert await counts(cluster) == want


async def test_pods_without_a_controller_are_not_expected(cluster):
    await run(cluster, "p1")
    await cluster.client.create(BUDGETS, budget(maxUnavailable=1))
    assert await counts(cluster) == (0, 1, 0, 0)
    (told,) = await messages(cluster.client, "UnmanagedPods")
    assert told.startswith(
        "Pods selected by this PodDisruptionBudget (selector: app=a) were found to be unmanaged."
    )


async def test_a_controller_that_has_no_scale_lets_nothing_go(cluster):
    owned = pod("p1")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    await cluster.client.create(PODS, owned)
    await run_pod(cluster.client, "p1")
    await cluster.client.create(BUDGETS, budget(maxUnavailable=1))
    found = await status(cluster)
    (condition,) = found["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
    assert condition["message"] == "jobs.batch does not implement the scale subresource"
    assert found["disruptionsAllowed"] == 0


@pytest.mark.parametrize(
    ("spec", "goes"),
    [
        pytest.param({"minAvailable": 1}, True, id="enough others are well"),
        pytest.param({"minAvailable": 2}, False, id="too few are well"),
        pytest.param(
            {"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, True, id="it always may"
        ),
    ],
)
async def test_a_pod_that_is_not_ready_is_no_loss(cluster, spec, goes):
    await run(cluster, "well")
    await run(cluster, "ill", ready=False)
    await cluster.client.create(BUDGETS, budget(**spec))
    assert (await counts(cluster))[1] == 1
    if goes:
        assert await evict(cluster, "ill")
        assert (await status(cluster)).get("disruptedPods") is None
    else:
        await refusal(cluster, "ill")


async def test_pods_that_have_not_begun_or_have_ended_go_whatever_the_budget(cluster):
    await cluster.client.create(PODS, pod("pending"))
    await run(cluster, "ended")
    await cluster.client.patch(f"{PODS}/ended/status", {"status": {"phase": "Failed"}})
    await cluster.client.create(BUDGETS, budget(minAvailable=5))
    await cluster.pass_time(0)
    assert await evict(cluster, "pending")
    assert await evict(cluster, "ended")


async def test_a_pod_of_two_budgets_is_refused_and_one_of_none_goes(cluster):
    await run(cluster, "p1")
    await cluster.client.create(BUDGETS, budget("b", maxUnavailable=5))
    await cluster.client.create(BUDGETS, budget("c", maxUnavailable=5))
    await cluster.client.create(PODS, pod("free", {"app": "other"}))
    await run_pod(cluster.client, "free")
    await cluster.pass_time(0)
    with pytest.raises(errors.ApiError, match="more than one PodDisruptionBudget") as refused:
        await evict(cluster, "p1")
    assert refused.value.code == 500
    assert await evict(cluster, "free")


async def test_a_dry_run_takes_nothing_off_the_budget_and_heeds_it(cluster):
    await run(cluster, "p1", "p2")
    await cluster.client.create(BUDGETS, budget(minAvailable=1))
    await cluster.pass_time(0)
    for _ in range(3):
        await evict(cluster, "p1", "?dryRun=All")
    assert await counts(cluster) == (2, 2, 1, 1)
    await evict(cluster, "p1")
    with pytest.raises(errors.TooManyRequests):
        await evict(cluster, "p2", "?dryRun=All")


async def test_an_evicted_pod_that_does_not_go_counts_again_after_two_minutes(cluster):
    await run(cluster, "p1", "p2")
    await cluster.client.create(BUDGETS, budget(minAvailable=1))
    await cluster.pass_time(0)
    # As if the server had died between the note and the deletion.
    noted = {"disruptionsAllowed": 0, "disruptedPods": {"p1": "2030-01-01T00:00:00Z"}}
    await cluster.client.patch(f"{BUDGETS}/b/status", {"status": noted})
    assert await counts(cluster) == (2, 1, 1, 0)
    await cluster.pass_time(121)
    assert await counts(cluster) == (2, 2, 1, 1)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": 1},
            "minAvailable and maxUnavailable cannot be both set",
            id="both",
        ),
        pytest.param({"minAvailable": -1}, "must be greater than or equal to 0", id="below zero"),
        pytest.param({"minAvailable": "101%"}, "must not be greater than 100%", id="more than all"),
        pytest.param({"maxUnavailable": "some"}, "a valid percent string", id="no number"),
        pytest.param({"unhealthyPodEvictionPolicy": "Never"}, 'supported values: "AlwaysAllow"', id="policy"),
        pytest.param(
            {"selector": {"matchLabels": {"a/b/c": "d"}}}, "spec.selector.matchLabels", id="selector"
        ),
    ],
)
async def test_a_budget_that_makes_no_sense_is_refused(cluster, spec, problem):
    with pytest.raises(errors.Invalid, match=problem):
        await cluster.client.create(BUDGETS, budget(**spec))


def test_budgets_are_shown_with_what_they_allow():
    shown = {**budget(maxUnavailable="25%"), "status": {"disruptionsAllowed": 2}}
    cells = {column.name: column.cell(shown, TableMoment(0)) for column in POD_DISRUPTION_BUDGETS.columns[:4]}
    assert cells == {"Name": "b", "Min Available": "N/A", "Max Unavailable": "25%", "Allowed Disruptions": 2}


@pytest.mark.parametrize(
    ("selector", "guarded"),
    [
        pytest.param({"matchLabels": {"app": "a", "tier": "x"}}, 1, id="several labels"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 3, id="expressions"),
        pytest.param({}, 4, id="an empty selector is about all Pods"),
        pytest.param(None, 0, id="without one it is about none"),
    ],
)
async def test_a_budget_is_about_the_pods_that_it_selects(cluster, selector, guarded):
    for name, labels in (
        ("p1", {"app": "a", "tier": "x"}),
        ("p2", {"app": "a"}),
        ("p3", {"app": "b"}),
        ("p4", {}),
    ):
        await cluster.client.create(PODS, pod(name, labels))
    await cluster.client.create(
        BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
    )
    assert (await counts(cluster))[0] == guarded
