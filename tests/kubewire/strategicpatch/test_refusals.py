"""Strategic merge patch: what is refused, how, and in which words."""

import pytest

from kubewire.strategicpatch import (
    MalformedPatch,
    PatchError,
    PatchFailed,
    PatchNotApplicable,
    apply,
    parse,
    shape_of,
)

POD_SPEC = "io.k8s.api.core.v1.PodSpec"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
USER_INFO = "io.k8s.api.authentication.v1.UserInfo"
JSON_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"

ONE_CONTAINER = {"containers": [{"name": "a", "image": "x"}]}
NO_SLICE_ELEMENTS = "no elements in any of the given slices"

MALFORMED = [
    pytest.param(
        OBJECT_META,
        {},
        {"$retainKeys": "name"},
        "invalid patch format of retainKeys",
        id="retained keys that are no list",
    ),
    pytest.param(
        OBJECT_META,
        {},
        {"$retainKeys": ["name", {}], "name": "n"},
        "invalid patch format of retainKeys",
        id="an object among the retained keys",
    ),
    pytest.param(
        OBJECT_META,
        {},
        {"$retainKeys": ["name", 1, None], "name": "n", "labels": {}},
        "invalid patch format of retainKeys",
        id="a key that is set and not retained",
    ),
    pytest.param(
        OBJECT_META,
        {},
        {"$deleteFromPrimitiveList": ["a"]},
        "invalid patch format of primitive list",
        id="deletions without a field",
    ),
    pytest.param(
        OBJECT_META,
        {},
        {"$deleteFromPrimitiveLists/finalizers": ["a"]},
        "invalid patch format of primitive list",
        id="deletions under a longer name",
    ),
    pytest.param(
        OBJECT_META,
        {},
        {"$setElementOrder": ["a"]},
        "invalid patch format of setElementOrder list",
        id="an order without a field",
    ),
]

FAILED = [
    pytest.param(
        OBJECT_META,
        {"finalizers": [["a"]]},
        {"finalizers": [["b"]]},
        "lists of lists are not supported",
        id="lists of lists",
    ),
]

