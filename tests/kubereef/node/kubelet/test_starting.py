"""How containers come to run, and what keeps them from it."""

import signal

import pytest

from kubereef.node.images import Progress
from tests.kubereef.node.kubelet.fakes import (
    IMAGE,
    PODS,
    Cannot,
    Exits,
    PullFails,
    Runs,
    container,
    pod,
)


@pytest.mark.parametrize(
    ("script", "fields", "message"),
    [
        pytest.param(Exits(0, message="all done"), {}, "all done", id="from the file"),
        pytest.param(Exits(1, output=b"why\n"), {}, "", id="not from the log unless asked"),
        pytest.param(
            Exits(1, output=b"one\nwhy\n"),
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            "one\nwhy\n",
            id="from the log of a failure",
        ),
        pytest.param(
            Exits(0, output=b"why\n"),
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            "",
            id="not from the log of a success",
        ),
    ],
)
async def test_the_termination_message(bench, script, fields, message):
    bench.runtime.programs["app"] = [script]
    await bench.create(pod(container(**fields), restartPolicy="Never"), after=3)
    assert (await bench.container())["state"]["terminated"].get("message", "") == message


async def test_a_command_that_cannot_run_is_an_error_with_its_exit_code(bench):
    bench.runtime.programs["app"] = [Cannot()]
    await bench.create(pod(restartPolicy="Never"), after=2)
    assert (await bench.status())["phase"] == "Failed"
    ended = (await bench.container())["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (127, "ContainerCannotRun")
    assert ended["message"] == 'exec: "nope": executable file not found in $PATH'
    assert ended["startedAt"] == "1970-01-01T00:00:00Z"
    assert ("Failed", f"Error: {ended['message']}") in await bench.events()


async def test_a_command_that_cannot_run_is_tried_again_where_the_policy_allows(bench):
    bench.runtime.programs["app"] = [Cannot(), Cannot(), Runs()]
    await bench.create(pod(), after=2)
    app = await bench.container()
    assert app["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert app["lastState"]["terminated"]["exitCode"] == 127
    await bench.pass_time(10)
    assert (await bench.container())["restartCount"] == 2
    assert "running" in (await bench.container())["state"]


async def test_an_image_that_cannot_be_had_is_waited_for_with_growing_pauses(bench):
    bench.images.failures[IMAGE] = PullFails("no recipe makes it")
    await bench.create(pod(), after=1)
    assert (await bench.container())["state"]["waiting"] == {
        "reason": "ErrImagePull",
        "message": "no recipe makes it",
    }
    await bench.pass_time(3)
    waiting = (await bench.container())["state"]["waiting"]
    assert waiting["reason"] == "ImagePullBackOff"
    assert waiting["message"] == f'Back-off pulling image "{IMAGE}": ErrImagePull: no recipe makes it'
    assert (await bench.status())["phase"] == "Pending"
    await bench.pass_time(100)
    assert len(bench.images.pulls) == 4  # after 10, 20 and 40 seconds
    bench.images.failures.clear()
    await bench.pass_time(80)
    assert (await bench.status())["phase"] == "Running"
    told = await bench.events("Failed", "BackOff")
    assert ("Failed", f'Failed to pull image "{IMAGE}": no recipe makes it') in told
    assert ("Failed", "Error: ErrImagePull") in told
    assert ("BackOff", f'Back-off pulling image "{IMAGE}"') in told
    assert ("Failed", "Error: ImagePullBackOff") in told


async def test_a_pull_tells_how_far_it_is(bench):
    async def pulling(on_progress):
        on_progress(Progress("waiting"))
        on_progress(Progress("downloading", "ray.whl", 1, 4))
        await bench.clock.sleep(3)
        on_progress(Progress("downloading", "ray.whl", 2, 4))
        await bench.clock.sleep(30)
        on_progress(Progress("downloading", "ray.whl", 3, 4))

    bench.images.slow[IMAGE] = pulling
    await bench.create(pod(), after=40)
    assert [message for _, message in await bench.events("Pulling", "Pulled")] == [
        f'Pulling image "{IMAGE}"',
        f'Pulling image "{IMAGE}": downloading ray.whl (25%)',
        f'Pulling image "{IMAGE}": downloading ray.whl (75%)',
        f'Successfully pulled image "{IMAGE}" in 33s (33s including waiting). Image size: 42 bytes.',
    ]


async def test_a_container_starts_only_after_the_hook_of_the_one_before(bench):
    first = container("first", lifecycle={"postStart": {"exec": {"command": ["sleep", "5"]}}})
    await bench.create(pod(first, container()), after=3)
    assert bench.runtime.order == ["first"]
    assert (await bench.container("first"))["state"] == {"waiting": {"reason": "ContainerCreating"}}
    await bench.pass_time(3)
    assert bench.runtime.order == ["first", "app"]
    assert (await bench.status())["phase"] == "Running"


async def test_a_failed_post_start_hook_ends_the_container(bench):
    hooked = container(lifecycle={"postStart": {"exec": {"command": ["false"]}}})
    await bench.create(pod(hooked, restartPolicy="Never"), after=2)
    assert (await bench.status())["phase"] == "Failed"
    assert ("FailedPostStartHook", "PostStartHook failed") in await bench.events()
    assert (await bench.container())["state"]["terminated"]["exitCode"] == 137


async def test_a_new_image_restarts_the_container(bench):
    await bench.create(pod())
    await bench.client.patch(
        f"{PODS}/pod", {"spec": {"containers": [container(image="registry.test/app:2")]}}
    )
    await bench.pass_time(2)
    assert [name for name, _ in bench.images.pulls] == [IMAGE, "registry.test/app:2"]
    assert (await bench.container())["image"] == "registry.test/app:2"
    assert ("Killing", "Container app definition changed, will be restarted") in await bench.events()


async def resize(bench, resources):
    patch = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
    await bench.client.patch(f"{PODS}/pod/resize", patch, "strategic")
    await bench.pass_time(1)


def same(resource, amount):
    return {"requests": {resource: amount}, "limits": {resource: amount}}


@pytest.mark.parametrize("cpus", [pytest.param("4", id="more"), pytest.param("1", id="less")])
async def test_a_resize_changes_the_limits_of_a_running_container(bench, cpus):
    await bench.create(pod(container(resources=same("cpu", "2"))))
    await resize(bench, same("cpu", cpus))
    # The Pod has room for its container all the time: the kernel refuses anything else.
    at_most, wanted = max(2.0, float(cpus)), float(cpus)
    seen = [(name, limits.cpu_cores) for name, limits in bench.runtime.resized]
    assert seen == [("", at_most), ("app", wanted), ("", wanted)]
    app = await bench.container()
    assert (app["resources"], app["allocatedResources"]) == (same("cpu", cpus), {"cpu": cpus})
    assert app["restartCount"] == 0


async def resizing(bench):
    conditions = (await bench.status())["conditions"]
    return next((one["message"] for one in conditions if one["type"] == "PodResizeInProgress"), None)


async def test_a_resize_that_the_kernel_refuses_is_told_and_tried_again(bench):
    await bench.create(pod(container(resources=same("cpu", "1"))))
    bench.runtime.resize_refusal = "not now"
    await resize(bench, same("cpu", "2"))
    assert await resizing(bench) == "resources of app cannot be changed: not now"
    assert ("ResizeError", "resources of app cannot be changed: not now") in await bench.events()
    assert (await bench.container())["resources"] == same("cpu", "1")
    bench.runtime.resize_refusal = ""
    await bench.pass_time(12)
    assert await resizing(bench) is None
    assert (await bench.container())["resources"] == same("cpu", "2")


async def test_memory_that_a_container_uses_is_not_taken_from_it(bench):
    await bench.create(pod(container(resources=same("memory", "2Gi"))))
    bench.runtime.memory["app"] = 2**30 + 1
    await resize(bench, same("memory", "1Gi"))
    assert await resizing(bench) == (
        "resources of app cannot be changed: app uses 1073741825 bytes of memory and is to have 1073741824"
    )
    assert (await bench.container())["resources"] == same("memory", "2Gi")


async def test_a_resize_restarts_a_container_that_asks_for_it(bench):
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    sized = container(
        resources={"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}, resizePolicy=policy
    )
    await bench.create(pod(sized))
    await resize(bench, same("memory", "2Gi"))
    await bench.pass_time(1)
    assert (await bench.container())["restartCount"] == 1
    assert bench.runtime.started[-1][2].memory == 2**31


async def test_what_goes_wrong_unforeseen_is_told_and_tried_again_later(bench, caplog):
    async def breaks(*_arguments):
        raise OSError("the disk is full")

    works, bench.runtime.start = bench.runtime.start, breaks
    await bench.create(pod())
    waiting = (await bench.container())["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerError", "message": "the disk is full"}
    assert bench.images.held == 0
    bench.runtime.start = works
    await bench.pass_time(11)
    assert (await bench.status())["phase"] == "Running"


async def test_a_sandbox_that_cannot_be_made_is_told_and_tried_again(bench):
    async def refuses(uid, namespace):
        raise OSError("no address is free")

    works, bench.network.attach = bench.network.attach, refuses
    await bench.create(pod(), after=3)
    assert (await bench.container())["state"] == {"waiting": {"reason": "ContainerCreating"}}
    text = "Failed to create pod sandbox: no address is free"
    assert await bench.events("FailedCreatePodSandBox") == [("FailedCreatePodSandBox", text)]
    assert not any(sandbox.is_open for sandbox in bench.runtime.sandboxes)
    bench.network.attach = works
    await bench.pass_time(10)
    assert (await bench.status())["phase"] == "Running"


def kill_sandbox(bench):
    """Have the namespaces of the Pod end, as they do with the process that keeps them."""
    bench.runtime.sandboxes[-1].killed.set()
    for process in bench.runtime.processes.values():
        process.signal(signal.SIGKILL)


async def test_a_sandbox_that_was_killed_is_made_anew_and_everything_in_it_starts_again(bench):
    bench.runtime.programs["init"] = [Runs(code=0, ends=0.1)]
    await bench.create(pod(initContainers=[container("init")]))
    assert bench.runtime.order == ["init", "app"]
    kill_sandbox(bench)
    await bench.pass_time(15)
    assert bench.runtime.order == ["init", "app", "init", "app"]
    assert [one.is_open for one in bench.runtime.sandboxes] == [False, True]
    changed = ("SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
    assert await bench.events("SandboxChanged") == [changed]
    app = await bench.container()
    assert (app["restartCount"], app["lastState"]["terminated"]["exitCode"]) == (1, 137)
    assert (await bench.status())["phase"] == "Running"


async def test_a_sandbox_that_was_killed_fails_a_pod_that_never_restarts(bench):
    await bench.create(pod(restartPolicy="Never"))
    kill_sandbox(bench)
    await bench.pass_time(5)
    assert (await bench.status())["phase"] == "Failed"
    assert [one.is_open for one in bench.runtime.sandboxes] == [False]


async def test_an_image_that_cannot_be_had_does_not_hold_up_the_other_containers(bench):
    bench.images.failures["bad:1"] = PullFails("none")
    await bench.create(pod(container("bad", image="bad:1"), container("good")), after=5)
    assert (await bench.container("good"))["ready"] is True
    assert (await bench.status())["phase"] == "Pending"
