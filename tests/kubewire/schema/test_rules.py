"""Rules in a schema are evaluated where they stand, with their own messages."""

import pytest

from kubewire import cel
from kubewire.cel import Budget
from kubewire.schema import compile_schema, validate


def judged(spec, value, old=None):
    """Return what is said of the field `f`, given its schema."""
    schema = compile_schema({"type": "object", "properties": {"f": spec}})
    errors = validate(schema, {"f": value}, None if old is None else {"f": old})
    return [(error.field, error.message, error.reason) for error in errors]


def ruled(schema, **rule):
    return {**schema, "x-kubernetes-validations": [rule]}


TEXT = {"type": "string", "maxLength": 9}
PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
MANY = {"type": "object", "additionalProperties": {"type": "integer"}}
INVALID = "FieldValueInvalid"
NO_SIGNATURE = "call arguments did not match a supported operator, function or macro signature"


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        pytest.param(ruled(TEXT, rule="self != ''"), "x", [], id="a rule that holds"),
        pytest.param(
            ruled(TEXT, rule=" self != '' "),
            "",
            [("f", "Invalid value: \"\": failed rule: self != ''", INVALID)],
            id="a rule without a message",
        ),
        pytest.param(
            ruled(TEXT, rule="self != ''", message=" say something "),
            "",
            [("f", 'Invalid value: "": say something', INVALID)],
            id="a message",
        ),
        pytest.param(
            ruled(TEXT, rule="false", message="m", messageExpression="'not ' + self"),
            "x",
            [("f", 'Invalid value: "x": not x', INVALID)],
            id="a computed message",
        ),
        pytest.param(
            ruled(TEXT, rule="false", message="m", messageExpression="'a\\nb'"),
            "x",
            [("f", 'Invalid value: "x": m', INVALID)],
            id="a computed message with line breaks is not used",
        ),
        pytest.param(
            ruled(TEXT, rule="false", message="m", messageExpression="' '"),
            "x",
            [("f", 'Invalid value: "x": m', INVALID)],
            id="an empty computed message is not used",
        ),
        pytest.param(
            ruled(MANY, rule="false", message="m", messageExpression="string(self['gone'])"),
            {},
            [("f", "Invalid value: m", INVALID)],
            id="a computed message that fails is not used",
        ),
        pytest.param(
            ruled(PAIR, rule="self.a < self.b", message="m"),
            {"a": 2, "b": 1},
            [("f", "Invalid value: m", INVALID)],
            id="an object is not printed",
        ),
        pytest.param(
            ruled(PAIR, rule="self.a < self.b", message="m", reason="FieldValueForbidden", fieldPath=".a"),
            {"a": 2, "b": 1},
            [("f.a", "Forbidden: m", "FieldValueForbidden")],
            id="a path and a reason of its own",
        ),
        pytest.param(
            ruled(PAIR, rule="false", message="m", reason="FieldValueRequired"),
            {},
            [("f", "Required value: m", "FieldValueRequired")],
            id="a reason required",
        ),
        pytest.param(
            ruled(TEXT, rule="false", message="m", reason="FieldValueDuplicate"),
            "x",
            [("f", 'Duplicate value: "x"', "FieldValueDuplicate")],
            id="a reason duplicate",
        ),
        pytest.param(
            ruled(MANY, rule="self['x'] > 0", message="m"),
            {},
            [("f", 'Invalid value: "object": no such key: x evaluating rule: m', INVALID)],
            id="a rule that fails to evaluate",
        ),
        pytest.param(
            ruled({"x-kubernetes-int-or-string": True}, rule="self > 1", message="m"),
            "x",
            [("f", f"Invalid value: \"\": 'no such overload': {NO_SIGNATURE} for rule: m", INVALID)],
            id="a rule for another type",
        ),
        pytest.param(
            {"type": "array", "items": ruled(TEXT, rule="self != 'x'", message="m")},
            ["a", "x"],
            [("f[1]", 'Invalid value: "x": m', INVALID)],
            id="items of a list",
        ),
        pytest.param(
            {
                "type": "object",
                "additionalProperties": ruled({"type": "integer"}, rule="self > 0", message="m"),
            },
            {"a.b": -1},
            [("f[a.b]", "Invalid value: -1: m", INVALID)],
            id="values of a map",
        ),
        pytest.param(
            ruled({**TEXT, "nullable": True}, rule="false", message="m"), None, [], id="null is not judged"
        ),
        pytest.param(
            ruled({"type": "string", "format": "date-time"}, rule="self.getFullYear() > 2000", message="m"),
            "1999-01-01T00:00:00Z",
            [("f", 'Invalid value: "1999-01-01T00:00:00Z": m', INVALID)],
            id="times are times",
        ),
        pytest.param(
            ruled(
                {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                rule="self == ['b', 'a']",
                message="m",
            ),
            ["a", "b"],
            [],
            id="sets are equal in any order",
        ),
        pytest.param(
            ruled(
                {
                    "type": "object",
                    "properties": {"my-key.x": {"type": "integer"}, "namespace": {"type": "string"}},
                },
                rule="self.my__dash__key__dot__x == 1 && self.__namespace__ == 'n'",
            ),
            {"my-key.x": 1, "namespace": "n"},
            [],
            id="names that are no identifiers",
        ),
    ],
)
def test_rules(schema, value, want):
    assert judged(schema, value) == want


SAME = ruled(TEXT, rule="self == oldSelf", message="m")
OPTIONAL = ruled(TEXT, rule="oldSelf.hasValue() || self == 'first'", message="m", optionalOldSelf=True)
BY_NAME = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": TEXT, "v": SAME}},
}