NOT_APPLICABLE = [
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"containers": [{"image": "y", "args": ["p", "q"], "tty": True, "env": None}]},
        "map: map[args:[p q] env:<nil> image:y tty:true] does not contain declared merge key: name",
        id="an item without its merge key",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"containers": [{"image": "y", "$patch": "delete"}]},
        "map: map[$patch:delete image:y] does not contain declared merge key: name",
        id="a deletion without its merge key",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"image": "x"}]},
        {"containers": [{"name": "a"}]},
        "map: map[image:x] does not contain declared merge key: name",
        id="a live item without its merge key",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {}},
        {"affinity": {"$patch": "explode", "podAffinity": {}}},
        "unknown patch type: explode in map: map[$patch:explode podAffinity:map[]]",
        id="an unknown directive",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {}},
        {"affinity": {"$patch": "merge"}},
        "unknown patch type: merge in map: map[$patch:merge]",
        id="the directive merge, which objects do not know",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"containers": [{"name": "a", "$patch": "explode"}]},
        "unknown patch type: explode in map: map[$patch:explode name:a]",
        id="an unknown directive on an item",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"containers": [{"name": "a", "$patch": "merge"}]},
        "merging lists cannot yet be specified in the patch",
        id="the directive merge on an item",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {}},
        {"affinity": {"$patch": None}},
        "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]",
        id="the directive null",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {}},
        {"affinity": {"$patch": [1, True, 1.5, "a", None, {"b": -2}]}},
        "unknown patch type: [%!s(int64=1) %!s(bool=true) %!s(float64=1.5) a <nil> map[b:%!s(int64=-2)]] "
        "in map: map[$patch:[1 true 1.5 a <nil> map[b:-2]]]",
        id="a directive that is no text",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {}},
        {
            "affinity": {
                "$patch": "x",
                "n": [1e6, 1e-05, 0.0001, 100000.5, 123456789.0, 2.5e300, -0.0, 2**64, 7],
            }
        },
        "unknown patch type: x in map: map[$patch:x n:[1e+06 1e-05 0.0001 100000.5 1.23456789e+08 2.5e+300 -0 "
        "1.8446744073709552e+19 7]]",
        id="numbers are shown as Go shows them",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"containers": ["a"]},
        "list element types are not identical: [[map[image:x name:a]] [a]]",
        id="items of another type than the live ones",
    ),
    pytest.param(
        OBJECT_META,
        {"finalizers": ["a"]},
        {"finalizers": ["b", None]},
        "list element types are not identical: [[a] [b <nil>]]",
        id="a null among plain values",
    ),
    pytest.param(
        OBJECT_META,
        {"finalizers": []},
        {"finalizers": [None]},
        "lists with null elements cannot be merged",
        id="nothing but null",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": []},
        {"containers": ["a"]},
        "expected a map[string]interface {}, but received a string",
        id="plain values where items have a key",
    ),
    pytest.param(
        POD_SPEC,
        {"tolerations": [{"key": "a"}]},
        {"$deleteFromPrimitiveList/tolerations": [{"key": "a"}]},
        "cannot merge lists without merge key for struct",
        id="deletions of objects without a key",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"containers": [{"name": {"a": "b"}}]},
        "a map[string]interface {} cannot be compared to find an element of a list",
        id="an object as the merge key",
    ),
    pytest.param(
        JSON_SCHEMA,
        {"properties": {"a": {"type": "string"}}},
        {"properties": {"a": {"type": "integer"}}},
        "merging an object in json but data type is not struct, instead is: map",
        id="objects that are the values of a map",
    ),
    pytest.param(
        USER_INFO,
        {"extra": {"a": ["b"]}},
        {"extra": {"a": ["c"]}},
        "merging an object in json but data type is not struct, instead is: map",
        id="lists that are the values of a map",
    ),
    pytest.param(
        JSON_SCHEMA,
        {"default": {"a": {}}},
        {"default": {"a": {}}},
        'unable to find api field in struct JSON for the json field "a"',
        id="objects where any JSON goes",
    ),
    pytest.param(
        POD_SPEC,
        {"nothing": {}},
        {"nothing": {}},
        'unable to find api field in struct PodSpec for the json field "nothing"',
        id="a field that the type does not have",
    ),
    pytest.param(
        POD_SPEC,
        {"hostname": ["a"]},
        {"hostname": ["b"]},
        "expected slice or array type, but got: struct",
        id="a list where the type has none",
    ),
]

BAD_ORDERS = [
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": "a"},
        "expected a []interface {}, but received a string",
        id="an order that is no list",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": {}},
        {"$setElementOrder/containers": []},
        "expected a []interface {}, but received a map[string]interface {}",
        id="an order of a live object",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": [{"name": "a"}], "containers": None},
        "expected a []interface {}, but received a %!s(<nil>)",
        id="an order of what the patch removes",
    ),
    pytest.param(
        POD_SPEC,
        {},
        {"$setElementOrder/nothing": []},
        'unable to find api field in struct PodSpec for the json field "nothing"',
        id="an order of a field that the type does not have",
    ),
    pytest.param(
        OBJECT_META,
        {"labels": {"a": "b"}},
        {"labels": {"$setElementOrder/b": []}},
        "merging an object in json but data type is not struct, instead is: map",
        id="an order inside a map",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": []},
        {"$setElementOrder/containers": []},
        NO_SLICE_ELEMENTS,
        id="an order of nothing",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]},
        "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        id="an item of the patch that the order leaves out",
    ),
    pytest.param(
        OBJECT_META,
        {},
        {"$setElementOrder/finalizers": ["b", "a"], "finalizers": ["a", "b"]},
        "The order in patch list:\n[a b]\n doesn't match $setElementOrder list:\n[b a]\n",
        id="items of the patch in another order",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {
            "$setElementOrder/containers": [{"name": "b"}],
            "containers": [{"name": "b"}, {"$patch": "replace"}],
        },
        "The order in patch list:\n[map[name:b] map[$patch:replace]]\n"
        " doesn't match $setElementOrder list:\n[map[name:b]]\n",
        id="a directive behind the last item of the order",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": ["a"]},
        "value for key 0 is not a map",
        id="plain values that order items",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": [{"name": "a"}, "b"]},
        "expected a map[string]interface {}, but received a string",
        id="a plain value behind the items of an order",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": ["a"], "containers": [{"name": "a"}]},
        "expected a map[string]interface {}, but received a string",
        id="plain values that order items of the patch",
    ),
    pytest.param(
        POD_SPEC,
        ONE_CONTAINER,
        {"$setElementOrder/containers": [{"name": "a"}, {"image": "x"}]},
        "map: map[image:x] does not contain declared merge key: name",
        id="an item of the order without its merge key",
    ),
    pytest.param(
        POD_SPEC,
        {"tolerations": [{"key": "a"}]},
        {"$setElementOrder/tolerations": [{"key": "a"}]},
        "a map[string]interface {} cannot be compared to find an element of a list",
        id="an order of objects without a key",
    ),
]


