"""The feature gates, and the flag that sets them."""

import pytest

from eagleray.gates import DEFAULT_GATES, GATES, GateError, Gates, parse_gates

ON_BY_DEFAULT = [
    "RayClusterStatusConditions",
    "RayJobDeletionPolicy",
    "RayMultiHostIndexing",
    "RayServiceIncrementalUpgrade",
    "RayCronJob",
]
COMING_LATER = [
    "RayClusterNetworkPolicy",
    "RayClusterMTLS",
    "RayClusterHistoryServer",
]
OFF_BY_DEFAULT = [
    "GCSFaultToleranceEmbeddedStorage",
    *COMING_LATER,
    "SidecarSubmitterRestart",
    "KubernetesWAS",
    "AsyncJobInfoQuery",
]


def test_the_gates_that_exist_are_known_by_name():
    assert sorted(GATES) == sorted(ON_BY_DEFAULT + OFF_BY_DEFAULT)


@pytest.mark.parametrize("name", ON_BY_DEFAULT)
def test_on_by_default(name):
    assert DEFAULT_GATES.enabled(name)


@pytest.mark.parametrize("name", OFF_BY_DEFAULT)
def test_off_by_default(name):
    assert not DEFAULT_GATES.enabled(name)


def test_beta_gates_are_on_and_alpha_gates_off_but_for_the_cron_job():
    odd = [name for name, gate in GATES.items() if gate.default != (gate.stage == "beta")]
    assert odd == ["RayCronJob"]


def test_every_gate_says_what_it_is_for():
    assert all(gate.doc.endswith(".") and gate.since for gate in GATES.values())


def test_exactly_the_three_gates_to_come_have_nothing_behind_them():
    assert [name for name, gate in GATES.items() if not gate.implemented] == COMING_LATER


def test_enabled_gates_with_nothing_behind_them_are_reported_in_order():
    gates = parse_gates("RayClusterMTLS=true,RayClusterNetworkPolicy=true,KubernetesWAS=true")
    assert gates.unimplemented() == ("RayClusterNetworkPolicy", "RayClusterMTLS")
    assert DEFAULT_GATES.unimplemented() == ()


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"], ids=repr)
def test_nothing_asked_for_leaves_the_defaults(text):
    assert parse_gates(text) == DEFAULT_GATES


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True"])
def test_go_spellings_of_true(value):
    assert parse_gates(f"RayClusterMTLS={value}").enabled("RayClusterMTLS")


@pytest.mark.parametrize("value", ["0", "f", "F", "FALSE", "false", "False"])
def test_go_spellings_of_false(value):
    assert not parse_gates(f"RayCronJob={value}").enabled("RayCronJob")


@pytest.mark.parametrize("value", ["", "yes", "on", "tRUE", "2", "true=false", "true\n1"], ids=repr)
def test_anything_else_is_no_boolean(value):
    with pytest.raises(GateError, match=r"RayCronJob.*neither true nor false"):
        parse_gates(f"RayCronJob={value}")


def test_several_gates_are_set_at_once_with_blanks_around_them():
    gates = parse_gates(" RayCronJob = false , RayClusterMTLS=true,")
    assert not gates.enabled("RayCronJob")
    assert gates.enabled("RayClusterMTLS")
    assert gates.enabled("RayMultiHostIndexing")


def test_the_later_of_two_settings_counts():
    assert parse_gates("RayCronJob=false,RayCronJob=true").enabled("RayCronJob")


def test_a_gate_without_a_value_is_refused():
    with pytest.raises(GateError, match="RayCronJob has no value; write RayCronJob=true"):
        parse_gates("RayCronJob")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("RayCronJobs", "RayCronJob"),
        ("raycronjob", "RayCronJob"),
        ("RayClusterMtls", "RayClusterMTLS"),
        ("RayJobDeletionPolcy", "RayJobDeletionPolicy"),
    ],
)
def test_an_unknown_gate_is_refused_with_the_nearest_name(wrong, meant):
    with pytest.raises(GateError, match=f"unknown feature gate '{wrong}'; did you mean {meant}"):
        parse_gates(f"{wrong}=true")


def test_a_gate_like_no_other_is_refused_with_all_names():
    with pytest.raises(GateError, match="known are RayClusterStatusConditions, "):
        parse_gates("###=true")


def test_a_huge_name_is_refused_with_a_short_message():
    with pytest.raises(GateError) as refusal:
        parse_gates("x" * 1_000_000 + "=true")
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    ("text", "name", "on"),
    [
        ("AllAlpha=true", "RayClusterMTLS", True),
        ("AllAlpha=true", "RayCronJob", True),
        ("AllAlpha=false", "RayCronJob", False),
        ("AllAlpha=false", "RayMultiHostIndexing", True),
        ("AllBeta=false", "RayMultiHostIndexing", False),
        ("AllBeta=false,RayMultiHostIndexing=true", "RayMultiHostIndexing", True),
        ("RayMultiHostIndexing=true,AllBeta=false", "RayMultiHostIndexing", True),
    ],
)
@pytest.mark.case("OP-20")
def test_a_whole_stage_is_set_where_a_gate_is_not_named_itself(text, name, on):
    assert parse_gates(text).enabled(name) is on


def test_async_job_info_query_is_accepted():
    assert parse_gates("AsyncJobInfoQuery=true").unimplemented() == ()


def test_gates_are_immutable_values():
    gates = parse_gates("RayCronJob=false")
    with pytest.raises(AttributeError):
        gates._on = frozenset()
    assert gates == parse_gates("RayCronJob=0") != DEFAULT_GATES
    assert hash(gates) == hash(parse_gates("RayCronJob=0"))
    assert gates != "RayCronJob=0"
    assert "RayCronJob" not in repr(gates)


def test_asking_for_a_gate_that_does_not_exist_is_an_error():
    with pytest.raises(GateError, match="did you mean RayCronJob"):
        DEFAULT_GATES.enabled("RayCronjob")
    with pytest.raises(GateError, match="did you mean RayCronJob"):
        Gates(["RayCronjob"])
