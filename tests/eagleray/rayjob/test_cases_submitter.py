"""Submitters in the running operator: beside Ray and in Pods of their own, with tokens, and when they die."""

import base64

import pytest

from tests.eagleray.rayjob.situations import (
    MOMENT,
    ROUND,
    head_pod,
    ray_says,
    ray_world,
    reached,
    reported,
    running,
    state_of,
    status_of,
    submitter_pods,
    told,
    waits_for,
)
from tests.eagleray.world import rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

RESTARTS = ("--feature-gates=SidecarSubmitterRestart=true",)
SIDECAR = {"submissionMode": "SidecarMode"}


def light(*arguments):
    container = {"name": "ray-job-submitter", "image": "quay.io/kuberay/submitter", "command": ["/submitter"]}
    return {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{**container, "args": [*arguments, "python job.py"]}],
        }
    }


def submitter_in(pod):
    return next(one for one in pod["spec"]["containers"] if one["name"] == "ray-job-submitter")


@pytest.mark.case("RJ-71")
@pytest.mark.parametrize("version", ["2.5.0", "not-a-version"])
@pytest.mark.parametrize(
    ("mode", "reason"),
    [("K8sJobMode", "FailedToCreateRayJobSubmitter"), ("SidecarMode", "FailedToCreateRayCluster")],
)
async def test_metadata_that_ray_does_not_know_fails_the_step_and_says_so(version, mode, reason):
    job = rayjob(submissionMode=mode, cluster={"rayVersion": version})
    job["spec"]["metadata"] = {"a": "b"}
    async with ray_world() as (world, ray):
        await world.create(job)
        await world.pass_time(30)
        assert await state_of(world) == "Initializing"
        kind, action, note = await told(world, reason)
        assert (kind, action) == ("Warning", "Create")
        assert f"rayVersion is {version}" in note
        assert (await waits_for(world))[0] == "NotSubmittable"
        assert ray.ledger.started == []


@pytest.mark.case("RJ-72")
async def test_a_sidecar_comes_with_the_head_of_the_jobs_own_cluster():
    async with running(mode="SidecarMode") as (world, _):
        pod = await head_pod(world)
        assert [one["name"] for one in pod["spec"]["containers"]] == ["ray", "ray-job-submitter"]
        assert pod["spec"]["restartPolicy"] == "Never"
        cluster = await world.get("RayCluster", (await status_of(world))["rayClusterName"])
        assert cluster["metadata"]["annotations"]["ray.io/disable-provisioned-head-restart"] == "true"
        assert cluster["metadata"]["labels"]["ray.io/job-submission-mode"] == "SidecarMode"
        assert await world.list("Job") == []
        assert "restartPolicy" not in submitter_in(pod)


async def set_sidecar(world, **status):
    """Have the head's Pod tell this of its submitter."""
    pod = await head_pod(world)
    statuses = pod["status"]["containerStatuses"]
    for one in statuses:
        if one["name"] == "ray-job-submitter":
            one |= status
    await world.patch(
        "Pod", pod["metadata"]["name"], {"status": {"containerStatuses": statuses}}, part="/status"
    )
    await world.pass_time(ROUND)


