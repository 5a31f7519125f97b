"""What the words of the declarations mean as OpenAPI."""

import pytest

from eagleray.rayapi.declare import (
    INT32,
    QUANTITY,
    STRING,
    TIME,
    KubernetesType,
    Rule,
    at_least,
    choice,
    field,
    list_of,
    map_of,
    older,
    struct,
    struct_openapi,
    structs_below,
    type_openapi,
    unwrapped,
)

POINT = struct("Point", "Where it is.", field("x", INT32, "How far right."), field("y", INT32, "How far up."))
SHAPE = struct(
    "Shape",
    "What it looks like.",
    field("name", STRING, "What it is called.", required=True),
    field("corners", list_of(POINT), "Where it turns."),
    field("marks", map_of(POINT), "Points with names."),
)


@pytest.mark.parametrize(
    ("declared", "openapi"),
    [
        pytest.param(STRING, {"type": "string"}, id="a string"),
        pytest.param(INT32, {"type": "integer", "format": "int32"}, id="a number has its width"),
        pytest.param(TIME, {"type": "string", "format": "date-time"}, id="a time is a string of a format"),
        pytest.param(
            choice("a", "b"), {"type": "string", "enum": ["a", "b"]}, id="a choice lists its values"
        ),
        pytest.param(
            at_least(1, INT32),
            {"type": "integer", "format": "int32", "minimum": 1},
            id="a number with a bound",
        ),
        pytest.param(POINT, {"$ref": "#/definitions/io.ray.v1.Point"}, id="a struct is a reference"),
        pytest.param(
            KubernetesType("core/v1", "Pod"),
            {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"},
            id="a type of Kubernetes is a reference to its published name",
        ),
        pytest.param(
            KubernetesType("meta/v1", "Time"),
            {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Time"},
            id="the types of meta are published elsewhere",
        ),
        pytest.param(
            map_of(STRING),
            {"type": "object", "additionalProperties": {"type": "string"}},
            id="a map allows any key",
        ),
        pytest.param(
            list_of(STRING),
            {"type": "array", "items": {"type": "string"}},
            id="a list says nothing of merging",
        ),
        pytest.param(
            list_of(STRING, atomic=True, min_items=1),
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "atomic",
                "minItems": 1,
            },
            id="an atomic list with a bound",
        ),
        pytest.param(
            list_of(POINT, keys=("x",)),
            {
                "type": "array",
                "items": {"$ref": "#/definitions/io.ray.v1.Point"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["x"],
            },
            id="a list with keys is a list-map",
        ),
    ],
)
def test_a_type_means(declared, openapi):
    assert type_openapi(declared) == openapi


def test_a_quantity_is_a_number_or_a_string_of_a_pattern():
    openapi = type_openapi(QUANTITY)
    assert openapi["x-kubernetes-int-or-string"] is True
    assert openapi["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert "pattern" in openapi
    assert "type" not in openapi


def test_a_struct_lists_its_required_fields_in_the_order_of_the_alphabet():
    declared = struct(
        "Pair", "Two.", field("b", STRING, "One.", required=True), field("a", STRING, "Other.", required=True)
    )
    assert struct_openapi(declared)["required"] == ["a", "b"]
    assert "required" not in struct_openapi(POINT)


def test_a_field_carries_default_null_and_rules():
    rule = Rule("self == oldSelf", "stays as it is")
    declared = struct("One", "One.", field("a", INT32, "It.", default=0, nullable=True, rules=(rule,)))
    assert struct_openapi(declared)["properties"] == {
        "a": {
            "type": "integer",
            "format": "int32",
            "default": 0,
            "nullable": True,
            "x-kubernetes-validations": [{"message": "stays as it is", "rule": "self == oldSelf"}],
        }
    }


def test_a_struct_carries_its_rules():
    declared = struct("One", "One.", field("a", STRING, "It."), rules=(Rule("has(self.a)", "needs a"),))
    assert struct_openapi(declared)["x-kubernetes-validations"] == [
        {"message": "needs a", "rule": "has(self.a)"}
    ]


def test_descriptions_appear_only_when_asked_for():
    assert "description" not in str(struct_openapi(SHAPE))
    documented = struct_openapi(SHAPE, documented=True)
    assert documented["description"] == "What it looks like."
    assert documented["properties"]["name"]["description"] == "What it is called."


def test_how_a_field_is_encoded_does_not_change_the_schema():
    plain = struct("One", "One.", field("a", STRING, "It."))
    marked = struct("One", "One.", field("a", STRING, "It.", pointer=True, always=True))
    assert struct_openapi(plain) == struct_openapi(marked)


def test_the_structs_below_are_found_through_lists_and_maps_once_each():
    assert list(structs_below(SHAPE, POINT)) == [SHAPE, POINT]


def test_unwrapping_shows_lists_and_maps_as_brackets():
    assert unwrapped(map_of(list_of(INT32))) == ("map[string][]", INT32)
    assert unwrapped(POINT) == ("", POINT)


def test_an_older_version_has_the_named_fields_and_the_given_ones_and_its_own_definition():
    changed = SHAPE.field("corners")._replace(required=True)
    before = older(SHAPE, "v1alpha1", "name", changed)
    assert before.fields == (SHAPE.field("name"), changed)
    assert before.definition == "io.ray.v1alpha1.Shape"


def test_an_older_version_cannot_name_a_field_that_does_not_exist():
    with pytest.raises(KeyError, match="colour"):
        older(SHAPE, "v1alpha1", "colour")
