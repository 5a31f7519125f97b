"""The states of a RayJob and what leads from one to the next."""

from typing import Any

import pytest

from kubereef.node.scripted import Script, Waits
from tests.eagleray.dashboard.scripted import REFUSES
from tests.eagleray.ray import host_of
from tests.eagleray.rayjob.situations import (
    MOMENT,
    ROUND,
    SHUT_DOWN,
    condition_of,
    ended,
    head_of,
    host,
    ray_says,
    ray_world,
    reached,
    reported,
    running,
    set_status,
    state_of,
    states_written,
    status_of,
    submitter_pods,
    told,
    waits_for,
)
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

NO_IMAGE = (Script(when={"ray.io/node-type": "head"}, steps=[Waits(reason="ImagePullBackOff")]),)
INTERACTIVE = {"submissionMode": "InteractiveMode"}


async def submitter_fails(world):
    """Have the submitter Job end badly."""
    for pod in await submitter_pods(world):
        await world.patch("Pod", pod["metadata"]["name"], {"status": {"phase": "Failed"}}, part="/status")
    await world.pass_time(1)


@pytest.mark.case("RJ-33")
async def test_a_new_job_has_its_names_before_anything_is_made():
    async with ray_world(lasts=None) as (world, _):
        await world.create(rayjob())
        status = await reached(world, "Running")
        job = await world.get("RayJob", "j")
        assert job["metadata"]["finalizers"] == ["ray.io/rayjob-finalizer"]
        for field in ("jobId", "rayClusterName"):
            name, _, suffix = status[field].rpartition("-")
            assert (name, len(suffix)) == ("j", 5)
            assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")
        assert status["startTime"]
        sent = [(one.verb, one.resource) for one in world.faults.sent]
        named = next(i for i, body in enumerate(world.faults.sent) if b"rayClusterName" in (body.body or b""))
        assert named < sent.index(("create", "rayclusters.ray.io"))


@pytest.mark.case("RJ-33")
async def test_an_id_that_the_user_gives_is_kept():
    async with ray_world(lasts=None) as (world, ray):
        await world.create(rayjob(jobId="mine"))
        await reported(world, "RUNNING")
        assert ray.ledger.executions("mine") == 1


@pytest.mark.case("RJ-34", "RJ-95")
async def test_a_cluster_that_is_not_ready_is_waited_for_and_shown():
    async with ray_world(scripts=NO_IMAGE) as (world, _):
        await world.create(rayjob())
        await world.pass_time(60)
        status = await status_of(world)
        assert status["jobDeploymentStatus"] == "Initializing"
        cluster = await world.get("RayCluster", status["rayClusterName"])
        assert cluster["status"].items() <= status["rayClusterStatus"].items()
        reason, message = await waits_for(world)
        assert reason in ("ClusterNotReady", "ClusterBlocked")
        assert f"RayCluster default/{status['rayClusterName']}" in message
        assert await world.list("Job") == []


@pytest.mark.case("RJ-35")
async def test_a_ready_cluster_leads_to_a_submitter_and_to_running():
    async with running() as (world, _):
        status = await status_of(world)
        assert status["dashboardURL"] == host_of(status["rayClusterName"])
        assert (await world.get("Job", "j"))["metadata"]["ownerReferences"][0]["kind"] == "RayJob"
        assert states_written(world) == ["", "Initializing", "Running"]
        assert await told(world, "CreatedRayCluster") == (
            "Normal",
            "Create",
            f"Created RayCluster default/{status['rayClusterName']}",
        )
        assert await told(world, "CreatedRayJobSubmitter") == (
            "Normal",
            "Create",
            "Created Kubernetes Job default/j",
        )


