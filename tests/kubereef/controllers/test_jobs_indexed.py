"""Jobs whose Pods have an index each, and Jobs with policies about failures and successes."""

import asyncio

import pytest

from kubereef.controllers.jobindexes import FAILURES, IGNORED_FAILURES, INDEX, Indexes
from kubereef.controllers.jobs import JobController
from kubereef.controllers.serviceaccounts import ServiceAccountController
from tests.kubereef.controllers.making import PODS, at

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(ServiceAccountController, JobController)
    return simulated_cluster.client


async def make_job(client, **spec):
    containers = [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:1", "env": spec.pop("env", [])}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    made = await client.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template, **spec}})
    await asyncio.sleep(1)
    return made


async def indexed(client, completions=3, parallelism=3, **spec):
    return await make_job(
        client, completionMode="Indexed", completions=completions, parallelism=parallelism, **spec
    )


async def status(client):
    return (await client.get(f"{JOBS}/j")).get("status", {})


async def by_index(client):
    """Return the Pods that have not ended, by their index."""
    found = (await client.get(PODS))["items"]
    alive = [
        one
        for one in found
        if one["status"]["phase"] == "Pending" and "deletionTimestamp" not in one["metadata"]
    ]
    return {int(one["metadata"]["annotations"][INDEX]): one for one in alive}


async def end(client, pod, code=0, **more):
    """Let a Pod end now, with an exit code."""
    name, seconds = pod["metadata"]["name"], asyncio.get_running_loop().time()
    state = {"terminated": {"exitCode": code, "finishedAt": at(seconds)}}
    shown = {"name": "c", "ready": False, "restartCount": 0, "image": "i:1", "imageID": "", "state": state}
    told = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [shown], **more}
    await client.patch(f"{PODS}/{name}/status", {"status": told})
    await asyncio.sleep(1)


def conditions(found):
    return {one["type"]: (one["reason"], one["message"]) for one in found.get("conditions") or ()}


COMPLETE = ("CompletionsReached", "Reached expected number of succeeded pods")


# --- sets of indexes


@pytest.mark.parametrize(
    ("text", "end", "want"),
    [
        ("", 9, ""),
        ("0", 9, "0"),
        ("0,1", 9, "0,1"),
        ("0,1,2", 9, "0-2"),
        ("0-3,4-5,7", 9, "0-5,7"),
        ("2-2000000000", 5, "2-4"),
        ("7", 5, ""),
        ("3,1", 9, ""),
        ("a", 9, ""),
        ("1-", 9, "1"),
        ("5-2", 9, ""),
        ("9" * 30, 9, ""),
    ],
)
def test_indexes_are_read_and_written_as_ranges(text, end, want):
    assert str(Indexes.parse(text, end)) == want


def test_sets_of_indexes_are_joined_compared_and_continued():
    some = Indexes.parse("1,3-5,9", 20)
    assert str(some.adding([2, 4, 10, 11])) == "1-5,9-11"
    assert [one for one in range(12) if some.has(one)] == [1, 3, 4, 5, 9]
    assert (some.total(), some.common(Indexes.parse("0-4,8-9", 20))) == (5, 4)
    assert some.first_missing(4, 20) == [0, 2, 6, 7]
    assert some.first_missing(99, 11) == [0, 2, 6, 7, 8, 10]
    assert Indexes().first_missing(2, 1) == [0]


# --- indexed Jobs