def exited(code):
    return {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": "2030-01-01T00:00:03Z"}}


@pytest.mark.case("RJ-73")
@pytest.mark.parametrize(
    ("restarts", "state", "outcome"),
    [
        pytest.param(1, {"running": {}}, "Running", id="one restart of two"),
        pytest.param(2, {"running": {}}, "Failed", id="two restarts"),
        pytest.param(3, exited(0), "Complete", id="three restarts and a good end"),
    ],
)
async def test_a_sidecar_may_restart_twice(restarts, state, outcome):
    async with running(mode="SidecarMode", flags=RESTARTS) as (world, ray):
        ray.held = True
        if outcome == "Complete":
            await ray_says(world, "SUCCEEDED")
        await set_sidecar(world, restartCount=restarts, state=state, lastState=exited(1))
        status = await status_of(world)
        assert status["jobDeploymentStatus"] == outcome
        if outcome == "Failed":
            assert status["reason"] == "SubmissionFailed"
            assert (
                status["message"]
                == "Ray head pod container ray-job-submitter terminated with exit code 1: Error"
            )


@pytest.mark.case("RJ-74")
async def test_a_sidecar_that_is_killed_once_follows_the_job_that_it_has_submitted():
    async with ray_world(flags=RESTARTS, lasts=20, submitter_faults=["dies after"]) as (world, ray):
        await world.create(rayjob(**SIDECAR))
        job_id = (await reported(world, "RUNNING"))["jobId"]
        assert submitter_in(await head_pod(world))["restartPolicy"] == "OnFailure"
        status = await reached(world, "Complete")
        assert status["jobId"] == job_id
        assert ray.exit_codes == [1, 0]
        assert ray.ledger.executions(job_id) == 1


@pytest.mark.case("RJ-75")
async def test_a_head_with_a_sidecar_is_never_made_again():
    async with running(mode="SidecarMode") as (world, ray):
        pod = await head_pod(world)
        await world.delete("Pod", pod["metadata"]["name"])
        status = await reached(world, "Failed", seconds=60)
        assert status["reason"] in ("AppFailed", "SubmissionFailed")
        await world.pass_time(60)
        assert await head_pod(world) is None
        assert len(ray.ledger.started) == 1


@pytest.mark.case("RJ-75")
async def test_a_head_with_a_sidecar_that_is_lost_early_is_not_made_again_either():
    async with ray_world(lasts=None) as (world, ray):
        await world.create(
            rayjob(**SIDECAR, cluster={"workers": [{"pod": {"nodeSelector": {"no": "where"}}}]})
        )
        await world.pass_time(MOMENT)
        assert await state_of(world) == "Initializing"
        assert len(ray.ledger.started) == 1
        await world.delete("Pod", (await head_pod(world))["metadata"]["name"])
        status = await reached(world, "Failed", seconds=30)
        assert (status["reason"], status["message"]) == ("AppFailed", "Ray head pod not found.")
        await world.pass_time(60)
        assert await head_pod(world) is None
        assert len(ray.ledger.started) == 1


@pytest.mark.parametrize(
    ("faults", "ending"),
    [
        pytest.param([], ("Complete", None, "SUCCEEDED"), id="it was done before the workers were there"),
        pytest.param(
            ["dies before"], ("Failed", "SubmissionFailed", None), id="it was killed before it submitted"
        ),
    ],
)
async def test_a_sidecar_that_ends_before_its_cluster_is_ready_ends_its_job(faults, ending):
    async with ray_world(lasts=5, submitter_faults=faults) as (world, ray):
        await world.create(
            rayjob(**SIDECAR, cluster={"workers": [{"pod": {"nodeSelector": {"no": "where"}}}]})
        )
        status = await reached(world, ending[0], seconds=60)
        assert (ending[0], status.get("reason"), status.get("jobStatus")) == ending
        assert len(ray.ledger.started) == (not faults)


@pytest.mark.case("RJ-75")
async def test_the_head_of_a_job_with_a_submitter_of_its_own_is_made_again():
    async with running() as (world, ray):
        pod = await head_pod(world)
        await world.delete("Pod", pod["metadata"]["name"])
        await world.pass_time(ROUND)
        assert (await head_pod(world))["metadata"]["uid"] != pod["metadata"]["uid"]
        assert ray.ledger.repeated == []


@pytest.mark.case("RJ-76")
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
async def test_a_cluster_that_asks_for_a_token_gets_it_from_everybody(mode):
    async with ray_world(lasts=5, token="its-token") as (world, _):
        secret = {"auth_token": base64.b64encode(b"its-token").decode()}
        await world.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "data": secret}
        )
        options = {"authOptions": {"mode": "token", "secretName": "mine"}, "rayVersion": "2.52.0"}
        await world.create(rayjob(submissionMode=mode, cluster=options))
        status = await reached(world, "Complete", seconds=120)
        pods = [*await world.pods(status["rayClusterName"]), *await submitter_pods(world)]
        assert len(pods) == (3 if mode == "K8sJobMode" else 2)
        for pod in pods:
            for container in pod["spec"]["containers"]:
                given = {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}
                assert given["RAY_AUTH_MODE"] == "token"
                assert given["RAY_AUTH_TOKEN"] == {"secretKeyRef": {"name": "mine", "key": "auth_token"}}


# --- the small submitter of the reference


@pytest.mark.case("RJ-87")
async def test_a_second_pod_of_the_light_submitter_follows_the_job_of_the_first():
    async with ray_world(lasts=20, submitter_faults=["dies after"]) as (world, ray):
        await world.create(rayjob(submitterPodTemplate=light()))
        status = await reached(world, "Complete")
        assert ray.exit_codes == [1, 0]
        assert ray.ledger.executions(status["jobId"]) == 1


@pytest.mark.case("RJ-87")
async def test_a_light_submitter_with_bad_arguments_fails_as_often_as_it_may():
    async with ray_world() as (world, ray):
        template = light("--entrypoint-resources", "{not json")
        await world.create(rayjob(submitterPodTemplate=template, submitterConfig={"backoffLimit": 1}))
        status = await reached(world, "Failed")
        assert status["reason"] == "SubmissionFailed"
        assert len(await submitter_pods(world)) == 2
        assert ray.ledger.started == []