@pytest.mark.parametrize(
    ("schema", "old", "new", "fields"),
    [
        pytest.param(SAME, None, "x", [], id="there is nothing to compare with in a new object"),
        pytest.param(SAME, "x", "x", [], id="no change"),
        pytest.param(SAME, "x", "y", ["f"], id="a change"),
        pytest.param(OPTIONAL, None, "x", ["f"], id="an optional old value is judged in a new object"),
        pytest.param(OPTIONAL, None, "first", [], id="an optional old value may be missing"),
        pytest.param(OPTIONAL, "a", "x", [], id="an optional old value may be there"),
        pytest.param(
            BY_NAME,
            [{"name": "a", "v": "1"}, {"name": "b", "v": "2"}],
            [{"name": "b", "v": "2"}, {"name": "c", "v": "9"}, {"name": "a", "v": "3"}],
            ["f[2].v"],
            id="items of a list that is a map are found by their keys",
        ),
        pytest.param(
            {"type": "array", "items": SAME}, ["a"], ["b"], [], id="items of other lists have no old value"
        ),
        pytest.param(
            {"type": "object", "additionalProperties": SAME},
            {"a": "1", "b": "2"},
            {"b": "3", "c": "4"},
            ["f[b]"],
            id="values of a map are found by their keys",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": SAME}},
            {"a": "1"},
            {"a": "2"},
            [],
            id="fields of an atomic object have no old value",
        ),
    ],
)
def test_transitions(schema, old, new, fields):
    assert [field for field, _, _ in judged(schema, new, old)] == fields


ROOT = compile_schema(
    {
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name.startsWith('x') && self.kind == 'K'", "message": "m"}
        ],
        "properties": {"spec": {"type": "object"}},
    }
)


def test_rules_of_a_whole_object_see_its_name():
    assert validate(ROOT, {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x1"}}) == []
    [error] = validate(ROOT, {"apiVersion": "v1", "kind": "K", "metadata": {"name": "y1"}})
    assert str(error) == "<nil>: Invalid value: m"


UNCHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@pytest.mark.parametrize(
    ("schema", "value", "left_out"),
    [
        pytest.param({"type": "string"}, 5, True, id="a wrong type"),
        pytest.param({"type": "string", "enum": ["a"]}, "b", True, id="an unsupported value"),
        pytest.param({"type": "string", "maxLength": 1}, "bb", True, id="too long a text"),
        pytest.param({"type": "array", "maxItems": 0, "items": {}}, [1], True, id="too many items"),
        pytest.param({"type": "object", "required": ["a"]}, {}, True, id="a missing field"),
        pytest.param({"type": "string", "minLength": 3}, "a", False, id="not too short a text"),
        pytest.param({"type": "integer", "minimum": 3}, 1, False, id="not a bound"),
    ],
)
def test_rules_are_left_out_after(schema, value, left_out):
    other = ruled(TEXT, rule="false", message="m")
    whole = compile_schema({"type": "object", "properties": {"f": schema, "g": other}})
    errors = [str(error) for error in validate(whole, {"f": value, "g": "x"})]
    assert (UNCHECKED in errors) == left_out
    assert ('g: Invalid value: "x": m' in errors) != left_out


def test_nothing_is_said_of_rules_where_there_are_none():
    schema = compile_schema({"type": "object", "properties": {"f": {"type": "string"}}})
    assert len(validate(schema, {"f": 5})) == 1


def test_rules_can_be_switched_off():
    schema = compile_schema({"type": "object", "properties": {"f": ruled(TEXT, rule="false")}})
    assert validate(schema, {"f": "x"}, cel=False) == []


def test_a_rule_that_costs_too_much_is_the_last():
    numbers = {"type": "array", "items": {"type": "integer"}}
    costly = ruled(numbers, rule="self.all(a, self.all(b, self.all(c, a + b + c > 0)))", message="m")
    schema = compile_schema({"type": "object", "properties": {"f": costly, "g": ruled(TEXT, rule="false")}})
    [error] = validate(schema, {"f": [1] * 200, "g": "x"})
    assert error.field == "f"
    assert error.message == (
        "Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules "
        "will be run due to call cost exceeds limit for rule: m"
    )


def test_all_rules_of_an_object_share_a_budget(monkeypatch):
    monkeypatch.setattr(cel, "Budget", lambda: Budget(limit=100))
    each = {"type": "array", "items": ruled(TEXT, rule="self != ''")}
    schema = compile_schema({"type": "object", "properties": {"f": each}})
    assert validate(schema, {"f": ["x"] * 20}) == []
    [error] = validate(schema, {"f": ["x"] * 200})
    assert error.message == (
        'Invalid value: "string": validation failed due to running out of cost budget, no further validation rules '
        "will be run"
    )


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        pytest.param(
            {"limit": 5},
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be"
            " run",
            id="of the object",
        ),
        pytest.param(
            {"per_rule": 5},
            "no further validation rules will be run due to call cost exceeds limit for messageExpression:"
            ' "self + self + self"',
            id="of the rule",
        ),
    ],
)
def test_a_message_that_exceeds_the_limit_is_the_last(monkeypatch, budget, message):
    monkeypatch.setattr(cel, "Budget", lambda: Budget(**budget))
    wordy = ruled({"type": "string"}, rule="false", messageExpression="self + self + self")
    wordy["x-kubernetes-validations"].append({"rule": "false"})
    assert judged(wordy, "x" * 100) == [("f", f'Invalid value: "string": {message}', INVALID)]


def test_a_rule_that_does_not_compile_is_reported_where_it_stands():
    [(field, message, _)] = judged(ruled(TEXT, rule="self.nothing"), "x")
    assert field == "f"
    assert message.startswith(
        'Invalid value: "string": rule compile error: compilation failed: ERROR: <input>:1:5:'
    )
