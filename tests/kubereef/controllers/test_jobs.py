"""Jobs and their Pods in a cluster under virtual time. Nothing runs the Pods: the tests say how they end."""

import asyncio

import pytest

from kubereef.controllers.garbage import GarbageCollector
from kubereef.controllers.jobplan import TRACKING
from kubereef.controllers.jobs import JobController, OrphanedPodsController
from kubereef.controllers.serviceaccounts import ServiceAccountController
from kubereef.controllers.ttl import TtlAfterFinishedController
from kubewire import errors

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"

CONTROLLERS = (
    ServiceAccountController,
    GarbageCollector,
    JobController,
    OrphanedPodsController,
    TtlAfterFinishedController,
)


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(*CONTROLLERS)
    return simulated_cluster.client


async def make_job(client, name="j", *, restart="Never", labels=None, **spec):
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i:1"}]},
    }
    job = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
    made = await client.create(JOBS, job)
    await asyncio.sleep(1)
    return made


async def pods(client, *phases):
    """Return the Pods, of some phases if any are given, in the order in which they were made."""
    found = (await client.get(PODS))["items"]
    chosen = [pod for pod in found if not phases or pod["status"]["phase"] in phases]
    return sorted(chosen, key=lambda pod: int(pod["metadata"]["resourceVersion"]))


async def end(client, pod, phase):
    """Let a Pod end as a kubelet would tell it."""
    now = "2030-01-01T00:00:00Z" if phase == "Succeeded" else None
    state = {
        "terminated": {"exitCode": 0 if phase == "Succeeded" else 1, **({"finishedAt": now} if now else {})}
    }
    statuses = [
        {"name": "c", "ready": False, "restartCount": 0, "image": "i:1", "imageID": "", "state": state}
    ]
    status = {"phase": phase, "containerStatuses": statuses}
    await client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})
    await asyncio.sleep(1)


async def fail_at(client, cluster, pod):
    """Let a Pod fail now, by the cluster's clock."""
    finished = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    state = {"terminated": {"exitCode": 1, "finishedAt": finished}}
    statuses = [
        {"name": "c", "ready": False, "restartCount": 0, "image": "i:1", "imageID": "", "state": state}
    ]
    status = {"phase": "Failed", "containerStatuses": statuses}
    await client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})
    await cluster.pass_time(0)


async def status(client, name="j"):
    return (await client.get(f"{JOBS}/{name}"))["status"]


def true_conditions(status):
    return [one["type"] for one in status.get("conditions") or [] if one["status"] == "True"]


async def reasons(client):
    return sorted(event["reason"] for event in (await client.get(EVENTS))["items"])


# --- Pods


async def test_a_pod_is_made_from_the_template_and_belongs_to_the_job(client):
    job = await make_job(client, labels={"mine": "yes"})
    (pod,) = await pods(client)
    meta, uid = pod["metadata"], job["metadata"]["uid"]
    assert meta["generateName"] == "j-"
    assert meta["labels"] == {
        "mine": "yes",
        "controller-uid": uid,
        "job-name": "j",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
    }
    assert meta["finalizers"] == [TRACKING]
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", uid, True)
    assert owner["blockOwnerDeletion"] is True


async def test_a_job_completes_with_its_pod(client):
    await make_job(client)
    (pod,) = await pods(client)
    assert (await status(client))["active"] == 1
    await end(client, pod, "Succeeded")
    done = await status(client)
    assert true_conditions(done) == ["SuccessCriteriaMet", "Complete"]
    assert (done["succeeded"], done["ready"], done["terminating"]) == (1, 0, 0)
    assert "active" not in done
    assert "failed" not in done
    assert done["completionTime"] >= done["startTime"]
    assert done["uncountedTerminatedPods"] == {}
    (pod,) = await pods(client)
    assert "finalizers" not in pod["metadata"]
    assert await reasons(client) == ["Completed", "SuccessfulCreate"]


