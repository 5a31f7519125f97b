"""Unknown fields are removed and named."""

import copy

import pytest

from kubewire.schema import TooDeep, compile_schema, prune, unknown_fields

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
KNOWN = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "obj", "want", "unknown"),
    [
        pytest.param(KNOWN, {"a": 1}, {"a": 1}, [], id="a known field stays"),
        pytest.param(KNOWN, {"b": 1, "a": 1}, {"a": 1}, [("b",)], id="an unknown field goes"),
        pytest.param(
            {"type": "object", "properties": {"k": KNOWN}},
            {"k": {"x": {"y": 1}}, "l": 1},
            {"k": {}},
            [("k", "x"), ("l",)],
            id="unknown fields are named in the order of the object",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": {"type": "array", "items": KNOWN}}},
            {"k": [{"a": 1, "x": 2}, {"x": 3}]},
            {"k": [{"a": 1}, {}]},
            [("k", 0, "x"), ("k", 1, "x")],
            id="items of a list are pruned",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": {"type": "object", "additionalProperties": KNOWN}}},
            {"k": {"any": {"a": 1, "x": 2}}},
            {"k": {"any": {"a": 1}}},
            [("k", "any", "x")],
            id="a map keeps all keys and prunes their values",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": OPEN}},
            {"k": {"x": {"y": [{"z": 1}]}}},
            {"k": {"x": {"y": [{"z": 1}]}}},
            [],
            id="where unknown fields are preserved nothing goes",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": {**OPEN, "properties": {"known": KNOWN}}}},
            {"k": {"x": 1, "known": {"a": 1, "x": 2}}},
            {"k": {"x": 1, "known": {"a": 1}}},
            [("k", "known", "x")],
            id="known fields of what preserves unknown ones are pruned by their own schema",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {
                    "k": {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": KNOWN}
                },
            },
            {"k": [{"x": 1}]},
            {"k": [{"x": 1}]},
            [],
            id="items of a list that preserves unknown fields keep theirs",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": {"type": "object", "additionalProperties": True}}},
            {"k": {"text": "x", "object": {"y": 1}}},
            {"k": {"text": "x", "object": {}}},
            [("k", "object", "y")],
            id="a map of anything keeps its values but not their fields",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": {"type": "array"}}},
            {"k": [{"y": 1}, [{"z": 1}], 5]},
            {"k": [{}, [{}], 5]},
            [("k", 0, "y"), ("k", 1, 0, "z")],
            id="items that nothing is said of lose their fields",
        ),
        pytest.param(
            {"type": "object", "properties": {"k": {"x-kubernetes-int-or-string": True}}},
            {"k": {"x": 1}},
            {"k": {}},
            [("k", "x")],
            id="a number or text has no fields",
        ),
    ],
)
def test_prune(schema, obj, want, unknown):
    untouched = copy.deepcopy(obj)
    assert unknown_fields(compile_schema(schema), untouched) == unknown
    assert untouched == obj
    assert prune(compile_schema(schema), obj) == unknown
    assert obj == want


METADATA = {
    "name": "n",
    "generateName": "n-",
    "namespace": "ns",
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "finalizers": ["f"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {".": {}}}}],
    "creationTimestamp": None,
    "resourceVersion": "1",
}


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param({}, id="the schema does not mention"),
        pytest.param({"metadata": {"type": "object"}}, id="the schema only mentions"),
        pytest.param(
            {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}},
            id="the schema restricts",
        ),
    ],
)
def test_a_resource_keeps_metadata_that(declared):
    obj = {"apiVersion": "v1", "kind": "Box", "metadata": copy.deepcopy(METADATA)}
    assert prune(compile_schema({"type": "object", "properties": declared}), obj) == []
    assert obj["metadata"] == METADATA


def test_unknown_metadata_goes_everywhere():
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}}
    schema = compile_schema({"type": "object", "properties": {"pod": embedded}})
    obj = {
        "metadata": {"name": "n", "lables": {}},
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 1}, "spec": {}},
    }
    assert prune(schema, obj) == [("metadata", "lables"), ("pod", "metadata", "odd"), ("pod", "spec")]
    assert obj == {
        "metadata": {"name": "n"},
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    }


def test_a_part_of_an_object_has_no_metadata_of_its_own():
    assert prune(compile_schema(KNOWN), {"kind": "x"}, resource=False) == [("kind",)]


def test_an_object_nested_too_deep_is_refused_in_words():
    schema = compile_schema(
        {"$ref": "#/definitions/L"}, {"L": {"type": "array", "items": {"$ref": "#/definitions/L"}}}
    )
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TooDeep, match="nested deeper than 128 levels"):
        prune(schema, deep)
