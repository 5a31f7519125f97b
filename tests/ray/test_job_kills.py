"""Real RayJobs whose head, submitter and operator are killed: all end, and none runs twice."""

from collections import Counter

import pytest

from tests.ray.jobs import ENDS, Told, ended, head_only, job, job_on, running, submit
from tests.ray.kills import Reaper, kill_container

pytestmark = pytest.mark.heavy

SEED = 1
KILLS = 20
LONGEST_PAUSE = 5.0
SHARED = "shared"
NEVER = "never"  # a gate that nobody opens


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return Told(tmp_path_factory.mktemp("kills") / "told")


@pytest.fixture(scope="module")
def made(reef, told):
    reef.create(head_only(SHARED, told))


@pytest.fixture
def shared(reef, made):
    """A ready cluster for jobs that need none of their own."""
    reef.ready(SHARED)
    return SHARED


@pytest.mark.case("RJ-75")
def test_when_its_head_is_killed_a_job_of_any_mode_ends_and_is_not_run_again(reef, told, shared):
    entrypoint = told.entrypoint("wait", NEVER)
    reef.create(job("sidecar", entrypoint, told, "SidecarMode"))
    reef.create(job_on(shared, "k8s", entrypoint, "K8sJobMode"))
    reef.create(job_on(shared, "http", entrypoint, "HTTPMode"))
    reef.create(job_on(shared, "interactive", "", "InteractiveMode"))
    submit(reef, shared, "interactive", entrypoint)
    names = ("sidecar", "k8s", "http", "interactive")
    before = {name: running(reef, name) for name in names}
    first = reef.head(shared)
    for head in (first, reef.head(before["sidecar"]["rayClusterName"])):
        reef.delete("Pod", head, grace=0)
    for name in names:
        status = ended(reef, name)
        assert status["jobDeploymentStatus"] == "Failed", status
        wanted = ("AppFailed", "SubmissionFailed") if name == "sidecar" else ("JobLost",)
        assert status["reason"] in wanted, status
    reef.until(
        lambda: [pod for pod in reef.pods(shared, "head") if pod["metadata"]["name"] != first], "a new head"
    )
    reef.ready(shared)
    assert reef.pods(before["sidecar"]["rayClusterName"], "head") == []
    assert reef.dashboard("GET", "/api/jobs/", name=shared) == [], "the new head was given a job"
    for name, status in before.items():
        assert [line.attempt for line in told.lines(name)] == [status["jobId"]]


def test_a_submitter_that_is_killed_is_followed_by_one_that_does_not_submit_again(reef, told, shared):
    reef.create(job_on(shared, "followed", told.entrypoint("wait", "followed")))
    job_id = running(reef, "followed")["jobId"]
    (pod,) = reef.list("Pod", "job-name=followed")
    assert kill_container(reef, pod["metadata"]["name"], submitter=True)
    reef.until(lambda: len(reef.list("Pod", "job-name=followed")) == 2, "the Job has made another Pod")
    told.open("followed")
    status = ended(reef, "followed")
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED"), status
    assert [line.attempt for line in told.lines("followed")] == [job_id]


def test_an_operator_that_is_killed_is_followed_by_one_that_knows_how_jobs_ended_meanwhile(
    reef, told, shared
):
    names = {"unseen-k8s": "K8sJobMode", "unseen-http": "HTTPMode"}
    for name, mode in names.items():
        reef.create(job_on(shared, name, told.entrypoint("wait", "unseen"), mode))
    ids = {name: running(reef, name)["jobId"] for name in names}
    reef.kill_operator()
    told.open("unseen")
    reef.until(
        lambda: all(
            reef.dashboard("GET", f"/api/jobs/{job_id}", name=shared)["status"] == "SUCCEEDED"
            for job_id in ids.values()
        ),
        "both jobs have ended",
    )
    reef.start_operator()
    for name, job_id in ids.items():
        status = ended(reef, name)
        assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED"), status
        assert [line.attempt for line in told.lines(name)] == [job_id]


def test_after_20_kills_all_jobs_have_ended_and_no_attempt_has_run_twice(reef, told, shared):
    reaper = Reaper(reef, SEED)
    made: dict[str, list[str]] = {mode: [] for mode in ("K8sJobMode", "HTTPMode", "SidecarMode")}

    def some_run():
        """Keep a job of each mode going; returns whether Ray runs one."""
        statuses = {mode: reef.status("RayJob", names[-1]) if names else {} for mode, names in made.items()}
        for mode, names in made.items():
            if not names or statuses[mode].get("jobDeploymentStatus") in ENDS:
                names.append(f"{mode.lower()}-{len(names)}")
                entrypoint = told.entrypoint("sleep", 10)
                if mode == "SidecarMode":
                    reef.create(
                        job(names[-1], entrypoint, told, mode, backoffLimit=2, shutdownAfterJobFinishes=True)
                    )
                else:
                    reef.create(job_on(shared, names[-1], entrypoint, mode))
        return any(status.get("jobStatus") == "RUNNING" for status in statuses.values())

    for victim in reaper.victims(KILLS):
        if victim == "head":
            reef.until(some_run, f"Ray runs a job after {reaper.killed}")
        reaper.pause(LONGEST_PAUSE)
        reef.until(
            lambda kind=victim: (some_run(), reaper.kill(kind))[1], f"a {victim} after {reaper.killed}"
        )
    assert len(reaper.killed) == KILLS
    for name in (name for names in made.values() for name in names):
        status = ended(reef, name)
        lines = told.lines(name)
        seen = (name, status, lines, reaper.killed)
        assert len(lines) <= status["failed"] + status["succeeded"], seen
        if status.get("jobStatus") == "SUCCEEDED":
            assert lines[-1].attempt == status["jobId"], seen
    assert max(Counter(line.attempt for line in told.lines()).values()) == 1, (told.lines(), reaper.killed)
