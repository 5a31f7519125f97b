"""The status of a RayCluster."""

from datetime import UTC, datetime

import pytest

from eagleray.raycluster.status import Failure, Observed, all_running, needs_write, next_status, stamped
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.raycluster.pods import head, pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOON = "2026-01-02T03:04:05Z"
THREE = [pod("a"), pod("b"), pod("c")]
GROUP = {"replicas": 3, "minReplicas": 3, "maxReplicas": 3}


def service(name="c-head-svc", address="None", **ports):
    given = ports or {"dashboard": 8265}
    entries = [{"name": port, "port": number, "targetPort": number} for port, number in given.items()]
    return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": entries}}


def computed(pods, *, old=None, services=(), failure=None, gate=True, workers=None, **spec):
    built = cluster(workers=[GROUP] if workers is None else workers, metadata={"generation": 2}, **spec)
    built.obj["status"] = old or {}
    return next_status(built, Observed(pods, services, NOW, failure, gate))


def condition(status, kind):
    return next((entry for entry in status.get("conditions", []) if entry["type"] == kind), None)


def test_a_cluster_with_all_pods_is_ready():
    status = computed([head(), *THREE])
    assert status["state"] == "ready"
    assert status["stateTransitionTimes"] == {"ready": NOON}
    assert stamped(status, NOW)["lastUpdateTime"] == NOON
    assert (status["readyWorkerReplicas"], status["availableWorkerReplicas"]) == (3, 3)
    assert status["observedGeneration"] == 2


def test_a_head_alone_is_no_state():
    status = computed([head()])
    assert "state" not in status
    assert "stateTransitionTimes" not in status


def test_a_failed_step_keeps_a_cluster_from_becoming_ready_but_not_from_staying_so():
    failed = Failure("boom")
    assert "state" not in computed([head(), *THREE], failure=failed)
    ready = computed([head(), *THREE])
    again = computed([head(), *THREE], old=ready, failure=failed)
    assert again["state"] == "ready"
    assert again["stateTransitionTimes"] == ready["stateTransitionTimes"]


def test_a_suspended_group_is_not_waited_for():
    suspended = {**GROUP, "suspend": True}
    status = computed([head()], workers=[suspended])
    assert status["state"] == "ready"
    assert "desiredWorkerReplicas" not in status


def test_a_failed_pod_step_is_a_condition_where_conditions_are_on():
    failed = Failure("quota exceeded", "FailedCreateHeadPod")
    assert condition(computed([], failure=failed, gate=False), "ReplicaFailure") is None
    found = condition(computed([], failure=failed), "ReplicaFailure")
    assert found == {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreateHeadPod",
        "message": "FailedCreateHeadPod\nquota exceeded",
        "lastTransitionTime": NOON,
    }
    old = computed([], failure=failed)
    assert condition(computed([], old=old, failure=Failure("other")), "ReplicaFailure") == found
    assert condition(computed([], old=old), "ReplicaFailure") is None


def test_a_cluster_that_was_provisioned_stays_so():
    before = computed([head(), pod("a", ready="False")])
    assert condition(before, "RayClusterProvisioned")["status"] == "False"
    after = computed([head(), *THREE], old=before)
    assert condition(after, "RayClusterProvisioned")["reason"] == "AllPodRunningAndReadyFirstTime"
    later = computed([head(ready="False")], old=after)
    assert condition(later, "RayClusterProvisioned")["status"] == "True"


def test_heads_that_are_missing_or_too_many_are_told():
    assert condition(computed([]), "HeadPodReady")["reason"] == "HeadPodNotFound"
    two = condition(computed([head("one"), head("two")]), "HeadPodReady")
    assert (two["status"], two["reason"]) == ("False", "MultipleHeadPods")
    assert "one, two" in two["message"]


