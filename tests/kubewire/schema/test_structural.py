"""A definition's schema is refused for what an API server refuses."""

import pytest

from kubewire.schema import MAX_DEPTH, structural_problems

STRING = {"type": "string"}
SHORT = {"type": "string", "maxLength": 9}


def problems(spec, **root):
    """Return what is said of a schema with this spec."""
    openapi = {"type": "object", "properties": {"spec": spec}, **root}
    return [str(problem) for problem in structural_problems(openapi, "s")]


def fields(**properties):
    return {"type": "object", "properties": properties}


def list_map(keys=("k",), items=None, **more):
    items = items or {"type": "object", "required": ["k"], "properties": {"k": STRING}}
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "items": items,
        **more,
    }


def ruled(schema, **rule):
    return {**schema, "x-kubernetes-validations": [rule]}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(fields(a=STRING), id="fields with types"),
        pytest.param({"type": "object", "additionalProperties": STRING}, id="a map"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, id="anything"),
        pytest.param({"x-kubernetes-int-or-string": True}, id="an integer or string"),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, STRING]},
            id="an integer or string, spelled out",
        ),
        pytest.param(
            {
                "x-kubernetes-int-or-string": True,
                "allOf": [{"anyOf": [{"type": "integer"}, STRING]}, {"pattern": "^a"}],
            },
            id="an integer or string, spelled out among others",
        ),
        pytest.param(
            fields(a=STRING, b=STRING)
            | {"oneOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 1}}}]},
            id="conditions on fields that exist",
        ),
        pytest.param(list_map(), id="a list by key"),
        pytest.param(
            list_map(items={"type": "object", "properties": {"k": {**STRING, "default": "x"}}}),
            id="a list by a key with a default",
        ),
        pytest.param(fields(a={"type": "integer", "default": 5}), id="a default that fits"),
        pytest.param(ruled(fields(a=STRING), rule="has(self.a)", fieldPath=".a"), id="a rule that compiles"),
        pytest.param(
            ruled(fields(a=STRING), rule="oldSelf.hasValue() || has(self.a)", optionalOldSelf=True),
            id="a rule with an optional old value",
        ),
        pytest.param(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            id="an embedded resource",
        ),
    ],
)
def test_accepted(spec):
    assert problems(spec) == []


