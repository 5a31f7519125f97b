"""Incremental upgrades as a whole: plans carried out one after the other, and whatever may come between."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleray.rayservice.incremental import WHOLE
from eagleray.rayservice.planning import plan
from tests.eagleray.rayservice.scene import incremental, running


def through(scene):
    """Let time pass until an upgrade is over; return capacity and traffic of both as they changed."""
    seen = []
    for _ in range(200):
        before = scene.shares
        scene.step()
        if scene.shares != before:
            seen.append(scene.shares)
        if not scene.pending:
            return seen
        if scene.again is not None:
            scene.advance(min(scene.again, 1.0))
    raise AssertionError(f"it does not end: {seen}")


def upgrading(**options):
    scene = running(incremental(**options))
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending)
    return scene


def test_an_upgrade_goes_as_the_example_says():
    scene = upgrading(surge=50, step=25)
    old, new = scene.active, scene.pending
    assert through(scene)[:-1] == [
        ((100, 100), (50, 0)),
        ((100, 75), (50, 25)),
        ((100, 50), (50, 50)),
        ((50, 50), (50, 50)),
        ((50, 50), (100, 50)),
        ((50, 25), (100, 75)),
        ((50, 0), (100, 100)),
        ((0, 0), (100, 100)),
    ]
    assert scene.active == new
    scene.settle()
    assert scene.weights == {new: 100}
    assert scene.selected("s-head-svc") == new
    assert scene.events.count("UpdatedServeTargetCapacity") == 2, (
        "of the old cluster, which keeps its configuration"
    )
    assert [config for name, config, _ in scene.puts if name == old][-1] == {
        "applications": [{"name": "app"}],
        "target_capacity": 0,
    }


def test_no_traffic_is_moved_to_a_cluster_that_may_have_taken_another_capacity():
    scene = upgrading(surge=50, step=25)
    while scene.shares != ((100, 100), (50, 0)):
        scene.step()
    scene.advance(60)
    look = scene.look()
    assert "http-route" in [stage.name for stage in plan(look).stages]
    unsure = look._replace(pending=look.pending._replace(is_put_open=True))
    assert "http-route" not in [stage.name for stage in plan(unsure).stages]


def test_all_at_once_is_blue_and_green():
    scene = upgrading(surge=100, step=100)
    assert through(scene)[:-1] == [((100, 100), (100, 0)), ((100, 0), (100, 100)), ((0, 0), (100, 100))]


def test_the_first_cluster_takes_everything_at_once():
    scene = running(incremental())
    assert scene.shares == ((100, 100), (None, None))
    assert scene.weights == {scene.active: 100}
    assert scene.puts == [(scene.active, {"applications": [{"name": "app"}], "target_capacity": 100}, 100)]


def test_steps_keep_their_interval():
    scene = upgrading(surge=50, step=25, interval=10)
    times = []
    while scene.pending:
        before = scene.weights
        scene.step()
        if scene.weights != before:
            times.append(scene.now)
        scene.advance(1)
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert all(gap >= 10 for gap in gaps[:-1]), "the last change is the end of the old backend"
    assert len(times) >= 4


def test_nothing_moves_until_the_gateway_is_open():
    scene = running(incremental(), auto_gateway=False)
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending)
    scene.settle()
    assert scene.shares[1] == (0, 0)
    assert "Gateway s-gateway is not accepted" in scene.message("UpgradeInProgress")


def test_an_upgrade_waits_for_a_cluster_that_fails_in_the_middle():
    scene = upgrading(surge=50, step=25)
    scene.settle()
    scene.advance(10)
    scene.settle()
    assert scene.weights[scene.pending] == 25
    scene.fail(scene.pending)
    for _ in range(20):
        scene.advance(10)
        scene.settle()
    assert scene.weights[scene.pending] == 25
    assert "no answer" in scene.message("UpgradeInProgress")
    scene.rays[scene.pending].error = None
    through(scene)
    assert scene.raised == []


def test_an_upgrade_that_has_moved_nothing_is_undone_at_once():
    scene = upgrading()
    original = scene.active
    scene.describe(rayVersion="")
    scene.step()
    assert (scene.active, scene.pending) == (original, "")
    assert scene.condition("RollbackInProgress") is None


@pytest.mark.parametrize("seconds", [1, 15, 25, 35], ids=lambda seconds: f"after {seconds} s")
def test_an_upgrade_that_is_not_wanted_any_more_is_undone(seconds):
    scene = running(incremental(interval=10))
    original, version = scene.active, scene.obj["spec"]["rayClusterConfig"].get("rayVersion")
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending)
    given_up = scene.pending
    for _ in range(seconds):
        scene.settle()
        scene.advance(1)
    scene.describe(rayVersion=version)
    scene.step()
    assert scene.condition("RollbackInProgress") == ("True", "DesiredClusterSpecChanged")
    assert scene.message("RollbackInProgress") == "Goal state reverted to original cluster, rolling back."
    through(scene)
    scene.settle()
    assert (scene.active, scene.pending) == (original, "")
    assert scene.condition("RollbackInProgress") is None
    assert scene.condition("UpgradeInProgress") == ("False", "NoPendingCluster")
    assert scene.weights == {original: 100}
    assert scene.shares[0] == (100, 100)
    scene.advance(60)
    scene.settle()
    assert given_up not in scene.clusters
    assert scene.raised == []


def test_a_third_spec_rolls_back_and_then_upgrades_to_it():
    scene = upgrading()
    second = scene.pending
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    scene.describe(rayVersion="2.54.0")
    scene.step()
    assert (
        scene.message("RollbackInProgress")
        == "Goal state changed mid-upgrade, rolling back to original cluster."
    )
    through(scene)
    scene.settle()
    third = scene.pending
    assert third not in ("", second)
    scene.serve(third)
    through(scene)
    assert scene.active == third


def test_a_rollback_that_is_taken_back_goes_on_to_the_new_cluster():
    scene = upgrading()
    old_version, new = "", scene.pending
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    scene.describe(rayVersion=old_version)
    scene.step()
    scene.describe(rayVersion="2.53.0")
    scene.step()
    assert scene.condition("RollbackInProgress") is None
    through(scene)
    assert scene.active == new


def test_rolling_back_from_a_cluster_whose_head_is_gone_ends():
    scene = upgrading()
    original = scene.active
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    scene.lose_head(scene.pending)
    scene.describe(rayVersion="")
    through(scene)
    assert scene.active == original


def test_a_short_last_step_leaves_no_cluster_with_less_room_than_requests():
    scene = upgrading(surge=60, step=20, interval=1)
    while scene.shares != ((40, 40), (100, 60)):
        scene.step()
        scene.advance(1)
    scene.describe(rayVersion="")
    for course in through(scene):
        assert all((traffic or 0) <= (capacity or 0) for capacity, traffic in course)


def test_while_rolling_back_the_configuration_is_for_the_old_cluster():
    scene = upgrading()
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    scene.puts.clear()
    scene.edit(serveConfigV2="applications: [{name: other}]\n")
    scene.settle()
    assert {name for name, _, _ in scene.puts} == {scene.pending}, "in an upgrade it is for the new one"
    scene.describe(rayVersion="")
    scene.step()
    scene.puts.clear()
    scene.edit(serveConfigV2="applications: [{name: third}]\n")
    scene.step()
    assert scene.puts == [(scene.active, {"applications": [{"name": "third"}], "target_capacity": 100}, 100)]


def test_nobody_is_given_requests_while_rolling_back_to_a_cluster_that_fails():
    scene = upgrading()
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    before = scene.weights
    scene.fail(scene.active)
    scene.describe(rayVersion="")
    for _ in range(20):
        scene.settle()
        scene.advance(10)
    assert scene.weights == before
    assert "is held back" in scene.message("UpgradeInProgress")
    scene.rays[scene.active].error = None
    through(scene)
    assert scene.raised == []


def test_an_upgrade_goes_on_without_the_old_cluster_if_that_is_lost():
    scene = upgrading()
    scene.settle()
    old, new = scene.active, scene.pending
    del scene.children[("RayCluster", old)]
    scene.settle()
    assert scene.events.count("RollbackImpossible") == 1
    assert scene.active == new
    assert scene.weights == {new: 100}
    assert scene.shares[0][0] == 100


def test_a_group_that_is_added_in_the_middle_rolls_nothing_back():
    scene = upgrading()
    new = scene.pending
    scene.settle()
    groups = scene.obj["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    scene.describe(workerGroupSpecs=[*groups, {**groups[0], "groupName": "more"}])
    scene.settle()
    assert scene.condition("RollbackInProgress") is None
    assert len(scene.children[("RayCluster", new)]["spec"]["workerGroupSpecs"]) == 2
    through(scene)
    assert scene.active == new


def test_after_a_restart_the_old_cluster_keeps_what_it_says_it_runs():
    scene = upgrading(surge=100, step=100)
    scene.rays[scene.active].put = None
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    assert scene.shares == ((100, 0), (100, 100)), "nobody knows what to hand over"
    old = scene.active
    scene.rays[old].deployed = {"applications": [{"name": "older"}]}
    scene.puts.clear()
    through(scene)
    assert scene.puts == [(old, {"applications": [{"name": "older"}], "target_capacity": 0}, 0)]


# --- chance

HAPPENINGS = st.lists(
    st.sampled_from(
        [
            "time",
            "time",
            "new serves",
            "new fails",
            "old serves",
            "old fails",
            "spec a",
            "spec b",
            "spec c",
            "config",
            "restart",
            "suspend",
            "resume",
        ]
    ),
    max_size=15,
)


@settings(max_examples=25)
@given(happenings=HAPPENINGS, surge=st.sampled_from([30, 50, 100]), step=st.sampled_from([15, 30]))
def test_whatever_happens_traffic_is_whole_and_goes_to_who_serves(happenings, surge, step):
    scene = running(incremental(surge=surge, step=step))
    for number, happening in enumerate(happenings):
        happen(scene, happening, number)
        for _ in range(5):
            scene.step()
            assert sum(scene.weights.values()) in (0, WHOLE)
            assert len(scene.weights) <= 2
            assert all((traffic or 0) <= (capacity or 0) for capacity, traffic in scene.shares)
    scene.edit(suspend=False)
    for _ in range(100):
        for name in scene.clusters:
            scene.rays[name].error = None
            scene.serve(name)
        if scene.settle() == 0 and not scene.pending and len(scene.clusters) == 1:
            break
        scene.advance(10)
    assert scene.raised == []
    assert (scene.clusters, scene.pending) == ([scene.active], "")
    assert scene.condition("Ready")[0] == "True"
    assert scene.weights == {scene.active: WHOLE}
    made_from = scene.children[("RayCluster", scene.active)]["spec"].get("rayVersion")
    assert made_from == scene.obj["spec"]["rayClusterConfig"].get("rayVersion")


def happen(scene, happening, number):
    what, _, detail = happening.partition(" ")
    side = {"new": scene.pending, "old": scene.active}.get(what, "")
    if what == "time":
        scene.advance(10)
    elif side in scene.clusters and detail == "serves":
        scene.rays[side].error = None
        scene.serve(side)
    elif side in scene.clusters and detail == "fails":
        scene.fail(side)
    elif what == "spec":
        scene.describe(rayVersion=detail)
    elif what == "config":
        scene.edit(serveConfigV2=f"applications: [{{name: app{number}}}]\n")
    elif what == "restart":
        for ray in scene.rays.values():
            ray.put, ray.deployed = None, {"applications": [{"name": "app"}]}
    elif what in ("suspend", "resume"):
        scene.edit(suspend=what == "suspend")
