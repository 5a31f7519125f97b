"""Probes, as a Pod's status and events tell of them."""

import pytest

from kubereef.node.kubelet.probing import Tally
from tests.kubereef.node.kubelet.fakes import Runs, container, pod


def http(path="/ok", **fields):
    return {"httpGet": {"path": path, "port": 8080}, "periodSeconds": 5, **fields}


@pytest.mark.parametrize(
    ("probe", "answers", "results"),
    [
        pytest.param({}, [True], [True], id="one success is enough"),
        pytest.param({}, [False, False, False], [None, None, False], id="three failures in a row count"),
        pytest.param(
            {}, [False, False, True, False], [None, None, True, None], id="a success begins the count anew"
        ),
        pytest.param(
            {"successThreshold": 2}, [True, True, False], [None, True, None], id="two successes asked for"
        ),
        pytest.param({"failureThreshold": 1}, [False], [False], id="one failure asked for"),
    ],
)
def test_a_result_holds_when_enough_answers_in_a_row_agree(probe, answers, results):
    tally = Tally(probe)
    assert [tally.add(answer) for answer in answers] == results


async def test_a_pod_is_ready_when_its_readiness_probe_passes_and_unready_when_it_fails(bench):
    bench.prober.answers["/ok"] = [False, True, False, False, False, True]
    await bench.create(pod(container(readinessProbe=http(initialDelaySeconds=2))), after=4)
    assert bench.prober.asked == [("10.244.0.1", 8080, "/ok", 1.0)]
    ready = (await bench.conditions())["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
    assert ready["message"] == "containers with unready status: [app]"
    assert (await bench.container())["started"] is True
    await bench.pass_time(5)
    assert (await bench.conditions())["Ready"]["status"] == "True"
    await bench.pass_time(15)
    assert (await bench.conditions())["Ready"]["status"] == "False"
    assert (await bench.container())["restartCount"] == 0
    await bench.pass_time(5)
    assert (await bench.conditions())["Ready"]["status"] == "True"
    text = "Readiness probe failed: HTTP probe failed with statuscode: 500"
    assert await bench.events("Unhealthy") == [("Unhealthy", text)]


async def test_a_failed_liveness_probe_restarts_the_container(bench):
    bench.prober.answers["/ok"] = [True, False, False, False, True]
    bench.runtime.programs["app"] = [Runs(code=143)]
    await bench.create(pod(container(livenessProbe=http())), after=17)
    app = await bench.container()
    assert app["restartCount"] == 1
    assert app["lastState"]["terminated"]["exitCode"] == 143
    assert ("Killing", "Container app failed liveness probe, will be restarted") in await bench.events()


async def test_a_failed_liveness_probe_fails_a_pod_that_never_restarts(bench):
    bench.prober.answers["/ok"] = [False]
    bench.runtime.programs["app"] = [Runs(code=143)]
    await bench.create(pod(container(livenessProbe=http()), restartPolicy="Never"), after=17)
    assert (await bench.status())["phase"] == "Failed"
    assert ("Killing", "Container app failed liveness probe") in await bench.events()


async def test_the_probe_may_give_less_grace_than_the_pod(bench):
    bench.prober.answers["/ok"] = [False]
    bench.runtime.programs["app"] = [Runs(code=None)]
    probe = http(failureThreshold=1, terminationGracePeriodSeconds=3)
    await bench.create(pod(container(livenessProbe=probe), terminationGracePeriodSeconds=600), after=2)
    assert bench.runtime.processes["app"].signals == ["SIGTERM"]
    await bench.pass_time(2)
    assert (await bench.container())["restartCount"] == 1


async def test_until_the_startup_probe_passes_the_others_do_not_ask(bench):
    bench.prober.answers["/start"] = [False, False, True]
    fields = {
        "startupProbe": http("/start"),
        "livenessProbe": http("/live"),
        "readinessProbe": http("/ready"),
    }
    await bench.create(pod(container(**fields)), after=8)
    assert {path for _, _, path, _ in bench.prober.asked} == {"/start"}
    app = await bench.container()
    assert (app["started"], app["ready"]) == (False, False)
    await bench.pass_time(5)
    assert {path for _, _, path, _ in bench.prober.asked} == {"/start", "/live", "/ready"}
    app = await bench.container()
    assert (app["started"], app["ready"]) == (True, True)


async def test_a_startup_probe_that_never_passes_restarts_the_container(bench):
    bench.prober.answers["/start"] = [False]
    await bench.create(pod(container(startupProbe=http("/start", failureThreshold=2))), after=7)
    assert (await bench.container())["restartCount"] == 1
    assert ("Killing", "Container app failed startup probe, will be restarted") in await bench.events()


async def test_a_port_may_be_named(bench):
    probe = {"tcpSocket": {"port": "web"}}
    ports = [{"name": "web", "containerPort": 9000}]
    await bench.create(pod(container(readinessProbe=probe, ports=ports)))
    assert bench.prober.asked == [("10.244.0.1", 9000, None, 1.0)]


async def test_a_port_that_nobody_named_is_an_error_of_the_probe(bench):
    await bench.create(pod(container(readinessProbe={"tcpSocket": {"port": "web"}})))
    assert await bench.events("Unhealthy") == [
        ("Unhealthy", "Readiness probe errored: couldn't find port: web")
    ]


@pytest.mark.parametrize(
    ("command", "is_ready", "text"),
    [
        pytest.param(["true"], True, "", id="passes with exit code 0"),
        pytest.param(["false"], False, "Readiness probe failed: no", id="fails with its output"),
        pytest.param(
            ["sleep", "3"],
            False,
            'Readiness probe failed: command timed out: "sleep 3" timed out after 1s',
            id="fails when it takes too long",
        ),
        pytest.param(
            ["nope"],
            False,
            'Readiness probe errored: exec: "nope": executable file not found in $PATH',
            id="errs when it cannot run",
        ),
    ],
)
async def test_a_command_as_probe(bench, command, is_ready, text):
    await bench.create(pod(container(readinessProbe={"exec": {"command": command}})), after=4)
    assert (await bench.container())["ready"] is is_ready
    assert await bench.events("Unhealthy") == ([("Unhealthy", text)] if text else [])


async def test_a_pod_that_is_being_deleted_is_not_restarted_by_its_probes(bench):
    bench.runtime.programs["app"] = [Runs(code=None)]
    bench.prober.answers["/ok"] = [True, False]
    await bench.create(pod(container(livenessProbe=http()), terminationGracePeriodSeconds=100))
    await bench.client.delete("/api/v1/namespaces/default/pods/pod")
    await bench.pass_time(60)
    assert len(bench.runtime.started) == 1
    assert await bench.events("Unhealthy") == []
