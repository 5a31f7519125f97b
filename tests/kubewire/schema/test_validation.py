"""Values are judged in the words of a Kubernetes API server."""

import json

import pytest

from kubewire.fielderrors import FieldError
from kubewire.schema import compile_schema, validate

QUANTITY = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
NO_LABELS = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"


def judged(schema, value):
    """Return what is said of a value of the field `f`."""
    errors = validate(compile_schema({"type": "object", "properties": {"f": schema}}), {"f": value})
    return [(error.field, error.message, error.reason) for error in errors]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"type": "string"}, "x", id="a text"),
        pytest.param({"type": "boolean"}, False, id="a boolean"),
        pytest.param({"type": "integer"}, -(2**63), id="the smallest integer"),
        pytest.param({"type": "integer"}, 1.0, id="a float without a fraction for an integer"),
        pytest.param({"type": "integer", "format": "int32"}, 2**31 - 1, id="the largest 32-bit integer"),
        pytest.param({"type": "number"}, 1, id="an integer for a number"),
        pytest.param({"type": "number", "format": "double"}, 0.5, id="a fraction"),
        pytest.param({"type": "array", "items": {"type": "string"}}, [], id="an empty list"),
        pytest.param({"type": "object"}, {}, id="an empty object"),
        pytest.param({"type": "string", "nullable": True}, None, id="null where it is allowed"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, None, id="null where no type is given"),
        pytest.param(QUANTITY, "1Gi", id="a text for an integer or string"),
        pytest.param(QUANTITY, 1, id="an integer for an integer or string"),
        pytest.param(
            {"type": "string", "format": "int-or-string"}, 5, id="an integer in a published definition"
        ),
        pytest.param({"type": "string", "format": "unheard-of"}, "x", id="an unknown format"),
        pytest.param({"type": "integer", "format": "int8"}, 1000, id="a numeric format that is not enforced"),
        pytest.param({"type": "string", "maxLength": 2}, "äö", id="lengths count characters, not bytes"),
        pytest.param({"type": "string", "enum": ["a", "b"]}, "b", id="a listed value"),
        pytest.param({"type": "number", "enum": [1, 2]}, 1.0, id="a listed number in another notation"),
        pytest.param({"type": "integer", "minimum": 1, "maximum": 3}, 3, id="a value on its bound"),
        pytest.param({"type": "number", "multipleOf": 0.1}, 0.3, id="a multiple of a fraction"),
        pytest.param({"type": "integer", "multipleOf": 5}, 10, id="a multiple of an integer"),
        pytest.param({"type": "string", "pattern": "b"}, "abc", id="a pattern found inside"),
        pytest.param({"anyOf": [{"minimum": 5}, {"maximum": 1}]}, 7, id="one of any"),
        pytest.param({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}, id="exactly one"),
        pytest.param({"allOf": [{"minimum": 5}, {"maximum": 9}]}, 7, id="all of them"),
        pytest.param({"not": {"enum": ["x"]}}, "y", id="what is not excluded"),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}}, {"a.b/c": "x"}, id="a map"
        ),
    ],
)
def test_accepted(schema, value):
    assert judged(schema, value) == []


def of_type(wanted, found):
    return (
        f'Invalid value: "{found}": f in body must be of type {wanted}: "{found}"',
        "FieldValueTypeInvalid",
    )