async def test_readiness_is_counted(client):
    await make_job(client, parallelism=2, completions=2)
    (pod, _) = await pods(client)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": ready})
    await asyncio.sleep(1)
    found = await status(client)
    assert (found["active"], found["ready"]) == (2, 1)


async def test_as_many_pods_run_at_once_as_may_until_enough_have_succeeded(client):
    await make_job(client, parallelism=2, completions=5)
    seen = 0
    while running := await pods(client, "Pending"):
        assert len(running) == min(2, 5 - seen)
        await end(client, running[0], "Succeeded")
        seen += 1
    assert seen == 5
    assert true_conditions(await status(client)) == ["SuccessCriteriaMet", "Complete"]


async def test_a_job_without_completions_ends_when_all_its_pods_have_after_one_success(client):
    await make_job(client, parallelism=3)
    first, second, third = await pods(client)
    await end(client, first, "Succeeded")
    assert len(await pods(client, "Pending")) == 2
    await end(client, second, "Failed")
    assert len(await pods(client, "Pending")) == 1
    assert true_conditions(await status(client)) == []
    await end(client, third, "Succeeded")
    done = await status(client)
    assert true_conditions(done) == ["SuccessCriteriaMet", "Complete"]
    assert (done["succeeded"], done["failed"]) == (2, 1)


async def test_lowering_the_parallelism_withdraws_pods_without_counting_them(client):
    await make_job(client, parallelism=4, completions=8)
    await client.patch(f"{JOBS}/j", {"spec": {"parallelism": 1}})
    await asyncio.sleep(1)
    assert len(await pods(client)) == 1
    found = await status(client)
    assert found["active"] == 1
    assert "failed" not in found


async def test_many_pods_are_made(client):
    await make_job(client, parallelism=600, completions=600)
    await asyncio.sleep(5)
    assert len(await pods(client)) == 600
    assert (await status(client))["active"] == 600


# --- failures


async def test_a_failed_pod_is_replaced_after_a_pause_that_doubles(client, simulated_cluster):
    await make_job(client, backoffLimit=6)
    for pause in (10, 20, 40):
        (pod,) = await pods(client, "Pending")
        await fail_at(client, simulated_cluster, pod)
        await asyncio.sleep(pause - 2)
        assert await pods(client, "Pending") == []
        await asyncio.sleep(4)
        assert len(await pods(client, "Pending")) == 1
    found = await status(client)
    assert found["failed"] == 3
    assert "conditions" not in found


async def test_one_failure_more_than_the_limit_fails_the_job_and_ends_its_other_pods(client):
    await make_job(client, backoffLimit=0, parallelism=3, completions=3)
    first, *others = await pods(client)
    await end(client, first, "Failed")
    done = await status(client)
    assert true_conditions(done) == ["FailureTarget", "Failed"]
    assert {one["reason"] for one in done["conditions"]} == {"BackoffLimitExceeded"}
    assert {one["message"] for one in done["conditions"]} == {"Job has reached the specified backoff limit"}
    assert done["failed"] == 3
    assert "active" not in done
    assert "completionTime" not in done
    assert [pod["metadata"]["name"] for pod in await pods(client)] == [first["metadata"]["name"]]
    assert len(others) == 2
    assert "BackoffLimitExceeded" in await reasons(client)


