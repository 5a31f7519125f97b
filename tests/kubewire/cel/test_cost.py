"""What an evaluation costs is counted as Kubernetes counts it, and stopped where Kubernetes stops it."""

import pytest

from kubewire.cel import (
    INT,
    PER_OBJECT_LIMIT,
    PER_RULE_LIMIT,
    STRING,
    Budget,
    CostExceeded,
    EvaluationError,
    ListType,
    MapType,
    ObjectType,
    compile_rule,
)

SPEC = ObjectType(
    "spec",
    {
        "size": INT,
        "text": STRING,
        "items": ListType(INT),
        "pairs": MapType(STRING, INT),
        "deep": ObjectType("deep", {"flag": INT}),
        "parts": ListType(ObjectType("part", {"name": STRING})),
    },
)
VALUE = {
    "size": 7,
    "text": "twelve chars",
    "items": [1, 2, 3],
    "pairs": {"a": 1, "b": 2},
    "deep": {"flag": 1},
    "parts": [{"name": "a1"}, {"name": "a2"}, {"name": "a3"}],
}


def cost_of(rule, value=VALUE, kind=SPEC):
    budget = Budget()
    compile_rule(rule, kind, "none", result=None).evaluate(value, budget=budget)
    return PER_OBJECT_LIMIT - budget.remaining


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        pytest.param("true", 0, id="a literal is free"),
        pytest.param("self.size == 7", 3, id="a variable, a field and a comparison cost 1 each"),
        pytest.param("self.deep.flag == 1", 4, id="every field costs 1"),
        pytest.param("has(self.size)", 1, id="has costs its operand alone"),
        pytest.param("has(self.deep.flag)", 2, id="and every field on the way"),
        pytest.param("!has(self.size)", 2, id="a negation costs 1"),
        pytest.param("self.text == 'twelve chars'", 4, id="strings are compared ten characters at a time"),
        pytest.param("self.text.startsWith('twelve')", 4, id="the text is walked, ten characters at a time"),
        pytest.param(
            "self.text.matches('^[a-z ]+$')", 8, id="a pattern multiplies, four characters at a time"
        ),
        pytest.param("self.size in [1, 2, 3]", 2, id="a list of literals is looked up for nothing"),
        pytest.param("2 in self.items", 5, id="a list is looked through"),
        pytest.param("'a' in self.pairs", 3, id="a map is not"),
        pytest.param("[self.size, 1] == [7, 1]", 13, id="a list that is built costs 10"),
        pytest.param("{'a': self.size} == {'a': 7}", 33, id="a map that is built costs 30"),
        pytest.param("self.items.all(e, e > 0)", 18, id="all costs 5 for each element, and 1"),
        pytest.param("self.items.exists(e, e > 0)", 12, id="exists stops at the first"),
        pytest.param("self.items.exists_one(e, e == 2)", 12, id="exists_one looks at all"),
        pytest.param("self.items.filter(e, e > 2)", 22, id="filter pays for what it keeps"),
        pytest.param("self.items.map(e, e + 1)", 45, id="map pays for every element"),
        pytest.param("self.parts.map(p, p.name).exists(n, n == 'a1')", 55, id="macros add up"),
        pytest.param("false && self.size == 7", 0, id="what is not evaluated is free"),
        pytest.param("self.size > 5 ? self.size : 0", 4, id="a branch is looked through, which saves 1"),
        pytest.param("duration('1h') < duration('2h')", 1, id="literals are converted beforehand"),
        pytest.param("self.text + self.text == ''", 7, id="joining strings costs by their length"),
    ],
)
def test_a_rule_costs(rule, cost):
    assert cost_of(rule) == cost


def test_one_evaluation_is_stopped_at_its_own_limit():
    rule = compile_rule("self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", ListType(INT), "none")
    with pytest.raises(CostExceeded) as stopped:
        rule.evaluate(list(range(200)))
    assert stopped.value.message == "operation cancelled: actual cost limit exceeded"
    assert not stopped.value.of_budget


def test_a_limit_can_be_given():
    rule = compile_rule("self.all(e, e > 0)", ListType(INT), "none")
    cost = 5 * 10 + 2
    assert rule.evaluate([1] * 10, budget=cost)
    with pytest.raises(CostExceeded):
        rule.evaluate([1] * 10, budget=cost - 1)


def test_straight_code_is_held_to_the_limit_too():
    rule = compile_rule("self == 1 || self == 2 || self == 3", INT, "none")
    assert rule.evaluate(3, budget=6)
    with pytest.raises(CostExceeded):
        rule.evaluate(3, budget=5)


def test_the_limit_outweighs_an_error():
    rule = compile_rule("self.map(e, e + 1).size() / 0 == 1", ListType(INT), "none")
    with pytest.raises(EvaluationError, match="division by zero"):
        rule.evaluate([1, 2])
    with pytest.raises(CostExceeded):
        rule.evaluate([1, 2], budget=10)


def test_no_operator_hides_that_the_limit_is_passed():
    rule = compile_rule("self.all(a, self.all(b, a + b >= 0)) || true", ListType(INT), "none")
    with pytest.raises(CostExceeded):
        rule.evaluate(list(range(100)), budget=1000)


def test_evaluations_of_one_object_share_a_budget():
    budget = Budget(limit=40)
    rule = compile_rule("self.items.all(e, e > 0)", SPEC, "none")
    assert rule.evaluate(VALUE, budget=budget)
    assert rule.evaluate(VALUE, budget=budget)
    assert budget.remaining == 4
    with pytest.raises(CostExceeded) as stopped:
        rule.evaluate(VALUE, budget=budget)
    assert stopped.value.of_budget
    assert stopped.value.message == (
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


def test_a_failing_evaluation_is_charged_as_well():
    budget = Budget()
    with pytest.raises(EvaluationError):
        compile_rule("self.items.map(e, e + 1)[9] == 1", SPEC, "none").evaluate(VALUE, budget=budget)
    assert budget.remaining <= PER_OBJECT_LIMIT - 40


def test_the_limits_are_those_of_kubernetes():
    assert (PER_RULE_LIMIT, PER_OBJECT_LIMIT) == (1_000_000, 10_000_000)
    assert Budget().per_rule == PER_RULE_LIMIT
