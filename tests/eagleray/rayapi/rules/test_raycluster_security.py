"""RayCluster rules 17 to 19: tokens, network policies and TLS."""

import pytest

from tests.eagleray.rayapi.rules.builders import env, group, head, mounts, only, problems, raycluster, rules

POLICY_GATE = "RayClusterNetworkPolicy=true"
TLS_GATE = "RayClusterMTLS=true"
RULE = [{"ports": [{"port": 8265}]}]


def auth(version=None, **options):
    return raycluster(rayVersion=version, authOptions=options)


def policy(*groups, **fields):
    return raycluster(*groups, networkPolicy=fields)


@pytest.mark.case("RC-96")
@pytest.mark.parametrize(
    ("version", "why"),
    [
        pytest.param("2.50.0", 'rayVersion is "2.50.0"', id="2.50.0"),
        pytest.param("", "rayVersion is not set", id="empty"),
        pytest.param(None, "rayVersion is not set", id="null"),
        pytest.param("garbage", 'rayVersion "garbage" is not a version', id="garbage"),
        pytest.param("2", 'rayVersion "2" is not a version', id="one number"),
        pytest.param("2.51.9", 'rayVersion is "2.51.9"', id="just below"),
        pytest.param("0.0", 'rayVersion is "0.0"', id="zeros"),
        pytest.param("2.52.0", None, id="2.52.0"),
        pytest.param("2.52", None, id="without a patch number"),
        pytest.param("v2.52.0-py310", None, id="with text around it"),
        pytest.param("2.100.0", None, id="numbers are not compared as text"),
        pytest.param("3.0", None, id="a later major version"),
    ],
)
def test_token_auth_needs_ray_2_52(version, why):
    found = problems(auth(version, mode="token"))
    assert [problem.rule for problem in found] == (["raycluster-17a"] if why else [])
    assert all(problem.message == f"token needs Ray 2.52.0 or later, but {why}" for problem in found)


@pytest.mark.parametrize("mode", ["disabled", "", None])
def test_without_token_auth_any_version_will_do(mode):
    assert rules(auth("2.0", mode=mode)) == []


@pytest.mark.case("RC-96")
@pytest.mark.parametrize(
    ("version", "secret", "broken"),
    [
        ("2.55.0", None, []),
        ("2.55.0", "", []),
        ("2.54.9", None, ["17b"]),
        ("2.55.0", "token", ["17c"]),
        ("2.54.9", "token", ["17b", "17c"]),
        ("2.51.0", None, ["17a", "17b"]),
        ("0.0", None, ["17a", "17b"]),
        ("", None, ["17a"]),
        ("garbage", None, ["17a"]),
    ],
)
def test_kubernetes_token_auth_needs_ray_2_55_and_no_secret(version, secret, broken):
    obj = auth(version, mode="token", enableK8sTokenAuth=True, secretName=secret)
    assert rules(obj) == [f"raycluster-{name}" for name in broken]


@pytest.mark.parametrize("mode", ["disabled", "", None])
@pytest.mark.parametrize(("enabled", "refused"), [(True, True), (False, False), (None, False)])
def test_kubernetes_token_auth_needs_mode_token(mode, enabled, refused):
    obj = auth("2.50.0", mode=mode, enableK8sTokenAuth=enabled, secretName="token")
    assert rules(obj) == (["raycluster-17d"] if refused else [])


def test_a_secret_is_fine_without_kubernetes_token_auth():
    assert rules(auth("2.52.0", mode="token", secretName="token")) == []


@pytest.mark.case("RC-99")
def test_a_network_policy_needs_its_gate():
    problem = only(policy())
    assert str(problem).startswith(
        "spec.networkPolicy: requires the RayClusterNetworkPolicy feature gate to be enabled; "
    )
    assert rules(policy(), POLICY_GATE) == []
    assert rules(raycluster(networkPolicy=None)) == []


