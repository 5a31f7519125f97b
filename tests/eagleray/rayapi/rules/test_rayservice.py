"""The rules of a RayService."""

import pytest

from tests.eagleray.rayapi.rules.builders import cluster_spec, group, head, only, problems, rayservice, rules

TIMEOUT = "ray.io/initializing-timeout"
OPTIONS = {"maxSurgePercent": 50, "stepSizePercent": 50, "intervalSeconds": 10, "gatewayClassName": "istio"}


def broken(obj, gates=""):
    return [name.removeprefix("rayservice-") for name in rules(obj, gates)]


def incremental(autoscaling=True, options=OPTIONS, **changed):
    strategy = {
        "type": "NewClusterWithIncrementalUpgrade",
        "clusterUpgradeOptions": None if options is None else {**options, **changed},
    }
    return rayservice(
        rayClusterConfig=cluster_spec(enableInTreeAutoscaling=autoscaling), upgradeStrategy=strategy
    )


@pytest.mark.case("RS-1")
@pytest.mark.parametrize(("length", "refused"), [(47, False), (48, True)])
def test_a_name_has_at_most_47_characters(length, refused):
    assert broken(rayservice({"name": "a" * length})) == (["m1"] if refused else [])


@pytest.mark.case("RS-2")
@pytest.mark.parametrize("name", ["1" * 47, "Service", "my_service", "service-"])
def test_a_name_is_a_dns_label(name):
    assert broken(rayservice({"name": name})) == ["m2"]


@pytest.mark.case("RS-3")
@pytest.mark.parametrize(
    ("value", "fragment"),
    [
        ("5m", None),
        ("300", None),
        ("+300", None),
        ("1h30m", None),
        ("1ns", None),
        ("", None),
        ("1", None),
        ("0", "must be a positive duration"),
        ("0s", "must be a positive duration"),
        ("-5m", "must be a positive duration"),
        ("-100", "must be a positive"),
        ("00", "must be a positive"),
        ("invalid", "invalid format"),
        ("5 m", "invalid format"),
        (" 300", "invalid format"),
        ("3_00", "invalid format"),
        ("٣", "invalid format"),
        ("5.5", "invalid format"),
        ("9223372036854775807", None),
        ("9223372036854775808", "invalid format"),
        ("9" * 5000, "invalid format"),
        ("-9223372036854775808", "must be a positive"),
        ("-9223372036854775809", "invalid format"),
        ("-", "invalid format"),
    ],
)
def test_the_initializing_timeout(value, fragment):
    found = problems(rayservice({"annotations": {TIMEOUT: value}}))
    assert [problem.rule for problem in found] == (["rayservice-m3"] if fragment else [])
    for problem in found:
        assert fragment in problem.message
        assert problem.path == ("metadata", "annotations", TIMEOUT)
        assert len(str(problem)) < 300


@pytest.mark.parametrize("metadata", [{"annotations": None}, {"annotations": {}}], ids=["null", "empty"])
def test_no_annotations_are_fine(metadata):
    assert broken(rayservice(metadata)) == []


@pytest.mark.case("RS-4")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"rayClusterConfig": cluster_spec(headGroupSpec=head(headService={"metadata": {"name": "x"}}))},
            ["rayservice-v3"],
            id="a named head service",
        ),
        pytest.param(
            {"upgradeStrategy": {"type": "BlueGreen"}}, ["rayservice-v4"], id="an unknown upgrade type"
        ),
        pytest.param(
            {"rayClusterDeletionDelaySeconds": -1}, ["rayservice-v5"], id="a negative deletion delay"
        ),
        pytest.param(
            {
                "rayClusterConfig": cluster_spec(
                    rayVersion="2.55.0", authOptions={"mode": "token", "enableK8sTokenAuth": True}
                )
            },
            ["rayservice-v1"],
            id="Kubernetes token auth",
        ),
        pytest.param(
            {"rayClusterConfig": cluster_spec(headGroupSpec={"template": {"spec": {"containers": []}}})},
            ["raycluster-1"],
            id="no head container",
        ),
    ],
)
def test_a_service_that_cannot_work_is_rejected(spec, expected):
    assert rules(rayservice(**spec)) == expected


@pytest.mark.parametrize(
    "service",
    [None, {}, {"metadata": None}, {"metadata": {"name": ""}}, {"metadata": {"labels": {"a": "b"}}}],
    ids=repr,
)
def test_a_head_service_without_a_name_is_fine(service):
    assert broken(rayservice(rayClusterConfig=cluster_spec(headGroupSpec=head(headService=service)))) == []


@pytest.mark.parametrize("kind", ["NewCluster", "None", None])
def test_upgrade_types_that_exist(kind):
    assert broken(rayservice(upgradeStrategy={"type": kind})) == []


@pytest.mark.parametrize("kind", ["newCluster", "", "Recreate"])
def test_upgrade_types_that_do_not(kind):
    assert broken(rayservice(upgradeStrategy={"type": kind})) == ["v4"]


@pytest.mark.parametrize("delay", [0, 60, None])
def test_deletion_delays_that_are_fine(delay):
    assert broken(rayservice(rayClusterDeletionDelaySeconds=delay)) == []


@pytest.mark.parametrize("enabled", [False, None])
def test_token_auth_by_secret_is_fine(enabled):
    auth = {"mode": "token", "enableK8sTokenAuth": enabled}
    assert broken(rayservice(rayClusterConfig=cluster_spec(rayVersion="2.52.0", authOptions=auth))) == []