TYPES = '"array", "boolean", "integer", "number", "object", "string"'
MISSING = "Required value: must not be empty for specified object fields"
SPEC = "s.properties[spec]"
KEYS = f"{SPEC}.x-kubernetes-list-map-keys"


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, [f"{SPEC}.type: {MISSING}"], id="a field without a type"),
        pytest.param(
            {"type": "array", "items": {}},
            [f"{SPEC}.items.type: Required value: must not be empty for specified array items"],
            id="items without a type",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {}},
            [f"{SPEC}.additionalProperties.type: {MISSING}"],
            id="values without a type",
        ),
        pytest.param(
            {"type": "text"},
            [
                f'{SPEC}.type: Unsupported value: "text": supported values: {TYPES}',
            ],
            id="an unknown type",
        ),
        pytest.param(
            {"type": "null"},
            [
                f'{SPEC}.type: Unsupported value: "null": supported values: {TYPES}',
                f"{SPEC}.type: Forbidden: type cannot be set to null, use nullable as an alternative",
            ],
            id="the type null",
        ),
        pytest.param(
            {"type": "object", "anyOf": [{"type": "object"}, {"nullable": True, "description": "x"}]},
            [
                f"{SPEC}.anyOf[0].type: Forbidden: must be empty to be structural",
                f"{SPEC}.anyOf[1].description: Forbidden: must be empty to be structural",
                f"{SPEC}.anyOf[1].nullable: Forbidden: must be false to be structural",
            ],
            id="structure inside of a junctor",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-validations": [], "allOf": [ruled({}, rule="true")]},
            [f"{SPEC}.allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"],
            id="rules inside of a junctor",
        ),
        pytest.param(
            {
                "type": "string",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            [
                f'{SPEC}.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
            ],
            id="an embedded resource that is no object",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-embedded-resource": True},
            [
                (
                    f"{SPEC}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true "
                    "without x-kubernetes-preserve-unknown-fields"
                )
            ],
            id="an embedded resource without fields",
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
            [
                (
                    f"{SPEC}.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
                    "x-kubernetes-int-or-string is true"
                )
            ],
            id="an integer or string with fields",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            [f"{SPEC}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
            id="pruning spelled out",
        ),
        pytest.param(
            fields(a={"type": "string", "definitions": {"x": STRING}}),
            [f"{SPEC}.properties[a].definitions: Forbidden: definitions is not supported"],
            id="definitions",
        ),
        pytest.param(
            {"type": "array", "items": [STRING]},
            [f"{SPEC}.items: Forbidden: items must be a schema object and not an array"],
            id="a list of schemas for items",
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-list-type": "set"},
            [f'{SPEC}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'],
            id="a list type without a list",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"},
            [
                f'{SPEC}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'
            ],
            id="an unknown list type",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-map-type": "loose"},
            [
                f'{SPEC}.x-kubernetes-map-type: Unsupported value: "loose": supported values: "atomic", "granular"'
            ],
            id="an unknown map type",
        ),
        pytest.param(
            {"type": "array", "items": fields(a=STRING), "x-kubernetes-list-type": "set"},
            [
                (
                    f"{SPEC}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
                    "x-kubernetes-list-type=set"
                )
            ],
            id="a set of objects that are merged",
        ),
        pytest.param(
            {"type": "array", "items": {**STRING, "nullable": True}, "x-kubernetes-list-type": "set"},
            [f"{SPEC}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
            id="a set with nulls",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "x-kubernetes-list-map-keys": ["k"]},
            [
                (
                    f"{SPEC}.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is "
                    "non-empty"
                )
            ],
            id="keys of a list that is no map",
        ),
        pytest.param(
            list_map(items=STRING),
            [
                (
                    f'{SPEC}.items.type: Invalid value: "string": must be object if parent array\'s '
                    "x-kubernetes-list-type is map"
                )
            ],
            id="a list by key of texts",
        ),
        pytest.param(
            list_map(keys=["k", "k", "l"]),
            [
                f'{KEYS}: Invalid value: ["k","k","l"]: must not contain duplicate entries',
                f'{KEYS}: Invalid value: ["k","k","l"]: entries must all be names of item properties',
            ],
            id="keys that repeat or do not exist",
        ),
        pytest.param(
            list_map(items=fields(k={**STRING, "nullable": True})),
            [
                (
                    f"{SPEC}.items.properties[k].default: Required value: this property is in "
                    "x-kubernetes-list-map-keys, so it must have a default or be a required property"
                ),
                (
                    f"{SPEC}.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, "
                    "so it cannot be nullable"
                ),
            ],
            id="a key that may be missing",
        ),
        pytest.param(
            list_map(items={**fields(k=fields(a=STRING)), "required": ["k"]}),
            [
                (
                    f'{SPEC}.items.properties[k].type: Invalid value: "object": must be a scalar type if parent '
                    "array's x-kubernetes-list-type is map"
                )
            ],
            id="a key that is an object",
        ),
        pytest.param(
            {**fields(a=STRING), "default": {"a": "x", "b": 1}},
            [f'{SPEC}.default: Invalid value: {{"a":"x","b":1}}: must not have unknown fields'],
            id="a default with unknown fields",
        ),
        pytest.param(
            fields(a={"type": "object", "default": {"b": 1}, "properties": {"b": STRING}}),
            [
                (
                    f"{SPEC}.properties[a].default.b:"
                    ' Invalid value: "integer": b in body must be of type string: "integer"'
                )
            ],
            id="a default that does not fit inside",
        ),
        pytest.param(
            fields(a={"type": "integer", "default": 0, "minimum": 1}),
            [
                f"{SPEC}.properties[a].default: Invalid value: 0:  in body should be greater than or equal to 1"
            ],
            id="a default out of bounds",
        ),
    ],
)
def test_refused(spec, want):
    assert problems(spec) == want


