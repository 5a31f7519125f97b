"""Pods on nodes that will never report their end."""

from typing import Any

import pytest

from eagleray.raycluster.lostnodes import PATIENCE, LostNodes
from eagleray.raycluster.snapshot import Snapshot
from kubewire import errors
from kubewire.sources import ManualClock
from kubewire.times import parse_time
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.raycluster.pods import head, pod

DELETED = parse_time("2026-01-01T01:00:00Z")  # when a terminating Pod of tests should have ended
TOLERANT = {"gcsFaultToleranceOptions": {"redisAddress": "r"}}


class Nodes:
    """A client that answers for a node, and counts how often it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    async def get(self, _resource, _namespace, _name):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"status": {"conditions": [{"type": "Ready", "status": self.answer}]}}


def lost_nodes(nodes: Any, time) -> LostNodes:
    return LostNodes(nodes, time)


def clock(after):
    made = ManualClock(DELETED)
    made.advance(after)
    return made


GONE = errors.NotFound("no such node")


@pytest.mark.parametrize(
    ("answer", "after", "one", "spec", "lost"),
    [
        pytest.param("Unknown", PATIENCE, pod("a", terminating=True), {}, True, id="its node is silent"),
        pytest.param(GONE, PATIENCE, pod("a", terminating=True), {}, True, id="its node is gone"),
        pytest.param("True", PATIENCE, pod("a", terminating=True), {}, False, id="its node lives"),
        pytest.param("Unknown", PATIENCE - 1, pod("a", terminating=True), {}, False, id="it has time left"),
        pytest.param("Unknown", PATIENCE, pod("a"), {}, False, id="nobody has deleted it"),
        pytest.param("Unknown", PATIENCE, pod("a", terminating=True, node=""), {}, False, id="on no node"),
        pytest.param(
            errors.Forbidden("no"),
            PATIENCE,
            pod("a", terminating=True),
            {},
            False,
            id="nodes are not ours to see",
        ),
        pytest.param("Unknown", PATIENCE, head(terminating=True), {}, True, id="a head that shares nothing"),
        pytest.param(
            "Unknown",
            PATIENCE,
            head(terminating=True),
            TOLERANT,
            False,
            id="a head that may still write to Redis",
        ),
        pytest.param(GONE, PATIENCE, head(terminating=True), TOLERANT, True, id="a head whose node is gone"),
        pytest.param(
            "Unknown",
            PATIENCE,
            head(terminating=True),
            {**TOLERANT, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            True,
            id="a head that gets no successor",
        ),
    ],
)
async def test_a_pod_is_lost(answer, after, one, spec, lost):
    found = lost_nodes(Nodes(answer), clock(after))
    assert list(await found.among(Snapshot(cluster(**spec), [one]))) == ([one] if lost else [])


async def test_a_node_is_asked_about_once_for_all_its_pods_and_again_later():
    nodes, time = Nodes("Unknown"), clock(PATIENCE)
    found = lost_nodes(nodes, time)
    snapshot = Snapshot(cluster(), [pod(f"p{number}", terminating=True) for number in range(50)])
    await found.among(snapshot)
    assert nodes.asked == 1
    time.advance(31)
    await found.among(snapshot)
    assert nodes.asked == 2


def test_the_next_look_is_when_a_pod_becomes_overdue():
    one = pod("a", terminating=True)
    snapshot = Snapshot(cluster(), [one, pod("b")])
    assert lost_nodes(Nodes("True"), clock(10)).next_look(snapshot) == [PATIENCE - 10]
    assert lost_nodes(Nodes("True"), clock(PATIENCE + 5)).next_look(snapshot) == [30.0]
