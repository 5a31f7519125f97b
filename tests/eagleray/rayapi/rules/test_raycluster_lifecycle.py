"""RayCluster rules about names, upgrades, the status, and the set of groups."""

import pytest

from tests.eagleray.rayapi.rules.builders import group, only, problems, raycluster, rules


@pytest.mark.case("RC-93")
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        pytest.param("a" * 53, [], id="53 characters"),
        pytest.param("a" * 54, ["raycluster-m1"], id="54 characters"),
        pytest.param("1cluster", ["raycluster-m2"], id="a leading digit"),
        pytest.param("a-1", [], id="letters, digits and dashes"),
        pytest.param("a", [], id="one letter"),
        pytest.param("-a", ["raycluster-m2"], id="a leading dash"),
        pytest.param("a-", ["raycluster-m2"], id="a trailing dash"),
        pytest.param("A", ["raycluster-m2"], id="a capital"),
        pytest.param("a.b", ["raycluster-m2"], id="a dot"),
        pytest.param("a\n", ["raycluster-m2"], id="a line break"),
        pytest.param("é", ["raycluster-m2"], id="a letter of another alphabet"),
        pytest.param("", [], id="no name is not these rules' business"),
        pytest.param(None, [], id="null neither"),
        pytest.param("9" * 54, ["raycluster-m1", "raycluster-m2"], id="too long and a digit"),
    ],
)
def test_the_name_of_a_cluster(name, broken):
    assert rules(raycluster(metadata={"name": name})) == broken


@pytest.mark.parametrize(
    ("base", "broken"),
    [
        ("a" * 48, []),
        ("a" * 49, ["raycluster-m1"]),
        ("nightly-", []),
        ("1st-", ["raycluster-m2"]),
        ("a" * 1000, ["raycluster-m1"]),
    ],
    ids=["48 characters", "49 characters", "a dash at the end", "a leading digit", "cut by the server"],
)
def test_a_generated_name_is_judged_with_its_suffix(base, broken):
    obj = raycluster(metadata={"name": None, "generateName": base})
    assert rules(obj) == broken
    assert all(problem.path == ("metadata", "generateName") for problem in problems(obj))


def test_a_name_wins_over_a_name_to_generate():
    assert rules(raycluster(metadata={"name": "a", "generateName": "1"})) == []


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (["a", "b"], []),
        (["a", "A"], []),
        (["a", "b", "a"], [2]),
        (["a", "a", "a"], [1, 2]),
        (["", ""], [1]),
        ([None, None], []),
    ],
)
def test_group_names_are_unique(names, places):
    found = problems(raycluster(*map(group, names)))
    assert [(problem.rule, problem.path[2]) for problem in found] == [("raycluster-g1", i) for i in places]


def test_a_repeated_group_name_is_a_stricter_rule_than_the_references():
    problem = only(raycluster(group("a"), group("a")))
    assert problem.stricter
    assert problem.severity == "error"


@pytest.mark.parametrize(
    ("replicas", "low", "high", "message"),
    [
        (4, 1, 4, None),
        (1, 1, 4, None),
        (5, 1, 4, "5 is above maxReplicas 4, which counts instead"),
        (1, 2, 4, "1 is below minReplicas 2, which counts instead"),
        (-1, 0, 4, "-1 is below minReplicas 0, which counts instead"),
        (0, 2, 4, None),
        (None, 2, 4, None),
    ],
)
def test_replicas_outside_their_bounds_are_warned_about(replicas, low, high, message):
    found = problems(raycluster(group(replicas=replicas, minReplicas=low, maxReplicas=high)))
    assert [(problem.rule, problem.severity, problem.message) for problem in found] == (
        [("raycluster-w2", "warning", message)] if message else []
    )


def test_replicas_without_bounds_are_fine():
    assert (
        rules(raycluster(group(replicas=9, minReplicas=None, maxReplicas=None), enableInTreeAutoscaling=True))
        == []
    )


@pytest.mark.parametrize(
    ("strategy", "refused"),
    [
        ({"type": "Recreate"}, False),
        ({"type": "None"}, False),
        ({"type": None}, False),
        ({}, False),
        (None, False),
        ({"type": "recreate"}, True),
        ({"type": ""}, True),
        ({"type": "NewCluster"}, True),
    ],
)
def test_upgrade_strategies_that_exist(strategy, refused):
    assert rules(raycluster(upgradeStrategy=strategy)) == (["raycluster-u1"] if refused else [])


@pytest.mark.case("RC-98")
@pytest.mark.parametrize("kind", ["Recreate", "None"])
@pytest.mark.parametrize(
    ("origin", "refused"), [("RayJob", True), ("RayService", True), ("RayCluster", False), ("rayjob", False)]
)
def test_a_cluster_of_a_job_or_service_has_no_upgrade_strategy(kind, origin, refused):
    labels = {"ray.io/originated-from-crd": origin}
    obj = raycluster(metadata={"labels": labels}, upgradeStrategy={"type": kind})
    assert rules(obj) == (["raycluster-u2"] if refused else [])


def test_a_cluster_of_a_job_may_have_an_empty_upgrade_strategy():
    labels = {"ray.io/originated-from-crd": "RayJob"}
    assert rules(raycluster(metadata={"labels": labels}, upgradeStrategy={})) == []


@pytest.mark.case("RC-31")
@pytest.mark.parametrize(
    ("suspending", "suspended", "refused"),
    [
        ("True", "True", True),
        ("True", "False", False),
        ("False", "True", False),
        ("True", "Unknown", False),
        ("False", "False", False),
    ],
)
def test_a_cluster_is_not_suspending_and_suspended(suspending, suspended, refused):
    obj = raycluster()
    obj["status"] = {
        "conditions": [
            {"type": "RayClusterSuspending", "status": suspending},
            {"type": "HeadPodReady", "status": "True"},
            {"type": "RayClusterSuspended", "status": suspended},
        ]
    }
    assert rules(obj) == (["raycluster-t1"] if refused else [])


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": []}], ids=repr)
def test_a_status_without_conditions_is_fine(status):
    assert rules({**raycluster(), "status": status}) == []