async def test_a_job_is_not_failed_before_its_last_pod_has_left(client):
    await make_job(client, backoffLimit=0, parallelism=2, completions=2)
    first, second = await pods(client)
    name = second["metadata"]["name"]
    await client.patch(f"{PODS}/{name}", {"metadata": {"finalizers": [TRACKING, "example.com/hold"]}})
    await end(client, first, "Failed")
    waiting = await status(client)
    assert true_conditions(waiting) == ["FailureTarget"]
    assert waiting["terminating"] == 1
    await client.patch(f"{PODS}/{name}", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert true_conditions(await status(client)) == ["FailureTarget", "Failed"]


async def test_a_job_that_takes_too_long_fails(client):
    await make_job(client, activeDeadlineSeconds=60)
    await asyncio.sleep(55)
    assert true_conditions(await status(client)) == []
    await asyncio.sleep(10)
    done = await status(client)
    assert true_conditions(done) == ["FailureTarget", "Failed"]
    assert {one["reason"] for one in done["conditions"]} == {"DeadlineExceeded"}
    assert await pods(client) == []
    assert done["failed"] == 1


async def test_a_pod_that_somebody_deletes_counts_as_failed_and_is_replaced(client):
    await make_job(client)
    (pod,) = await pods(client)
    await client.delete(f"{PODS}/{pod['metadata']['name']}")
    await asyncio.sleep(15)
    assert (await status(client))["failed"] == 1
    (replacement,) = await pods(client)
    assert replacement["metadata"]["uid"] != pod["metadata"]["uid"]


async def test_a_pod_that_is_refused_is_tried_again_and_told_of(client, simulated_cluster, caplog):
    gate = simulated_cluster.server.gatekeeper
    authorize = gate.authorize

    def strict(user, target):
        if target.verb == "create" and target.plural == "pods":
            raise errors.forbidden("pods", "", "the quota is used up")
        authorize(user, target)

    gate.authorize = strict
    await make_job(client)
    assert await pods(client) == []
    (event,) = (await client.get(EVENTS))["items"]
    assert (event["reason"], event["type"]) == ("FailedCreate", "Warning")
    assert event["message"].startswith("Error creating: pods")
    gate.authorize = authorize
    await asyncio.sleep(60)
    assert len(await pods(client)) == 1
    assert "the quota is used up" in caplog.text


# --- suspension


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(client):
    await make_job(client, suspend=True)
    found = await status(client)
    assert true_conditions(found) == ["Suspended"]
    assert "startTime" not in found
    assert await pods(client) == []
    await client.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    await asyncio.sleep(1)
    found = await status(client)
    assert found["active"] == 1
    assert found["startTime"]
    assert [(one["type"], one["status"]) for one in found["conditions"]] == [("Suspended", "False")]
    await client.patch(f"{JOBS}/j", {"spec": {"suspend": True}})
    await asyncio.sleep(1)
    found = await status(client)
    assert await pods(client) == []
    assert true_conditions(found) == ["Suspended"]
    assert not {"startTime", "active", "failed"} & found.keys()
    told = {event["reason"]: event["count"] for event in (await client.get(EVENTS))["items"]}
    assert (told["Suspended"], told["Resumed"]) == (2, 1)


async def test_the_deadline_of_a_suspended_job_begins_anew(client):
    await make_job(client, activeDeadlineSeconds=60)
    await asyncio.sleep(50)
    await client.patch(f"{JOBS}/j", {"spec": {"suspend": True}})
    await asyncio.sleep(3600)
    await client.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    await asyncio.sleep(50)
    assert true_conditions(await status(client)) == []
    await asyncio.sleep(20)
    assert true_conditions(await status(client)) == ["FailureTarget", "Failed"]


# --- whose Pods


async def test_a_pod_that_the_job_selects_and_nobody_controls_is_adopted(client):
    job = await make_job(client, suspend=True)
    labels = job["spec"]["template"]["metadata"]["labels"]
    pod = {"metadata": {"name": "stray", "labels": labels}, "spec": job["spec"]["template"]["spec"]}
    await client.create(PODS, pod)
    await client.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    await asyncio.sleep(1)
    (adopted,) = await pods(client)
    assert adopted["metadata"]["name"] == "stray"
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert adopted["metadata"]["finalizers"] == [TRACKING]


async def test_a_pod_that_the_job_selects_no_longer_is_released_and_replaced(client):
    job = await make_job(client)
    (pod,) = await pods(client)
    labels = dict.fromkeys(job["spec"]["template"]["metadata"]["labels"])
    await client.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"labels": labels}})
    await asyncio.sleep(1)
    released = await client.get(f"{PODS}/{pod['metadata']['name']}")
    assert not {"ownerReferences", "finalizers"} & released["metadata"].keys()
    assert len(await pods(client)) == 2