def test_the_heads_service_is_told_if_there_is_one():
    assert computed([head()], services=[])["head"] == {"podName": "head", "podIP": "10.0.0.1"}
    assert "serviceName" not in computed([head()], services=[service("x"), service("y")])["head"]
    headless = computed([head()], services=[service()])["head"]
    assert (headless["serviceName"], headless["serviceIP"]) == ("c-head-svc", "10.0.0.1")
    assert computed([], services=[service(address="10.9.9.9")])["head"]["serviceIP"] == "10.9.9.9"


NOT_READY = {
    "type": "Ready",
    "status": "False",
    "reason": "ContainersNotReady",
    "message": "not ready: [ray]",
}


def test_the_first_container_that_waits_tells_why_the_head_is_not_ready():
    waiting = [
        {"name": "ray", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
        {"name": "other", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "x"}}},
    ]
    found = condition(computed([head(conditions=[NOT_READY], containers=waiting)]), "HeadPodReady")
    assert found["reason"] == "ImagePullBackOff"
    assert found["message"] == "not ready: [ray]; ray: no such image"


def test_a_head_without_a_ready_condition_is_unknown():
    found = condition(computed([head(ready=None)]), "HeadPodReady")
    assert (found["status"], found["reason"]) == ("False", "Unknown")


def test_endpoints_are_those_of_the_head_service():
    usual = {"client": 10001, "dashboard": 8265, "metrics": 8080, "gcs-server": 6379, "serve": 8000}
    assert computed([], services=[service(**usual)])["endpoints"] == {k: str(v) for k, v in usual.items()}


def test_a_status_is_written_only_when_something_but_its_time_differs():
    status = computed([head()])
    assert not needs_write({**status, "lastUpdateTime": "2020-01-01T00:00:00Z"}, status)
    assert needs_write({**status, "observedGeneration": 1}, status)


@pytest.mark.parametrize(
    ("pods", "running"),
    [
        pytest.param([], False, id="no Pods"),
        pytest.param([head(), pod("a", phase="Pending")], False, id="one pending"),
        pytest.param([head(), pod("a", ready="False")], False, id="one not ready"),
        pytest.param([head(), pod("a", ready=None)], True, id="one that says nothing"),
    ],
)
def test_all_running(pods, running):
    assert all_running(pods) is running


def test_suspension_goes_through_its_conditions():
    asked = computed([head()], suspend=True)
    assert condition(asked, "RayClusterSuspending")["status"] == "True"
    ignored = computed([head()], old=asked, suspend=False)
    assert condition(ignored, "RayClusterSuspending")["status"] == "True"
    done = computed([], old=asked, suspend=True)
    assert condition(done, "RayClusterSuspended")["status"] == "True"
    assert condition(done, "RayClusterSuspending")["status"] == "False"
    assert condition(done, "RayClusterProvisioned")["message"] == "RayCluster has been suspended"
    assert done["state"] == "suspended"
    assert done["head"] == {}
    resumed = computed([], old=done)
    assert condition(resumed, "RayClusterSuspended")["status"] == "False"


def test_the_order_of_conditions_is_that_of_their_first_appearance():
    kinds = [entry["type"] for entry in computed([head()])["conditions"]]
    assert kinds == ["HeadPodReady", "RayClusterProvisioned", "RayClusterSuspended", "RayClusterSuspending"]


def test_a_transition_time_moves_only_with_the_status():
    old = computed([head(ready="False")])
    for entry in old["conditions"]:
        entry["lastTransitionTime"] = "earlier"
    after = computed([head()], old=old)
    assert condition(after, "HeadPodReady")["lastTransitionTime"] == NOON
    assert condition(after, "RayClusterSuspended")["lastTransitionTime"] == "earlier"


def test_empty_values_are_left_out_but_for_those_that_are_always_there():
    status = computed([], workers=[], gate=False)
    assert status == {
        "desiredCPU": "0",
        "desiredMemory": "0",
        "desiredGPU": "0",
        "desiredTPU": "0",
        "observedGeneration": 2,
        "head": {},
    }
