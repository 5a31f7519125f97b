"""What `kubectl get pods` says, in one word."""

import pytest

from kubereef.kinds.behaviours.pod_columns import summary


def status(name="c", ready=False, restarts=0, last="", **state):
    found = {"name": name, "ready": ready, "restartCount": restarts, "state": state}
    if last:
        found["lastState"] = {"terminated": {"exitCode": 1, "finishedAt": last}}
    return found


RUNNING = status(ready=True, running={})
DONE = status(terminated={"exitCode": 0, "reason": "Completed"})
FAILED = status("d", terminated={"exitCode": 3, "reason": "Error"})


def pod(phase="Running", deleted=False, sidecar=False, **fields):
    spec = {"containers": [{"name": "c"}, {"name": "d"}], "initContainers": [{"name": "i"}]}
    if sidecar:
        spec["initContainers"][0]["restartPolicy"] = "Always"
    metadata = {"name": "p", **({"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleted else {})}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **fields}}


@pytest.mark.parametrize(
    ("obj", "word"),
    [
        pytest.param(pod("Pending"), "Pending", id="nothing has happened"),
        pytest.param(pod(containerStatuses=[RUNNING]), "Running", id="it runs"),
        pytest.param(
            pod(containerStatuses=[status(waiting={"reason": "CrashLoopBackOff"})]),
            "CrashLoopBackOff",
            id="it waits",
        ),
        pytest.param(pod("Failed", reason="Evicted"), "Evicted", id="somebody ended it"),
        pytest.param(pod(containerStatuses=[DONE, FAILED]), "Error", id="a failure is told before a success"),
        pytest.param(
            pod(containerStatuses=[DONE, RUNNING]), "NotReady", id="one is done and another not ready"
        ),
        pytest.param(
            pod(containerStatuses=[DONE, RUNNING], conditions=[{"type": "Ready", "status": "True"}]),
            "Running",
            id="one is done and the Pod is ready",
        ),
        pytest.param(
            pod(initContainerStatuses=[status("i", running={})]), "Init:0/1", id="it is being prepared"
        ),
        pytest.param(
            pod(initContainerStatuses=[status("i", terminated={"exitCode": 2})]),
            "Init:ExitCode:2",
            id="preparing failed",
        ),
        pytest.param(
            pod(initContainerStatuses=[status("i", terminated={"exitCode": 137, "signal": 9})]),
            "Init:Signal:9",
            id="preparing was stopped",
        ),
        pytest.param(pod(containerStatuses=[RUNNING], deleted=True), "Terminating", id="it is ending"),
        pytest.param(
            pod("Succeeded", containerStatuses=[DONE], deleted=True), "Completed", id="it has ended"
        ),
        pytest.param(pod(deleted=True, reason="NodeLost"), "Unknown", id="its node is lost"),
    ],
)
def test_the_status_of_a_pod(obj, word):
    assert summary(obj).status == word


def test_sidecars_count_once_they_have_started():
    sidecar = {**status("i", ready=True, restarts=4, running={}), "started": True}
    found = summary(pod(sidecar=True, initContainerStatuses=[sidecar], containerStatuses=[RUNNING]))
    assert (found.ready, found.total, found.restarts) == (2, 3, 4)


def test_restarts_of_what_runs_once_are_forgotten_when_it_is_done():
    done = status("i", restarts=5, last="2030-01-01T00:00:00Z", terminated={"exitCode": 0})
    again = status("c", restarts=2, last="2029-01-01T00:00:00Z", running={})
    found = summary(pod(initContainerStatuses=[done], containerStatuses=[again]))
    assert (found.restarts, found.last_restart) == (2, "2029-01-01T00:00:00Z")