@pytest.mark.case("RJ-36", "RJ-95")
async def test_a_job_is_complete_when_its_submitter_is_done_too():
    async with running() as (world, ray):
        ray.held = True
        await ray_says(world, "SUCCEEDED")
        await reported(world, "SUCCEEDED")
        await world.pass_time(30)
        assert await state_of(world) == "Running"
        assert (await waits_for(world))[0] == "WaitingForSubmitter"
        ray.held = False
        status = await reached(world, "Complete")
        assert (status["succeeded"], status["failed"]) == (1, 0)
        assert status["endTime"]
        assert (await condition_of(world, "Complete"))[:2] == ("True", "SUCCEEDED")
        assert (await condition_of(world, "Progressing"))[:2] == ("False", "SUCCEEDED")


@pytest.mark.case("RJ-37", "RJ-95")
async def test_a_job_that_fails_has_failed():
    async with running() as (world, _):
        await ray_says(world, "FAILED", "it broke")
        status = await reached(world, "Failed")
        assert (status["reason"], status["message"], status["jobStatus"]) == (
            "AppFailed",
            "it broke",
            "FAILED",
        )
        assert (status["succeeded"], status["failed"]) == (0, 1)
        assert (await condition_of(world, "Failed"))[:2] == ("True", "AppFailed")


@pytest.mark.case("RJ-38")
async def test_a_job_that_was_stopped_is_complete():
    async with running() as (world, _):
        await ray_says(world, "STOPPED")
        status = await reached(world, "Complete")
        assert (status["succeeded"], status["failed"]) == (0, 0)


@pytest.mark.case("RJ-39")
async def test_a_job_without_submitter_is_complete_at_once():
    async with running(mode="HTTPMode") as (world, _):
        await ray_says(world, "SUCCEEDED")
        await reached(world, "Complete", seconds=ROUND)
        assert ("create", "jobs.batch") not in world.writes()


@pytest.mark.case("RJ-40")
async def test_a_submitter_that_fails_before_ray_has_the_job():
    async with ray_world(submitter_faults=["dies before"] * 3) as (world, ray):
        await world.create(rayjob())
        status = await reached(world, "Failed")
        assert status["reason"] == "SubmissionFailed"
        assert status["message"].startswith(
            "Job submission has failed. Reason: BackoffLimitExceeded. Message: "
        )
        assert "jobStatus" not in status
        assert ray.ledger.started == []


@pytest.mark.case("RJ-41")
async def test_a_submitter_that_fails_with_the_job():
    async with running(submitterConfig={"backoffLimit": 0}) as (world, ray):
        ray.exit_with = 1
        await ray_says(world, "FAILED", "it broke")
        status = await reached(world, "Failed")
        assert (status["reason"], status["message"]) == ("AppFailed", "it broke")
        conditions = (await world.get("Job", "j"))["status"]["conditions"]
        assert "Failed" in [one["type"] for one in conditions]


@pytest.mark.case("RJ-42")
async def test_a_submitter_that_is_done_without_a_job():
    template = {
        "spec": {
            "containers": [{"name": "mine", "image": "i", "command": ["true"]}],
            "restartPolicy": "Never",
        }
    }
    async with ray_world() as (world, ray):
        await world.create(rayjob(submitterPodTemplate=template))
        await reached(world, "Running")
        (pod,) = await submitter_pods(world)
        await world.patch("Pod", pod["metadata"]["name"], {"status": {"phase": "Succeeded"}}, part="/status")
        status = await reached(world, "Failed", seconds=20)
        assert status["reason"] == "AppFailed"
        assert status["message"] == "Submitter completed but Ray job not found in RayCluster."
        assert ray.ledger.started == []


@pytest.mark.case("RJ-42")
@pytest.mark.parametrize("lasts", [0.2, 0.9, 1.5, 2.5])
@pytest.mark.parametrize("mode", ["K8sJobMode", "SidecarMode"])
async def test_a_job_that_is_over_before_ray_is_asked_again_is_not_missed(lasts, mode):
    async with ray_world(lasts=lasts, health_delay=0.5) as (world, _):
        await world.create(rayjob(submissionMode=mode))
        assert (await reached(world, "Complete", "Failed"))["jobDeploymentStatus"] == "Complete"