@pytest.mark.parametrize("part", ["head", "worker"])
@pytest.mark.parametrize(
    ("mode", "field", "rule_list", "refused"),
    [
        ("DenyAllEgress", "ingressRules", RULE, True),
        ("DenyAllEgress", "egressRules", RULE, False),
        ("DenyAllIngress", "egressRules", RULE, True),
        ("DenyAllIngress", "ingressRules", RULE, False),
        ("DenyAllEgress", "ingressRules", [], False),
        ("DenyAllEgress", "ingressRules", None, False),
        ("DenyAll", "ingressRules", RULE, False),
        ("DenyAll", "egressRules", RULE, False),
        (None, "egressRules", RULE, False),
    ],
)
def test_rules_are_for_a_direction_that_the_mode_restricts(part, mode, field, rule_list, refused):
    found = problems(policy(mode=mode, **{part: {field: rule_list}}), POLICY_GATE)
    assert [(problem.rule, problem.path[-2:]) for problem in found] == (
        [("raycluster-18b", (part, field))] if refused else []
    )
    of_group = policy(group(), mode=mode, workerGroups=[{"groupName": "small", field: rule_list}])
    assert rules(of_group, POLICY_GATE) == (["raycluster-18d"] if refused else [])


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("small", False),
        ("1st", False),
        ("g" * 63, False),
        ("g" * 64, True),
        ("Small", True),
        ("sm_all", True),
        ("-small", True),
        ("a.b", True),
    ],
)
def test_with_a_network_policy_group_names_are_labels(name, refused):
    assert rules(policy(group("other"), group(name)), POLICY_GATE) == (["raycluster-18c"] if refused else [])


def test_without_a_network_policy_group_names_are_free():
    assert rules(raycluster(group("Small_Group"))) == []


@pytest.mark.parametrize(
    ("groups", "way_out"),
    [
        pytest.param([], "add that group, or remove the entry", id="there are no groups"),
        pytest.param([group("a")], 'use "a"', id="there is one group"),
        pytest.param([group("a"), group("b")], 'use one of "a", "b"', id="there are two groups"),
        pytest.param(
            [group(f"g{n}") for n in range(5)],
            'use one of "g0", "g1", "g2", "g3", "g4"',
            id="there are as many groups as are shown",
        ),
        pytest.param(
            [group(f"g{n}") for n in range(7)],
            'use one of "g0", "g1", "g2", "g3", "g4" or one of 2 more',
            id="there are many groups",
        ),
    ],
)
def test_rules_for_a_group_that_does_not_exist(groups, way_out):
    problem = only(policy(*groups, workerGroups=[{"groupName": "x"}]), POLICY_GATE)
    assert problem.rule == "raycluster-18e"
    assert problem.way_out == way_out


def test_rules_for_a_group_that_exists():
    assert (
        rules(policy(group("a"), workerGroups=[{"groupName": "a", "ingressRules": RULE}]), POLICY_GATE) == []
    )


@pytest.mark.case("RC-99")
@pytest.mark.parametrize("options", [{"enabled": True}, {"enabled": False}, {}], ids=["on", "off", "empty"])
def test_tls_needs_its_gate_even_when_disabled(options):
    problem = only(raycluster(tlsOptions=options))
    assert problem.rule == "raycluster-19a"
    assert "requires the RayClusterMTLS feature gate to be enabled" in problem.message
    assert rules(raycluster(tlsOptions=options), TLS_GATE) == []


def test_no_tls_needs_no_gate():
    assert rules(raycluster(tlsOptions=None)) == []


PLACES = [
    pytest.param(lambda part: raycluster(headGroupSpec=head(part)), ("containers", 0), id="the head"),
    pytest.param(lambda part: raycluster(group(), group("b", part)), ("containers", 0), id="a worker"),
    pytest.param(
        lambda part: raycluster(autoscalerOptions=part), ("spec", "autoscalerOptions"), id="autoscaler"
    ),
]


@pytest.mark.parametrize(("place", "where"), PLACES)
@pytest.mark.parametrize(
    "name", ["RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"]
)
def test_tls_variables_are_the_operators(place, where, name):
    obj = place(env("OTHER", name))
    obj["spec"]["tlsOptions"] = {"enabled": True}
    problem = only(obj, TLS_GATE)
    assert problem.rule == "raycluster-19b"
    assert problem.path[-4:] == (*where, "env", 1)


@pytest.mark.parametrize(("place", "where"), PLACES)
@pytest.mark.parametrize("mount", [("ray-tls", "/x"), ("x", "/etc/ray/tls")], ids=["name", "path"])
def test_tls_mounts_are_the_operators(place, where, mount):
    obj = place(mounts(("other", "/etc/ray"), mount))
    obj["spec"]["tlsOptions"] = {"enabled": True}
    problem = only(obj, TLS_GATE)
    assert problem.rule == "raycluster-19c"
    assert problem.path[-4:] == (*where, "volumeMounts", 1)


@pytest.mark.parametrize("enabled", [False, None])
def test_without_tls_its_variables_and_mounts_are_free(enabled):
    part = env("RAY_USE_TLS") | mounts(("ray-tls", "/etc/ray/tls"))
    obj = raycluster(group("a", part), headGroupSpec=head(part), tlsOptions={"enabled": enabled})
    assert rules(obj, TLS_GATE) == []