async def test_pods_of_a_deleted_job_are_let_go_of_and_deleted(client):
    await make_job(client, parallelism=3, completions=3)
    await client.delete(f"{JOBS}/j?propagationPolicy=Background")
    await asyncio.sleep(1)
    assert await pods(client) == []


async def test_pods_of_a_job_that_is_deleted_in_the_foreground_go_first(client):
    await make_job(client, parallelism=3, completions=3)
    await client.delete(f"{JOBS}/j?propagationPolicy=Foreground")
    await asyncio.sleep(1)
    assert await pods(client) == []
    assert (await client.get(JOBS))["items"] == []


async def test_orphaned_pods_stay_and_wait_for_nobody(client):
    await make_job(client, parallelism=2, completions=2)
    await client.delete(f"{JOBS}/j?propagationPolicy=Orphan")
    await asyncio.sleep(1)
    left = await pods(client)
    assert len(left) == 2
    for pod in left:
        assert not {"ownerReferences", "finalizers"} & pod["metadata"].keys()


async def test_pods_of_a_deleted_job_wait_for_nobody_even_before_they_are_collected(simulated_cluster):
    client = simulated_cluster.client
    await simulated_cluster.run(ServiceAccountController, JobController, OrphanedPodsController)
    await make_job(client)
    await client.delete(f"{JOBS}/j?propagationPolicy=Background")
    await asyncio.sleep(1)
    (pod,) = await pods(client)
    assert "finalizers" not in pod["metadata"]


async def test_a_job_whose_deletion_is_not_known_yet_adopts_nothing(late_news, client):
    job = await make_job(client, suspend=True)
    labels = job["spec"]["template"]["metadata"]["labels"]
    await client.patch(f"{JOBS}/j", {"metadata": {"finalizers": ["example.com/hold"]}})
    await asyncio.sleep(1)
    late_news["jobs"] = 30
    await client.delete(f"{JOBS}/j?propagationPolicy=Background")
    pod = {"metadata": {"name": "stray", "labels": labels}, "spec": job["spec"]["template"]["spec"]}
    await client.create(PODS, pod)
    await asyncio.sleep(10)
    assert "ownerReferences" not in (await client.get(f"{PODS}/stray"))["metadata"]


async def test_a_job_in_a_namespace_that_is_going_makes_no_pods_and_no_noise(client, caplog):
    await make_job(client, suspend=True)
    await client.create("/api/v1/namespaces", {"metadata": {"name": "doomed"}})
    job = await client.get(f"{JOBS}/j")
    spec = {"template": {"spec": job["spec"]["template"]["spec"]}, "suspend": True}
    url = "/apis/batch/v1/namespaces/doomed/jobs"
    await client.create(url, {"metadata": {"name": "late"}, "spec": spec})
    await asyncio.sleep(1)
    await client.delete("/api/v1/namespaces/doomed")
    await client.patch(f"{url}/late", {"spec": {"suspend": False}})
    await asyncio.sleep(60)
    assert (await client.get("/api/v1/namespaces/doomed/pods"))["items"] == []
    assert caplog.text == ""


async def test_a_job_that_somebody_else_manages_is_left_alone(client):
    await make_job(client, managedBy="example.com/another-controller")
    assert await pods(client) == []
    assert (await client.get(f"{JOBS}/j")).get("status", {}) == {}


# --- lifetimes


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_job_with_a_lifetime_goes_with_its_pods_when_it_is_over(client, phase):
    await make_job(client, ttlSecondsAfterFinished=100, backoffLimit=0)
    (pod,) = await pods(client)
    await asyncio.sleep(3600)
    await end(client, pod, phase)
    await asyncio.sleep(95)
    assert len((await client.get(JOBS))["items"]) == 1
    await asyncio.sleep(10)
    assert (await client.get(JOBS))["items"] == []
    assert await pods(client) == []


