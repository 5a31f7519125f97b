"""Real RayJobs: all modes, with real successes and failures, and what ends, stops, retries and tidies them."""

import pytest

from tests.ray.jobs import (
    FAILING_CODE,
    RESOURCES,
    Told,
    ended,
    head_only,
    in_state,
    job,
    job_on,
    running,
    submit,
)

pytestmark = pytest.mark.heavy

SHARED = "shared"
NEVER = "never"  # a gate that nobody opens


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return Told(tmp_path_factory.mktemp("jobs") / "told")


@pytest.fixture(scope="module")
def shared(reef, told):
    """A ready cluster for jobs that need none of their own, and a schedule that uses it.

    The schedule is made first, because its tick may be a minute away.
    """
    template = job_on(SHARED, "", told.entrypoint("succeed"), "HTTPMode")["spec"]
    reef.create(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCronJob",
            "metadata": {"name": "often"},
            "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template},
        }
    )
    reef.create(head_only(SHARED, told))
    reef.ready(SHARED)
    return SHARED


@pytest.fixture(scope="module")
def jobs(reef, told, shared):
    """Jobs of all modes but one, one that succeeds and one that fails of each; the tests wait for them."""
    for what in ("succeed", "fail"):
        reef.create(job_on(shared, f"k8s-{what}", told.entrypoint(what, f"k8s-{what}"), "K8sJobMode"))
        reef.create(job_on(shared, f"http-{what}", told.entrypoint(what, f"http-{what}"), "HTTPMode"))
        reef.create(job_on(shared, f"interactive-{what}", "", "InteractiveMode"))
        submit(reef, shared, f"interactive-{what}", told.entrypoint(what, f"interactive-{what}"))


@pytest.fixture(scope="module")
def sidecars(reef, told):
    """Jobs of the mode that needs a cluster of its own; the one that succeeds has Ray do something."""
    for name, what in (("succeed", "compute"), ("fail", "fail")):
        entrypoint = told.entrypoint(what, f"sidecar-{name}")
        reef.create(job(f"sidecar-{name}", entrypoint, told, "SidecarMode", shutdownAfterJobFinishes=True))


MODES = pytest.mark.parametrize(
    ("mode", "made"),
    [("k8s", "jobs"), ("http", "jobs"), ("interactive", "jobs"), ("sidecar", "sidecars")],
    ids=["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"],
)


@MODES
def test_a_job_that_succeeds_is_complete(reef, told, request, mode, made):
    request.getfixturevalue(made)
    name = f"{mode}-succeed"
    status = ended(reef, name)
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED"), status
    assert status["succeeded"] == 1
    assert len(told.lines(name)) == 1


@pytest.mark.case("RJ-37")
@MODES
def test_a_job_that_fails_has_failed_with_the_words_of_ray(reef, told, request, mode, made):
    request.getfixturevalue(made)
    name = f"{mode}-fail"
    status = ended(reef, name)
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Failed", "FAILED"), status
    assert status["reason"] == "AppFailed"
    assert f"exit code {FAILING_CODE}" in status["message"]
    assert "no luck" in status["message"]
    assert status["failed"] == 1
    assert len(told.lines(name)) == 1


def test_a_schedule_has_a_job_run(reef, told, shared):
    (run, *_) = reef.until(
        lambda: reef.list("RayJob", "ray.io/cronjob-name=often"), "the schedule has made a RayJob"
    )
    name = run["metadata"]["name"]
    assert [owner["name"] for owner in run["metadata"]["ownerReferences"]] == ["often"]
    assert run["spec"]["clusterSelector"] == {"ray.io/cluster": shared}
    reef.patch("RayCronJob", "often", {"spec": {"suspend": True}})
    assert ended(reef, name)["jobStatus"] == "SUCCEEDED"
    assert len(told.lines(name)) == 1
    assert reef.status("RayCronJob", "often")["lastScheduleTime"].endswith(":00Z"), (
        "a tick is at a full minute"
    )


