"""Groups that fail again and again wait longer each time."""

from datetime import UTC, datetime

import msgspec
import pytest

from eagleray.raycluster.streaks import NONE, held_back, next_streaks
from kubewire.times import format_time, parse_time
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.raycluster.pods import pod

START = parse_time("2026-01-01T00:00:00Z").timestamp()
GROUP = {"groupName": "small", "replicas": 1}


def failed(name, at, reason="Error", **facts):
    """Return a Pod that was made at a time, in seconds after the start, and has failed."""
    state = {"terminated": {"exitCode": 1, "reason": reason}}
    one = pod(name, phase="Failed", containers=[{"name": "ray", "state": state}], **facts)
    stamp = format_time(datetime.fromtimestamp(START + at, UTC))
    made = msgspec.structs.replace(one.metadata, creation_timestamp=stamp)
    return msgspec.structs.replace(one, metadata=made)


def look(known, at, *pods, workers=(GROUP,)):
    return next_streaks(cluster(workers=list(workers)), pods, known, START + at)


def delays(rounds):
    known, found = NONE, []
    at = 0
    for number in range(rounds):
        known = look(known, at + 1, failed(f"p{number}", at))
        found.append(known["small"].until - known["small"].at)
        at += 60
    return found


def test_the_first_failure_is_replaced_at_once_and_later_ones_wait_ever_longer():
    assert delays(8) == [0, 10, 20, 40, 80, 160, 300, 300]


def test_pods_that_fail_together_are_one_round():
    known = look(NONE, 5, *(failed(f"p{number}", 0) for number in range(100)))
    assert known["small"].rounds == 1
    assert look(known, 6, failed("late", 0))["small"].rounds == 1
    assert look(known, 6, failed("p0", 0))["small"].rounds == 1


def test_a_pod_that_ends_because_it_is_deleted_is_no_failure():
    assert look(NONE, 5, failed("a", 0, terminating=True)) == {}
    known = look(NONE, 1, failed("a", 0))
    assert look(known, 61, failed("b", 60, terminating=True)) == known


def test_another_trouble_begins_anew():
    known = look(look(NONE, 1, failed("a", 0)), 61, failed("b", 60))
    assert known["small"].rounds == 2
    assert look(known, 121, failed("c", 120, "OOMKilled"))["small"].rounds == 1
    assert look(known, 121, failed("c", 120))["small"].rounds == 3


def test_another_template_deserves_a_new_try():
    known = look(look(NONE, 1, failed("a", 0)), 61, failed("b", 60))
    changed = {**GROUP, "container": {"image": "ray:2"}}
    assert look(known, 62, workers=[changed]) == {}


def test_a_pod_that_lived_for_long_ends_the_streak():
    known = look(look(NONE, 1, failed("a", 0)), 61, failed("b", 60))
    assert look(known, 60 + 700, failed("c", 60)) == {}


def test_a_group_that_is_gone_is_forgotten():
    assert look(look(NONE, 1, failed("a", 0)), 2, workers=[]) == {}


@pytest.mark.parametrize(("later", "waits"), [(5, {"small": 5.0}), (10, {}), (11, {})])
def test_a_group_is_held_back_until_its_time(later, waits):
    known = look(look(NONE, 1, failed("a", 0)), 61, failed("b", 60))
    assert held_back(known, START + 61 + later) == waits
