"""How Pods end: deleted, late, over, or with their node."""

from types import SimpleNamespace

from kubewire import errors
from tests.kubereef.node.kubelet.fakes import (
    IMAGE,
    PODS,
    Exits,
    Runs,
    container,
    pod,
)

TOKEN = {"serviceAccountToken": {"path": "token"}}


async def test_a_deleted_pod_gets_its_grace_and_then_goes(bench):
    bench.runtime.programs["app"] = [Runs(code=0, after=7)]
    await bench.create(pod(terminationGracePeriodSeconds=20))
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(6)
    assert not await bench.is_gone()
    await bench.pass_time(2)
    assert await bench.is_gone()
    assert bench.runtime.processes["app"].signals == ["SIGTERM"]
    assert await bench.events("Killing") == [("Killing", "Stopping container app")]
    assert list((bench.directory / "pods").iterdir()) == []
    assert not bench.runtime.sandboxes[0].is_open


async def test_a_container_that_ignores_the_signal_is_killed_at_the_end_of_the_grace_period(bench):
    bench.runtime.programs["app"] = [Runs(code=None)]
    await bench.create(pod(terminationGracePeriodSeconds=20))
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(19)
    assert not await bench.is_gone()
    await bench.pass_time(2)
    assert await bench.is_gone()
    assert bench.runtime.processes["app"].signals == ["SIGTERM", "SIGKILL"]


async def test_a_second_deletion_with_a_shorter_grace_is_heeded(bench):
    bench.runtime.programs["app"] = [Runs(code=None)]
    await bench.create(pod(terminationGracePeriodSeconds=600))
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(5)
    await bench.client.delete(f"{PODS}/pod", {"gracePeriodSeconds": 3})
    await bench.pass_time(5)
    assert await bench.is_gone()


async def test_a_pod_deleted_by_force_ends_on_the_node_too(bench):
    bench.runtime.programs["app"] = [Runs(code=None)]
    await bench.create(pod())
    await bench.client.delete(f"{PODS}/pod", {"gracePeriodSeconds": 0})
    await bench.pass_time(3)
    assert bench.runtime.processes["app"].signals[-1] == "SIGKILL"
    assert bench.kubelet.all() == []


async def test_a_pod_deleted_while_its_image_is_pulled_goes_at_once(bench):
    async def for_long(on_progress):
        await bench.clock.sleep(1000)

    bench.images.slow[IMAGE] = for_long
    await bench.create(pod())
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(1)
    assert await bench.is_gone()
    assert bench.images.held == 0


async def test_the_deadline_fails_a_pod_that_is_still_active(bench):
    await bench.create(pod(activeDeadlineSeconds=60), after=59)
    assert (await bench.status())["phase"] == "Running"
    await bench.pass_time(3)
    status = await bench.status()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"
    assert bench.runtime.processes["app"].signals == ["SIGTERM"]


async def test_the_pre_stop_hook_comes_before_the_signal_and_counts_towards_the_grace_period(bench):
    bench.runtime.programs["app"] = [Runs(code=None)]
    hooked = container(lifecycle={"preStop": {"sleep": {"seconds": 8}}})
    await bench.create(pod(hooked, terminationGracePeriodSeconds=20))
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(7)
    assert bench.runtime.processes["app"].signals == []
    await bench.pass_time(2)
    assert bench.runtime.processes["app"].signals == ["SIGTERM"]
    await bench.pass_time(12)
    assert await bench.is_gone()


async def test_a_failed_pre_stop_hook_is_told_and_the_end_goes_on(bench):
    hooked = container(lifecycle={"preStop": {"exec": {"command": ["false"]}}})
    await bench.create(pod(hooked))
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(1)
    assert ("FailedPreStopHook", "PreStopHook failed") in await bench.events()
    assert await bench.is_gone()


async def test_pods_of_kept_state_are_restarted_by_their_policy(bench):
    bench.runtime.programs["setup"] = [Exits(0, after=1)]
    await bench.create(pod(name="always", initContainers=[container("setup")]), after=2)
    await bench.create(pod(name="never", restartPolicy="Never"))
    before = bench.runtime.order
    await bench.restart()
    await bench.pass_time(3)
    assert bench.runtime.order == [*before, "setup", "app"]
    assert (await bench.status("always"))["phase"] == "Running"
    app = await bench.container(pod="always")
    assert (app["restartCount"], app["lastState"]["terminated"]["reason"]) == (1, "ContainerStatusUnknown")
    assert (await bench.status("always"))["podIP"] == bench.network.attached[
        (await bench.get("always"))["metadata"]["uid"]
    ]
    assert (await bench.status("never"))["phase"] == "Failed"
    ended = (await bench.container(pod="never"))["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")


async def test_a_pod_that_is_over_is_not_begun_again_by_a_restart(bench):
    bench.runtime.programs["app"] = [Exits(0)]
    await bench.create(pod(restartPolicy="Never"), after=3)
    await bench.restart()
    await bench.pass_time(3)
    assert bench.runtime.order == ["app"]
    assert (await bench.status())["phase"] == "Succeeded"
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(1)
    assert await bench.is_gone()