def test_a_job_that_takes_too_long_has_failed_with_its_deadline(reef, told, shared):
    reef.create(
        job_on(shared, "late", told.entrypoint("wait", NEVER), "HTTPMode", activeDeadlineSeconds=3600)
    )
    running(reef, "late")
    reef.patch("RayJob", "late", {"spec": {"activeDeadlineSeconds": 1}})
    status = ended(reef, "late")
    assert (status["jobDeploymentStatus"], status["reason"]) == ("Failed", "DeadlineExceeded"), status
    assert status["message"].startswith("The RayJob has passed the activeDeadlineSeconds. StartTime: ")
    assert (status["jobStatus"], status["failed"]) == ("RUNNING", 1)


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])
def test_a_job_that_is_deleted_stops_in_ray(reef, told, shared, mode):
    name = f"unwanted-{mode[:4].lower()}"
    reef.create(job_on(shared, name, told.entrypoint("wait", NEVER), mode))
    job_id = running(reef, name)["jobId"]
    reef.delete("RayJob", name)
    reef.gone("RayJob", name)
    reef.until(
        lambda: reef.dashboard("GET", f"/api/jobs/{job_id}", name=shared)["status"] == "STOPPED",
        f"Ray has stopped {job_id}",
    )
    reef.gone("Job", name)
    assert reef.get("RayCluster", shared) is not None


@pytest.mark.case("RJ-59")
def test_a_job_that_fails_is_tried_again_on_a_new_cluster(reef, told):
    reef.create(job("again", told.entrypoint("fail", "again"), told, backoffLimit=1))
    status = ended(reef, "again")
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED"), status
    assert (status["failed"], status["succeeded"]) == (1, 1)
    first, second = told.lines("again")
    assert first.attempt != second.attempt
    assert second.attempt == status["jobId"]
    assert second.host.startswith(status["rayClusterName"])
    assert not first.host.startswith(status["rayClusterName"])
    (left,) = reef.list("RayCluster", "ray.io/originated-from-cr-name=again")
    assert left["metadata"]["name"] == status["rayClusterName"]
    reef.delete("RayJob", "again")


def test_a_job_that_is_suspended_takes_nothing_and_starts_anew_when_it_is_resumed(reef, told):
    entrypoint = told.entrypoint("wait", "resumed")
    reef.create(job("paused", entrypoint, told, "HTTPMode", shutdownAfterJobFinishes=True))
    first = running(reef, "paused")
    reef.patch("RayJob", "paused", {"spec": {"suspend": True}})
    assert not in_state(reef, "paused", "Suspended").keys() & {"jobId", "jobStatus", "rayClusterName"}
    reef.gone("RayCluster", first["rayClusterName"])
    reef.until(lambda: not reef.pods(first["rayClusterName"]), "its Pods are gone")
    reef.patch("RayJob", "paused", {"spec": {"suspend": False}})
    second = running(reef, "paused")
    assert second["rayClusterName"] != first["rayClusterName"]
    told.open("resumed")
    status = ended(reef, "paused")
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED"), status
    assert (status["failed"], status["succeeded"]) == (0, 1)
    assert [line.attempt for line in told.lines("paused")] == [first["jobId"], second["jobId"]]
    # And afterwards, as it was wished, nothing of it runs.
    reef.gone("RayCluster", second["rayClusterName"])


@pytest.mark.case("RJ-80", "RJ-81")
def test_what_deletion_rules_name_goes_when_its_time_after_the_end_has_come(reef, told):
    def rules(workers, cluster, itself):
        times = {"DeleteWorkers": workers, "DeleteCluster": cluster, "DeleteSelf": itself}
        return {
            "deletionRules": [
                {"policy": policy, "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": seconds}}
                for policy, seconds in times.items()
            ]
        }

    later = 3600
    worker = {"container": {"resources": RESOURCES}, "rayStartParams": {"num-cpus": "1"}}
    strategy = rules(5, later, later)
    reef.create(
        job("tidy", told.entrypoint("succeed"), told, "HTTPMode", workers=[worker], deletionStrategy=strategy)
    )
    cluster = ended(reef, "tidy")["rayClusterName"]
    reef.until(lambda: not reef.pods(cluster, "worker"), "its worker is gone")
    assert len(reef.pods(cluster, "head")) == 1
    reef.patch("RayJob", "tidy", {"spec": {"deletionStrategy": rules(5, 5, later)}})
    reef.gone("RayCluster", cluster)
    assert reef.get("RayJob", "tidy") is not None
    reef.patch("RayJob", "tidy", {"spec": {"deletionStrategy": rules(5, 5, 5)}})
    reef.gone("RayJob", "tidy")