@pytest.mark.parametrize(
    ("root", "want"),
    [
        pytest.param({"type": ""}, ["s.type: Required value: must not be empty at the root"], id="no type"),
        pytest.param(
            {"properties": None, "additionalProperties": STRING},
            ["s.additionalProperties: Forbidden: must not be used at the root"],
            id="a map",
        ),
        pytest.param(
            {"not": {"properties": {"a": {}}}},
            ["s.properties[a]: Required value: because it is defined in s.not.properties[a]"],
            id="a field that is only inside of a junctor",
        ),
        pytest.param(
            {"allOf": [{"items": {"minLength": 1}}]},
            ["s.items: Required value: because it is defined in s.allOf[0].items"],
            id="items that are only inside of a junctor",
        ),
        pytest.param(
            {
                "properties": {"a": STRING},
                "oneOf": [{"properties": {"a": {"anyOf": [{"properties": {"b": {}}}]}}}],
            },
            [
                (
                    "s.properties[a].properties[b]: Required value: because it is defined in"
                    " s.oneOf[0].properties[a].anyOf[0].properties[b]"
                )
            ],
            id="a field that is only inside of a junctor inside of a junctor",
        ),
        pytest.param(
            {
                "properties": {"a": {"type": "array", "items": {"type": "object"}}},
                "allOf": [{"properties": {"a": {"items": {"properties": {"b": {}}}}}}],
            },
            [
                (
                    "s.properties[a].items.properties[b]: Required value: because it is defined in"
                    " s.allOf[0].properties[a].items.properties[b]"
                )
            ],
            id="a field of items that is only inside of a junctor",
        ),
        pytest.param(
            {"properties": {"kind": {"type": "integer"}}},
            ['s.properties[kind].type: Invalid value: "integer": must be string'],
            id="a kind that is no text",
        ),
        pytest.param(
            {
                "properties": {
                    "metadata": {"type": "object", "properties": {"name": {**STRING, "default": "x"}}}
                }
            },
            [
                "s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"
            ],
            id="a default of a name",
        ),
        pytest.param(
            {
                "properties": {
                    "metadata": {"type": "object", "properties": {"name": {**STRING, "maxLength": 9}}}
                }
            },
            [],
            id="a restriction of names is fine",
        ),
    ],
)
def test_the_root_of_a_definition(root, want):
    openapi = {"type": "object", **root}
    assert [str(problem) for problem in structural_problems(openapi, "s")] == want


def nested(depth):
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        pytest.param(lambda default: fields(a={**ANY, "default": default}), "properties[a]", id="in a field"),
        pytest.param(
            lambda default: {"type": "array", "items": {**ANY, "default": default}}, "items", id="in a list"
        ),
        pytest.param(
            lambda default: {"type": "object", "additionalProperties": {**ANY, "default": default}},
            "additionalProperties",
            id="in a map",
        ),
    ],
)
def test_no_default_is_so_deep_that_objects_with_it_could_not_be_read(schema, place):
    root, spec = 1, 1
    deepest = MAX_DEPTH - root - spec
    assert problems(schema(nested(deepest))) == []
    assert problems(schema(nested(deepest + 1))) == [
        f"{SPEC}.{place}.default: Invalid value: nested deeper than {MAX_DEPTH} levels"
    ]


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        pytest.param({"type": "array", "items": [STRING], "default": ["a"]}, "items", id="right there"),
        pytest.param(
            {**fields(a={"type": "array", "items": [STRING]}), "default": {"a": ["b"]}},
            "properties[a].items",
            id="below the default",
        ),
    ],
)
def test_a_list_of_schemas_with_a_default_is_refused_for_the_list(schema, place):
    assert problems(schema) == [f"{SPEC}.{place}: Forbidden: items must be a schema object and not an array"]


def test_a_path_of_a_rule_is_not_followed_in_a_part_that_is_refused():
    rule = {"rule": "true", "fieldPath": ".a"}
    part = {**fields(a={"$ref": "#/definitions/x"}), "x-kubernetes-validations": [rule]}
    assert problems(part) == [f"{SPEC}.properties[a].$ref: Forbidden: $ref is not supported"]


def test_labels_have_no_defaults():
    labels = {"type": "object", "additionalProperties": {**STRING, "default": "x"}}
    pod = {**fields(metadata=fields(labels=labels)), "x-kubernetes-embedded-resource": True}
    [problem] = problems(pod)
    assert problem.startswith(
        f"{SPEC}.properties[metadata].properties[labels].additionalProperties.default: Forbidden"
    )
    assert problem.endswith("must not be set inside additionalProperties applying to object metadata")


