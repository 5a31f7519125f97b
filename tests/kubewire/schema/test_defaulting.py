"""Defaults are given as an API server gives them."""

from typing import Any

import pytest

from kubewire.schema import TooDeep, apply_defaults, compile_schema

WITH_DEFAULT = {"type": "integer", "default": 5}


@pytest.mark.parametrize(
    ("properties", "obj", "want"),
    [
        pytest.param({"a": WITH_DEFAULT}, {}, {"a": 5}, id="a missing field gets its default"),
        pytest.param({"a": WITH_DEFAULT}, {"a": 1}, {"a": 1}, id="a given value stays"),
        pytest.param({"a": {"type": "integer", "default": 0}}, {}, {"a": 0}, id="zero is a default"),
        pytest.param(
            {"a": {"type": "string", "default": ""}}, {}, {"a": ""}, id="the empty text is a default"
        ),
        pytest.param(
            {"a": WITH_DEFAULT}, {"a": None}, {"a": 5}, id="null that is not allowed gets the default"
        ),
        pytest.param(
            {"a": {**WITH_DEFAULT, "nullable": True}},
            {"a": None},
            {"a": None},
            id="null that is allowed stays",
        ),
        pytest.param({"a": {"type": "integer"}}, {"a": None}, {}, id="null without a default is dropped"),
        pytest.param(
            {"a": {"type": "object", "properties": {"b": WITH_DEFAULT}}},
            {},
            {},
            id="an object that is not there is not made for its defaults",
        ),
        pytest.param(
            {"a": {"type": "object", "properties": {"b": WITH_DEFAULT}}},
            {"a": {}},
            {"a": {"b": 5}},
            id="an object that is there gets its defaults",
        ),
        pytest.param(
            {"a": {"type": "object", "default": {"c": 1}, "properties": {"b": WITH_DEFAULT}}},
            {},
            {"a": {"b": 5, "c": 1}},
            id="a default gets defaults of its own",
        ),
        pytest.param(
            {"a": {"type": "array", "items": {"type": "object", "properties": {"b": WITH_DEFAULT}}}},
            {"a": [{}, {"b": 1}]},
            {"a": [{"b": 5}, {"b": 1}]},
            id="items of a list get their defaults",
        ),
        pytest.param(
            {"a": {"type": "array", "items": {"type": "string", "default": "x"}}},
            {"a": [None, "y"]},
            {"a": ["x", "y"]},
            id="null in a list becomes the items' default",
        ),
        pytest.param(
            {"a": {"type": "array", "items": {"type": "string"}}},
            {"a": [None]},
            {"a": [None]},
            id="null in a list without a default stays",
        ),
        pytest.param(
            {
                "a": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"b": WITH_DEFAULT}},
                }
            },
            {"a": {"x": {}}},
            {"a": {"x": {"b": 5}}},
            id="values of a map get their defaults",
        ),
        pytest.param(
            {"a": {"type": "object", "additionalProperties": WITH_DEFAULT}},
            {"a": {"x": None}},
            {"a": {"x": 5}},
            id="null in a map becomes the values' default",
        ),
        pytest.param(
            {"a": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            {"a": {"x": None}},
            {"a": {"x": None}},
            id="null in an unknown field stays",
        ),
    ],
)
def test_defaults(properties, obj, want):
    apply_defaults(compile_schema({"type": "object", "properties": properties}), obj)
    assert obj == want


def test_every_object_gets_a_copy_of_a_default():
    schema = compile_schema(
        {"type": "object", "properties": {"a": {"type": "array", "default": [{"b": []}]}}}
    )
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    apply_defaults(schema, one)
    one["a"][0]["b"].append("mine")
    apply_defaults(schema, other)
    assert other == {"a": [{"b": []}]}


def test_an_object_nested_too_deep_is_refused_in_words():
    schema = compile_schema(
        {"$ref": "#/definitions/L"}, {"L": {"type": "array", "items": {"$ref": "#/definitions/L"}}}
    )
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TooDeep, match="nested deeper than 128 levels"):
        apply_defaults(schema, deep)
