"""A whole run: what is applied, told, printed and returned, for every submission mode and every end."""

import asyncio

import pytest

from eagleray.local.applying import NotApplied
from eagleray.local.cluster import ClusterFailed
from kubereef.node.scripts import Fails, Script
from kubereef.simulation import run
from tests.eagleray.local.scene import Scene
from tests.eagleray.ray import SUBMITTER
from tests.eagleray.rayjob.situations import head_of, ray_says, ray_world, reached, reported, status_of
from tests.eagleray.world import raycluster, rayjob

MODES = ("K8sJobMode", "SidecarMode", "HTTPMode")


async def prints(world, text, name="j"):
    """Have a job print."""
    job = (await head_of(world, name)).jobs[(await status_of(world, name))["jobId"]]
    job["logs"] = job.get("logs", "") + text


async def has_failed_once(world):
    return (await status_of(world)).get("failed") == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_succeeds_is_told_printed_and_summed_up(mode):
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode=mode))
            await reported(world, "RUNNING")
            await prints(world, "one\n")
            await world.pass_time(2)
            early = scene.output
            await prints(world, "two\n")
            await ray_says(world, "SUCCEEDED")
            return await going, scene, early, await status_of(world)

    code, scene, early, status = run(live())
    assert code == 0
    assert (early, scene.output) == ("one\n", "one\ntwo\n")
    cluster = status["rayClusterName"]
    assert scene.told[0] == "rayjob.ray.io/j created"
    assert f"RayCluster {cluster} is ready: 1 head, 1 worker" in scene.told
    assert f"RayJob j is submitted as {status['jobId']}" in scene.told
    assert f"dashboard of RayCluster {cluster}: http://127.0.0.1:8265" in scene.told
    assert "RayJob j is RUNNING" in scene.told
    assert scene.told[-2].startswith("RayJob j SUCCEEDED (cluster ")
    assert scene.told[-1] == "the RayJob succeeded"
    assert len(scene.told) == len(set(scene.told)), "nothing is told twice"


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_makes_the_run_fail_and_says_why(mode):
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode=mode))
            await reported(world, "RUNNING")
            await prints(world, "Traceback\n")
            await ray_says(world, "FAILED", "ValueError: no")
            return await going, scene

    code, scene = run(live())
    assert code == 1
    assert scene.output == "Traceback\n"
    assert any(line.startswith("RayJob j: failed: AppFailed: ") for line in scene.told)
    assert any("eagleray job logs j" in line for line in scene.told[-4:])
    assert scene.told[-1] == "0 of 1 RayJob succeeded"


def test_a_job_that_was_stopped_is_no_success():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode="HTTPMode"))
            await reported(world, "RUNNING")
            await ray_says(world, "STOPPED")
            return await going, scene.told

    code, told = run(live())
    assert code == 1
    assert any(line.startswith("RayJob j STOPPED") for line in told)


def test_every_attempt_prints_and_a_retry_is_told():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode="HTTPMode", backoffLimit=1))
            await reported(world, "RUNNING")
            await prints(world, "first\n")
            await ray_says(world, "FAILED", "boom")
            await world.until(lambda: has_failed_once(world))
            await reported(world, "RUNNING")
            await prints(world, "second\n")
            await ray_says(world, "SUCCEEDED")
            return await going, scene

    code, scene = run(live())
    assert code == 0
    assert scene.output == "first\nsecond\n"
    retries = [line for line in scene.told if "attempt 1 of 2 failed" in line]
    assert len(retries) == 1
    assert "boom" in retries[0]


def test_what_ray_could_not_be_asked_for_any_more_is_read_from_the_submitter():
    async def live():
        async with ray_world(lasts=None) as (world, ray):
            scene = Scene(world)
            ray.held = True
            going = scene.start(rayjob())
            await reported(world, "RUNNING")
            await prints(world, "one\n")
            await world.pass_time(2)
            scene.kubelets.logs[SUBMITTER] = [b"Job submitted\none\n", b"two\nJob succeeded\n"]
            await ray_says(world, "SUCCEEDED")
            scene.kubelets.is_cut_off = True
            return await going, scene.output

    code, output = run(live())
    assert code == 0
    assert output == "one\ntwo\nJob succeeded\n"