async def test_a_lifetime_of_nothing_ends_at_once_and_no_lifetime_never(client):
    await make_job(client, "short", ttlSecondsAfterFinished=0)
    await make_job(client, "long")
    for pod in await pods(client):
        await end(client, pod, "Succeeded")
    await asyncio.sleep(24 * 3600)
    assert [job["metadata"]["name"] for job in (await client.get(JOBS))["items"]] == ["long"]


async def test_a_lifetime_can_be_given_later(client):
    await make_job(client)
    await end(client, (await pods(client))[0], "Succeeded")
    await asyncio.sleep(3600)
    await client.patch(f"{JOBS}/j", {"spec": {"ttlSecondsAfterFinished": 60}})
    await asyncio.sleep(1)
    assert (await client.get(JOBS))["items"] == []


async def test_a_lifetime_that_was_extended_a_moment_ago_is_respected(late_news, client):
    await make_job(client, ttlSecondsAfterFinished=60)
    await end(client, (await pods(client))[0], "Succeeded")
    await asyncio.sleep(50)
    late_news["jobs"] = 30
    await client.patch(f"{JOBS}/j", {"spec": {"ttlSecondsAfterFinished": 3600}})
    await asyncio.sleep(60)
    assert "deletionTimestamp" not in (await client.get(f"{JOBS}/j"))["metadata"]


# --- restarts


async def interrupted_after(cluster, writes, do):
    """Run something, and stop the controllers after they have made that many writes; then start them again."""
    gate = cluster.server.gatekeeper
    authorize = gate.authorize
    left = writes

    def counting(user, target):
        nonlocal left
        is_write = target.verb not in ("get", "list", "watch")
        if is_write and user.name.endswith(":job-controller") and target.plural != "events":
            if left <= 0:
                raise errors.internal_error("the controllers are gone")
            left -= 1
        authorize(user, target)

    gate.authorize = counting
    await do()
    await cluster.stop_controllers()
    gate.authorize = authorize
    await cluster.restart_controllers()
    return left <= 0


@pytest.mark.parametrize("writes", range(14))
async def test_an_interruption_after_any_write_loses_and_doubles_nothing(client, simulated_cluster, writes):
    async def life():
        await make_job(client, parallelism=2, completions=3, backoffLimit=3)
        for phase in ("Succeeded", "Failed"):
            for pod in (await pods(client, "Pending"))[:1]:
                await end(client, pod, phase)

    await interrupted_after(simulated_cluster, writes, life)
    for _ in range(10):
        await asyncio.sleep(30)
        running = await pods(client, "Pending")
        assert len(running) <= 2
        for pod in running[:1]:
            await end(client, pod, "Succeeded")
    done = await status(client)
    ended = await pods(client)
    assert true_conditions(done) == ["SuccessCriteriaMet", "Complete"]
    assert done["succeeded"] == 3 == len([pod for pod in ended if pod["status"]["phase"] == "Succeeded"])
    assert done.get("failed", 0) == len([pod for pod in ended if pod["status"]["phase"] == "Failed"])
    assert done["uncountedTerminatedPods"] == {}
    assert not any(pod["metadata"].get("finalizers") for pod in ended)


async def test_the_pause_after_failures_survives_a_restart(client, simulated_cluster):
    await make_job(client)
    for pause in (10, 20):
        (pod,) = await pods(client, "Pending")
        await fail_at(client, simulated_cluster, pod)
        await asyncio.sleep(pause + 2)
    (pod,) = await pods(client, "Pending")
    await fail_at(client, simulated_cluster, pod)
    await simulated_cluster.restart_controllers()
    await asyncio.sleep(35)
    assert await pods(client, "Pending") == []
    await asyncio.sleep(10)
    assert len(await pods(client, "Pending")) == 1


async def test_a_deadline_that_passes_while_the_controllers_are_stopped_is_noticed(client, simulated_cluster):
    await make_job(client, activeDeadlineSeconds=60)
    await simulated_cluster.stop_controllers()
    await asyncio.sleep(3600)
    await simulated_cluster.restart_controllers()
    await asyncio.sleep(1)
    assert true_conditions(await status(client)) == ["FailureTarget", "Failed"]
