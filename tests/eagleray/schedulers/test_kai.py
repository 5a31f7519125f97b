"""KAI on a running operator: Pods name it and its queue."""

import pytest

from tests.eagleray.rayjob.situations import MODES, reached
from tests.eagleray.schedulers.standins import gang_world
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

QUEUE = "kai.scheduler/queue"


@pytest.mark.case("OP-154")
async def test_pods_name_the_scheduler_and_the_queue():
    async with gang_world("kai-scheduler") as (world, _):
        await world.create(raycluster(metadata={"labels": {QUEUE: "q"}}))
        await world.ready()
        for pod in await world.pods():
            assert pod["spec"]["schedulerName"] == "kai-scheduler"
            assert pod["metadata"]["labels"][QUEUE] == "q"


@pytest.mark.case("OP-154")
@pytest.mark.parametrize("labels", [{}, {QUEUE: ""}], ids=["none", "an empty one"])
async def test_without_a_queue_there_is_a_line_in_the_log_and_pods_are_made(labels, caplog):
    async with gang_world("kai-scheduler") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}))
        await world.ready()
        for pod in await world.pods():
            assert pod["spec"]["schedulerName"] == "kai-scheduler"
            assert QUEUE not in pod["metadata"]["labels"]
    assert caplog.text.count("default/c has no label kai.scheduler/queue") == 1


@pytest.mark.case("OP-155")
@pytest.mark.parametrize("mode", MODES)
async def test_a_job_starts_in_every_mode(mode):
    async with gang_world("kai-scheduler", lasts=3) as (world, _):
        await world.create(rayjob(metadata={"labels": {QUEUE: "q"}}, submissionMode=mode))
        status = await reached(world, "Waiting" if mode == "InteractiveMode" else "Complete")
        pods = [pod["metadata"]["labels"].get(QUEUE) for pod in await world.pods(status["rayClusterName"])]
        assert pods == ["q", "q"]
        if mode == "K8sJobMode":
            template = (await world.get("Job", "j"))["spec"]["template"]
            assert template["spec"]["schedulerName"] == "kai-scheduler"
            assert template["metadata"]["labels"][QUEUE] == "q"