def test_a_submission_by_hand_is_asked_for_with_the_address_to_use():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode="InteractiveMode"))
            await reached(world, "Waiting")
            await world.pass_time(1)
            asked = [line for line in scene.told if "waits for you to submit" in line]
            (await head_of(world)).submit("by-hand")
            await world.patch("RayJob", "j", {"spec": {"jobId": "by-hand"}})
            await reported(world, "RUNNING")
            await prints(world, "by hand\n")
            await ray_says(world, "SUCCEEDED")
            return await going, asked, scene.output

    code, (asked,), output = run(live())
    assert code == 0
    assert "ray job submit --address http://127.0.0.1:8265 --submission-id ID" in asked
    assert "kubectl patch rayjob j -n default" in asked
    assert output == "by hand\n"


def test_the_outputs_of_several_jobs_are_told_apart():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(*(rayjob(name, submissionMode="HTTPMode") for name in ("a", "b")))
            for name in ("a", "b"):
                await reported(world, "RUNNING", name)
                await prints(world, f"of {name}\nand its last", name)
            await ray_says(world, "SUCCEEDED", name="a")
            await reached(world, "Complete", name="a")
            await world.pass_time(5)
            is_open = not going.done()
            await ray_says(world, "FAILED", name="b")
            return await going, is_open, scene.output, scene.told[-1]

    code, is_open, output, last = run(live())
    assert last == "1 of 2 RayJobs succeeded"
    assert is_open, "a run goes on until all jobs have ended"
    assert code == 1
    assert sorted(output.splitlines()) == ["a | and its last", "a | of a", "b | and its last", "b | of b"]


def test_a_time_limit_ends_the_run_with_what_it_waited_for():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            job = rayjob(cluster=False, clusterSelector={"ray.io/cluster": "nowhere"})
            return await scene.run(job, timeout=30), scene.told

    code, told = run(live())
    assert code == 1
    assert "not done within 30 s (--timeout)" in told
    assert any("nowhere, which does not exist" in line for line in told)


def test_a_cluster_that_is_gone_ends_the_run():
    async def live():
        async with ray_world(lasts=None) as (world, _):

            async def fails():
                await world.clock.sleep(20)
                raise ClusterFailed("the node has ended")

            await Scene(world).run(rayjob(), fails=fails)

    with pytest.raises(ClusterFailed, match="the node has ended"):
        run(live())


def test_a_job_that_somebody_deletes_is_a_failure():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode="HTTPMode"))
            await reported(world, "RUNNING")
            await world.delete("RayJob", "j")
            return await going, scene.told

    code, told = run(live())
    assert code == 1
    assert told[-2] == "RayJob j: it was deleted before it ended"


def test_a_cluster_stays_until_it_is_ended():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            scene = Scene(world)
            scene.taken_ports.add(8265)
            going = scene.start(raycluster("mine"))
            await world.pass_time(300)
            is_open = not going.done()
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)
            return is_open, scene.told

    is_open, told = run(live())
    assert is_open
    assert "RayCluster mine is ready: 1 head, 1 worker" in told
    assert "dashboard of RayCluster mine: http://127.0.0.1:40001" in told, (
        "a port that is taken is not insisted on"
    )


def test_work_that_is_left_to_its_cluster_ends_when_all_is_up():
    async def live():
        async with ray_world(lasts=2) as (world, _):
            scene = Scene(world)
            return await scene.run(
                raycluster("mine"), rayjob(submissionMode="HTTPMode"), leave=True
            ), scene.told

    code, told = run(live())
    assert code == 0
    assert "RayCluster mine is ready: 1 head, 1 worker" in told


def test_what_was_there_before_is_not_part_of_the_run():
    async def live():
        async with ray_world(lasts=None) as (world, _):
            await world.create(raycluster("old"))
            await world.ready("old")
            scene = Scene(world)
            going = scene.start(rayjob(submissionMode="HTTPMode"))
            await reported(world, "RUNNING")
            await ray_says(world, "SUCCEEDED")
            await going
            return scene.told

    assert not any("old" in line for line in run(live()))


def test_a_manifest_that_the_cluster_refuses_ends_the_run():
    async def live():
        async with ray_world() as (world, _):
            await Scene(world).run({"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "g"}})

    with pytest.raises(NotApplied, match=r"job\.yaml:1: Gadget/g: this cluster has no kind Gadget in v1"):
        run(live())


def test_the_last_lines_of_a_crashed_head_are_shown():
    scripts = [Script({"ray.io/node-type": "head"}, steps=[Fails(after=1, exit_code=3)], repeat=True)]

    async def live():
        async with ray_world(lasts=None, scripts=scripts) as (world, _):
            scene = Scene(world)
            scene.kubelets.logs["ray"] = [b"no such option: --hed\n"]
            return await scene.run(rayjob(), timeout=120), scene.told

    code, told = run(live())
    assert code == 1
    assert any("ended with exit code 3" in line for line in told)
    assert "  no such option: --hed" in told
