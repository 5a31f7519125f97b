"""The steps of an incremental upgrade: single ones, and any number of them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleray.manifests.rayservice import RayService, UpgradeOptions
from eagleray.rayservice.incremental import (
    AT_FIRST,
    WHOLE,
    Hashes,
    Ready,
    Share,
    Shares,
    is_finished,
    is_rolled_back,
    is_step_due,
    next_capacity,
    next_traffic,
    rollback_turn,
    shares_of,
    why_it_cannot_go_on,
)
from kubewire.times import format_time
from tests.eagleray.rayservice.scene import NOW, incremental

BOTH = Ready(True, True)
NEITHER = Ready(False, False)


def shares(active, pending):
    """Return shares of (capacity, traffic) each."""
    return Shares(Share(*active), Share(*pending))


# --- single steps


@pytest.mark.parametrize(
    ("before", "surge", "rolling_back", "ready", "after"),
    [
        pytest.param(
            shares((70, 90), (10, 10)),
            20,
            False,
            BOTH,
            (70, 30),
            id="room is given to the new one while there is some",
        ),
        pytest.param(
            shares((80, 70), (30, 30)),
            20,
            False,
            BOTH,
            (60, 30),
            id="and taken from the old one when there is not",
        ),
        pytest.param(
            shares((100, 100), (0, 0)), 50, False, NEITHER, (100, 50), id="the first step needs nobody ready"
        ),
        pytest.param(shares((100, 75), (50, 25)), 50, False, BOTH, (100, 50), id="traffic catches up first"),
        pytest.param(
            shares((100, 50), (50, 50)),
            50,
            False,
            Ready(True, False),
            (100, 50),
            id="nothing is taken for one that fails",
        ),
        pytest.param(shares((10, 10), (90, 90)), 30, False, BOTH, (10, 100), id="there is no more than all"),
        pytest.param(shares((10, 0), (100, 100)), 30, False, BOTH, (0, 100), id="and no less than nothing"),
        pytest.param(
            shares((0, 0), (100, 100)), 50, False, BOTH, (0, 100), id="after the last step there is none"
        ),
        pytest.param(
            shares((100, 100), (50, 0)), 50, True, BOTH, (100, 0), id="back: room is taken from the new one"
        ),
        pytest.param(
            shares((50, 50), (50, 50)), 50, True, BOTH, (100, 50), id="back: and given to the old one"
        ),
        pytest.param(
            shares((100, 75), (50, 25)), 50, True, BOTH, (100, 50), id="back: traffic catches up first"
        ),
        pytest.param(
            shares((100, 100), (50, 0)),
            50,
            True,
            Ready(False, True),
            (100, 50),
            id="back: nothing for one that fails",
        ),
        pytest.param(
            shares((100, 100), (0, 0)), 50, True, BOTH, (100, 0), id="back: after the last step there is none"
        ),
        pytest.param(
            shares((60, 70), (30, 30)),
            20,
            True,
            Ready(True, False),
            (80, 30),
            id="more traffic than room ends no upgrade",
        ),
    ],
)
def test_capacity(before, surge, rolling_back, ready, after):
    got = next_capacity(before, surge, ready, rolling_back=rolling_back)
    assert (got.active.capacity, got.pending.capacity) == after
    assert (got.active.traffic, got.pending.traffic) == (before.active.traffic, before.pending.traffic)


@pytest.mark.parametrize(
    ("before", "surge", "rolling_back", "needed", "after"),
    [
        pytest.param(
            shares((49, 49), (100, 51)), 51, True, 51, (49, 51), id="after a short step up to the whole"
        ),
        pytest.param(
            shares((70, 40), (60, 60)), 60, False, 40, (40, 60), id="with a surge that somebody has raised"
        ),
    ],
)
def test_a_cluster_keeps_the_room_that_its_requests_need(before, surge, rolling_back, needed, after):
    got = next_capacity(before, surge, BOTH, rolling_back=rolling_back, needed=needed)
    assert (got.active.capacity, got.pending.capacity) == after


@pytest.mark.parametrize(
    ("before", "step", "rolling_back", "ready", "after"),
    [
        pytest.param(shares((100, 100), (50, 0)), 10, False, BOTH, (90, 10), id="a step"),
        pytest.param(
            shares((100, 100), (5, 0)), 10, False, BOTH, (95, 5), id="no further than there is room"
        ),
        pytest.param(shares((100, 5), (100, 95)), 10, False, BOTH, (0, 100), id="no further than all"),
        pytest.param(
            shares((100, 100), (50, 0)), 10, False, Ready(True, False), (100, 0), id="not to one that fails"
        ),
        pytest.param(
            shares((100, 100), (50, 0)),
            10,
            False,
            Ready(False, True),
            (90, 10),
            id="away from one that fails",
        ),
        pytest.param(shares((50, 50), (50, 50)), 10, False, BOTH, (50, 50), id="none without room"),
        pytest.param(shares((50, 25), (100, 75)), 10, True, BOTH, (35, 65), id="back: a step"),
        pytest.param(
            shares((50, 25), (100, 75)),
            10,
            True,
            Ready(True, False),
            (35, 65),
            id="back: whatever the new one is like",
        ),
        pytest.param(
            shares((50, 25), (100, 75)),
            10,
            True,
            Ready(False, True),
            (25, 75),
            id="back: not to one that fails",
        ),
        pytest.param(
            shares((30, 25), (100, 75)), 10, True, BOTH, (30, 70), id="back: no further than there is room"
        ),
        pytest.param(
            shares((100, 90), (5, 10)), 10, False, BOTH, (95, 5), id="less where there is less room"
        ),
        pytest.param(
            shares((100, 90), (5, 10)),
            10,
            False,
            Ready(False, True),
            (90, 10),
            id="but not to one that fails, either",
        ),
    ],
)
def test_traffic(before, step, rolling_back, ready, after):
    got = next_traffic(before, step, ready, rolling_back=rolling_back)
    assert (got.active.traffic, got.pending.traffic) == after
    assert (got.active.capacity, got.pending.capacity) == (before.active.capacity, before.pending.capacity)


@pytest.mark.parametrize(
    ("side", "rolling_back"),
    [pytest.param("pending", False, id="forward"), pytest.param("active", True, id="back")],
)
@pytest.mark.parametrize(
    ("seconds", "due"),
    [
        pytest.param(None, True, id="never moved"),
        pytest.param(9, False, id="too soon"),
        pytest.param(10, True, id="in time"),
    ],
)
def test_a_step_waits_for_the_interval(side, rolling_back, seconds, due):
    moved = (
        {} if seconds is None else {"lastTrafficMigratedTime": format_time(NOW - timedelta(seconds=seconds))}
    )
    service = RayService(incremental(interval=10, status={f"{side}ServiceStatus": moved}))
    assert is_step_due(service, NOW, rolling_back=rolling_back) is due


def test_what_a_status_does_not_say_is_as_at_first():
    assert shares_of(RayService(incremental())) == AT_FIRST
    status = {"pendingServiceStatus": {"targetCapacity": 30, "trafficRoutedPercent": 0}}
    assert shares_of(RayService(incremental(status=status))) == shares((100, 100), (30, 0))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        pytest.param(UpgradeOptions(surge=0, step=0), "maxSurgePercent", id="no surge"),
        pytest.param(UpgradeOptions(surge=50, step=0), "stepSizePercent", id="no step"),
    ],
)
def test_options_that_stop_an_upgrade_are_named(options, word):
    assert word in why_it_cannot_go_on(options)
    assert why_it_cannot_go_on(UpgradeOptions(surge=1, step=1)) == ""


@pytest.mark.parametrize(
    ("goal", "active", "pending", "abandoned", "rolling_back", "want"),
    [
        pytest.param("b", "a", "b", "", False, "stay", id="the new one is wanted"),
        pytest.param("a", "a", "b", "", False, "roll back", id="the old one is wanted again"),
        pytest.param("a", "a", "b", "", True, "stay", id="and still is"),
        pytest.param("b", "a", "b", "", True, "go on", id="the new one is wanted after all"),
        pytest.param("c", "a", "b", "", False, "roll back", id="a third one is wanted"),
        pytest.param("a", "a", "a", "", False, "roll back", id="both are what is wanted"),
        pytest.param("b", "a", "b", "b", False, "roll back", id="the new one was given up"),
        pytest.param("b", "a", "b", "b", True, "stay", id="and stays so"),
    ],
)
def test_rolling_back(goal, active, pending, abandoned, rolling_back, want):
    assert rollback_turn(Hashes(goal, active, pending, abandoned), rolling_back=rolling_back) == want


@pytest.mark.parametrize(
    ("at", "head_ready", "want"),
    [
        pytest.param(shares((100, 100), (0, 0)), True, True, id="all is as before"),
        pytest.param(
            shares((100, 100), (30, 0)), False, True, id="the new one has no head to give back with"
        ),
        pytest.param(shares((100, 100), (50, 0)), True, False, id="the new one has room left"),
        pytest.param(shares((100, 75), (0, 25)), False, False, id="requests have not come back"),
        pytest.param(shares((50, 100), (0, 0)), False, False, id="room has not come back"),
    ],
)
def test_a_rollback_is_complete(at, head_ready, want):
    assert is_rolled_back(at, pending_head_ready=head_ready) is want


# --- chance

PERCENT = st.integers(1, WHOLE)
# How often each side may be found ready or not before both are for good.
UNREADY = st.lists(st.builds(Ready, st.booleans(), st.booleans()), max_size=30)


def stepped(before, surge, ready, *, rolling_back):
    """Return the next capacities where it is known who gets how many requests."""
    needed = (before.pending if rolling_back else before.active).traffic
    return next_capacity(before, surge, ready, rolling_back=rolling_back, needed=needed)


def check(before, after, ready):
    """What holds after every step."""
    assert after.active.traffic + after.pending.traffic == WHOLE
    for old, new, is_ready in zip(before, after, ready, strict=True):
        assert 0 <= new.traffic <= WHOLE
        assert 0 <= new.capacity <= WHOLE
        assert new.traffic <= new.capacity, "nobody gets more requests than there is room for"
        assert new.traffic <= old.traffic or is_ready


@given(surge=PERCENT, step=PERCENT, unready=UNREADY, turns=st.lists(st.integers(0, 60), max_size=4))
def test_steps_add_up_make_progress_and_end(surge, step, unready, turns):
    """From the first step on, whatever is ready and however often a user changes his mind."""
    now, rolling_back = AT_FIRST, False
    most = len(unready) + max([0, *turns]) + 2 * (-(-WHOLE // surge) * 2 + -(-WHOLE // step) + 4)
    for count in range(most + 100):
        if count in turns:
            rolling_back = not rolling_back
        ready = unready[count] if count < len(unready) else BOTH
        moved = next_traffic(now, step, ready, rolling_back=rolling_back)
        check(now, moved, ready)
        after = stepped(moved, surge, ready, rolling_back=rolling_back)
        check(moved, after, ready)
        is_quiet = count >= len(unready) and count > max([0, *turns])
        if is_quiet and after == now:
            break
        now = after
    assert now == (AT_FIRST if rolling_back else shares((0, 0), (100, 100)))
    assert is_finished(now, rolling_back=rolling_back)


ODD = st.builds(
    lambda a, p, t: shares((a, t), (p, WHOLE - t)),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 100),
)


@given(odd=ODD, surge=PERCENT, step=PERCENT, rolling_back=st.booleans())
def test_even_from_an_odd_beginning_it_ends(odd, surge, step, rolling_back):
    """Somebody has changed the options in the middle, or the status by hand."""
    now = odd
    for _ in range(1000):
        moved = next_traffic(now, step, BOTH, rolling_back=rolling_back)
        assert moved.active.traffic + moved.pending.traffic == WHOLE
        after = stepped(moved, surge, BOTH, rolling_back=rolling_back)
        if after == now:
            break
        now = after
    assert now == (AT_FIRST if rolling_back else shares((0, 0), (100, 100)))
