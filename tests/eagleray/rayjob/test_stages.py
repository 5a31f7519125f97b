"""Stages of an attempt: its cluster, its submission, its run, and how long each took."""

import pytest

from eagleray.rayjob.stages import durations, stages_of
from kubereef.node.scripted import Running, Script, Waits
from kubewire.times import parse_time
from tests.eagleray.rayjob.situations import ray_world
from tests.eagleray.world import rayjob

AT = "2030-01-01T00:00:{:02d}Z"
READY = {"rayClusterStatus": {"stateTransitionTimes": {"ready": AT.format(5)}}}


@pytest.mark.parametrize(
    ("status", "stages"),
    [
        pytest.param({}, [], id="nothing has begun"),
        pytest.param({"startTime": AT.format(0)}, [("cluster", 30, False)], id="the cluster is being made"),
        pytest.param(
            {"startTime": AT.format(0), **READY},
            [("cluster", 5, True), ("submission", 25, False)],
            id="the job is being submitted",
        ),
        pytest.param(
            {"startTime": AT.format(10), **READY},
            [("cluster", 0, True), ("submission", 20, False)],
            id="a chosen cluster was ready before",
        ),
        pytest.param(
            {"startTime": AT.format(0), **READY, "rayJobInfo": {"startTime": AT.format(7)}},
            [("cluster", 5, True), ("submission", 2, True), ("run", 23, False)],
            id="the job runs",
        ),
        pytest.param(
            {"startTime": AT.format(0), "rayJobInfo": {"startTime": AT.format(7), "endTime": AT.format(9)}},
            [("submission", 7, True), ("run", 2, True)],
            id="nobody noted when the cluster was ready",
        ),
        pytest.param(
            {"startTime": AT.format(0), "endTime": AT.format(20), **READY},
            [("cluster", 5, True), ("submission", 15, False)],
            id="it was given up before it ran",
        ),
    ],
)
def test_stages_of_an_attempt(status, stages):
    assert stages_of(status, parse_time(AT.format(30))) == stages


def test_only_what_is_over_is_told_in_words():
    running = {"startTime": AT.format(0), **READY, "rayJobInfo": {"startTime": AT.format(7)}}
    assert durations(running) == "took: cluster 5 s, submission 2 s"
    assert durations({"startTime": AT.format(0)}) == ""


@pytest.mark.usefixtures("virtual_time")
async def test_the_time_that_the_heads_image_took_is_told_and_stays_told():
    slow = Script(
        when={"ray.io/node-type": "head"}, steps=[Waits(reason="ContainerCreating"), Running(after=7)]
    )
    async with ray_world(scripts=[slow], lasts=3) as (world, _):
        await world.create(rayjob(submissionMode="HTTPMode", shutdownAfterJobFinishes=True))
        await world.pass_time(60)
        status = await world.status("j", "RayJob")
        assert await world.pods(status["rayClusterName"]) == []
        (complete,) = (one for one in status["conditions"] if one["type"] == "Complete")
        assert complete["message"].startswith("took: cluster 7 s (image 7 s), submission ")
        version = (await world.get("RayJob", "j"))["metadata"]["resourceVersion"]
        await world.pass_time(1000)
        assert (await world.get("RayJob", "j"))["metadata"]["resourceVersion"] == version