@pytest.mark.case("RJ-49")
async def test_a_user_submits_by_hand_and_names_the_job():
    async with ray_world() as (world, ray):
        await world.create(rayjob(**INTERACTIVE))
        status = await reached(world, "Waiting")
        assert "jobId" not in status
        reason, message = await waits_for(world)
        assert reason == "WaitingForJobId"
        assert "spec.jobId" in message
        (await head_of(world)).submit("by-hand")
        await world.patch("RayJob", "j", {"spec": {"jobId": "by-hand"}})
        assert (await reached(world, "Running"))["jobId"] == "by-hand"
        assert (await reached(world, "Complete"))["succeeded"] == 1
        assert ray.ledger.started == [("by-hand", ray.ledger.started[0][1])]


@pytest.mark.case("RJ-54")
async def test_a_changed_message_is_written_and_nothing_new_is_not():
    async with running() as (world, _):
        await world.pass_time(ROUND)
        before = len(world.writes())
        await world.pass_time(60)
        assert len(world.writes()) == before
        await ray_says(world, "RUNNING", "half of it is done")
        await world.pass_time(ROUND)
        assert (await status_of(world))["message"] == "half of it is done"
        assert len(world.writes()) == before + 1


@pytest.mark.case("RJ-55")
async def test_the_status_of_the_cluster_is_followed():
    async with running() as (world, _):
        name = (await status_of(world))["rayClusterName"]
        await world.set_group(name, maxReplicas=7)
        await world.pass_time(ROUND)
        assert (await status_of(world))["rayClusterStatus"]["maxWorkerReplicas"] == 7


@pytest.mark.case("RJ-56")
async def test_an_edit_of_the_cluster_spec_changes_no_running_cluster():
    async with running() as (world, _):
        name = (await status_of(world))["rayClusterName"]
        before = (await world.get("RayCluster", name))["spec"]
        job = await world.get("RayJob", "j")
        job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] = 5
        await world.patch("RayJob", "j", {"spec": job["spec"]})
        await world.pass_time(ROUND)
        assert (await world.get("RayCluster", name))["spec"] == before
        assert await state_of(world) == "Running"


async def test_a_cluster_that_somebody_deletes_comes_back_under_its_name():
    async with running() as (world, _):
        name = (await status_of(world))["rayClusterName"]
        old = await world.get("RayCluster", name)
        await world.delete("RayCluster", name)
        await world.pass_time(1)
        new = await world.get("RayCluster", name)
        assert new["metadata"]["uid"] != old["metadata"]["uid"]


# --- chosen clusters


@pytest.mark.case("RJ-77")
async def test_a_job_on_a_chosen_cluster_makes_none_and_deletes_none():
    async with ray_world(lasts=2) as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.create(rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}, **SHUT_DOWN))
        status = await reached(world, "Complete")
        assert status["rayClusterName"] == "c"
        await world.pass_time(60)
        (cluster,) = await world.list("RayCluster")
        assert "deletionTimestamp" not in cluster["metadata"]
        assert await world.get("Service", "j-head-svc") is None
        await world.delete("RayJob", "j")
        await world.pass_time(60)
        assert len(await world.list("RayCluster")) == 1


@pytest.mark.case("RJ-77")
async def test_a_chosen_cluster_that_is_missing_is_waited_for():
    async with ray_world(lasts=2) as (world, _):
        await world.create(rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}))
        await world.pass_time(60)
        assert await state_of(world) == "Initializing"
        words = "RayCluster default/c set in the clusterSelector is not found. It must be created manually"
        assert await told(world, "RayClusterNotFound") == ("Warning", "Validate", words)
        assert await waits_for(world) == ("RayClusterNotFound", words)
        assert await world.list("RayCluster") == []
        await world.create(raycluster())
        await reached(world, "Complete", seconds=60)