RULE = f"{SPEC}.x-kubernetes-validations[0]"


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param(
            {"rule": " "}, f"{RULE}.rule: Required value: rule is not specified", id="an empty rule"
        ),
        pytest.param(
            {"rule": "true", "message": " "},
            f'{RULE}.message: Invalid value: " ": must be non-empty if specified',
            id="a blank message",
        ),
        pytest.param(
            {"rule": "true", "message": "a\nb"},
            f'{RULE}.message: Invalid value: "a\\nb": must not contain line breaks',
            id="a message of several lines",
        ),
        pytest.param(
            {"rule": "true ||\nfalse"},
            f"{RULE}.message: Required value: message must be specified if rule contains line breaks",
            id="a rule of several lines without a message",
        ),
        pytest.param(
            {"rule": "true", "reason": "Because"},
            f'{RULE}.reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
            id="an unknown reason",
        ),
        pytest.param(
            {"rule": "true", "fieldPath": ".b"},
            f'{RULE}.fieldPath: Invalid value: ".b": must be a valid path',
            id="a path to nowhere",
        ),
        pytest.param(
            {"rule": "true", "fieldPath": "a"},
            f'{RULE}.fieldPath: Invalid value: "a": must be a valid path',
            id="a path without a dot",
        ),
        pytest.param(
            {"rule": "true", "fieldPath": "['a\\q']"},
            f"{RULE}.fieldPath: Invalid value: \"['a\\\\q']\": must be a valid path",
            id="a path with an unknown escape",
        ),
        pytest.param(
            {"rule": "self.a == 1", "message": "<m>"},
            f'{RULE}.rule: Invalid value: {{"Rule":"self.a == 1","Message":"\\u003cm\\u003e","MessageExpression":"",'
            '"Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:8: found no '
            "matching overload for '_==_' applied to '(string, int)'\n | self.a == 1\n | .......^",
            id="a rule that does not compile",
        ),
        pytest.param(
            {"rule": "true", "messageExpression": "1"},
            f'{RULE}.messageExpression: Invalid value: {{"Rule":"true","Message":"","MessageExpression":"1","Reason":'
            'null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string',
            id="a message that is no text",
        ),
        pytest.param(
            {"rule": "true", "optionalOldSelf": True},
            f"{RULE}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
            id="an old value that is not used",
        ),
    ],
)
def test_rules_are_refused(rule, want):
    assert problems(ruled(fields(a=STRING), **rule)) == [want]


@pytest.mark.parametrize(
    ("spec", "place", "within"),
    [
        pytest.param(
            {"type": "array", "maxItems": 9, "items": ruled(SHORT, rule="self == oldSelf")},
            ".items",
            "",
            id="items of a list",
        ),
        pytest.param(
            fields(a=ruled(SHORT, rule="self == oldSelf")) | {"x-kubernetes-map-type": "atomic"},
            ".properties[a]",
            "",
            id="fields of an atomic object",
        ),
    ],
)
def test_transitions_are_refused_where_old_values_cannot_be_found(spec, place, within):
    assert problems(spec) == [
        (
            f'{SPEC}{place}.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used'
            f" on the uncorrelatable portion of the schema within {SPEC}{within}"
        )
    ]


def test_transitions_are_accepted_in_a_list_by_key():
    items = {
        "type": "object",
        "required": ["k"],
        "properties": {"k": STRING, "v": ruled(SHORT, rule="self == oldSelf")},
    }
    assert problems(list_map(items=items, maxItems=9)) == []


def test_problems_lead_into_the_schema():
    [problem] = structural_problems({"type": "object", "properties": {"a": {}}})
    assert problem.path == ("properties", "a", "type")
    assert problem.field == "properties[a].type"


@pytest.mark.parametrize(
    ("openapi", "want"),
    [
        pytest.param([], "<nil>: Invalid value: []: must be an object", id="a list"),
        pytest.param({"type": 5}, "type: Invalid value: 5: must be a string", id="a number for a type"),
        pytest.param(
            {"maxLength": True},
            "maxLength: Invalid value: true: must be an integer",
            id="a boolean for a number",
        ),
        pytest.param(
            {"required": [1]}, "required[0]: Invalid value: 1: must be a string", id="a number for a name"
        ),
        pytest.param(
            {"properties": {"a": 1}},
            "properties[a]: Invalid value: 1: must be an object",
            id="a number for a schema",
        ),
        pytest.param(
            {"allOf": [1]}, "allOf[0]: Invalid value: 1: must be an object", id="a number in a junctor"
        ),
        pytest.param(
            {"x-kubernetes-validations": [1]},
            "x-kubernetes-validations[0]: Invalid value: 1: must be an object",
            id="a number for a rule",
        ),
        pytest.param(
            {"x-kubernetes-validations": [{"rule": 1}]},
            "x-kubernetes-validations[0].rule: Invalid value: 1: must be a string",
            id="a number for an expression",
        ),
    ],
)
def test_what_is_no_schema_is_refused_in_words(openapi, want):
    assert [str(problem) for problem in structural_problems(openapi)] == [want]


def test_a_schema_nested_too_deep_is_refused_in_words():
    deep: dict[str, object] = {"type": "string"}
    for _ in range(10_000):
        deep = {"type": "array", "items": deep}
    [problem] = structural_problems({"type": "object", "properties": {"a": deep}})
    assert problem.message == "Forbidden: must not be nested deeper than 128 levels"
