"""RayCluster rules 1 to 4: each group by itself."""

import pytest

from tests.eagleray.rayapi.rules.builders import env, group, head, only, problems, raycluster, rules

NO_CONTAINERS = [
    pytest.param({"spec": {"containers": []}}, id="an empty list"),
    pytest.param({"spec": {"containers": None}}, id="null"),
    pytest.param({"spec": {}}, id="no field"),
    pytest.param({"spec": None}, id="no Pod spec"),
    pytest.param({}, id="an empty template"),
    pytest.param(None, id="no template"),
]
RESOURCES = [
    pytest.param({"num-cpus": "1"}, {"CPU": "1"}, True, id="num-cpus"),
    pytest.param({"num-gpus": "1"}, {"CPU": "1"}, True, id="num-gpus"),
    pytest.param({"memory": "1"}, {"CPU": "1"}, True, id="memory"),
    pytest.param({"resources": "'{}'"}, {"CPU": "1"}, True, id="resources"),
    pytest.param({"num-cpus": ""}, {"CPU": "1"}, False, id="an empty parameter is none"),
    pytest.param({"port": "6379"}, {"CPU": "1"}, False, id="another parameter"),
    pytest.param({"num-cpus": "1"}, {}, False, id="no resources"),
    pytest.param({"num-cpus": "1"}, None, False, id="null resources"),
    pytest.param(None, {"CPU": "1"}, False, id="null parameters"),
]
LABELS = [
    pytest.param({"ray.io/zone": "a"}, [], id="a key with a prefix"),
    pytest.param({"zone": ""}, [], id="an empty value"),
    pytest.param({"z" * 63: "a" * 63}, [], id="63 characters"),
    pytest.param({"z" * 64: "a"}, ["key"], id="a key of 64 characters"),
    pytest.param({"z": "a" * 64}, ["value"], id="a value of 64 characters"),
    pytest.param({"": "a"}, ["key"], id="an empty key"),
    pytest.param({"zone ": "a"}, ["key"], id="a blank in a key"),
    pytest.param({"Ray.io/zone": "a"}, ["key"], id="capitals in a prefix"),
    pytest.param({"a/b/c": "a"}, ["key"], id="two slashes"),
    pytest.param({"zone": "a/b"}, ["value"], id="a slash in a value"),
    pytest.param({"zone": "-a"}, ["value"], id="a value beginning with a dash"),
    pytest.param({"-zone": "a_"}, ["key", "value"], id="both"),
    pytest.param({"-a": "x", "-b": "x"}, ["key", "key"], id="two keys are reported one by one"),
    pytest.param(None, [], id="null"),
]


@pytest.mark.parametrize("template", NO_CONTAINERS)
def test_a_head_needs_a_container(template):
    assert rules(raycluster(headGroupSpec={"template": template})) == ["raycluster-1"]


def test_a_cluster_without_a_head_group_lacks_its_container():
    assert rules(raycluster(headGroupSpec=None)) == ["raycluster-1"]


@pytest.mark.parametrize(("params", "resources", "refused"), RESOURCES)
def test_the_heads_resources_are_given_once(params, resources, refused):
    obj = raycluster(headGroupSpec=head(rayStartParams=params, resources=resources))
    assert rules(obj) == (["raycluster-2"] if refused else [])


@pytest.mark.parametrize(
    "params", [{"labels": "a=b"}, {"labels": ""}], ids=["a value", "even an empty value"]
)
def test_the_heads_labels_are_no_start_parameter(params):
    assert rules(raycluster(headGroupSpec=head(rayStartParams=params))) == ["raycluster-3a"]


@pytest.mark.parametrize(("labels", "wrong"), LABELS)
def test_the_heads_labels(labels, wrong):
    names = {"key": "raycluster-3b", "value": "raycluster-3c"}
    obj = raycluster(headGroupSpec=head(labels=labels))
    assert [problem.rule for problem in problems(obj)] == [names[part] for part in wrong]


@pytest.mark.parametrize("template", NO_CONTAINERS)
def test_a_worker_group_needs_a_container(template):
    assert rules(raycluster(group(), group("b", template=template))) == ["raycluster-4a"]


@pytest.mark.parametrize(
    ("low", "high", "autoscaling", "broken"),
    [
        pytest.param(0, 1, False, [], id="both bounds"),
        pytest.param(None, 1, False, ["4b"], id="no minReplicas without autoscaling"),
        pytest.param(0, None, False, ["4b"], id="no maxReplicas without autoscaling"),
        pytest.param(None, None, None, ["4b"], id="autoscaling null is off"),
        pytest.param(None, None, True, [], id="no bounds with autoscaling"),
        pytest.param(0, 0, False, [], id="zero is not negative"),
        pytest.param(-1, 1, False, ["4c"], id="negative minReplicas"),
        pytest.param(-1, None, True, ["4c"], id="negative minReplicas with autoscaling"),
        pytest.param(None, -1, True, ["4d"], id="negative maxReplicas"),
        pytest.param(-3, -1, False, ["4c", "4d"], id="both negative"),
        pytest.param(3, 3, False, [], id="equal bounds"),
        pytest.param(3, 2, False, ["4e"], id="bounds the wrong way round"),
        pytest.param(5, 3, True, ["4e"], id="the wrong way round with autoscaling"),
        pytest.param(0, 2147483647, False, [], id="the largest number"),
    ],
)
def test_the_bounds_of_a_group(low, high, autoscaling, broken):
    obj = raycluster(group(minReplicas=low, maxReplicas=high), enableInTreeAutoscaling=autoscaling)
    assert rules(obj) == [f"raycluster-{name}" for name in broken]


