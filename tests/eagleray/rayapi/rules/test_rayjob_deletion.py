"""RayJob rules about what is deleted when the job is over."""

import pytest

from tests.eagleray.rayapi.rules.builders import cluster_spec, problems, rayjob, rules, selecting

TWO_STATUSES = {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}
AUTOSCALED = {"rayClusterSpec": cluster_spec(enableInTreeAutoscaling=True)}


def broken(obj, gates=""):
    return [name.removeprefix("rayjob-") for name in rules(obj, gates)]


def legacy(success="DeleteCluster", failure="DeleteCluster", make=rayjob, **spec):
    strategy = {"onSuccess": {"policy": success}, "onFailure": {"policy": failure}}
    return make(deletionStrategy=strategy, **spec)


def deleting(*rule_list, make=rayjob, **spec):
    return make(deletionStrategy={"deletionRules": list(rule_list)}, **spec)


def on(status, policy, ttl=0):
    """A rule on a status of the Ray job, or on `Failed`, the only status of the deployment that can be named."""
    field = "jobDeploymentStatus" if status == "Failed" else "jobStatus"
    return {"policy": policy, "condition": {field: status, "ttlSeconds": ttl}}


@pytest.mark.case("RJ-18")
@pytest.mark.parametrize(
    "strategy", [{}, {"deletionRules": [on("FAILED", "DeleteSelf")]}], ids=["empty", "a rule"]
)
def test_a_strategy_needs_its_gate(strategy):
    assert broken(rayjob(deletionStrategy=strategy), "RayJobDeletionPolicy=false") == ["v4"]


@pytest.mark.parametrize(
    "obj",
    [
        deleting({"policy": "DeleteWorkers", "condition": {"ttlSeconds": -1}}, make=selecting),
        deleting(on("FAILED", "DeleteSelf"), shutdownAfterJobFinishes=True),
        legacy(None, "DeleteWorkers", selecting),
        rayjob(deletionStrategy={"onSuccess": {}, "deletionRules": [on("FAILED", "DeleteSelf")]}),
    ],
    ids=["a wrong rule", "rules and a shutdown", "wrong old fields", "half of the old fields, and rules"],
)
def test_without_the_gate_nothing_else_is_said_of_the_strategy(obj):
    assert broken(obj, "RayJobDeletionPolicy=false") == ["v4"]


def test_no_strategy_needs_no_gate():
    assert broken(rayjob(deletionStrategy=None), "RayJobDeletionPolicy=false") == []


@pytest.mark.case("RJ-23")
def test_rules_are_not_used_with_shutdown():
    rule = on("SUCCEEDED", "DeleteSelf")
    assert broken(deleting(rule, shutdownAfterJobFinishes=True)) == ["v5"]
    assert broken(deleting(rule, shutdownAfterJobFinishes=False)) == []


@pytest.mark.case("RJ-23")
@pytest.mark.parametrize("side", ["onSuccess", "onFailure"])
def test_rules_are_not_used_with_the_old_fields(side):
    strategy = {"deletionRules": [on("SUCCEEDED", "DeleteSelf")], side: {"policy": "DeleteSelf"}}
    assert broken(rayjob(deletionStrategy=strategy)) == ["v6", "l1"]


@pytest.mark.case("RJ-23")
@pytest.mark.parametrize(
    "strategy",
    [{}, {"deletionRules": []}, {"deletionRules": None, "onSuccess": None, "onFailure": None}],
    ids=["empty", "no rules", "nulls"],
)
def test_a_strategy_says_something(strategy):
    assert broken(rayjob(deletionStrategy=strategy)) == ["v7"]
    assert broken(rayjob(deletionStrategy=strategy, shutdownAfterJobFinishes=True)) == ["v7"]


@pytest.mark.case("RJ-19")
@pytest.mark.parametrize(
    ("strategy", "rule"),
    [
        ({"onSuccess": {"policy": "DeleteSelf"}}, "l1"),
        ({"onFailure": {"policy": "DeleteSelf"}}, "l1"),
        ({"onFailure": {"policy": "DeleteSelf"}, "onSuccess": None}, "l1"),
        ({"onFailure": {"policy": "DeleteSelf"}, "onSuccess": {}}, "l2"),
        ({"onFailure": {"policy": None}, "onSuccess": {"policy": "DeleteSelf"}}, "l2"),
    ],
    ids=["success only", "failure only", "null success", "success without policy", "failure without policy"],
)
def test_the_old_fields_come_as_a_complete_pair(strategy, rule):
    assert broken(rayjob(deletionStrategy=strategy)) == [rule]


