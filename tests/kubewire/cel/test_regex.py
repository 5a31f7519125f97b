"""Regular expressions as RE2 has them; where Python's engine means the same, it is the oracle."""

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewire.cel import CostExceeded, EvaluationError
from kubewire.cel.cost import Run
from kubewire.cel.regex import pattern_of


def found(pattern, text):
    span = pattern_of(pattern).find(text, 0, lambda _: None)
    return None if span is None else text[span[0] : span[1]]


def matches(pattern, text):
    return pattern_of(pattern).search(text, lambda _: None)


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        pytest.param("a+", "baac", "aa", id="a repetition takes all it can"),
        pytest.param("a+?", "baac", "a", id="a lazy one as little"),
        pytest.param("a|ab", "ab", "a", id="the first alternative wins"),
        pytest.param("(?:a|ab)c", "abc", "abc", id="unless the rest needs another"),
        pytest.param("^b", "ab", None, id="a caret is the beginning of the text"),
        pytest.param("(?m)^b", "a\nb", "b", id="or of a line"),
        pytest.param("a$", "a\n", None, id="a dollar is the very end, not before a last newline"),
        pytest.param("(?m)a$", "a\nb", "a", id="or the end of a line"),
        pytest.param(".", "\n", None, id="a dot is not a newline"),
        pytest.param("(?s).", "\n", "\n", id="unless it is told to be"),
        pytest.param("(?i)ÄB", "äb", "äb", id="case can be ignored"),
        pytest.param("(?i:a)b", "AB", None, id="for a group alone"),
        pytest.param(r"\bfoo\b", "a foo b", "foo", id="word boundaries"),
        pytest.param(r"\Bo", "foo", "o", id="places that are none"),
        pytest.param(r"[[:alpha:]]+", "12ab3", "ab", id="named classes"),
        pytest.param(r"[^[:digit:]\s]+", "1 x", "x", id="and their negation"),
        pytest.param(r"[]a-]+", "x]-a", "]-a", id="brackets and dashes stand for themselves at the edges"),
        pytest.param(r"\pL+", "1éa", "éa", id="letters of all scripts"),
        pytest.param(r"\P{Lu}+", "Aa", "a", id="all but a category"),
        pytest.param(r"\Qa.b\E", "axb a.b", "a.b", id="a quoted part is literal"),
        pytest.param(r"\x41\x{42}\103", "ABC", "ABC", id="characters by number"),
        pytest.param("a{2,3}", "aaaa", "aaa", id="counted repetitions"),
        pytest.param("a{,2}", "a{,2}", "a{,2}", id="a brace that counts nothing is a brace"),
        pytest.param("(?P<name>a)(?<other>b)", "ab", "ab", id="named groups"),
        pytest.param("", "abc", "", id="nothing is found everywhere"),
        pytest.param("(|a)+", "aa", "", id="an empty alternative that is preferred"),
        pytest.param("x*", "", "", id="an empty text"),
    ],
)
def test_the_first_match(pattern, text, match):
    assert found(pattern, text) == match
    assert matches(pattern, text) is (match is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", r"\Z", r"\k<a>", "a**", "a++", "*", "(", ")", "[",
        "[b-a]", "a{2,1}", "a{1001}", "\\", r"\é", r"\p{Nope}", "(?", "(?P<>a)", "(?x)a", r"[\d-z", "[[:nope:]]",
        r"\x{110000}",
    ],
)  # fmt: skip
def test_what_re2_refuses_is_refused(pattern):
    with pytest.raises(EvaluationError, match="error parsing regexp"):
        pattern_of(pattern)


def random_pattern(random, depth):
    if depth == 0 or random.random() < 0.3:
        return random.choice(["a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\d", "^", "$", r"\b", "ab"])
    kind = random.randrange(4)
    inner = random_pattern(random, depth - 1)
    if kind == 0:
        return inner + random_pattern(random, depth - 1)
    if kind == 1:
        return f"(?:{inner}|{random_pattern(random, depth - 1)})"
    return f"(?:{inner})" + random.choice(["*", "+", "?", "*?", "{2}", "{1,2}"])


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.integers(0, 2**62), st.text(alphabet="abc1\n ", max_size=7))
def test_whether_a_random_pattern_matches_is_what_python_says(seed, text):
    pattern = random_pattern(Random(seed), 3)
    # Python's dollar also matches before a last newline.
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    assert matches(pattern, text) is (python.search(text) is not None), pattern


def test_a_search_can_be_stopped():
    run = Run([], 0)
    with pytest.raises(CostExceeded):
        pattern_of("(x+x+)+y").find("x" * 10**6, 0, lambda steps: run.work(steps * 1000))


def test_patterns_are_kept():
    assert pattern_of("a.b") is pattern_of("a.b")