def test_each_missing_bound_is_named():
    obj = raycluster(group(), group("b", minReplicas=None, maxReplicas=None))
    assert [problem.path[-2:] for problem in problems(obj)] == [(1, "minReplicas"), (1, "maxReplicas")]


def test_crossed_bounds_read_like_this():
    obj = raycluster(group(), group("b", minReplicas=3, maxReplicas=2))
    assert str(only(obj)) == (
        "spec.workerGroupSpecs[1].maxReplicas: 2 is below minReplicas 3; raise it or lower minReplicas"
    )


@pytest.mark.case("RC-94")
@pytest.mark.parametrize(
    ("bounds", "broken"),
    [
        ({"minReplicas": 5, "maxReplicas": 3}, ["raycluster-4e"]),
        ({"minReplicas": -1}, ["raycluster-4c"]),
        ({"minReplicas": None, "maxReplicas": -1}, ["raycluster-4b", "raycluster-4d"]),
        ({"minReplicas": None, "maxReplicas": None}, ["raycluster-4b"]),
    ],
    ids=["min above max", "negative min", "negative max", "nil bounds without autoscaling"],
)
def test_groups_with_impossible_bounds_are_rejected(bounds, broken):
    assert rules(raycluster(group(**bounds))) == broken


@pytest.mark.case("RC-94")
def test_replicas_below_min_are_no_error():
    (problem,) = problems(raycluster(group(replicas=1, minReplicas=2)))
    assert problem.severity == "warning"


@pytest.mark.parametrize(("params", "resources", "refused"), RESOURCES)
def test_a_groups_resources_are_given_once(params, resources, refused):
    obj = raycluster(group(), group("b", rayStartParams=params, resources=resources))
    assert rules(obj) == (["raycluster-4f"] if refused else [])


@pytest.mark.parametrize(("labels", "wrong"), LABELS)
def test_a_groups_labels(labels, wrong):
    found = problems(raycluster(group(), group("b", labels=labels)))
    assert [(problem.rule, problem.message.rpartition(" ")[2]) for problem in found] == [
        ("raycluster-4g", part) for part in wrong
    ]


def test_a_groups_labels_are_no_start_parameter():
    problem = only(raycluster(group(rayStartParams={"labels": ""})))
    assert problem.rule == "raycluster-4g"
    assert problem.path == ("spec", "workerGroupSpecs", 0, "rayStartParams", "labels")


V2_OPTION = {"autoscalerOptions": {"version": "v2"}}
V2_ACTIVE = [
    pytest.param({**V2_OPTION}, None, True, id="version v2"),
    pytest.param({"autoscalerOptions": {"version": "v1"}}, None, False, id="version v1"),
    pytest.param({"autoscalerOptions": None}, None, False, id="null options"),
    pytest.param({}, None, False, id="no options"),
    pytest.param({}, "1", True, id="the variable 1"),
    pytest.param({}, "true", True, id="the variable true"),
    pytest.param({}, "True", False, id="the variable True is not true"),
    pytest.param({}, "0", False, id="the variable 0"),
]


@pytest.mark.parametrize(("options", "variable", "active"), V2_ACTIVE)
def test_a_groups_idle_timeout_needs_autoscaler_v2(options, variable, active):
    container = env(RAY_enable_autoscaler_v2=variable) if variable else None
    obj = raycluster(
        group(idleTimeoutSeconds=60),
        headGroupSpec=head(container),
        enableInTreeAutoscaling=True,
        rayVersion="2.56.0",
        **options,
    )
    assert rules(obj) == ([] if active else ["raycluster-4h"])


@pytest.mark.parametrize(("seconds", "refused"), [(None, False), (0, False), (-1, True)])
def test_a_groups_idle_timeout_is_not_negative(seconds, refused):
    obj = raycluster(group(idleTimeoutSeconds=seconds), enableInTreeAutoscaling=True, **V2_OPTION)
    assert rules(obj) == (["raycluster-4h"] if refused else [])


def test_a_groups_idle_timeout_of_zero_needs_autoscaler_v2_too():
    assert rules(raycluster(group(idleTimeoutSeconds=0))) == ["raycluster-4h"]


@pytest.mark.parametrize(("options", "variable", "active"), V2_ACTIVE)
def test_a_groups_priority_needs_autoscaler_v2(options, variable, active):
    container = env(RAY_enable_autoscaler_v2=variable) if variable else None
    obj = raycluster(
        group(priority=1),
        headGroupSpec=head(container),
        enableInTreeAutoscaling=True,
        rayVersion="2.56.0",
        **options,
    )
    assert rules(obj) == ([] if active else ["raycluster-4i"])


@pytest.mark.parametrize(
    ("priority", "version", "why"),
    [
        (1, "2.56.0", None),
        (-1, "2.56", None),
        (1, "v2.56.0rc1", None),
        (1, "2.55.9", 'rayVersion is "2.55.9"'),
        (1, "", "rayVersion is not set"),
        (1, None, "rayVersion is not set"),
        (1, "nightly", 'rayVersion "nightly" is not a version'),
        (-1, "2.9.0", 'rayVersion is "2.9.0"'),
        (0, "2.9.0", None),
        (None, None, None),
    ],
)
def test_a_groups_priority_needs_ray_2_56(priority, version, why):
    found = problems(
        raycluster(group(priority=priority), rayVersion=version, enableInTreeAutoscaling=True, **V2_OPTION)
    )
    assert [problem.rule for problem in found] == (["raycluster-4i"] if why else [])
    assert all(problem.message == f"needs Ray 2.56.0 or later, but {why}" for problem in found)


def test_a_group_without_a_name_is_still_placed():
    assert only(raycluster(group(None, minReplicas=-1))).path == (
        "spec",
        "workerGroupSpecs",
        0,
        "minReplicas",
    )