@pytest.mark.case("RJ-20")
@pytest.mark.parametrize(
    ("success", "failure", "sides"),
    [
        ("DeleteCluster", "DeleteSelf", ["onSuccess"]),
        ("DeleteNone", "DeleteWorkers", ["onFailure"]),
        ("DeleteWorkers", "DeleteCluster", ["onSuccess", "onFailure"]),
        ("DeleteSelf", "DeleteNone", []),
    ],
)
def test_the_old_fields_leave_a_selected_cluster_alone(success, failure, sides):
    found = problems(legacy(success, failure, selecting))
    assert [(problem.rule, problem.path[-2]) for problem in found] == [("rayjob-l3", side) for side in sides]


@pytest.mark.case("RJ-21")
@pytest.mark.parametrize(
    ("success", "failure", "refused"),
    [
        ("DeleteWorkers", "DeleteNone", True),
        ("DeleteNone", "DeleteWorkers", True),
        ("DeleteCluster", "DeleteSelf", False),
    ],
)
def test_the_old_fields_leave_autoscaled_workers_alone(success, failure, refused):
    assert broken(legacy(success, failure, **AUTOSCALED)) == (["l4"] if refused else [])
    assert broken(legacy(success, failure)) == []


@pytest.mark.case("RJ-22")
@pytest.mark.parametrize(
    ("success", "failure", "refused"),
    [
        ("DeleteNone", "DeleteCluster", True),
        ("DeleteCluster", "DeleteNone", True),
        ("DeleteCluster", "DeleteCluster", False),
    ],
)
def test_the_old_fields_do_not_contradict_a_shutdown(success, failure, refused):
    assert broken(legacy(success, failure, shutdownAfterJobFinishes=True)) == (["l5"] if refused else [])
    assert broken(legacy(success, failure, shutdownAfterJobFinishes=False)) == []


@pytest.mark.case("RJ-28")
@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        (TWO_STATUSES, "r1"),
        ({"ttlSeconds": 5}, "r2"),
        ({"jobStatus": None, "jobDeploymentStatus": None}, "r2"),
        ({}, "r2"),
        (None, "r2"),
    ],
    ids=["both", "neither", "nulls", "empty", "null"],
)
def test_a_condition_names_one_status(condition, rule):
    assert broken(deleting({"policy": "DeleteSelf", "condition": condition})) == [rule]


@pytest.mark.case("RJ-25")
@pytest.mark.parametrize(("ttl", "refused"), [(-1, True), (0, False), (None, False)])
def test_a_rules_ttl_is_not_negative(ttl, refused):
    assert broken(deleting(on("SUCCEEDED", "DeleteSelf", ttl))) == (["r3"] if refused else [])


@pytest.mark.parametrize(
    ("policy", "refused"),
    [("DeleteCluster", True), ("DeleteWorkers", True), ("DeleteSelf", False), ("DeleteNone", False)],
)
def test_a_rule_leaves_a_selected_cluster_alone(policy, refused):
    assert broken(deleting(on("SUCCEEDED", policy), make=selecting)) == (["r4"] if refused else [])


@pytest.mark.case("RJ-21")
@pytest.mark.parametrize(("policy", "refused"), [("DeleteWorkers", True), ("DeleteCluster", False)])
def test_a_rule_leaves_autoscaled_workers_alone(policy, refused):
    assert broken(deleting(on("SUCCEEDED", policy), **AUTOSCALED)) == (["r5"] if refused else [])


@pytest.mark.case("RJ-24")
@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (on("SUCCEEDED", "DeleteCluster"), on("SUCCEEDED", "DeleteCluster"), "r6"),
        (on("SUCCEEDED", "DeleteCluster", 5), on("SUCCEEDED", "DeleteCluster", 9), "r6"),
        (on("Failed", "DeleteCluster"), on("Failed", "DeleteCluster"), "r7"),
        (on("SUCCEEDED", "DeleteNone"), on("SUCCEEDED", "DeleteNone"), "r6"),
        (on("SUCCEEDED", "DeleteCluster"), on("SUCCEEDED", "DeleteSelf"), None),
        (on("SUCCEEDED", "DeleteCluster"), on("FAILED", "DeleteCluster"), None),
    ],
)
def test_a_rule_is_given_once(first, second, rule):
    found = problems(deleting(first, second))
    assert [problem.rule for problem in found] == ([f"rayjob-{rule}"] if rule else [])
    assert all("duplicate" in problem.message and problem.path[-1] == 1 for problem in found)


