"""Which scheduler an operator works with, and what it says if it cannot."""

import pytest

from eagleray.runtime.optionkinds import OptionError
from eagleray.runtime.options import BATCH_SCHEDULERS, read_options
from eagleray.schedulers.choosing import SchedulerError, needs
from tests.eagleray.rayjob.situations import MODES, reached
from tests.eagleray.schedulers.standins import INSTALLED, SCHEDULERS, flags_of, gang_world
from tests.eagleray.world import raycluster, rayjob, rayservice

# What Pods name, and the label of a queue with the one by which it reaches them.
NAMED = {
    "volcano": "volcano",
    "yunikorn": "yunikorn",
    "scheduler-plugins": "scheduler-plugins-scheduler",
    "kai-scheduler": "kai-scheduler",
    "kubernetes-was": "default-scheduler",
}
QUEUES = {
    "volcano": ("volcano.sh/queue-name", "volcano.sh/queue-name"),
    "yunikorn": ("yunikorn.apache.org/queue", "queue"),
    "kai-scheduler": ("kai.scheduler/queue", "kai.scheduler/queue"),
}


@pytest.mark.case("OP-13")
@pytest.mark.parametrize("scheduler", BATCH_SCHEDULERS)
async def test_pods_go_to_the_scheduler_that_was_asked_for(scheduler, virtual_time):
    async with gang_world(scheduler) as (world, _):
        await world.create(raycluster())
        await world.ready()
        assert {pod["spec"]["schedulerName"] for pod in await world.pods()} == {NAMED[scheduler]}


@pytest.mark.case("OP-13")
def test_an_unknown_scheduler_is_refused_with_the_names_of_the_four():
    with pytest.raises(OptionError) as refusal:
        read_options(["--batch-scheduler=foo"], {})
    assert all(name in str(refusal.value) for name in BATCH_SCHEDULERS)


def test_all_four_are_known_and_so_is_none():
    for name in ("", *BATCH_SCHEDULERS):
        assert needs(read_options(flags_of(name), {})) is not None
    with pytest.raises(SchedulerError, match="'foo' is not known"):
        needs(read_options([], {})._replace(batch_scheduler="foo"))


@pytest.mark.case("OP-47")
@pytest.mark.parametrize("scheduler", [pytest.param(name, id=name) for name in SCHEDULERS if INSTALLED[name]])
async def test_a_scheduler_whose_kinds_are_missing_ends_the_operator(scheduler, virtual_time, caplog):
    async with gang_world(scheduler, install=False, operator=False) as (world, _):
        await world.start_operator()
        assert await world._running == 1
        world._running = None
    told = [record.message for record in caplog.records if record.levelname == "ERROR"]
    version = INSTALLED[scheduler][0]["spec"]["group"]
    assert len(told) == 1
    assert version in told[0]
    assert "not served here" in told[0]


@pytest.mark.case("OP-135")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scheduler", QUEUES)
async def test_a_queue_of_a_job_reaches_the_pods_of_its_cluster_in_every_mode(scheduler, mode, virtual_time):
    given, mark = QUEUES[scheduler]
    async with gang_world(scheduler, lasts=None) as (world, _):
        await world.create(rayjob(metadata={"labels": {given: "q"}}, submissionMode=mode))
        status = await reached(world, "Running", "Waiting")
        pods = await world.pods(status["rayClusterName"])
        assert [pod["metadata"]["labels"][mark] for pod in pods] == ["q", "q"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
async def test_a_quiet_cluster_is_not_written_to(scheduler, virtual_time):
    async with gang_world(scheduler) as (world, _):
        await world.create(raycluster(metadata={"labels": {"ray.io/gang-scheduling-enabled": "true"}}))
        await world.ready()
        await world.pass_time(5)
        world.faults.sent.clear()
        await world.pass_time(1000)
        assert world.writes() == []


@pytest.mark.case("OP-135")
@pytest.mark.parametrize("scheduler", QUEUES)
async def test_a_queue_of_a_service_reaches_the_pods_of_its_cluster(scheduler, virtual_time):
    given, mark = QUEUES[scheduler]
    async with gang_world(scheduler, kinds=("RayCluster", "RayService")) as (world, _):
        await world.create(rayservice(metadata={"labels": {given: "q"}}))
        await world.pass_time(5)
        pods = await world.list("Pod", "ray.io/is-ray-node=yes")
        assert [pod["metadata"]["labels"][mark] for pod in pods] == ["q", "q"]
        assert {pod["spec"]["schedulerName"] for pod in pods} == {scheduler}
