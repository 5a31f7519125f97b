"""Steps and the name of the one that failed."""

import traceback

import pytest

from eagleray.runtime.outcomes import failed_step, step


def failure_of(run):
    with pytest.raises((ValueError, RuntimeError, ExceptionGroup)) as failure:
        run()
    return failure.value


def outside():
    raise ValueError("x")


def inside():
    with step("create head Pod"):
        raise ValueError("x")


def nested():
    with step("Pods"), step("create head Pod"):
        raise ValueError("x")


def wrapped():
    try:
        inside()
    except ValueError as error:
        raise RuntimeError("worse") from error


def grouped():
    raise ExceptionGroup("several", [failure_of(outside), failure_of(inside)])


def mended_before():
    with step("other"):
        failure_of(inside)
        raise ValueError("y")


@pytest.mark.parametrize(
    ("run", "name"),
    [
        pytest.param(outside, "reconcile", id="outside of every step"),
        pytest.param(inside, "create head Pod", id="inside of one"),
        pytest.param(nested, "create head Pod", id="the innermost counts"),
        pytest.param(wrapped, "create head Pod", id="a wrapped failure keeps it"),
        pytest.param(grouped, "create head Pod", id="a group has that of its first named failure"),
        pytest.param(mended_before, "other", id="a failure that was dealt with does not count"),
    ],
)
def test_the_step_that_failed(run, name):
    assert failed_step(failure_of(run)) == name


def test_a_traceback_shows_the_step():
    assert "in step create head Pod" in "".join(traceback.format_exception(failure_of(inside)))


def test_a_loop_of_causes_is_left():
    error = ValueError("x")
    error.__cause__ = error
    assert failed_step(error) == "reconcile"