async def test_a_pod_that_vanishes_while_it_ends_leaves_nothing(bench):
    bench.runtime.programs["app"] = [Exits(0, after=1)]
    await bench.create(pod(restartPolicy="Never"), after=1.49)
    await bench.client.delete(f"{PODS}/pod", {"gracePeriodSeconds": 0})
    await bench.pass_time(2)
    assert list((bench.directory / "pods").iterdir()) == []
    assert bench.kubelet.all() == []


async def test_a_node_that_stops_does_not_wait_for_a_server_that_is_away(bench):
    await bench.create(pod(name="over", restartPolicy="Never"))

    async def refuses(url, body, kind="merge"):
        raise errors.service_unavailable("away")

    bench.kubelet.all()[0]._reporter._client = SimpleNamespace(patch=refuses)
    bench.runtime.processes["app"].end(0)
    await bench.pass_time(5)
    began = bench.clock.monotonic()
    await bench.stop(1.0)
    assert bench.clock.monotonic() - began < 2.0
    assert (await bench.status("over"))["phase"] == "Running"


async def test_init_containers_of_a_kept_pod_run_again_though_the_server_has_them_as_done(bench):
    bench.runtime.programs["setup"] = [Exits(0, after=3)]
    await bench.create(pod(initContainers=[container("setup")], restartPolicy="OnFailure"), after=5)
    await bench.restart()
    await bench.pass_time(1)
    assert bench.runtime.order == ["setup", "app", "setup"]
    assert (await bench.container("setup"))["state"]["terminated"]["reason"] == "Completed"
    assert (await bench.container())["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    await bench.pass_time(5)
    assert (await bench.container())["restartCount"] == 1
    assert (await bench.status())["phase"] == "Running"


async def test_a_container_may_choose_the_signal_that_ends_it(bench):
    await bench.create(pod())
    manifest = await bench.get()  # our own API server does not take the field yet, others do
    manifest["spec"]["containers"][0]["lifecycle"] = {"stopSignal": "SIGUSR1"}
    manifest["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:31Z", "deletionGracePeriodSeconds": 30}
    bench.kubelet.apply("MODIFIED", manifest, 0)
    await bench.pass_time(1)
    assert bench.runtime.processes["app"].signals[0] == "SIGUSR1"


async def test_a_hook_that_takes_all_the_grace_leaves_two_seconds_for_the_signal(bench):
    bench.runtime.programs["app"] = [Runs(code=0, after=1)]
    hooked = container(lifecycle={"preStop": {"sleep": {"seconds": 10}}})
    await bench.create(pod(hooked, terminationGracePeriodSeconds=10))
    await bench.client.delete(f"{PODS}/pod")
    await bench.pass_time(12)
    assert bench.runtime.processes["app"].signals == ["SIGTERM"]
    assert await bench.is_gone()


async def test_a_pod_that_is_over_keeps_its_logs_and_nothing_else(bench):
    bench.runtime.programs["app"] = [Exits(0, output=b"done\n")]
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "t", "projected": {"sources": [TOKEN]}}]
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "t", "mountPath": "/t"}]
    await bench.create(pod(container(volumeMounts=mounts), volumes=volumes, restartPolicy="Never"), after=3)
    life = bench.kubelet.find("default", "pod").container("app")
    assert "done" in life.log_file().read_text()
    uid = (await bench.get())["metadata"]["uid"]
    assert not (bench.directory / "pods" / uid / "volumes").exists()
    assert list((bench.directory / "memory").iterdir()) == []


async def test_the_log_of_the_run_before_is_kept(bench):
    bench.runtime.programs["app"] = [
        Exits(1, output=b"first\n"),
        Exits(1, output=b"second\n"),
        Runs(output=b"third\n"),
    ]
    await bench.create(pod(), after=1.7)
    life = bench.kubelet.find("default", "pod").container("app")
    assert "second" in life.log_file().read_text()
    assert "first" in life.log_file(previous=True).read_text()
    await bench.pass_time(2)  # between two runs the last one is both
    assert "second" in life.log_file().read_text()
    assert "second" in life.log_file(previous=True).read_text()
    await bench.pass_time(10)
    assert "third" in life.log_file().read_text()
    assert "second" in life.log_file(previous=True).read_text()
    assert len(list(life.log_file().parent.iterdir())) == 2


async def test_a_container_that_ends_before_its_hook_does_is_over_once(bench):
    bench.runtime.programs["app"] = [Exits(0, after=0.1)]
    hooked = container(lifecycle={"postStart": {"exec": {"command": ["sleep", "1"]}}})
    await bench.create(pod(hooked, restartPolicy="Never"), after=3)
    assert (await bench.status())["phase"] == "Succeeded"
    assert (await bench.container())["state"]["terminated"]["exitCode"] == 0
    assert bench.images.held == 0


async def test_a_pod_deleted_while_its_sandbox_is_made_leaves_nothing_of_it(bench):
    async def takes_long(uid, namespace):
        await bench.clock.sleep(1000)

    bench.network.attach = takes_long
    await bench.create(pod())
    assert bench.runtime.sandboxes[0].is_open
    await bench.client.delete(f"{PODS}/pod")
    await bench.client.delete(f"{PODS}/pod", {"gracePeriodSeconds": 5})
    await bench.pass_time(1)
    assert await bench.is_gone()
    assert not bench.runtime.sandboxes[0].is_open
