"""The registry of rules, and what holds for all of them."""

import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import eagleray.rayapi.rules
from eagleray.gates import DEFAULT_GATES, GATES, Gates
from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules import RULES, ValidationConfig, problems_of
from tests.eagleray.rayapi.rules.builders import (
    cluster_spec,
    env,
    group,
    head,
    problems,
    raycluster,
    raycronjob,
    rayjob,
    rayservice,
    rules,
)

EXAMPLES = Path(__file__).parents[3] / "data" / "invalid"
ALL_RULES = [rule for of_kind in RULES.values() for rule in of_kind]
ALL_ON = ValidationConfig(Gates(GATES))


def test_the_four_kinds_have_rules():
    assert list(RULES) == ["RayCluster", "RayJob", "RayService", "RayCronJob"]


def test_a_rule_is_named_after_its_kind_once():
    names = [rule.id for rule in ALL_RULES]
    assert len(set(names)) == len(names)
    for kind, of_kind in RULES.items():
        assert all(rule.kind == kind and rule.id.startswith(f"{kind.lower()}-") for rule in of_kind)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_a_rule_says_in_one_sentence_what_it_asks_for(rule):
    assert re.fullmatch(r"\S.{15,}\.", rule.doc)


@pytest.mark.parametrize("kind", RULES)
def test_the_package_lists_its_rules_in_order(kind):
    doc = eagleray.rayapi.rules.__doc__ or ""
    listed = re.search(rf"^    {kind} +(.+?)(?=^    Ray|^$)", doc, re.DOTALL | re.MULTILINE)
    assert listed is not None
    names = [name for word in listed[1].split() for name in expanded(word)]
    assert names == [rule.id.partition("-")[2] for rule in RULES[kind]]


def expanded(word):
    """The names that a range such as `4a-4c` or `v1-v7` stands for."""
    first, dash, last = word.partition("-")
    if not dash:
        return [first]
    if first[-1].isdigit():
        letter = first.rstrip("0123456789")
        return [
            f"{letter}{n}" for n in range(int(first.removeprefix(letter)), int(last.removeprefix(letter)) + 1)
        ]
    return [f"{first[:-1]}{chr(code)}" for code in range(ord(first[-1]), ord(last[-1]) + 1)]


def test_only_names_with_a_w_warn():
    for rule in ALL_RULES:
        for problem in example_problems(rule.id):
            if problem.rule == rule.id:
                assert (problem.severity == "warning") == ("-w" in rule.id)


def test_problems_come_in_rule_order():
    obj = raycluster(
        group("a", minReplicas=-1),
        group("a", minReplicas=9, replicas=8, suspend=True),
        metadata={"name": "A"},
        headGroupSpec=head(env("REDIS_USERNAME", "RAY_REDIS_ADDRESS"), rayStartParams={"labels": "x"}),
        authOptions={"mode": "token"},
        upgradeStrategy={"type": "x"},
        tlsOptions={},
        networkPolicy={},
    )
    found = rules(obj, "RayJobDeletionPolicy=false")
    order = [rule.id for rule in RULES["RayCluster"]]
    assert found == sorted(found, key=order.index)
    assert len(found) >= 10


def test_other_kinds_have_no_problems():
    config = ValidationConfig()
    for obj in ({"kind": "Pod"}, {}, {"kind": None}, {"kind": ["RayJob"]}):
        assert problems_of(obj, config) == []


def test_a_rule_left_out_is_left_out_in_embedded_objects_too():
    spec = cluster_spec(group(minReplicas=-1, maxReplicas=-1))
    for obj in (rayjob(rayClusterSpec=spec), rayservice(rayClusterConfig=spec)):
        assert rules(obj) == ["raycluster-4c", "raycluster-4d"]
        left = problems_of(obj, ValidationConfig(), skip=frozenset(("raycluster-4c",)))
        assert [problem.rule for problem in left] == ["raycluster-4d"]


def test_an_embedding_rule_left_out_leaves_the_embedded_object_unjudged():
    obj = rayjob(rayClusterSpec=cluster_spec(group(minReplicas=-1)), backoffLimit=-1)
    left = problems_of(obj, ValidationConfig(), skip=frozenset(("rayjob-v14",)))
    assert [problem.rule for problem in left] == ["rayjob-v18"]


@pytest.mark.parametrize(
    "obj", [raycluster(group()), rayjob(), rayservice(), raycronjob()], ids=lambda o: o["kind"]
)
def test_the_builders_of_these_tests_build_valid_objects(obj):
    assert problems(obj) == []


def test_validating_does_not_change_the_object():
    obj = raycronjob(jobTemplate=rayjob(rayClusterSpec=cluster_spec(group(replicas=9)))["spec"])
    before = deepcopy(obj)
    problems(obj)
    assert obj == before


def test_the_references_samples_break_no_rule(reference):
    # What these lack is put there by the schema's defaults before the rules are asked.
    without_defaults = {"raycluster-4b"}
    judged = 0
    for path in sorted((reference / "samples").glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text()):
            if obj and obj.get("kind") in RULES:
                judged += 1
                found = problems_of(obj, ALL_ON)
                assert {problem.rule for problem in found} <= without_defaults, path.name
    assert judged >= 37


@pytest.mark.parametrize(
    ("sample", "rule"),
    [
        ("ray-cluster.embedded-gcs-ft.yaml", "raycluster-8a"),
        ("ray-cluster.mtls.yaml", "raycluster-19a"),
        ("ray-cluster.network-policy-deny-all.yaml", "raycluster-18a"),
    ],
)
def test_the_references_gated_samples_need_their_gates(reference, sample, rule):
    documents = yaml.safe_load_all((reference / "samples" / sample).read_text())
    found = [p.rule for obj in documents if obj for p in problems_of(obj, ValidationConfig(DEFAULT_GATES))]
    assert found == [rule]


def example_problems(rule) -> list[Problem]:
    obj = yaml.safe_load((EXAMPLES / f"{rule}.yaml").read_text())
    return problems_of(obj, ValidationConfig())


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just([{}]),
    st.just({"": ""}),
)
MANIFESTS = [yaml.safe_load(path.read_text()) for path in sorted(EXAMPLES.glob("*.yaml"))]


def places(value):
    """Every container of the value with a key or position in it."""
    found = []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in entries:
        found.append((value, key))
        found += places(child)
    return found


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_no_object_however_damaged_makes_a_rule_raise(data):
    obj = deepcopy(data.draw(st.sampled_from(MANIFESTS)))
    kind = obj["kind"]
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from(places(obj)))
        holder[key] = deepcopy(data.draw(VALUES))
        if not obj:
            break
    obj["kind"] = kind
    for config in (ALL_ON, ValidationConfig(Gates())):
        assert all(str(problem) for problem in problems_of(obj, config))
