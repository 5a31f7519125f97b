"""Rules over self and oldSelf: what a schema's types make of JSON, and the rules that the Ray kinds have."""

import pytest

from kubewire.cel import (
    ABSENT,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Budget,
    CompileError,
    EvaluationError,
    ListType,
    MapType,
    ObjectType,
    compile_expression,
    compile_rule,
)

STRATEGY = ObjectType(
    "strategy", {"onSuccess": DYN, "onFailure": DYN, "deletionRules": ListType(ObjectType("rule", {}))}
)
CONDITION = ObjectType("condition", {"jobStatus": STRING, "jobDeploymentStatus": STRING})


@pytest.mark.parametrize(
    ("rule", "kind", "value", "holds"),
    [
        pytest.param("self == oldSelf", STRING, "a", True, id="an unchanged string is immutable enough"),
        pytest.param("self == oldSelf", STRING, "b", False, id="a changed string is not"),
        pytest.param(
            "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
            STRING, "ray.io/kuberay-operator", True, id="managedBy is one of the known managers",
        ),
        pytest.param(
            "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
            STRING, "someone", False, id="managedBy is nobody else",
        ),
        pytest.param(
            "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
            STRATEGY, {"onSuccess": {}, "deletionRules": []}, False, id="old and new deletion rules exclude each other",
        ),
        pytest.param(
            "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
            STRATEGY, {"onFailure": {}}, True, id="old deletion rules alone are fine",
        ),
        pytest.param(
            "((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))",
            STRATEGY, {"onSuccess": {}}, False, id="half of the old deletion rules is too little",
        ),
        pytest.param(
            "((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))",
            STRATEGY, {"deletionRules": []}, True, id="an empty list of rules is there",
        ),
        pytest.param(
            "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
            CONDITION, {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}, False, id="one status, not two",
        ),
        pytest.param(
            "has(self.jobStatus) || has(self.jobDeploymentStatus)", CONDITION, {}, False, id="one status at least",
        ),
    ],
)  # fmt: skip
def test_the_rules_of_the_ray_kinds(rule, kind, value, holds):
    assert compile_rule(rule, kind).evaluate(value, "a") is holds