@pytest.mark.parametrize(("type_name", "document", "patch", "message"), MALFORMED)
def test_a_malformed_patch(type_name, document, patch, message):
    assert refusal(MalformedPatch, type_name, document, patch) == message


@pytest.mark.parametrize(("type_name", "document", "patch", "message"), FAILED)
def test_a_patch_that_fails(type_name, document, patch, message):
    assert refusal(PatchFailed, type_name, document, patch) == message


@pytest.mark.parametrize(("type_name", "document", "patch", "message"), NOT_APPLICABLE + BAD_ORDERS)
def test_a_patch_that_does_not_fit(type_name, document, patch, message):
    assert refusal(PatchNotApplicable, type_name, document, patch) == message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param([], "array", id="a list"),
        pytest.param("x", "string", id="a text"),
        pytest.param(1, "number", id="a number"),
        pytest.param(True, "bool", id="a truth value"),
    ],
)
def test_only_an_object_is_a_patch(body, kind):
    with pytest.raises(MalformedPatch) as refused:
        parse(body)
    assert (
        str(refused.value) == f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )


@pytest.mark.parametrize("kind", [MalformedPatch, PatchFailed, PatchNotApplicable])
def test_every_refusal_is_a_patch_error(kind):
    assert issubclass(kind, PatchError)


def test_a_patch_at_the_depth_limit_is_applied():
    assert apply(nested(600), nested(499), shape_of(JSON_SCHEMA)) == nested(600)
    assert apply({}, nested(499), shape_of(JSON_SCHEMA)) == nested(499)


def test_a_deeper_patch_is_refused():
    assert (
        refusal(PatchFailed, JSON_SCHEMA, {}, nested(500)) == "the patch is nested more than 500 levels deep"
    )


def test_a_deep_document_in_a_message_is_cut_short():
    document = {"containers": [{"image": nested(5000)}]}
    message = refusal(PatchNotApplicable, POD_SPEC, document, {"containers": [{"name": "a"}]})
    assert len(message) < 2000
    assert "not:..." in message


def test_a_number_beyond_every_float_is_infinite_in_a_message():
    patch = {"affinity": {"$patch": 10**400}}
    message = refusal(PatchNotApplicable, POD_SPEC, {"affinity": {}}, patch)
    assert message == "unknown patch type: %!s(float64=+Inf) in map: map[$patch:+Inf]"


def refusal(kind, type_name, document, patch):
    with pytest.raises(PatchError) as refused:
        apply(document, patch, shape_of(type_name))
    assert type(refused.value) is kind
    return str(refused.value)


def nested(levels):
    """An object that is nested in so many others."""
    document: dict[str, object] = {}
    for _ in range(levels):
        document = {"not": document}
    return document