@pytest.mark.case("RJ-26")
@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "Failed"])
@pytest.mark.parametrize(
    ("ttls", "places"),
    [
        ({"DeleteWorkers": 20, "DeleteCluster": 10}, [1]),
        ({"DeleteCluster": 20, "DeleteSelf": 10}, [1]),
        ({"DeleteWorkers": 20, "DeleteSelf": 10}, [1]),
        ({"DeleteWorkers": 30, "DeleteCluster": 20, "DeleteSelf": 10}, [1, 2]),
        ({"DeleteSelf": 10, "DeleteCluster": 20}, [0]),
        ({"DeleteWorkers": 10, "DeleteCluster": 20, "DeleteSelf": 30}, []),
        ({"DeleteWorkers": 10, "DeleteCluster": 10, "DeleteSelf": 10}, []),
        ({"DeleteWorkers": 20, "DeleteNone": 0}, []),
    ],
    ids=repr,
)
def test_what_contains_goes_no_earlier_than_what_it_contains(status, ttls, places):
    found = problems(deleting(*(on(status, policy, ttl) for policy, ttl in ttls.items())))
    rule = "rayjob-r9" if status == "Failed" else "rayjob-r8"
    assert [(problem.rule, problem.path[3]) for problem in found] == [(rule, place) for place in places]


@pytest.mark.parametrize("ttl", [None, 0], ids=["absent", "zero"])
def test_a_ttl_that_is_absent_is_zero(ttl):
    assert broken(deleting(on("FAILED", "DeleteWorkers", 1), on("FAILED", "DeleteCluster", ttl))) == ["r8"]
    assert broken(deleting(on("FAILED", "DeleteWorkers", ttl), on("FAILED", "DeleteCluster", 0))) == []


@pytest.mark.case("RJ-27")
def test_different_statuses_are_not_compared():
    obj = deleting(on("SUCCEEDED", "DeleteWorkers", 20), on("FAILED", "DeleteCluster", 10))
    assert broken(obj) == []


@pytest.mark.case("RJ-29")
def test_rules_on_both_kinds_of_failure_are_fine():
    obj = deleting(
        on("FAILED", "DeleteWorkers", 20),
        on("Failed", "DeleteCluster", 10),
        on("FAILED", "DeleteCluster", 20),
        on("SUCCEEDED", "DeleteSelf"),
    )
    assert broken(obj) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            deleting(on("FAILED", "DeleteSelf", -1), on("FAILED", "DeleteSelf", -1)), ["r3"], id="negative"
        ),
        pytest.param(
            deleting(*[{"policy": "DeleteSelf", "condition": TWO_STATUSES}] * 2),
            ["r1"],
            id="two statuses",
        ),
        pytest.param(
            deleting(*[on("FAILED", "DeleteCluster")] * 2, make=selecting), ["r4"], id="selected cluster"
        ),
        pytest.param(
            deleting(on("FAILED", "DeleteWorkers", 9), on("FAILED", "DeleteCluster", 1), **AUTOSCALED),
            ["r5"],
            id="autoscaled workers",
        ),
        pytest.param(
            deleting(
                on("FAILED", "DeleteWorkers", 5),
                on("FAILED", "DeleteWorkers", 50),
                on("FAILED", "DeleteCluster", 9),
            ),
            ["r6"],
            id="the first of two duplicates counts for the order",
        ),
    ],
)
def test_a_rule_that_is_wrong_by_itself_is_not_compared(obj, expected):
    assert broken(obj) == expected


def test_every_wrong_rule_is_reported():
    obj = deleting(
        on("FAILED", "DeleteSelf", -1), {"policy": "DeleteSelf"}, on("FAILED", "DeleteCluster", -2)
    )
    assert [(problem.rule, problem.path[3]) for problem in problems(obj)] == [
        ("rayjob-r2", 1),
        ("rayjob-r3", 0),
        ("rayjob-r3", 2),
    ]