@pytest.mark.parametrize(
    ("schema", "value", "message", "reason"),
    [
        pytest.param({"type": "string"}, 5, *of_type("string", "integer"), id="an integer for a text"),
        pytest.param({"type": "string"}, None, *of_type("string", "null"), id="null for a text"),
        pytest.param({"type": "boolean"}, "yes", *of_type("boolean", "string"), id="a text for a boolean"),
        pytest.param({"type": "boolean"}, 1, *of_type("boolean", "integer"), id="a number for a boolean"),
        pytest.param({"type": "integer"}, "5", *of_type("integer", "string"), id="a text for an integer"),
        pytest.param(
            {"type": "integer"}, True, *of_type("integer", "boolean"), id="a boolean for an integer"
        ),
        pytest.param({"type": "number"}, "5", *of_type("number", "string"), id="a text for a number"),
        pytest.param({"type": "array"}, {}, *of_type("array", "object"), id="an object for a list"),
        pytest.param({"type": "object"}, [], *of_type("object", "array"), id="a list for an object"),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            0.5,
            *of_type("integer,string", "number"),
            id="a fraction for an integer or string",
        ),
        pytest.param(
            {"type": "integer", "format": "int64"},
            [],
            *of_type("int64", ""),
            id="a list for an integer with a format",
        ),
        pytest.param(
            {"type": "string", "format": "date-time"},
            5,
            *of_type("date-time", "int64"),
            id="an integer for a time",
        ),
        pytest.param(
            {"type": "string", "format": "date-time"},
            "soon",
            *of_type("date-time", "soon"),
            id="a text that is no time",
        ),
        pytest.param(
            {"type": "string", "enum": ["a", "b"]},
            "c",
            'Unsupported value: "c": supported values: "a", "b"',
            "FieldValueNotSupported",
            id="a value that is not listed",
        ),
        pytest.param(
            {"type": "integer", "enum": [1, 2]},
            3,
            'Unsupported value: 3: supported values: "1", "2"',
            "FieldValueNotSupported",
            id="a number that is not listed",
        ),
        pytest.param(
            {"type": "boolean", "enum": [True]},
            False,
            'Unsupported value: false: supported values: "true"',
            "FieldValueNotSupported",
            id="a boolean that is not listed",
        ),
        pytest.param(
            {"type": "string", "nullable": True, "enum": ["a"]},
            None,
            'Unsupported value: null: supported values: "a"',
            "FieldValueNotSupported",
            id="null that is allowed but not listed",
        ),
        pytest.param(
            {"type": "string", "maxLength": 2},
            "abc",
            "Too long: may not be more than 2 bytes",
            "FieldValueTooLong",
            id="too long a text",
        ),
        pytest.param(
            {"type": "string", "minLength": 2},
            "ä",
            'Invalid value: "ä": f in body should be at least 2 chars long',
            "FieldValueInvalid",
            id="too short a text",
        ),
        pytest.param(
            {"type": "string", "pattern": "^[a-z]+$"},
            "abc\n",
            "Invalid value: \"abc\\n\": f in body should match '^[a-z]+$'",
            "FieldValueInvalid",
            id="the end of a pattern is the end of the text",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1},
            0,
            "Invalid value: 0: f in body should be greater than or equal to 1",
            "FieldValueInvalid",
            id="below the minimum",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            1,
            "Invalid value: 1: f in body should be greater than 1",
            "FieldValueInvalid",
            id="on an exclusive minimum",
        ),
        pytest.param(
            {"type": "number", "maximum": 1000000},
            1000000.5,
            "Invalid value: 1.0000005e+06: f in body should be less than or equal to 1e+06",
            "FieldValueInvalid",
            id="above the maximum, with numbers as Go prints them",
        ),
        pytest.param(
            {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
            5,
            "Invalid value: 5: f in body should be less than 5",
            "FieldValueInvalid",
            id="on an exclusive maximum",
        ),
        pytest.param(
            {"type": "integer", "multipleOf": 5},
            7,
            "Invalid value: 7: f in body should be a multiple of 5",
            "FieldValueInvalid",
            id="no multiple",
        ),
        pytest.param(
            {"type": "array", "minItems": 2, "items": {}},
            [1],
            "Invalid value: 1: f in body should have at least 2 items",
            "FieldValueInvalid",
            id="too short a list",
        ),
        pytest.param(
            {"type": "array", "maxItems": 1, "items": {}},
            [1, 2],
            "Too many: 2: must have at most 1 item",
            "FieldValueTooMany",
            id="too long a list",
        ),
        pytest.param(
            {"type": "array", "uniqueItems": True, "items": {}},
            [1, 1],
            'Invalid value: "": f in body shouldn\'t contain duplicates',
            "FieldValueInvalid",
            id="a list with doubles",
        ),
        pytest.param(
            {"type": "object", "minProperties": 1},
            {},
            "Invalid value: 0: f in body should have at least 1 properties",
            "FieldValueInvalid",
            id="too few properties",
        ),
        pytest.param(
            {"type": "object", "maxProperties": 1, "additionalProperties": True},
            {"a": 1, "b": 2},
            "Too many: 2: must have at most 1 item",
            "FieldValueTooMany",
            id="too many properties",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": False},
            {"a": 1},
            'Invalid value: "a": f.a in body is a forbidden property',
            "FieldValueInvalid",
            id="a property where none may be",
        ),
    ],
)
def test_refused(schema, value, message, reason):
    assert judged(schema, value) == [("f", message, reason)]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        pytest.param(
            {"type": "integer", "format": "int32"},
            2**31,
            "Checked value must be of type integer with format int32 in f",
            id="an integer above 32 bits",
        ),
        pytest.param(
            {"type": "number", "format": "float"},
            1e39,
            "Checked value must be of type number with format float in f",
            id="a number above 32-bit floats",
        ),
        pytest.param(
            {"not": {"enum": ["x"]}},
            "x",
            '"f" must not validate the schema (not)',
            id="what is excluded",
        ),
        pytest.param(
            {"oneOf": [{"maximum": 5}, {"minimum": 1}]},
            3,
            '"f" must validate one and only one schema (oneOf). Found 2 valid alternatives',
            id="more than one",
        ),
    ],
)
def test_some_errors_name_no_field(schema, value, message):
    assert judged(schema, value) == [("<nil>", f'Invalid value: "": {message}', "FieldValueInvalid")]


