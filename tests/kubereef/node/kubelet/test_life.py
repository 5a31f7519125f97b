"""What Pods go through on a node, as their status and events tell it."""

from itertools import pairwise

import pytest

from tests.kubereef.node.kubelet.fakes import (
    IMAGE,
    NODE,
    PODS,
    Exits,
    Runs,
    container,
    pod,
)


async def test_a_pod_runs_and_tells_everything_about_itself(bench):
    await bench.create(
        pod(container(resources={"requests": {"cpu": "100m"}}), terminationGracePeriodSeconds=5)
    )
    status = await bench.status()
    assert status["phase"] == "Running"
    assert status["podIP"] == "10.244.0.1"
    assert status["podIPs"] == [{"ip": "10.244.0.1"}]
    assert (status["hostIP"], status["hostIPs"]) == ("192.168.1.10", [{"ip": "192.168.1.10"}])
    assert status["qosClass"] == "Burstable"
    assert status["observedGeneration"] == 1
    assert status["startTime"].startswith("2030-01-01T00:00:0")
    app = await bench.container()
    assert app["image"] == IMAGE
    assert app["imageID"] == "registry.test/app@sha256:" + "1" * 64
    assert app["containerID"].startswith("kubereef://")
    assert (app["ready"], app["started"], app["restartCount"]) == (True, True, 0)
    assert "startedAt" in app["state"]["running"]
    assert app["resources"] == {"requests": {"cpu": "100m"}}
    assert app["user"]["linux"]["uid"] == 1000
    conditions = await bench.conditions()
    assert {kind: one["status"] for kind, one in conditions.items()} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert [reason for reason, _ in await bench.events()] == ["Pulled", "Created", "Started"]


async def test_events_name_the_container_and_the_node(bench):
    await bench.create(pod())
    event = (await bench.client.get("/api/v1/namespaces/default/events"))["items"][0]
    assert event["source"] == {"component": "kubelet", "host": NODE}
    assert event["involvedObject"]["fieldPath"] == "spec.containers{app}"


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        pytest.param("Never", 0, "Succeeded", 0, id="Never and success"),
        pytest.param("Never", 3, "Failed", 0, id="Never and failure"),
        pytest.param("OnFailure", 0, "Succeeded", 0, id="OnFailure and success"),
        pytest.param("OnFailure", 3, "Running", 1, id="OnFailure and failure"),
        pytest.param("Always", 0, "Running", 1, id="Always and success"),
        pytest.param("Always", 3, "Running", 1, id="Always and failure"),
    ],
)
async def test_the_restart_policy_decides_what_an_exit_means(bench, policy, code, phase, restarts):
    bench.runtime.programs["app"] = [Exits(code, after=2), Runs()]
    await bench.create(pod(restartPolicy=policy), after=5)
    assert (await bench.status())["phase"] == phase
    app = await bench.container()
    assert app["restartCount"] == restarts
    ended = app["lastState"] if restarts else app["state"]
    assert ended["terminated"]["exitCode"] == code
    assert ended["terminated"]["reason"] == ("Error" if code else "Completed")
    if phase != "Running":
        conditions = await bench.conditions()
        assert conditions["Ready"]["reason"] == ("PodCompleted" if phase == "Succeeded" else "PodFailed")
        assert conditions["PodReadyToStartContainers"]["status"] == "False"
        assert bench.images.held == 0
        assert bench.network.attached == {}


async def test_a_container_that_keeps_failing_is_restarted_with_growing_pauses(bench):
    bench.runtime.programs["app"] = [Exits(1, after=1)]
    await bench.create(pod(), after=1.6)  # ran for a second, and was started again at once
    assert (await bench.container())["restartCount"] == 1
    await bench.pass_time(1)
    app = await bench.container()
    uid = (await bench.get())["metadata"]["uid"]
    assert app["state"]["waiting"] == {
        "reason": "CrashLoopBackOff",
        "message": f"back-off 10s restarting failed container=app pod=pod_default({uid})",
    }
    assert app["lastState"]["terminated"]["exitCode"] == 1
    assert (await bench.status())["phase"] == "Running"
    text = f"Back-off restarting failed container app in pod pod_default({uid})"
    assert await bench.events("BackOff") == [("BackOff", text)]
    starts: list[float] = []
    for _ in range(1000):
        await bench.pass_time(1)
        if len(bench.runtime.started) != len(starts):
            starts.append(bench.clock.monotonic())
    pauses = [round(late - early) for early, late in pairwise(starts[1:])]
    assert pauses[1:6] == [21, 41, 81, 161, 301]


async def test_ten_quiet_minutes_make_the_pauses_short_again(bench):
    bench.runtime.programs["app"] = [Exits(1), Exits(1), Exits(1, after=620), Exits(1), Runs()]
    await bench.create(pod(), after=640)  # the third run began after 12 seconds and ended after 632
    app = await bench.container()
    assert app["restartCount"] == 3  # the fourth came at once
    assert "back-off 10s" in app["state"]["waiting"]["message"]
    await bench.pass_time(5)
    assert (await bench.container())["restartCount"] == 4