# --- the Service of a job


async def test_the_head_service_of_a_job_follows_its_clusters():
    async with running(mode="HTTPMode", backoffLimit=1) as (world, _):
        first = (await status_of(world))["rayClusterName"]
        service = await world.get("Service", "j-head-svc")
        assert service["spec"]["selector"]["ray.io/cluster"] == first
        assert service["metadata"]["labels"] == {
            "ray.io/originated-from-cr-name": "j",
            "ray.io/originated-from-crd": "RayJob",
            "ray.io/node-type": "head",
            "ray.io/identifier": "j-head",
        }
        assert await told(world, "CreatedService") == (
            "Normal",
            "Create",
            "Created the service default/j-head-svc",
        )
        await ray_says(world, "FAILED")
        await world.pass_time(ROUND)
        second = (await reached(world, "Running"))["rayClusterName"]
        assert second != first
        after = await world.get("Service", "j-head-svc")
        assert after["spec"]["selector"]["ray.io/cluster"] == second
        assert after["metadata"]["uid"] == service["metadata"]["uid"]
        assert after["spec"]["clusterIP"] == service["spec"]["clusterIP"]
        assert await told(world, "UpdatedService") == (
            "Normal",
            "Update",
            "Updated the service default/j-head-svc",
        )


# --- somebody else's objects


@pytest.mark.case("RJ-100")
async def test_a_job_of_another_owner_is_left_alone_and_named():
    theirs: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {"app.kubernetes.io/created-by": "kuberay-operator"}},
        "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
        },
    }
    async with ray_world() as (world, ray):
        owner = await world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}})
        theirs["metadata"]["ownerReferences"] = [reference(owner)]
        made = await world.create(theirs)
        await world.create(rayjob())
        await world.pass_time(60)
        assert await state_of(world) == "Initializing"
        kind, action, note = await told(world, "FailedToCreateRayJobSubmitter")
        assert (kind, action) == ("Warning", "Create")
        assert note.startswith("Failed to create new Kubernetes Job default/j: ")
        assert "ConfigMap theirs" in note
        assert (await world.get("Job", "j"))["metadata"]["uid"] == made["metadata"]["uid"]
        assert ray.ledger.started == []


@pytest.mark.case("RJ-100")
async def test_a_cluster_of_another_owner_is_left_alone_and_named():
    async with ray_world(operator=False) as (world, _):
        owner = await world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}})
        theirs = raycluster("taken", metadata={"ownerReferences": [reference(owner)]})
        made = await world.create(theirs)
        await world.create(rayjob())
        await set_status(world, rayClusterName="taken")
        await world.start_operator()
        await world.pass_time(60)
        assert await state_of(world) == "Initializing"
        kind, action, note = await told(world, "FailedToCreateRayCluster")
        assert (kind, action) == ("Warning", "Create")
        assert note.startswith("Failed to create RayCluster default/taken: ")
        assert "ConfigMap theirs" in note
        assert (await waits_for(world))[0] == "ClusterConflict"
        assert (await world.get("RayCluster", "taken"))["spec"] == made["spec"]
        await world.delete("RayJob", "j")
        await world.pass_time(MOMENT)
        assert await world.get("RayCluster", "taken") is not None


def reference(owner):
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


# --- waiting in words


@pytest.mark.case("RJ-95")
async def test_a_dashboard_that_does_not_answer_is_named():
    async with running() as (world, _):
        world.dashboards.fault(await host(world), REFUSES)
        await world.pass_time(30)
        reason, message = await waits_for(world)
        assert reason == "DashboardUnreachable"
        assert await host(world) in message


@pytest.mark.case("RJ-95")
async def test_stages_are_told_with_their_times():
    async with ended(lasts=12) as (world, _):
        assert (await condition_of(world, "Complete"))[2].endswith(
            "took: cluster 0 s, submission 0 s, run 12 s"
        )
