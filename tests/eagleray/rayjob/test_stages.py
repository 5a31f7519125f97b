"""Stages of an attempt: its cluster, its submission, its run, and how long each took."""

import pytest

from eagleray.rayjob.stages import durations, stages_of
from kubewire.times import parse_time

AT = "2030-01-01T00:00:{:02d}Z"
READY = {"rayClusterStatus": {"stateTransitionTimes": {"ready": AT.format(5)}}}


@pytest.mark.parametrize(
    ("status", "stages"),
    [
        pytest.param({}, [], id="nothing has begun"),
        pytest.param({"startTime": AT.format(0)}, [("cluster", 30, False)], id="the cluster is being made"),
        pytest.param(
            {"startTime": AT.format(0), **READY},
            [("cluster", 5, True), ("submission", 25, False)],
            id="the job is being submitted",
        ),
        pytest.param(
            {"startTime": AT.format(10), **READY},
            [("cluster", 0, True), ("submission", 20, False)],
            id="a chosen cluster was ready before",
        ),
        pytest.param(
            {"startTime": AT.format(0), **READY, "rayJobInfo": {"startTime": AT.format(7)}},
            [("cluster", 5, True), ("submission", 2, True), ("run", 23, False)],
            id="the job runs",
        ),
        pytest.param(
            {"startTime": AT.format(0), "rayJobInfo": {"startTime": AT.format(7), "endTime": AT.format(9)}},
            [("submission", 7, True), ("run", 2, True)],
            id="nobody noted when the cluster was ready",
        ),
        pytest.param(
            {"startTime": AT.format(0), "endTime": AT.format(20), **READY},
            [("cluster", 5, True), ("submission", 15, False)],
            id="it was given up before it ran",
        ),
    ],
)
def test_stages_of_an_attempt(status, stages):
    assert stages_of(status, parse_time(AT.format(30))) == stages


def test_only_what_is_over_is_told_in_words():
    running = {"startTime": AT.format(0), **READY, "rayJobInfo": {"startTime": AT.format(7)}}
    assert durations(running) == "took: cluster 5 s, submission 2 s"
    assert durations({"startTime": AT.format(0)}) == ""
