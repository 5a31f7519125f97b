"""Validation answers for any object, does not change it, and accepts what can be written down again."""

import copy
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from eagleray.gates import DEFAULT_GATES, GATES, Gates
from eagleray.rayapi.rules import ValidationConfig
from eagleray.rayapi.validate import NotRay, validate_object
from kubewire.yamltext import load, load_all
from tests.eagleray.rayapi.manifests import (
    ANYTHING,
    EXAMPLES,
    built_objects,
    damaged_objects,
    harmless_changes,
)
from tests.quoting import quoted_yaml

CONFIG = ValidationConfig(DEFAULT_GATES)


def is_valid(obj):
    before = copy.deepcopy(obj)
    verdict = validate_object(obj, CONFIG)
    assert obj == before
    for problem in verdict.problems:
        assert problem.message
        assert problem.way_out
    return not any(problem.severity == "error" for problem in verdict.problems)


def test_any_object_is_judged_and_what_is_accepted_survives_yaml():
    seen: Counter[bool] = Counter()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(harmless_changes() | harmless_changes() | built_objects() | damaged_objects())
    def judge(obj):
        valid = is_valid(obj)
        seen[valid] += 1
        if valid:
            assert load(quoted_yaml(obj)) == obj

    judge()
    assert seen[True] * 3 >= seen.total(), "at least a third of the objects should be valid"
    assert seen[False] > 10


@settings(max_examples=60, deadline=None)
@given(harmless_changes())
def test_harmless_changes_to_our_examples_stay_valid(obj):
    assert validate_object(obj, CONFIG).problems == []


@settings(max_examples=100, deadline=None)
@given(ANYTHING)
def test_anything_at_all_is_judged_or_is_not_rays(value):
    try:
        verdict = validate_object(value, CONFIG)
    except NotRay:
        return
    assert verdict.problems


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda obj: obj["metadata"]["name"])
def test_our_examples_are_valid(example):
    assert validate_object(example, CONFIG).problems == []


@pytest.mark.case("OP-191")
def test_all_samples_of_the_reference_are_valid_with_the_gates_they_need(reference):
    config = ValidationConfig(Gates(GATES))
    problems = {}
    judged = 0
    for file in sorted((reference / "samples").glob("*.yaml")):
        for document in load_all(file.read_text()):
            try:
                found = validate_object(document.value, config).problems
            except NotRay:
                continue
            judged += 1
            if found:
                problems[file.name] = [str(problem) for problem in found]
    assert problems == {}
    assert judged == 37
