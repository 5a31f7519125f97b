"""Problems, and how they are shown."""

import pytest

from eagleray.rayapi.problems import Problem, at, quoted, shortened


def test_a_problem_reads_as_place_complaint_and_way_out():
    problem = Problem(
        "raycluster-4e", ("spec", "workerGroupSpecs", 1, "maxReplicas"), "2 is too few", "raise it"
    )
    assert str(problem) == "spec.workerGroupSpecs[1].maxReplicas: 2 is too few; raise it"


def test_a_problem_is_an_error_of_the_references_unless_it_says_otherwise():
    problem = Problem("r", ("spec",), "m", "w")
    assert problem.severity == "error"
    assert not problem.stricter


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        (("spec", "headGroupSpec"), ("spec", "rayClusterSpec", "headGroupSpec")),
        (("spec",), ("spec", "rayClusterSpec")),
        (("metadata", "annotations", "a"), ("metadata", "annotations", "a")),
        (("status", "conditions"), ("status", "conditions")),
    ],
)
def test_a_spec_is_moved_to_where_it_is_embedded(inner, outer):
    problem = Problem("r", inner, "m", "w", "warning", True)
    assert at(("spec", "rayClusterSpec"), problem) == problem._replace(path=outer)


def test_what_is_embedded_twice_is_moved_twice():
    problem = at(("spec", "rayClusterSpec"), Problem("r", ("spec", "x"), "m", "w"))
    assert at(("spec", "jobTemplate"), problem).path == ("spec", "jobTemplate", "rayClusterSpec", "x")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("name", '"name"'),
        ("", '""'),
        ("Zürich", '"Zürich"'),
        ("a\nb\x1b[31m", '"a\\nb\\x1b[31m"'),
        ("\ud800", '"\\ud800"'),
        ("x" * 64, f'"{"x" * 64}"'),
        ("x" * 65, f'"{"x" * 61}..."'),
    ],
    ids=[
        "a word",
        "nothing",
        "other letters",
        "control characters",
        "half a character",
        "64 characters",
        "65",
    ],
)
def test_a_users_text_is_shown_harmless(value, shown):
    assert quoted(value) == shown


def test_a_text_is_cut_before_it_is_escaped():
    assert shortened("\0" * 1_000_000, 10) == "\\x00" * 7 + "..."
