"""Schemas are compiled where they are visited, and definitions are shared."""

import pytest

from kubewire.schema import UnknownDefinition, apply_defaults, compile_schema, prune, validate

TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/definitions/Tree"}},
        "best": {"$ref": "#/definitions/Tree"},
    },
}


def test_a_definition_is_looked_up_only_when_it_is_visited():
    asked = []

    def definitions(name):
        asked.append(name)
        return {"type": "string"}

    schema = compile_schema(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "#/definitions/B"}},
        },
        definitions,
    )
    assert asked == []
    assert validate(schema, {"a": "text"}) == []
    assert asked == ["A"]


def test_all_who_refer_to_a_definition_share_its_node():
    schema = compile_schema(TREE, {"Tree": TREE})
    best, children = schema.field("best"), schema.field("children")
    assert best is not None
    assert children is not None
    assert best is children.items
    assert best is best.field("best")


def test_a_definition_may_contain_itself():
    schema = compile_schema({"$ref": "#/definitions/Tree"}, {"Tree": TREE})
    errors = validate(schema, {"children": [{"best": {"name": 5}}]})
    assert [error.field for error in errors] == ["children[0].best.name"]


def test_what_stands_beside_a_reference_adds_to_the_definition():
    schema = compile_schema(
        {"type": "object", "properties": {"size": {"$ref": "#/definitions/Size", "default": 3}}},
        {"Size": {"type": "integer"}},
    )
    obj: dict[str, object] = {}
    apply_defaults(schema, obj)
    assert obj == {"size": 3}
    assert validate(schema, {"size": "large"}) != []


@pytest.mark.parametrize(
    "definitions",
    [
        pytest.param({}, id="that does not exist"),
        pytest.param({"A": {"$ref": "#/definitions/A"}}, id="that is only a reference to itself"),
    ],
)
def test_a_reference_to_a_definition_is_refused(definitions):
    schema = compile_schema({"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}}, definitions)
    with pytest.raises(UnknownDefinition):
        prune(schema, {"a": {}})


def test_rules_are_found_below_references_without_compiling_what_is_around_them():
    schema = compile_schema(
        {"type": "object", "properties": {"tree": {"$ref": "#/definitions/Tree"}}},
        {"Tree": {**TREE, "x-kubernetes-validations": [{"rule": "true"}]}},
    )
    assert schema.has_rules
    assert not compile_schema(TREE, {"Tree": TREE}).has_rules
