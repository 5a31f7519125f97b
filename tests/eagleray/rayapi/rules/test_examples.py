"""Every rule has a smallest manifest that breaks it, and what a user reads about it.

The manifests lie in `tests/data/invalid` as `<rule>.yaml`, with `<rule>.txt` beside them.
"""

from pathlib import Path

import pytest
import yaml

from eagleray.gates import parse_gates
from eagleray.rayapi.rules import RULES, ValidationConfig, problems_of

EXAMPLES = Path(__file__).parents[3] / "data" / "invalid"
RULE_IDS = [rule.id for rules in RULES.values() for rule in rules]
EXAMPLE_IDS = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def verdict(example, *, skip=frozenset()):
    text = (EXAMPLES / f"{example}.yaml").read_text()
    first = text.partition("\n")[0]
    gates = first.removeprefix("# gates: ") if first.startswith("# gates: ") else ""
    return problems_of(yaml.safe_load(text), ValidationConfig(parse_gates(gates)), skip=skip)


def shown(problems):
    return "".join(f"{problem}\n" for problem in problems)


@pytest.mark.parametrize("example", EXAMPLE_IDS)
def test_the_example_gives_its_expected_output(example):
    assert shown(verdict(example)) == (EXAMPLES / f"{example}.txt").read_text()


def test_switching_any_rule_off_makes_its_example_fail():
    unguarded = [
        rule
        for rule in RULE_IDS
        if not (EXAMPLES / f"{rule}.yaml").is_file()
        or shown(verdict(rule, skip=frozenset((rule,)))) == (EXAMPLES / f"{rule}.txt").read_text()
    ]
    assert not unguarded, f"no example in {EXAMPLES} notices that these rules are off: {', '.join(unguarded)}"


def test_there_is_an_example_and_an_output_for_every_rule_and_nothing_else():
    assert sorted(path.name for path in EXAMPLES.iterdir()) == sorted(
        f"{rule}{suffix}" for rule in RULE_IDS for suffix in (".txt", ".yaml")
    )


@pytest.mark.parametrize("example", EXAMPLE_IDS)
def test_an_example_without_its_mistake_is_otherwise_valid(example):
    """What is left when the rule is off is the same mistake seen by a neighbouring rule, or nothing."""
    left = {problem.rule for problem in verdict(example, skip=frozenset((example,)))}
    assert left <= {"raycluster-4e"} if example == "raycluster-4d" else left == set()


@pytest.mark.parametrize("example", EXAMPLE_IDS)
def test_an_example_says_in_a_comment_what_is_wrong(example):
    lines = (EXAMPLES / f"{example}.yaml").read_text().splitlines()
    comments = [line for line in lines[:2] if line.startswith("# ") and not line.startswith("# gates: ")]
    assert len(comments) == 1
    assert comments[0].endswith(".")
    assert ("warning" in comments[0]) == all(problem.severity == "warning" for problem in verdict(example))


@pytest.mark.parametrize("example", EXAMPLE_IDS)
def test_a_problem_is_one_line_with_a_place_a_complaint_and_a_way_out(example):
    for problem in verdict(example):
        assert problem.path
        assert problem.message
        assert problem.way_out
        assert "; " not in problem.way_out
        assert "\n" not in str(problem)
        assert str(problem).endswith(f": {problem.message}; {problem.way_out}")
