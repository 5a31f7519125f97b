"""What keeps Pods from running, in words."""

import msgspec
import pytest

from eagleray.raycluster.troubles import group_troubles, trouble_of
from tests.eagleray.raycluster.pods import pod


def waiting(reason, message="", last=None):
    state = {"waiting": {"reason": reason, "message": message}}
    return [{"name": "ray", "state": state, "lastState": {"terminated": last}}]


def unscheduled(reason):
    return [{"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/3 nodes fit"}]


def ended(exit_code, reason="Error"):
    return [{"name": "ray", "state": {"terminated": {"exitCode": exit_code, "reason": reason}}}]


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        pytest.param({"containers": waiting("ErrImagePull", "404")}, "ImagePull", "404", id="image"),
        pytest.param(
            {"containers": waiting("CreateContainerConfigError", "secret x")},
            "ContainerConfig",
            "secret x",
            id="a Secret is missing",
        ),
        pytest.param(
            {"containers": waiting("CrashLoopBackOff", last={"exitCode": 2})},
            "Crash",
            "exit code 2",
            id="crash",
        ),
        pytest.param(
            {"containers": waiting("CrashLoopBackOff", last={"exitCode": 137, "reason": "OOMKilled"})},
            "OutOfMemory",
            "OOMKilled",
            id="memory",
        ),
        pytest.param({"containers": waiting("CrashLoopBackOff")}, "Crash", "CrashLoopBackOff", id="no last"),
        pytest.param(
            {"conditions": unscheduled("Unschedulable"), "phase": "Pending"},
            "Unschedulable",
            "0/3 nodes fit",
            id="no room",
        ),
        pytest.param(
            {"conditions": unscheduled("SchedulingGated"), "phase": "Pending"},
            "SchedulingGated",
            "0/3",
            id="gated",
        ),
        pytest.param({"containers": ended(5), "phase": "Failed"}, "Crash", "exit code 5", id="failed"),
        pytest.param({"containers": [], "phase": "Failed"}, "Ended", "phase is Failed", id="failed unseen"),
    ],
)
def test_the_trouble_of_a_pod(facts, kind, words):
    trouble = trouble_of(pod("a", **facts))
    assert trouble is not None
    assert trouble.kind == kind
    assert words in trouble.text
    assert trouble.help


@pytest.mark.parametrize(
    "containers", [waiting("ContainerCreating"), [{"name": "ray", "state": {"running": {}}}]]
)
def test_a_pod_that_starts_or_runs_has_no_trouble(containers):
    assert trouble_of(pod("a", containers=containers)) is None


def test_pods_of_a_group_with_the_same_trouble_are_one_sentence():
    bad = {"containers": waiting("ErrImagePull", "404")}
    pods = [
        pod("a", **bad),
        pod("b", **bad),
        pod("c", group="other", **bad),
        pod("d", terminating=True, **bad),
    ]
    first, second = group_troubles(pods)
    assert str(first).startswith("group small, 2 Pods: container ray: ErrImagePull: 404; ")
    assert str(second).startswith("group other, Pod c: ")


def test_what_has_prepared_a_pod_is_not_blamed_for_its_end():
    one = pod("p", phase="Succeeded", containers=ended(0, "Completed"))
    (ray,) = one.status.container_statuses
    prepared = msgspec.structs.replace(ray, name="wait-gcs-ready")
    status = msgspec.structs.replace(one.status, init_container_statuses=(prepared,))
    trouble = trouble_of(msgspec.structs.replace(one, status=status))
    assert trouble is not None
    assert "container ray ended" in trouble.text
