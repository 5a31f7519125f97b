"""The metrics of RayJobs."""

import pytest

from tests.eagleray.rayjob.situations import ROUND, ray_says, reached, running, set_status, status_of

pytestmark = pytest.mark.usefixtures("virtual_time")

METRICS = ("--enable-metrics",)
DURATION = "kuberay_job_execution_duration_seconds"


def samples(world, family):
    """Return the samples of a family as (labels, value)."""
    found = []
    for line in world.operator.registry.render().splitlines():
        name, _, rest = line.partition("{")
        if name == family:
            labels, _, value = rest.rpartition("} ")
            pairs = (pair.partition("=") for pair in labels.split(","))
            found.append(({key: text.strip('"') for key, _, text in pairs}, float(value)))
    return found


@pytest.mark.case("RJ-86", "OP-89")
@pytest.mark.parametrize(("word", "state"), [("SUCCEEDED", "Complete"), ("FAILED", "Failed")])
async def test_the_time_of_an_attempt_is_measured_at_its_end(word, state):
    async with running(flags=METRICS) as (world, _):
        assert samples(world, DURATION) == []
        uid = (await world.get("RayJob", "j"))["metadata"]["uid"]
        await world.pass_time(20)
        await ray_says(world, word)
        await reached(world, state)
        ((labels, seconds),) = samples(world, DURATION)
        assert labels == {
            "name": "j",
            "namespace": "default",
            "uid": uid,
            "job_deployment_status": state,
            "retry_count": "0",
        }
        assert seconds == pytest.approx(22, abs=4)
        await world.delete("RayJob", "j")
        await world.pass_time(ROUND)
        assert samples(world, DURATION) == []


@pytest.mark.case("RJ-86")
async def test_a_retry_is_measured_with_the_failures_before_it():
    async with running(flags=METRICS, backoffLimit=5) as (world, _):
        await set_status(world, failed=2)
        await ray_says(world, "FAILED")
        await world.pass_time(ROUND)
        ((labels, _),) = samples(world, DURATION)
        assert (labels["job_deployment_status"], labels["retry_count"]) == ("Retrying", "2")
        assert (await status_of(world))["failed"] == 3


@pytest.mark.case("RJ-86", "OP-87", "OP-88")
async def test_jobs_and_their_states_are_told_when_they_are_asked_for():
    async with running(flags=METRICS) as (world, _):
        labels = {
            "name": "j",
            "namespace": "default",
            "uid": (await world.get("RayJob", "j"))["metadata"]["uid"],
        }
        assert samples(world, "kuberay_job_info") == [(labels, 1)]
        assert samples(world, "kuberay_job_deployment_status") == [
            ({**labels, "deployment_status": "Running"}, 1)
        ]


@pytest.mark.case("RJ-86")
async def test_nothing_is_told_without_being_asked_for():
    async with running() as (world, _):
        assert "kuberay_job" not in world.operator.registry.render()