async def test_init_containers_run_one_after_the_other_before_the_rest(bench):
    bench.runtime.programs["first"] = [Exits(after=5)]
    bench.runtime.programs["second"] = [Exits(after=5)]
    await bench.create(pod(initContainers=[container("first"), container("second")]), after=2)
    assert (await bench.status())["phase"] == "Pending"
    assert (await bench.container())["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert "running" in (await bench.container("first"))["state"]
    assert (await bench.container("second"))["state"] == {"waiting": {"reason": "PodInitializing"}}
    initialized = (await bench.conditions())["Initialized"]
    assert (initialized["status"], initialized["reason"], initialized["message"]) == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [first second]",
    )
    await bench.pass_time(5)
    first = await bench.container("first")
    assert (first["ready"], first["state"]["terminated"]["reason"]) == (True, "Completed")
    assert (await bench.conditions())["Initialized"][
        "message"
    ] == "containers with incomplete status: [second]"
    await bench.pass_time(5)
    assert bench.runtime.order == ["first", "second", "app"]
    assert (await bench.status())["phase"] == "Running"
    assert (await bench.conditions())["Initialized"]["status"] == "True"


async def test_a_failed_init_container_fails_a_pod_that_never_restarts(bench):
    bench.runtime.programs["first"] = [Exits(7)]
    await bench.create(pod(initContainers=[container("first")], restartPolicy="Never"), after=3)
    assert (await bench.status())["phase"] == "Failed"
    assert bench.runtime.order == ["first"]
    assert (await bench.container())["state"] == {"waiting": {"reason": "PodInitializing"}}


async def test_a_failed_init_container_is_tried_again_where_the_policy_allows(bench):
    bench.runtime.programs["first"] = [Exits(7), Exits(0)]
    await bench.create(pod(initContainers=[container("first")]), after=4)
    assert bench.runtime.order == ["first", "first", "app"]
    assert (await bench.container("first"))["restartCount"] == 1


async def test_a_sidecar_starts_before_the_others_and_is_ready_with_them(bench):
    sidecar = container(
        "side",
        restartPolicy="Always",
        startupProbe={"httpGet": {"path": "/up", "port": 80}, "periodSeconds": 1},
    )
    bench.prober.answers["/up"] = [False, False, True]
    await bench.create(pod(initContainers=[sidecar, container("setup")]), after=1)
    bench.runtime.programs["setup"] = [Exits()]
    assert bench.runtime.order == ["side"]
    assert (await bench.container("side"))["started"] is False
    await bench.pass_time(5)
    assert bench.runtime.order == ["side", "setup", "app"]
    assert (await bench.container("side"))["ready"] is True
    assert (await bench.conditions())["Ready"]["status"] == "True"


async def test_a_sidecar_that_ends_is_restarted_whatever_the_policy(bench):
    bench.runtime.programs["side"] = [Exits(0, after=3), Runs()]
    await bench.create(
        pod(initContainers=[container("side", restartPolicy="Always")], restartPolicy="Never"), after=5
    )
    assert bench.runtime.order == ["side", "app", "side"]
    assert (await bench.status())["phase"] == "Running"


async def test_sidecars_end_last_and_their_exit_does_not_count(bench):
    bench.runtime.programs["app"] = [Exits(0, after=3)]
    bench.runtime.programs["one"] = [Runs(code=143)]
    sidecars = [container(name, restartPolicy="Always") for name in ("one", "two")]
    await bench.create(pod(initContainers=sidecars, restartPolicy="Never"), after=5)
    assert (await bench.status())["phase"] == "Succeeded"
    killed = [message for _, message in await bench.events("Killing")]
    assert killed == ["Stopping container two", "Stopping container one"]


async def test_an_oom_kill_is_told_as_such(bench):
    bench.runtime.programs["app"] = [Exits(137, after=2, oom=True)]
    await bench.create(pod(restartPolicy="Never"), after=4)
    ended = (await bench.container())["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_an_ephemeral_container_runs_once_beside_the_others(bench):
    await bench.create(pod())
    bench.runtime.programs["debug"] = [Exits(3, after=2)]
    extra = {"spec": {"ephemeralContainers": [container("debug")]}}
    await bench.client.patch(f"{PODS}/pod/ephemeralcontainers", extra, "strategic")
    await bench.pass_time(30)
    assert bench.runtime.order == ["app", "debug"]
    assert (await bench.container("debug"))["state"]["terminated"]["exitCode"] == 3
    assert (await bench.status())["phase"] == "Running"


async def test_readiness_gates_hold_a_pod_back(bench):
    await bench.create(pod(readinessGates=[{"conditionType": "example.org/open"}]))
    ready = (await bench.conditions())["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert (
        ready["message"] == 'corresponding condition of pod readiness gate "example.org/open" does not exist.'
    )
    opened = {"status": {"conditions": [{"type": "example.org/open", "status": "True"}]}}
    await bench.client.patch(f"{PODS}/pod/status", opened, "strategic")
    await bench.pass_time(1)
    conditions = await bench.conditions()
    assert conditions["Ready"]["status"] == "True"
    assert conditions["example.org/open"]["status"] == "True"


async def test_a_crash_loop_does_not_hold_up_the_other_containers(bench):
    bench.runtime.programs["bad"] = [Exits(1, after=0.1)]
    await bench.create(pod(container("bad"), container("good")), after=5)
    assert (await bench.container("good"))["ready"] is True
    assert (await bench.container("bad"))["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    ready = (await bench.conditions())["Ready"]
    assert ready["message"] == "containers with unready status: [bad]"


async def test_a_status_is_written_also_when_somebody_else_has_changed_the_pod_meanwhile(bench):
    await bench.create(pod(restartPolicy="Never"))
    worker = bench.kubelet.all()[0]
    meta = worker.record.pod["metadata"]
    worker.record.pod = {**worker.record.pod, "metadata": {**meta, "resourceVersion": "1"}}
    bench.runtime.processes["app"].end(0)
    await bench.pass_time(0.2)
    assert (await bench.status())["phase"] == "Succeeded"
