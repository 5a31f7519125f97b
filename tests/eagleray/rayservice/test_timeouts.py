"""The initializing timeout and other numbers that users write into annotations."""

from datetime import timedelta

import pytest

from eagleray.manifests.rayservice import RayService
from eagleray.rayservice.look import Look
from eagleray.rayservice.timeouts import is_timed_out, timed_out, timeout_due, timeout_of
from kubewire.sources import SeededEntropy
from kubewire.times import SECOND, format_time
from tests.eagleray.rayservice.scene import NOW, service


def annotated(name, text):
    return service(metadata={"annotations": {name: text}})


def look(text, *, status="False", reason="Initializing", seconds=0):
    since = format_time(NOW - timedelta(seconds=seconds))
    ready = {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": since}
    obj = {**annotated("ray.io/initializing-timeout", text), "status": {"conditions": [ready]}}
    return Look(RayService(obj), NOW, SeededEntropy("timeouts"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("5m", 300, id="a duration"),
        pytest.param("1h30m", 5400, id="a longer one"),
        pytest.param("300", 300, id="seconds"),
        pytest.param("", None, id="nothing"),
        pytest.param("0", None, id="no time at all"),
        pytest.param("-5m", None, id="less than that"),
        pytest.param("-100", None, id="in seconds, too"),
        pytest.param("soon", None, id="no time"),
        pytest.param("9" * 5000, None, id="an endless number"),
    ],
)
def test_the_annotation_says(text, seconds):
    wanted = None if seconds is None else seconds * SECOND
    assert timeout_of(RayService(annotated("ray.io/initializing-timeout", text))) == wanted


@pytest.mark.parametrize(
    ("seen", "passed"),
    [
        pytest.param(look("30m", seconds=600), False, id="there is time"),
        pytest.param(look("30m", seconds=1800), True, id="there is none left"),
        pytest.param(
            look("30m", seconds=2100, reason="InitializingTimeout"), False, id="it has passed before"
        ),
        pytest.param(look("30m", seconds=2100, reason="ZeroServeEndpoints"), False, id="it has served"),
        pytest.param(look("30m", seconds=2100, status="True"), False, id="it serves"),
        pytest.param(look("", seconds=2100), False, id="there is no limit"),
        pytest.param(look("9" * 18, seconds=2100), False, id="the limit is after the end of all calendars"),
    ],
)
def test_the_time_is_up(seen, passed):
    assert (timed_out(seen) is not None) is passed


def test_what_is_told_says_how_long_it_took():
    told = timed_out(look("30m", seconds=2100))
    assert told is not None
    assert told.message == (
        "RayService failed to become ready within the configured timeout of 30m0s."
        " Time spent initializing: 35m0s"
    )
    assert (told.say.reason, told.say.kind) == ("RayServiceInitializingTimeout", "Warning")
    assert timeout_due(look("30m", seconds=600)) == NOW + timedelta(seconds=1200)


def test_a_service_that_timed_out_is_known_by_its_condition():
    assert is_timed_out(look("30m", reason="InitializingTimeout")) is True
    assert is_timed_out(look("30m")) is False


@pytest.mark.parametrize(
    ("text", "want"),
    [("60", 60), ("", None), ("0", None), ("-5", None), ("1m", None), ("9" * 5000, None), ("\u0663", None)],
)
def test_the_deadline_of_upgrades(text, want):
    assert RayService(annotated("eagleray.io/upgrade-deadline-seconds", text)).upgrade_deadline == want
