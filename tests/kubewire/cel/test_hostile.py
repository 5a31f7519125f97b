"""Expressions and values made to hurt: each ends soon, with a refusal or an error, and never with a traceback."""

import time

import pytest

from kubewire.cel import (
    DOUBLE,
    DYN,
    INT,
    STRING,
    CelError,
    CompileError,
    CostExceeded,
    EvaluationError,
    ListType,
    compile_expression,
    compile_rule,
)

# Far more than any of these needs on a slow machine; far less than any of them takes without its bound.
SECONDS = 10


@pytest.fixture(autouse=True)
def in_time():
    started = time.monotonic()
    yield
    assert time.monotonic() - started < SECONDS


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(" * 1000 + "1" + ")" * 1000, id="parentheses"),
        pytest.param("[" * 1000 + "]" * 1000, id="lists"),
        pytest.param("{1:" * 1000 + "1" + "}" * 1000, id="maps"),
        pytest.param("size(" * 1000 + "''" + ")" * 1000, id="calls"),
        pytest.param("a" + ".b" * 1000, id="fields"),
        pytest.param("a" + "[0]" * 1000, id="indexes"),
        pytest.param("1" + " + 1" * 1000, id="a sum"),
        pytest.param("true ? 1 : " * 1000 + "1", id="conditionals"),
        pytest.param("(1 + " * 60 + "1" + ")" * 60, id="mixed nesting"),
        pytest.param("x.all(a, " * 60 + "true" + ")" * 60, id="macros in macros"),
    ],
)
def test_deep_nesting_is_refused(text):
    with pytest.raises(CompileError, match=r"expression recursion limit exceeded: \d+"):
        compile_expression(text, {"a": DYN, "x": DYN})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(" && ".join(["true"] * 5000), True, id="a long conjunction"),
        pytest.param(" || ".join(["false"] * 5000), False, id="a long disjunction"),
        pytest.param("size([" + ", ".join(["1"] * 20_000) + "])", 20_000, id="a long list"),
        pytest.param("!" * 10_000 + "true", True, id="many negations"),
        pytest.param("(" * 40 + "1" + ")" * 40, 1, id="as many parentheses as anyone writes"),
        pytest.param("true ? 1 : " * 150 + "1", 1, id="as many conditions as anyone writes"),
        pytest.param("'" + "x" * 90_000 + "' == ''", False, id="a long literal"),
    ],
)
def test_what_is_long_but_flat_works(text, value):
    assert compile_expression(text, {}).evaluate({}) == value


def test_a_very_long_expression_is_refused():
    with pytest.raises(CompileError, match="expression code point size exceeds limit"):
        compile_expression("1" + " " * 100_000, {})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1" * 50_000, id="a number of fifty thousand digits"),
        pytest.param("0x" + "F" * 50_000, id="and a hexadecimal one"),
        pytest.param("1e999999", id="an exponent out of range"),
        pytest.param("'\\", id="a backslash at the end"),
        pytest.param("'''" * 3333, id="many quotes"),
        pytest.param("\0", id="a zero byte"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param("`a`", id="a back quote"),
        pytest.param("", id="nothing"),
        pytest.param("// only a comment", id="a comment alone"),
        pytest.param("a.b.c(", id="an open call"),
        pytest.param("[1, 2", id="an open list"),
        pytest.param("{'a': }", id="a missing value"),
        pytest.param("1 +* 2", id="two operators"),
        pytest.param("x.all(1, true)", id="a macro without a variable"),
    ],
)
def test_nonsense_is_refused(text):
    with pytest.raises(CompileError):
        compile_expression(text, {"x": DYN})


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", id="three nested loops"),
        pytest.param("self.map(a, self.map(b, a)).size() >= 0", id="lists of lists"),
        pytest.param("self.all(a, size(self + self) > 0)", id="copying the list again and again"),
        pytest.param("self.all(a, self == self)", id="comparing the list again and again"),
        pytest.param("self.all(a, a in dyn(self))", id="searching the list again and again"),
        pytest.param("self.all(a, self.indexOf(-1) < 0)", id="searching it by a function"),
        pytest.param("self.all(a, sets.contains(self, self))", id="comparing everything with everything"),
        pytest.param("self.filter(a, self.exists(b, b < a)).size() > 0", id="a filter of searches"),
    ],
)
def test_an_expensive_rule_over_a_long_list_is_stopped(rule):
    program = compile_rule(rule, ListType(INT), "none")
    with pytest.raises(CostExceeded):
        program.evaluate(list(range(100_000)))


