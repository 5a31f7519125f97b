"""An update may keep what was wrong before, as long as it does not touch it."""

import pytest

from kubewire.schema import compile_schema, validate

SHORT = {"type": "string", "pattern": "^.{0,3}$"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}, "v": SHORT, "w": {"type": "string"}}}
SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "apiVersion": SHORT,
            "spec": {
                "type": "object",
                "properties": {
                    "a": SHORT,
                    "b": {"type": "string"},
                    "map": {"type": "object", "additionalProperties": SHORT},
                    "list": {"type": "array", "items": SHORT},
                    "named": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": NAMED,
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "either": {"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}], "properties": {
                        "x": {"type": "string"}, "y": {"type": "string"}}},
                    "ruled": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
                    "pair": {
                        "type": "object",
                        "properties": {
                            "l": {"type": "integer"},
                            "r": {"type": "integer"},
                            "s": {
                                "type": "array",
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["name"],
                                "items": NAMED,
                            },
                        },
                        "x-kubernetes-validations": [{"rule": "self.l <= self.r"}],
                    },
                    "ruled_list": {
                        "type": "array",
                        "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
                    },
                    "open": {
                        "type": "object",
                        "minProperties": 3,
                        "x-kubernetes-preserve-unknown-fields": True,
                    },
                    "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
                },
            },
        },
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        pytest.param({"a": "long"}, {"a": "long", "b": "x"}, [], id="an unchanged field is let pass"),
        pytest.param({"a": "long"}, {"a": "longer"}, ["spec.a"], id="a changed field is judged"),
        pytest.param({}, {"a": "long"}, ["spec.a"], id="a new field is judged"),
        pytest.param({"a": "long"}, {"a": "long"}, [], id="an unchanged object is let pass"),
        pytest.param(
            {"map": {"k": "long"}},
            {"map": {"k": "long", "l": "long"}},
            ["spec.map.l"],
            id="values of a map are told apart by their keys",
        ),
        pytest.param(
            {"list": ["long"]}, {"list": ["long"], "b": "x"}, [], id="an unchanged list is let pass"
        ),
        pytest.param(
            {"list": ["long"]},
            {"list": ["long", "x"]},
            ["spec.list[0]"],
            id="items of a changed list are judged anew",
        ),
        pytest.param(
            {"named": [{"name": "n", "v": "long"}]},
            {"named": [{"name": "m", "v": "x"}, {"name": "n", "v": "long", "w": "x"}]},
            [],
            id="items of a list that is a map are told apart by their keys",
        ),
        pytest.param(
            {"named": [{"name": "n", "v": "long"}]},
            {"named": [{"name": "other", "v": "long"}]},
            ["spec.named[0].v"],
            id="an item with another key is a new one",
        ),
        pytest.param(
            {"tags": ["x", "x"]}, {"tags": ["x", "x", "y"]}, [], id="a set that had doubles may have them"
        ),
        pytest.param({"tags": ["x"]}, {"tags": ["x", "x"]}, ["spec.tags[1]"], id="a set may not get doubles"),
        pytest.param({"either": {}}, {"either": {}, "b": "x"}, [], id="unchanged combinations are let pass"),
        pytest.param(
            {"ruled": "bad"}, {"ruled": "bad", "b": "x"}, [], id="a rule on an unchanged value is let pass"
        ),
        pytest.param(
            {"ruled": "good"}, {"ruled": "bad"}, ["spec.ruled"], id="a rule on a changed value is not"
        ),
        pytest.param(
            {"pair": {"l": 2, "r": 1}},
            {"pair": {"l": 3, "r": 1}},
            ["spec.pair"],
            id="a rule on an object that changed is not",
        ),
        pytest.param(
            {"ruled_list": ["bad"]},
            {"ruled_list": ["bad"], "b": "x"},
            [],
            id="a rule on the items of an unchanged list is let pass",
        ),
        pytest.param(
            {"ruled_list": ["bad"]},
            {"ruled_list": ["bad", "good"]},
            ["spec.ruled_list[0]"],
            id="a rule on the items of a changed list is not",
        ),
        pytest.param({"fixed": "a"}, {"fixed": "b"}, ["spec.fixed"], id="a transition is always judged"),
        pytest.param(
            {"pair": {"l": 2, "r": 1, "s": [{"name": "a"}, {"name": "b"}]}},
            {"pair": {"l": 2, "r": 1, "s": [{"name": "b"}, {"name": "a"}]}},
            [],
            id="items of a list that is a map may change their places",
        ),
        pytest.param(
            {"open": {"a": 1, "b": 2}},
            {"open": {"a": 1, "b": 2}, "b": "x"},
            ["spec.open"],
            id="what no schema describes counts as changed",
        ),
    ],
)
def test_ratcheting(old, new, fields):
    errors = validate(SCHEMA, {"spec": new}, {"spec": old})
    assert [error.field for error in errors] == fields


def test_a_rule_that_an_unchanged_value_goes_on_breaking_is_told_on_request():
    old, new = {"spec": {"ruled": "bad"}}, {"spec": {"ruled": "bad", "b": "x"}}
    (told,) = validate(SCHEMA, new, old, tolerated=True)
    assert told.tolerated
    assert str(told) == "spec.ruled: Invalid value: \"bad\": failed rule: self != 'bad'"
    (refused,) = validate(SCHEMA, new, {"spec": {}}, tolerated=True)
    assert not refused.tolerated


def test_the_version_is_always_judged():
    errors = validate(SCHEMA, {"apiVersion": "long", "spec": {"b": "x"}}, {"apiVersion": "long", "spec": {}})
    assert [error.field for error in errors] == ["apiVersion"]


def test_one_is_neither_true_nor_a_float():
    schema = compile_schema({"type": "object", "properties": {"n": {"type": "string"}}})
    assert validate(schema, {"n": 1}, {"n": 1}) == []
    assert validate(schema, {"n": 1}, {"n": True}) != []
    assert validate(schema, {"n": 1}, {"n": 1.0}) != []