@pytest.mark.parametrize(
    ("schema", "value", "messages"),
    [
        pytest.param(
            {"anyOf": [{"minimum": 5}, {"maximum": 1}]},
            3,
            [
                'Invalid value: "": "f" must validate at least one schema (anyOf)',
                "Invalid value: 3: f in body should be greater than or equal to 5",
            ],
            id="none of any names the nearest",
        ),
        pytest.param(
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            [
                'Invalid value: "": "f" must validate one and only one schema (oneOf). Found none valid',
                "Required value",
            ],
            id="none of exactly one names the nearest",
        ),
        pytest.param(
            {"allOf": [{"minimum": 5}, {"maximum": 9}]},
            3,
            [
                "Invalid value: 3: f in body should be greater than or equal to 5",
                'Invalid value: "": "f" must validate all the schemas (allOf)',
            ],
            id="one of all",
        ),
        pytest.param(
            {"allOf": [{"minimum": 5}, {"minimum": 6}]},
            3,
            [
                "Invalid value: 3: f in body should be greater than or equal to 5",
                "Invalid value: 3: f in body should be greater than or equal to 6",
                'Invalid value: "": "f" must validate all the schemas (allOf). None validated',
            ],
            id="none of all",
        ),
        pytest.param(
            QUANTITY,
            True,
            [
                'Invalid value: "boolean": f in body must be of type integer,string: "boolean"',
                'Invalid value: "": "f" must validate at least one schema (anyOf)',
                'Invalid value: "boolean": f in body must be of type integer: "boolean"',
            ],
            id="neither integer nor string",
        ),
        pytest.param(
            {"type": "integer", "format": "int32"},
            1.5,
            [
                'Invalid value: "float64": f in body must be of type int32: "float64"',
                'Invalid value: "": Checked value must be of type integer with format int32 in f',
            ],
            id="a fraction for an integer with a format",
        ),
        pytest.param(
            {"type": "integer"},
            2**63,
            [
                'Invalid value: "number": f in body must be of type integer: "number"',
                'Invalid value: "": Checked value must be of type integer (default format) in f',
            ],
            id="an integer above 64 bits is read as a float",
        ),
    ],
)
def test_several_errors_of_one_value(schema, value, messages):
    assert [message for _, message, _ in judged(schema, value)] == messages


def test_a_required_field_of_an_object_that_is_not_there_is_not_missed():
    inner = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
    assert judged(inner, {}) == [("f.a", "Required value", "FieldValueRequired")]
    assert validate(compile_schema({"type": "object", "properties": {"f": inner}}), {}) == []


def test_paths_lead_to_the_value_and_are_spelled_as_the_server_spells_them():
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "m": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                }
            },
        }
    )
    [error] = validate(schema, {"m": {"a.b/c": ["x", 5]}})
    assert error.path == ("m", "a.b/c", 1)
    assert error.field == "m.a.b/c[1]"
    assert "m.a.b/c[1] in body must be of type string" in error.message


def test_the_whole_object_has_no_field():
    [error] = validate(compile_schema({"type": "object"}), [])
    assert error == FieldError(
        "FieldValueTypeInvalid",
        (),
        'Invalid value: "array":  in body must be of type object: "array"',
        "<nil>",
    )


def test_a_part_is_judged_alone_and_spelled_from_itself():
    time = {"type": "string", "format": "date-time"}
    schema = compile_schema(
        {
            "type": "object",
            "required": ["spec"],
            "properties": {"spec": {}, "status": {"type": "object", "properties": {"start": time}}},
        }
    )
    [error] = validate(schema, {"status": {"start": "soon"}}, part="status")
    assert (error.field, error.path) == ("status.start", ("status", "start"))
    assert error.message == 'Invalid value: "soon": start in body must be of type date-time: "soon"'
    assert validate(schema, {"kind": "x"}, part="status") == []


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param(["a", "b"], None, id="different texts are fine"),
        pytest.param([1, True, 1.0], None, id="values of different types are different"),
        pytest.param(["a", "b", "a", "a"], 'f[2]: Duplicate value: "a"', id="the second of many is named"),
        pytest.param(
            [{"a": 1, "b": 2}, {"b": 2, "a": 1}], 'f[1]: Duplicate value: {"a":1,"b":2}', id="objects"
        ),
        pytest.param([["a"], ["a"]], 'f[1]: Duplicate value: ["a"]', id="lists"),
    ],
)
def test_a_set_has_no_doubles(items, message):
    schema = {"type": "array", "x-kubernetes-list-type": "set", "items": {}}
    errors = validate(compile_schema({"type": "object", "properties": {"f": schema}}), {"f": items})
    assert [str(error) for error in errors] == ([message] if message else [])


