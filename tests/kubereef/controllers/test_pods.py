"""Reading Pods."""

import pytest

from kubereef.controllers import pods
from kubewire.times import format_time


def pod(name="p", *, phase="Running", created="2030-01-01T00:00:00Z", node="", deleted="", **status):
    metadata = {"name": name, "creationTimestamp": created}
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase, **status}}


def ready(status="True", since="2030-01-01T00:00:00Z"):
    return [{"type": "Ready", "status": status, "lastTransitionTime": since}]


def ended(*times):
    return [{"state": {"terminated": {"exitCode": 1, "finishedAt": time}}} for time in times]


@pytest.mark.parametrize(
    ("phase", "deleted", "active", "terminating", "over"),
    [
        ("Pending", "", True, False, False),
        ("Running", "", True, False, False),
        ("Running", "2030-01-01T00:01:00Z", False, True, False),
        ("Succeeded", "", False, False, True),
        ("Failed", "", False, False, True),
        ("Failed", "2030-01-01T00:01:00Z", False, False, True),
    ],
)
def test_how_far_a_pod_is(phase, deleted, active, terminating, over):
    one = pod(phase=phase, deleted=deleted)
    assert (pods.is_active(one), pods.is_terminating(one), pods.is_over(one)) == (active, terminating, over)


def test_a_pod_without_a_status_is_pending():
    assert pods.phase({"metadata": {}}) == "Pending"


@pytest.mark.parametrize(
    ("one", "time"),
    [
        pytest.param(
            pod(containerStatuses=ended("2030-01-01T00:00:05Z", "2030-01-01T00:00:09Z")),
            "2030-01-01T00:00:09Z",
            id="when its last container ended",
        ),
        pytest.param(
            pod(
                containerStatuses=[*ended("2030-01-01T00:00:05Z"), {"state": {"running": {}}}],
                conditions=ready("False", "2030-01-01T00:00:07Z"),
            ),
            "2030-01-01T00:00:07Z",
            id="else when it stopped being ready",
        ),
        pytest.param(
            pod(deleted="2030-01-01T00:01:00Z"),
            "2030-01-01T00:00:30Z",
            id="else when its deletion was asked for",
        ),
        pytest.param(
            pod(containerStatuses=[{"state": {"terminated": {"exitCode": 1}}}]),
            "2030-01-01T00:00:00Z",
            id="else when it was made",
        ),
    ],
)
def test_a_pod_ended(one, time):
    assert format_time(pods.finish_time(one)) == time


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod(), pod(node="n"), id="without a node"),
        pytest.param(pod(phase="Pending", node="n"), pod(node="n"), id="not running yet"),
        pytest.param(pod(node="n"), pod(node="n", conditions=ready()), id="not ready"),
        pytest.param(
            pod(conditions=ready(since="2030-01-01T00:00:09Z")),
            pod(conditions=ready()),
            id="ready for a shorter time",
        ),
        pytest.param(pod(containerStatuses=[{"restartCount": 3}]), pod(), id="restarted more often"),
        pytest.param(pod(created="2030-01-01T00:00:09Z"), pod(), id="younger"),
    ],
)
def test_the_pod_that_is_missed_less_goes_first(first, second):
    assert sorted([second, first], key=pods.least_missed_first) == [first, second]
