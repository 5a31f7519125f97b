"""Rules that could become too expensive are refused when they are registered."""

import pytest

from kubewire.schema import compile_schema, structural_problems
from kubewire.schema.costs import estimated_cost, excess

TEXT = {"type": "string", "maxLength": 10}
NUMBER = {"type": "integer"}


def list_of(items, **bounds):
    return {"type": "array", "items": items, **bounds}


def problems(spec, rule):
    spec = {**spec, "x-kubernetes-validations": [{"rule": rule}]}
    return [
        str(problem) for problem in structural_problems({"type": "object", "properties": {"f": spec}}, "s")
    ]


# Found with a real server's own validation: the longest list that it accepts for this rule.
@pytest.mark.parametrize(
    ("longest_text", "longest_list"), [(16, 909_090), (63, 333_333), (253, 94_339), (1024, 24_154)]
)
def test_the_bound_between_accepted_and_refused_is_that_of_a_real_server(longest_text, longest_list):
    rule = "self.all(x, x.contains('gpu'))"
    texts = {"type": "string", "maxLength": longest_text}
    assert problems(list_of(texts, maxItems=longest_list), rule) == []
    assert problems(list_of(texts, maxItems=longest_list + 1), rule) != []


@pytest.mark.parametrize(
    ("schema", "rule", "cost"),
    [
        pytest.param(NUMBER, "true", 0, id="a constant is free"),
        pytest.param(NUMBER, "self > 1", 2, id="a variable and a comparison"),
        pytest.param(
            {"type": "object", "properties": {"a": NUMBER}}, "has(self.a) && self.a > 1", 5, id="both sides"
        ),
        pytest.param(TEXT, "self == 'abc'", 2, id="the shorter of two texts"),
        pytest.param(TEXT, "self + self == ''", 11, id="texts that are joined, four bytes a character"),
        pytest.param(TEXT, "self.matches('^[a-z]+$')", 1 + 5 * 2, id="a pattern"),
        pytest.param(TEXT, "self in ['a', 'b', 'c']", 1 + 10 + 3, id="a search in a list"),
        pytest.param(NUMBER, "self > 1 ? self > 2 : self > 3 && self > 4", 2 + 4, id="the dearer branch"),
        pytest.param(list_of(NUMBER, maxItems=5), "self[0] > 1", 3, id="an item"),
        pytest.param(list_of(NUMBER, maxItems=5), "self.all(x, x > 1)", 1 + 5 * 5 + 1, id="each item"),
        pytest.param(
            list_of(NUMBER, maxItems=5), "self.exists(x, x > 1)", 1 + 5 * 6 + 1, id="each item until one"
        ),
        pytest.param(
            list_of(NUMBER, maxItems=5),
            "self.all(x, self.all(y, x > y))",
            1 + 5 * (3 + 1 + 5 * 6 + 1) + 1,
            id="pairs",
        ),
        pytest.param(
            {"type": "object", "maxProperties": 5, "additionalProperties": NUMBER},
            "self.all(k, self[k] > 1)",
            1 + 5 * (3 + 4) + 1,
            id="each key of a map",
        ),
        pytest.param(
            {"type": "string", "enum": ["a", "bcdefghijklmnop"]},
            "self + 'x' == ''",
            1 + 2 + 1,
            id="listed texts",
        ),
        pytest.param(
            list_of(NUMBER), "self.all(x, true)", 2 + 1572863 * 3, id="as many numbers as fit in a request"
        ),
    ],
)
def test_estimates(schema, rule, cost):
    assert estimated_cost(rule, compile_schema(schema)) == cost


def test_required_fields_make_items_larger_and_lists_shorter():
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "d": {"type": "string", "default": "x"}},
    }
    small, large = list_of(item), list_of({**item, "required": ["name", "d"]})
    rule = "self.all(x, true)"
    # `{}` and a comma are three bytes; `{"name":""}` and the server's own allowance make it thirteen.
    assert estimated_cost(rule, compile_schema(small)) == 2 + (3 * 1024 * 1024 - 2) // 3 * 3
    assert estimated_cost(rule, compile_schema(large)) == 2 + (3 * 1024 * 1024 - 2) // 13 * 3


def test_a_rule_counts_as_often_as_its_value_can_occur():
    rule = {"x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')"}]}
    once = {**TEXT, **rule}
    assert structural_problems({"type": "object", "properties": {"f": once}}) == []
    for many in (list_of(once, maxItems=1_000_000), {"type": "object", "additionalProperties": once}):
        first, *_ = structural_problems({"type": "object", "properties": {"f": many}})
        assert "estimated rule cost exceeds budget" in first.message


def test_many_rules_are_too_expensive_together():
    each = {"x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x != y))"}]}
    dear = {**list_of(NUMBER, maxItems=1200), **each}
    few = {"type": "object", "properties": {f"f{number}": dear for number in range(10)}}
    many = {"type": "object", "properties": {f"f{number}": dear for number in range(20)}}
    assert structural_problems(few) == []
    *blamed, total = structural_problems(many)
    assert [problem.message for problem in blamed] == [
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    ] * 4
    assert total.message.startswith(
        "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3"
    )


@pytest.mark.parametrize(
    ("cost", "factor"), [(101, "1.010000x"), (160, "1.6x"), (10_000, "100.0x"), (10_001, "more than 100x")]
)
def test_the_excess_is_told(cost, factor):
    assert excess("cost", cost, 100).startswith(f"cost exceeds budget by factor of {factor} (try simplifying")
