"""Rules see the fields of a schema with the types that Kubernetes gives them."""

import pytest

from kubewire.cel import DYN, INT, STRING, ListType, MapType, ObjectType
from kubewire.schema import cel_type, compile_schema


@pytest.mark.parametrize(
    ("schema", "want"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "timestamp"),
        ({"type": "string", "format": "duration"}, "duration"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"x-kubernetes-preserve-unknown-fields": True}, "dyn"),
        ({"type": "array", "items": {"type": "integer"}}, "list(int)"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "map(string, bool)"),
    ],
)
def test_types(schema, want):
    assert str(cel_type(compile_schema(schema))) == want


def test_fields_are_found_under_names_that_expressions_can_write():
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "a-b": {"type": "integer"},
                "namespace": {"type": "string"},
                "1st": {"type": "string"},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "list": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
            },
        }
    )
    declared = cel_type(schema)
    assert isinstance(declared, ObjectType)
    assert declared.fields == {"a__dash__b": INT, "__namespace__": STRING}


def test_lists_keep_what_makes_their_items_equal():
    items = {"type": "object", "properties": {"k": {"type": "string"}}}
    declared = cel_type(
        compile_schema(
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": items,
            }
        )
    )
    assert isinstance(declared, ListType)
    assert (declared.kind, declared.keys) == ("map", ("k",))


def test_a_type_that_contains_itself_is_opened_step_by_step():
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#/definitions/Tree"}, "value": {"type": "integer"}},
    }
    declared = cel_type(compile_schema({"$ref": "#/definitions/Tree"}, {"Tree": tree}))
    for _ in range(5):
        assert isinstance(declared, ObjectType)
        assert declared.fields["value"] is INT
        declared = declared.fields["left"]


def test_a_map_that_contains_itself_ends_in_anything():
    nested = {"type": "object", "additionalProperties": {"$ref": "#/definitions/M"}}
    declared = cel_type(compile_schema({"$ref": "#/definitions/M"}, {"M": nested}))
    depth = 0
    while isinstance(declared, MapType):
        declared, depth = declared.value, depth + 1
    assert declared is DYN
    assert depth > 10
