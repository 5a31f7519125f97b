"""What holds for every schema and every object."""

import copy
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubewire.schema import apply_defaults, compile_schema, prune, unknown_fields, validate
from kubewire.schema.values import frozen, same

NAMES = st.sampled_from(["a", "b", "c", "kind", "metadata", "x.y"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(),
    st.sampled_from(["", "a", "b", "5", "1Gi", "2026-02-28T10:00:00Z", "ä\n\x00"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
# No schema with defaults for metadata is ever registered.
FIELDS = st.sampled_from(["a", "b", "c", "kind", "x.y"])
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)

# A default for every type, so that a schema with defaults is one that a definition could have.
DEFAULTS: dict[str, object] = {"string": "d", "integer": 5, "number": 0.5, "boolean": True}


@st.composite
def scalar_schemas(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(sorted(DEFAULTS)))}
    if draw(st.booleans()):
        schema["default"] = DEFAULTS[schema["type"]]
    if draw(st.booleans()):
        schema["nullable"] = True
    bounds: dict[str, Any] = {
        "format": draw(st.sampled_from(["", "int32", "float", "date-time", "unheard-of"])),
        "minimum": draw(st.integers(-5, 5)),
        "maximum": draw(st.floats(-5, 5)),
        "multipleOf": draw(st.sampled_from([1, 2, 0.1])),
        "minLength": draw(st.integers(0, 3)),
        "maxLength": draw(st.integers(0, 3)),
        "pattern": draw(st.sampled_from(["^a", "b$", "(", "^(a|b)*$"])),
        "enum": draw(st.lists(SCALARS, min_size=1, max_size=2)),
        "not": {"enum": ["a"]},
        "anyOf": [{"minimum": 1}, {"maxLength": 1}],
    }
    if "default" not in schema:
        for keyword in draw(st.sets(st.sampled_from(sorted(bounds)), max_size=3)):
            schema[keyword] = bounds[keyword]
    return schema


def containers(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
            "x-kubernetes-list-map-keys": st.just(["a"]),
        },
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(FIELDS, inner, max_size=4)},
        optional={
            "required": st.lists(NAMES, max_size=2),
            "x-kubernetes-preserve-unknown-fields": st.just(value=True),
            "x-kubernetes-embedded-resource": st.just(value=True),
            "x-kubernetes-validations": st.just([{"rule": "has(self.a) || true"}]),
        },
    )
    return st.one_of(lists, maps, objects)


OTHERS = st.sampled_from(
    [{"x-kubernetes-int-or-string": True}, {"x-kubernetes-preserve-unknown-fields": True}, {"type": "object"}]
)
SCHEMAS = st.recursive(st.one_of(scalar_schemas(), OTHERS), containers, max_leaves=8)
ROOTS = st.dictionaries(FIELDS, SCHEMAS, max_size=4).map(
    lambda fields: {"type": "object", "properties": fields}
)


@settings(max_examples=150, deadline=None)
@given(ROOTS, VALUES, VALUES)
def test_validation_never_raises(root, value, old):
    for errors in (validate(compile_schema(root), value), validate(compile_schema(root), value, old)):
        assert all(error.message and error.field for error in errors)


@settings(max_examples=100, deadline=None)
@given(ROOTS, OBJECTS)
def test_pruning_twice_is_pruning_once(root, obj):
    schema = compile_schema(root)
    named = unknown_fields(schema, obj)
    assert prune(schema, obj) == named
    once = copy.deepcopy(obj)
    assert prune(schema, obj) == []
    assert same(obj, once)


@settings(max_examples=100, deadline=None)
@given(ROOTS, OBJECTS)
def test_defaulting_twice_is_defaulting_once(root, obj):
    schema = compile_schema(root)
    apply_defaults(schema, obj)
    once = copy.deepcopy(obj)
    apply_defaults(schema, obj)
    assert same(obj, once)


@settings(max_examples=100, deadline=None)
@given(ROOTS, OBJECTS)
def test_pruned_and_defaulted_objects_have_no_unknown_fields(root, obj):
    schema = compile_schema(root)
    prune(schema, obj)
    apply_defaults(schema, obj)
    assert unknown_fields(schema, obj) == []


@settings(max_examples=100, deadline=None)
@given(ROOTS, OBJECTS)
def test_an_unchanged_object_is_accepted_as_an_update_unless_its_kind_is_wrong(root, obj):
    schema = compile_schema(root)
    prune(schema, obj)
    assume("preserve-unknown" not in repr(root))  # what no schema describes counts as changed
    errors = validate(schema, obj, obj, cel=False)
    assert all(
        error.path[:1] == ("kind",) or "metadata" in str(error.path) or _is_resource(error)
        for error in errors
    )


def _is_resource(error):
    return error.path[-1:] in {("apiVersion",), ("kind",), ("metadata",)}


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_values_are_the_same_exactly_if_they_are_equal_when_frozen(one, other):
    assert same(one, copy.deepcopy(one)) or "nan" in repr(one)
    if "nan" not in repr((one, other)):
        assert same(one, other) == (frozen(one) == frozen(other))