def test_a_loop_over_a_hundred_thousand_elements_is_possible():
    assert compile_rule("self.all(e, e >= 0)", ListType(INT), "none").evaluate(list(range(100_000)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[s]" + ".map(a, a + a)" * 50, id="a string doubled fifty times"),
        pytest.param("[[1]]" + ".map(a, a + a)" * 50, id="a list doubled fifty times"),
        pytest.param("[s]" + ".map(a, a.replace('', a))" * 20, id="replacements that grow"),
        pytest.param("[[s]]" + ".map(a, [a.join(s), a.join(s)])" * 40, id="joins that grow"),
    ],
)
def test_memory_cannot_be_exhausted(text):
    with pytest.raises(CostExceeded):
        compile_expression(text, {"s": STRING}).evaluate({"s": "x" * 1000})


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("^(a+)+$", id="nested repetitions"),
        pytest.param("^(a|a)*$", id="equal alternatives"),
        pytest.param("(a*)*b", id="empty repetitions"),
        pytest.param("(.*)(.*)(.*)(.*)(.*)[0-9]", id="many wildcards"),
        pytest.param("^(([a-z])+.)+[A-Z]([a-z])+$", id="the pattern of a well known outage"),
    ],
)
def test_no_pattern_explodes(pattern):
    rule = compile_rule(f"self.matches('{pattern}')", STRING, "none")
    assert rule.evaluate("a" * 20_000 + "!", budget=10**9) is False


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("((a{100}){100}){100}", id="repeated repetitions"),
        pytest.param("(" * 200 + "a" + ")" * 200, id="deep groups"),
        pytest.param("a" * 20_000, id="a long pattern"),
        pytest.param("a{1001}", id="a large count"),
    ],
)
def test_a_pattern_that_is_too_large_is_refused(pattern):
    with pytest.raises(CompileError, match="invalid matches argument"):
        compile_rule(f"self.matches('{pattern}')", STRING)
    with pytest.raises(EvaluationError):
        compile_rule("'a'.matches(self)", STRING).evaluate(pattern)


def test_an_expensive_search_is_stopped():
    # Every match is one character long, but the whole rest is read to see that it is no longer.
    program = compile_expression("s.findAll('x.*y|x').size()", {"s": STRING})
    with pytest.raises(CostExceeded):
        program.evaluate({"s": "x" * 50_000}, budget=10**9)


def test_values_may_be_deep_but_not_without_end():
    def nested(depth):
        value: object = 1
        for _ in range(depth):
            value = [value]
        return value

    rule = compile_rule("self == oldSelf", DYN)
    assert rule.evaluate(nested(50), nested(50))
    with pytest.raises(EvaluationError, match="nested too deeply to be compared"):
        rule.evaluate(nested(5000), nested(5000))
    shown = compile_expression("('%' + 's').format([x])", {"x": DYN})
    assert shown.evaluate({"x": nested(20)}) == "[" * 20 + "1" + "]" * 20
    with pytest.raises(EvaluationError, match="nested too deeply to be formatted"):
        shown.evaluate({"x": nested(5000)})


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        pytest.param("self.sum() > 0.0", ListType(DOUBLE), [None, 1], id="null in a list of numbers"),
        pytest.param("self.min() > 0", ListType(INT), ["a", 1], id="strings in a list of numbers"),
        pytest.param("self.join('') == ''", ListType(STRING), [1], id="numbers in a list of strings"),
        pytest.param("self.all(e, e.startsWith(''))", ListType(STRING), [None], id="null in a list of strings"),
        pytest.param("self[0] > 1", ListType(INT), {}, id="an object for a list"),
        pytest.param("self.size() > 1", ListType(INT), 5, id="a number for a list"),
        pytest.param("self < 1", INT, "x", id="a string for a number"),
        pytest.param("self < 1", INT, float("nan"), id="no number for a number"),
        pytest.param("bytes(self) == b''", STRING, "\ud800", id="half a surrogate pair"),
    ],
)  # fmt: skip
def test_values_that_are_not_of_their_type_are_errors(text, kind, value):
    with pytest.raises(CelError):
        compile_rule(text, kind, "none").evaluate(value)


def test_evaluating_a_compiled_rule_is_fast():
    rule = compile_rule("has(self.a) && self.a.all(e, e > 0 && e < 100) || !has(self.b)", DYN, "none")
    value = {"a": [1, 2, 3], "b": 1}
    started = time.perf_counter()
    for _ in range(2000):
        assert rule.evaluate(value)
    # About 15 microseconds each on the slowest machine at hand; interpreting the tree anew would take 50 times that.
    assert time.perf_counter() - started < 2000 * 500e-6