@pytest.mark.parametrize(
    ("keys", "items", "message"),
    [
        pytest.param(["k"], [{"k": 1}, {"k": 2}], None, id="different keys are fine"),
        pytest.param(
            ["k"], [{"k": 1, "v": 1}, {"k": 1}], 'f[1]: Duplicate value: {"k":1}', id="the same key"
        ),
        pytest.param(["k"], [{}, {"v": 1}], "f[1]: Duplicate value: {}", id="twice without a key"),
        pytest.param(["k", "l"], [{"k": 1, "l": 1}, {"k": 1, "l": 2}], None, id="all keys count"),
        pytest.param(
            ["k", "l"],
            [{"k": 1, "l": "x"}, {"l": "x", "k": 1}],
            'f[1]: Duplicate value: {"k":1,"l":"x"}',
            id="all keys are the same",
        ),
        pytest.param(
            ["k"],
            [{"k": 1}, 5],
            "f[1]: Invalid value: 5: must be an object for an array of list-type map",
            id="no object",
        ),
    ],
)
def test_a_list_that_is_a_map_has_each_key_once(keys, items, message):
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": {},
    }
    errors = validate(compile_schema({"type": "object", "properties": {"f": schema}}), {"f": items})
    assert [str(error) for error in errors] == ([message] if message else [])


def test_doubles_below_a_map_are_spelled_with_its_key():
    inner = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    schema = compile_schema(
        {"type": "object", "properties": {"m": {"type": "object", "additionalProperties": inner}}}
    )
    [error] = validate(schema, {"m": {"k": ["a", "a"]}})
    assert (error.field, error.path) == ("m[k][1]", ("m", "k", 1))


@pytest.mark.parametrize(
    ("resource", "messages"),
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, [], id="a kind and a version are enough"),
        pytest.param(
            {},
            ["f.apiVersion: Required value", "f.kind: Required value"],
            id="a kind and a version are needed",
        ),
        pytest.param(
            {"apiVersion": "", "kind": 5},
            ["f.apiVersion: Required value", "f.kind: Invalid value: 5: must be a string"],
            id="they are texts",
        ),
        pytest.param(
            {"apiVersion": "a/b/c", "kind": "Pod"},
            ['f.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
            id="a version has one slash",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}},
            [f'f.metadata: Invalid value: {{"labels":{{"a":1}}}}: {NO_LABELS}'],
            id="metadata can be read",
        ),
    ],
)
def test_an_embedded_resource(resource, messages):
    schema = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    errors = validate(compile_schema({"type": "object", "properties": {"f": schema}}), {"f": resource})
    assert [str(error) for error in errors] == messages


def test_an_embedded_kind_is_a_name():
    schema = {"type": "object", "x-kubernetes-embedded-resource": True}
    [error] = validate(
        compile_schema({"type": "object", "properties": {"f": schema}}),
        {"f": {"apiVersion": "v1", "kind": "a b"}},
    )
    assert error.message.startswith(
        'Invalid value: "a b": may have mixed case, but should otherwise match: a DNS-1035'
    )


def test_an_object_nested_too_deep_is_refused_in_words():
    schema = compile_schema(
        {"$ref": "#/definitions/L"}, {"L": {"type": "array", "items": {"$ref": "#/definitions/L"}}}
    )
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert [str(error) for error in validate(schema, deep)] == [
        "<nil>: Invalid value: nested deeper than 128 levels"
    ]


def test_a_pattern_that_explodes_elsewhere_takes_little_time():
    schema = {"type": "string", "pattern": "^(a+)+$"}
    assert len(judged(schema, "a" * 5000 + "b")) == 1


@pytest.mark.parametrize("name", ["kubernetes", "pod"])
def test_published_definitions_are_compiled_as_they_are(name):
    from importlib import resources

    import kubewire

    text = resources.files(kubewire).joinpath("data", "definitions-1.36.json").read_text()
    schema = compile_schema({"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}, json.loads(text)["definitions"])
    probe = {"httpGet": {"port": "http" if name == "pod" else 80}}
    pod = {"spec": {"containers": [{"name": "c", "livenessProbe": probe}]}}
    assert validate(schema, pod) == []
    assert [error.field for error in validate(schema, {"spec": {"containers": [{}]}})] == [
        "spec.containers[0].name"
    ]