async def test_every_pod_is_told_its_index(client):
    await indexed(
        client, completions=5, parallelism=2, env=[{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]
    )
    found = await by_index(client)
    assert list(found) == [0, 1]
    pod = found[1]
    assert pod["metadata"]["name"].startswith("j-1-")
    assert pod["metadata"]["labels"][INDEX] == "1"
    assert pod["spec"]["hostname"] == "j-1"
    told, own = (one["env"] for one in pod["spec"]["containers"])
    reference = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
    assert told == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": reference}}]
    assert own == [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]


async def test_an_indexed_job_is_complete_when_every_index_is_done_once(client):
    await indexed(client, completions=4, parallelism=2)
    for expected in ("0", "0,1", "0-2", "0-3"):
        found = await by_index(client)
        await end(client, found[min(found)])
        assert (await status(client))["completedIndexes"] == expected
    found = await status(client)
    assert found["succeeded"] == 4
    assert conditions(found) == {"SuccessCriteriaMet": COMPLETE, "Complete": COMPLETE}


async def test_an_index_that_failed_is_tried_again(client):
    await indexed(client)
    await end(client, (await by_index(client))[1], 1)
    assert sorted(await by_index(client)) == [0, 2]
    await asyncio.sleep(10)
    assert sorted(await by_index(client)) == [0, 1, 2]
    found = await status(client)
    assert (found["failed"], found.get("completedIndexes")) == (1, None)


async def test_indexes_beyond_fewer_completions_are_given_up(client):
    await indexed(client)
    await client.patch(f"{JOBS}/j", {"spec": {"completions": 2, "parallelism": 2}})
    await asyncio.sleep(1)
    assert sorted(await by_index(client)) == [0, 1]


async def test_a_second_pod_of_an_index_goes(client):
    await indexed(client, completions=2, parallelism=2)
    twin = (await by_index(client))[0]
    meta = {key: twin["metadata"][key] for key in ("labels", "annotations", "ownerReferences", "finalizers")}
    containers = [{"name": "c", "image": "i:1"}]
    await client.create(PODS, {"metadata": {"name": "twin", **meta}, "spec": {"containers": containers}})
    await asyncio.sleep(1)
    alive = [one for one in (await client.get(PODS))["items"] if "deletionTimestamp" not in one["metadata"]]
    assert sorted(one["metadata"]["annotations"][INDEX] for one in alive) == ["0", "1"]


async def test_what_is_done_is_not_done_again_after_a_restart(client, simulated_cluster):
    await indexed(client)
    await end(client, (await by_index(client))[1])
    await client.delete(f"{PODS}?gracePeriodSeconds=0")
    await simulated_cluster.restart_controllers()
    await asyncio.sleep(60)
    assert sorted(await by_index(client)) == [0, 2]


# --- limits per index


async def test_each_index_has_failures_of_its_own(client):
    await indexed(client, completions=2, parallelism=2, backoffLimitPerIndex=1)
    first = await by_index(client)
    assert {one["metadata"]["annotations"][FAILURES] for one in first.values()} == {"0"}
    await end(client, first[0], 1)
    # The failed Pod stays until the next one knows of it; only then is it counted.
    assert "failed" not in await status(client)
    await asyncio.sleep(10)
    second = await by_index(client)
    assert second[0]["metadata"]["annotations"][FAILURES] == "1"
    assert (await status(client))["failed"] == 1
    await end(client, second[0], 1)
    found = await status(client)
    assert (found["failedIndexes"], found["failed"]) == ("0", 2)
    await asyncio.sleep(600)
    assert sorted(await by_index(client)) == [1]
    await end(client, second[1])
    reason = ("FailedIndexes", "Job has failed indexes")
    assert conditions(await status(client)) == {"FailureTarget": reason, "Failed": reason}


async def test_too_many_failed_indexes_end_the_job(client):
    await indexed(client, backoffLimitPerIndex=0, maxFailedIndexes=1)
    found = await by_index(client)
    await end(client, found[0], 1)
    assert conditions(await status(client)) == {}
    await end(client, found[2], 1)
    told = await status(client)
    assert told["failedIndexes"] == "0,2"
    assert conditions(told)["FailureTarget"][0] == "MaxFailedIndexesExceeded"


# --- failure policies


def rule(action, *values, operator="In", **more):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


def on_condition(action, kind="DisruptionTarget"):
    return {"action": action, "onPodConditions": [{"type": kind, "status": "True"}]}


async def alive(client):
    found = (await client.get(PODS))["items"]
    return [one for one in found if one["status"]["phase"] == "Pending"]


async def test_a_fatal_failure_ends_the_job_and_says_why(client):
    await make_job(
        client, parallelism=2, podFailurePolicy={"rules": [rule("Ignore", 7), rule("FailJob", 42)]}
    )
    (pod, _other) = await alive(client)
    await end(client, pod, 42)
    name = pod["metadata"]["name"]
    message = f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 1"
    found = conditions(await status(client))
    assert found["FailureTarget"] == ("PodFailurePolicy", message)


@pytest.mark.parametrize(
    ("rules", "code", "more", "failed"),
    [
        pytest.param([rule("Ignore", 7)], 7, {}, 0, id="an exit code that is ignored"),
        pytest.param([rule("Ignore", 7, operator="NotIn")], 8, {}, 0, id="any other exit code"),
        pytest.param([rule("Ignore", 7, operator="NotIn")], 7, {}, 1, id="the one that is not"),
        pytest.param([rule("Ignore", 7, containerName="d")], 7, {}, 1, id="of another container"),
        pytest.param([rule("Count", 7), rule("Ignore", 7)], 7, {}, 1, id="the first rule counts"),
        pytest.param(
            [on_condition("Ignore")],
            7,
            {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
            0,
            id="a disruption",
        ),
        pytest.param([on_condition("Ignore")], 7, {}, 1, id="no disruption"),
    ],
)
async def test_failures_are_judged_by_the_first_rule_that_they_meet(client, rules, code, more, failed):
    await make_job(client, backoffLimit=0, podFailurePolicy={"rules": rules})
    (pod,) = await alive(client)
    await end(client, pod, code, **more)
    await asyncio.sleep(30)
    found = await status(client)
    assert found.get("failed", 0) == failed
    assert ("Failed" in conditions(found)) == bool(failed)
    assert len(await alive(client)) == (0 if failed else 1)
    finalizers = (await client.get(f"{PODS}/{pod['metadata']['name']}"))["metadata"].get("finalizers")
    assert finalizers is None, "whether it counts or not, a Pod that was looked at is let go"


async def test_an_index_is_given_up_at_once_or_tried_for_free(client):
    rules = [rule("FailIndex", 42), rule("Ignore", 7)]
    await indexed(client, completions=2, backoffLimitPerIndex=3, podFailurePolicy={"rules": rules})
    found = await by_index(client)
    await end(client, found[0], 42)
    assert (await status(client))["failedIndexes"] == "0"
    await end(client, found[1], 7)
    await asyncio.sleep(30)
    annotations = (await by_index(client))[1]["metadata"]["annotations"]
    assert (annotations[FAILURES], annotations[IGNORED_FAILURES]) == ("0", "1")


async def test_a_pod_that_is_leaving_is_replaced_when_it_has_gone(client):
    await client.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    await indexed(client, completions=1, parallelism=1, podReplacementPolicy="Failed")
    (pod,) = (await by_index(client)).values()
    binding = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": "n"}}
    await client.create(f"{PODS}/{pod['metadata']['name']}/binding", binding)
    await client.delete(f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=30")
    await asyncio.sleep(5)
    assert await by_index(client) == {}
    assert (await status(client))["terminating"] == 1
    await end(client, pod, 1)
    await asyncio.sleep(30)
    assert list(await by_index(client)) == [0]


# --- success policies


@pytest.mark.parametrize(
    ("rules", "done", "met"),
    [
        pytest.param([{"succeededIndexes": "0,2"}], [2], None, id="not all that are needed"),
        pytest.param([{"succeededIndexes": "0,2"}], [2, 0], 0, id="all that are needed"),
        pytest.param([{"succeededIndexes": "0-2", "succeededCount": 1}], [1], 0, id="one of some"),
        pytest.param([{"succeededCount": 2}], [3, 1], 0, id="any two"),
        pytest.param([{"succeededIndexes": "0"}, {"succeededCount": 1}], [3], 1, id="the second rule"),
    ],
)
async def test_some_successes_can_be_enough(client, rules, done, met):
    await indexed(client, completions=4, parallelism=4, successPolicy={"rules": rules})
    found = await by_index(client)
    for index in done:
        await end(client, found[index])
    told = await status(client)
    if met is None:
        assert conditions(told) == {}
        return
    reason = ("SuccessPolicy", f"Matched rules at index {met}")
    assert conditions(told) == {"SuccessCriteriaMet": reason, "Complete": reason}
    assert (told["succeeded"], told.get("failed")) == (len(done), None)
    assert await by_index(client) == {}