@pytest.mark.case("RS-5")
def test_an_incremental_upgrade_with_all_it_needs_is_accepted():
    assert broken(incremental()) == []


@pytest.mark.case("RS-6")
@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(incremental(autoscaling=False), ["v6"], id="without autoscaler"),
        pytest.param(incremental(autoscaling=None), ["v6"], id="autoscaler null"),
        pytest.param(incremental(options=None), ["v7"], id="without options"),
        pytest.param(incremental(maxSurgePercent=200), ["v8"], id="surge 200"),
        pytest.param(incremental(maxSurgePercent=101), ["v8"], id="surge 101"),
        pytest.param(incremental(maxSurgePercent=-1, stepSizePercent=0), ["v8", "v10"], id="surge -1"),
        pytest.param(incremental(stepSizePercent=None), ["v9"], id="no step"),
        pytest.param(incremental(stepSizePercent=-1), ["v9"], id="step -1"),
        pytest.param(incremental(stepSizePercent=101, maxSurgePercent=100), ["v9", "v10"], id="step 101"),
        pytest.param(
            incremental(stepSizePercent=101, maxSurgePercent=None), ["v9", "v10"], id="no surge is 100"
        ),
        pytest.param(incremental(stepSizePercent=75), ["v10"], id="step 75 above surge 50"),
        pytest.param(incremental(stepSizePercent=51), ["v10"], id="step 51 above surge 50"),
        pytest.param(incremental(intervalSeconds=0), ["v11"], id="interval 0"),
        pytest.param(incremental(intervalSeconds=None), ["v11"], id="no interval"),
        pytest.param(incremental(gatewayClassName=""), ["v12"], id="an empty class"),
        pytest.param(incremental(gatewayClassName=None), ["v12"], id="no class"),
        pytest.param(incremental(options={}), ["v9", "v11", "v12"], id="empty options"),
    ],
)
def test_an_incremental_upgrade_that_cannot_work_is_rejected(obj, expected):
    assert broken(obj) == expected


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("stepSizePercent", None, "must be set"),
        ("stepSizePercent", -1, "-1 is not between 0 and 100"),
        ("intervalSeconds", None, "must be set"),
        ("intervalSeconds", 0, "0 is not positive"),
    ],
)
def test_an_option_that_is_missing_is_not_called_wrong(field, value, message):
    problem = only(incremental(**{field: value}))
    assert problem.message == message
    assert problem.path[-1] == field


@pytest.mark.parametrize(
    "changed",
    [
        {"maxSurgePercent": 100, "stepSizePercent": 100},
        {"maxSurgePercent": 0, "stepSizePercent": 0},
        {"maxSurgePercent": None, "stepSizePercent": 100},
        {"intervalSeconds": 1},
    ],
    ids=repr,
)
def test_the_bounds_of_an_incremental_upgrade(changed):
    assert broken(incremental(**changed)) == []


@pytest.mark.case("RS-51")
def test_without_the_gate_an_incremental_upgrade_is_accepted_unread():
    assert broken(incremental(autoscaling=False, options={}), "RayServiceIncrementalUpgrade=false") == []


@pytest.mark.case("RS-51")
def test_other_upgrades_do_not_read_the_options():
    obj = rayservice(
        upgradeStrategy={"type": "NewCluster", "clusterUpgradeOptions": {"stepSizePercent": 900}}
    )
    assert broken(obj) == []


def test_the_services_cluster_keeps_the_rules_of_a_cluster_where_it_stands():
    problem = only(
        rayservice(rayClusterConfig=cluster_spec(group(), group("b", minReplicas=3, maxReplicas=2)))
    )
    assert problem.rule == "raycluster-4e"
    assert str(problem).startswith("spec.rayClusterConfig.workerGroupSpecs[1].maxReplicas: ")


def test_the_services_cluster_is_judged_with_the_services_annotations():
    metadata = {"annotations": {"ray.io/ft-enabled": "true"}}
    problem = only(rayservice(metadata, rayClusterConfig=cluster_spec(gcsFaultToleranceOptions={})))
    assert problem.path == ("metadata", "annotations", "ray.io/ft-enabled")


@pytest.mark.case("RC-98")
def test_the_services_cluster_has_no_upgrade_strategy():
    problem = only(rayservice(rayClusterConfig=cluster_spec(upgradeStrategy={"type": "Recreate"})))
    assert problem.rule == "raycluster-u2"
    assert "created by a RayService" in problem.message


def test_the_services_cluster_stands_between_the_rules_before_and_after_it():
    obj = rayservice(
        {"name": "A"},
        rayClusterConfig=cluster_spec(
            group(minReplicas=-1),
            headGroupSpec=head(headService={"metadata": {"name": "x"}}),
            rayVersion="2.55.0",
            authOptions={"mode": "token", "enableK8sTokenAuth": True},
        ),
        rayClusterDeletionDelaySeconds=-1,
    )
    assert rules(obj) == [
        "rayservice-m2",
        "rayservice-v1",
        "raycluster-4c",
        "rayservice-v3",
        "rayservice-v5",
    ]


def test_a_service_without_a_cluster_lacks_its_container():
    assert rules(rayservice(rayClusterConfig=None)) == ["raycluster-1"]