SPEC = ObjectType(
    "spec",
    {
        "min": INT,
        "max": INT,
        "name": STRING,
        "nested": ObjectType("nested", {"flag": BOOL}),
        "labels": MapType(STRING, STRING),
        "anything": DYN,
        "start": TIMESTAMP,
        "wait": DURATION,
        "ratio": DOUBLE,
        "data": BYTES,
        "count": UINT,
        "times": ListType(TIMESTAMP),
        "ratios": ListType(DOUBLE),
        "waits": MapType(STRING, DURATION),
        "cluster-name": STRING,
        "namespace": STRING,
        "a__b": INT,
    },
)


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        pytest.param("!has(self.min)", {}, True, id="an absent field is not there"),
        pytest.param("has(self.min)", {"min": 0}, True, id="a zero is there"),
        pytest.param("has(self.name)", {"name": ""}, True, id="an empty string is there"),
        pytest.param("has(self.name)", {"name": None}, False, id="a null field is not there"),
        pytest.param("has(self.labels.app)", {"labels": {"app": None}}, True, id="a null in a map is there"),
        pytest.param("has(self.labels.app)", {"labels": {}}, False, id="a key that is missing is not"),
        pytest.param("'app' in self.labels", {"labels": {"app": "x"}}, True, id="in looks for keys"),
        pytest.param("self.labels['app'] == 'x'", {"labels": {"app": "x"}}, True, id="a map is indexed by key"),
        pytest.param("has(self.anything.a)", {"anything": {"a": 1}}, True, id="dyn can be looked into"),
        pytest.param("has(self.anything.a)", {"anything": 5}, False, id="a number has no fields"),
        pytest.param("self.anything == 5", {"anything": 5}, True, id="int-or-string is compared as an int"),
        pytest.param("self.anything == '5'", {"anything": 5}, False, id="and is not equal to a string"),
        pytest.param("type(self.anything) == string", {"anything": "5"}, True, id="its type shows at run time"),
        pytest.param(
            "self.start < timestamp('2024-01-01T00:00:00Z')", {"start": "2023-12-31T23:00:00-00:30"}, True,
            id="a date-time string is a timestamp",
        ),
        pytest.param("self.start.getFullYear() == 2023", {"start": "2023-07-01"}, True, id="a date is midnight"),
        pytest.param("string(self.start) == '2023-07-01T10:00:00+02:00'", {"start": "2023-07-01T10:00:00+02:00"}, True,
                     id="a timestamp keeps its offset"),
        pytest.param("self.wait == duration('90m')", {"wait": "1h30m"}, True, id="a duration string is a duration"),
        pytest.param("self.wait == duration('48h')", {"wait": "2d"}, True, id="a schema allows days"),
        pytest.param("self.ratio / 2.0 == 1.5", {"ratio": 3}, True, id="a whole number in a double field is a double"),
        pytest.param("type(self.ratio) == double", {"ratio": 3}, True, id="and its type is double"),
        pytest.param("self.data == b'hi'", {"data": "aGk="}, True, id="bytes are base64"),
        pytest.param("self.count + 1u == 6u", {"count": 5}, True, id="an unsigned field is a uint"),
        pytest.param("self.times[0] < self.times[1]", {"times": ["2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z"]},
                     True, id="times in lists are timestamps"),
        pytest.param("self.times.all(t, t.getFullYear() == 2020)", {"times": ["2020-01-01T00:00:00Z"]}, True,
                     id="and so is the variable of a macro"),
        pytest.param("self.ratios.sum() == 3.5", {"ratios": [1, 2.5]}, True, id="numbers in lists are doubles"),
        pytest.param("self.waits.a == duration('1m')", {"waits": {"a": "60s"}}, True, id="durations in maps too"),
        pytest.param("self.cluster__dash__name == 'c'", {"cluster-name": "c"}, True, id="a dash is escaped"),
        pytest.param("self.__namespace__ == 'n'", {"namespace": "n"}, True, id="a reserved word is escaped"),
        pytest.param("self.a__underscores__b == 1", {"a__b": 1}, True, id="two underscores are escaped"),
        pytest.param("self == self", {"start": "2020-01-01T00:00:00Z", "unknown": {"a": [1]}}, True,
                     id="unknown fields count for equality and nothing else"),
        pytest.param("self.nested.flag", {"nested": {"flag": True}}, True, id="a bool is a rule by itself"),
    ],
)  # fmt: skip
def test_values_are_read_as_their_declared_types(rule, value, holds):
    assert compile_rule(rule, SPEC, "none").evaluate(value) is holds


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        pytest.param("self.min > 1", {}, "no such key: min", id="an absent field"),
        pytest.param("self.nested.flag", {"nested": {}}, "no such key: flag", id="an absent nested field"),
        pytest.param("self.name == 'a'", {"name": None}, "no such key: name", id="a null field"),
        pytest.param("self.labels['a'] == ''", {"labels": {}}, "no such key: a", id="an absent key"),
        pytest.param("self.min / self.max == 1", {"min": 1, "max": 0}, "division by zero", id="a division by zero"),
        pytest.param("self.anything.startsWith('a')", {"anything": 1}, "no such overload",
                     id="a method of another type"),
        pytest.param("self.labels.a.startsWith('a')", {"labels": {"a": None}}, "no such overload",
                     id="a method of null"),
        pytest.param("self.labels.all(k, self.labels[k] < 'x')", {"labels": {"a": None}}, "no such overload",
                     id="an order with null"),
        pytest.param("self.min > 1", {"min": "text"}, "no such overload", id="a value that the schema did not stop"),
        pytest.param("self.start == self.start", {"start": "soon"},
                     "type conversion error from 'string' to 'google.protobuf.Timestamp'", id="a malformed time"),
        pytest.param("self.data == b''", {"data": "a"}, "Invalid byte formatted string a: ",
                     id="malformed base64"),
    ],
)  # fmt: skip
def test_a_rule_fails_with_a_reason(rule, value, message):
    with pytest.raises(EvaluationError) as failure:
        compile_rule(rule, SPEC, "none").evaluate(value)
    assert failure.value.message.startswith(message)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param("self.nothing == 1", "undefined field 'nothing'", id="an unknown field"),
        pytest.param("self.namespace == 'n'", "undefined field 'namespace'", id="a reserved word that is not escaped"),
        pytest.param("self.a__b == 1", "undefined field 'a__b'", id="two underscores that are not escaped"),
        pytest.param("self.nested.flag.deep", "type 'bool' does not support field selection", id="a field of a bool"),
        pytest.param("self.min == 'a'", "found no matching overload for '_==_' applied to '(int, string)'",
                     id="types that never compare"),
        pytest.param("self.min", "cel expression must evaluate to a bool", id="a rule that is no question"),
        pytest.param("self.anything", "cel expression must evaluate to a bool", id="a rule of unknown type"),
        pytest.param("oldSelf == self", "undeclared reference to 'oldSelf' (in container '')",
                     id="a former value where there is none"),
        pytest.param("authorizer.path('/x').check('get').allowed()",
                     "'authorizer' is part of Kubernetes' CEL that is not supported here",
                     id="a library that is not supported"),
        pytest.param("[1].all(at, value, value > at)", "the two-variable form of 'all' is not supported here",
                     id="a macro that is not"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_work_is_refused(rule, message):
    with pytest.raises(CompileError) as refusal:
        compile_rule(rule, SPEC, "none")
    assert refusal.value.message == message


def test_an_error_shows_where_it_stands():
    with pytest.raises(CompileError) as refusal:
        compile_rule("has(self.min) &&\n  self.nothing == 1", SPEC)
    assert (refusal.value.line, refusal.value.column) == (2, 7)
    assert str(refusal.value) == (
        "ERROR: <input>:2:7: undefined field 'nothing'\n |   self.nothing == 1\n | ......^"
    )


def test_a_program_knows_whether_it_needs_the_former_value():
    assert compile_rule("self == oldSelf", INT).uses_old_self
    assert not compile_rule("self == 1", INT).uses_old_self


def test_a_transition_rule_without_a_former_value_fails():
    with pytest.raises(EvaluationError, match="no such attribute"):
        compile_rule("self == oldSelf", INT).evaluate(1)


@pytest.mark.parametrize(
    ("old", "holds"),
    [
        pytest.param(ABSENT, True, id="a new object has no former value"),
        pytest.param("2020-01-01T00:00:00Z", True, id="an earlier time"),
        pytest.param("2022-01-01T00:00:00Z", False, id="a later time"),
    ],
)
def test_an_optional_former_value_is_an_optional(old, holds):
    rule = compile_rule("!oldSelf.hasValue() || oldSelf.value() < self", TIMESTAMP, "optional")
    assert rule.evaluate("2021-01-01T00:00:00Z", old) is holds


def test_optional_former_values_can_be_looked_into():
    rule = compile_rule("oldSelf.?min.orValue(0) <= self.min", SPEC, "optional")
    assert rule.evaluate({"min": 3}, {"min": 2})
    assert rule.evaluate({"min": 3}, {})
    assert rule.evaluate({"min": 3})
    assert not rule.evaluate({"min": 3}, {"min": 4})


def test_a_message_is_an_expression_with_a_string():
    message = compile_rule("'min is ' + string(self.min)", SPEC, result=STRING)
    assert message.evaluate({"min": 4}) == "min is 4"
    assert message.result_type == STRING


def test_the_fields_of_an_object_are_asked_for_when_they_are_needed():
    def fields():
        asked.append(True)
        return {"a": INT}

    asked: list[bool] = []
    large = ObjectType("large", fields)
    compile_rule("has(self.big)", ObjectType("spec", {"big": large}))
    assert not asked
    compile_rule("self.big.a == 1", ObjectType("spec", {"big": large}))
    assert asked == [True]


def test_fields_may_be_declared_under_their_escaped_names():
    escaped = ObjectType("spec", {"cluster__dash__name": STRING, "__namespace__": STRING})
    rule = compile_rule("self.cluster__dash__name == self.__namespace__", escaped, "none")
    assert rule.evaluate({"cluster-name": "x", "namespace": "x"})


ITEM = ObjectType("item", {"k": STRING, "v": STRING})
A1, A2, B1 = {"k": "a", "v": "1"}, {"k": "a", "v": "2"}, {"k": "b", "v": "1"}


@pytest.mark.parametrize(
    ("kind", "rule", "value", "old", "holds"),
    [
        pytest.param(ListType(STRING), "self == oldSelf", ["a", "b"], ["b", "a"], False, id="a list has an order"),
        pytest.param(ListType(STRING, "set"), "self == oldSelf", ["a", "b"], ["b", "a"], True, id="a set has none"),
        pytest.param(ListType(STRING, "set"), "self == oldSelf", ["a"], ["b"], False, id="sets differ by elements"),
        pytest.param(ListType(ITEM, "map", ("k",)), "self == oldSelf", [A1, B1], [B1, A1], True,
                     id="a list of type map has no order"),
        pytest.param(ListType(ITEM, "map", ("k",)), "self == oldSelf", [A1], [A2], False, id="its values count"),
        pytest.param(ListType(STRING, "set"), "self + oldSelf == ['a', 'b', 'c']", ["a", "b"], ["b", "c"], True,
                     id="sets are united"),
        pytest.param(ListType(ITEM, "map", ("k",)), "(self + oldSelf).size() == 2", [A1], [A2, B1], True,
                     id="lists of type map are merged"),
        pytest.param(ListType(ITEM, "map", ("k",)), "(self + oldSelf)[0].v == '2'", [A1], [A2, B1], True,
                     id="the right one wins"),
        pytest.param(ObjectType("o", {"s": ListType(INT, "set")}), "self == oldSelf", {"s": [1, 2]}, {"s": [2, 1]},
                     True, id="sets inside objects have no order either"),
        pytest.param(ObjectType("o", {"t": TIMESTAMP}), "self == oldSelf", {"t": "2020-01-01T00:00:00Z"},
                     {"t": "2020-01-01T01:00:00+01:00"}, True, id="times inside objects are equal as times"),
        pytest.param(ListType(DYN), "self == oldSelf", [1, True], [1, 1], False, id="true is not 1"),
        pytest.param(DYN, "self == oldSelf", {"a": [1.0]}, {"a": [1]}, True, id="numbers are equal across kinds"),
        pytest.param(DYN, "self == oldSelf", {"a": 1}, {"b": 1}, False, id="keys count"),
    ],
)  # fmt: skip
def test_equality_and_concatenation_follow_the_list_type(kind, rule, value, old, holds):
    assert compile_rule(rule, kind).evaluate(value, old) is holds


def test_an_expression_takes_any_variables():
    expression = compile_expression("a + size(b) > 3 ? 'much' : 'little'", {"a": INT, "b": STRING}, STRING)
    assert expression.evaluate({"a": 2, "b": "xy"}) == "much"
    assert expression.evaluate({"a": 1, "b": ""}, Budget()) == "little"
    with pytest.raises(EvaluationError, match="no such attribute"):
        expression.evaluate({"a": 2})


def test_an_expression_is_refused_for_a_result_of_another_type():
    with pytest.raises(CompileError, match="must evaluate to a string"):
        compile_expression("1 + 1", {}, STRING)
