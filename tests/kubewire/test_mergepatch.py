"""Merge patches: the examples of RFC 7386 and what the API server does where it goes its own way."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.jsonpatch import MAX_DEPTH, MalformedPatch, PatchFailed, equal
from kubewire.mergepatch import apply, create, parse


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(document, patch, result):
    assert apply(document, patch) == result


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        pytest.param({}, {"a": None}, {}, id="null of what is not there"),
        pytest.param({"a": None}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="an object for a null"),
        pytest.param({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="nulls leave objects, not arrays"),
        pytest.param({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}, id="also in an array that replaces one"),
    ],
)
def test_what_the_server_does_with_nulls(document, patch, result):
    assert apply(document, patch) == result


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(
            [], "json: cannot unmarshal array into Go value of type map[string]interface {}", id="an array"
        ),
        pytest.param(
            "x", "json: cannot unmarshal string into Go value of type map[string]interface {}", id="a string"
        ),
        pytest.param(None, "Invalid JSON Patch", id="null"),
    ],
)
def test_a_patch_of_an_object_is_an_object(patch, message):
    with pytest.raises(MalformedPatch) as refusal:
        parse(patch)

    assert str(refusal.value) == message


def test_an_object_is_a_patch():
    assert parse({"a": None}) == {"a": None}


def test_untouched_parts_are_shared_and_the_document_stays():
    document = {"touched": {"x": 1, "y": 2}, "untouched": {"z": 3}}
    result = apply(document, {"touched": {"x": None}})

    assert result == {"touched": {"y": 2}, "untouched": {"z": 3}}
    assert result["untouched"] is document["untouched"]
    assert document == {"touched": {"x": 1, "y": 2}, "untouched": {"z": 3}}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing to do"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="a change"),
        pytest.param({"a": 1}, {}, {"a": None}, id="a removal"),
        pytest.param({}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="an addition"),
        pytest.param(
            {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}, id="only what differs"
        ),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}, id="arrays are sent whole"),
        pytest.param({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, {}, id="unless they are equal"),
        pytest.param({"a": True}, {"a": 1}, {"a": 1}, id="true is not 1"),
        pytest.param({"a": {}}, {"a": 1}, {"a": 1}, id="another type"),
        pytest.param({"a": 1}, {"a": None}, {"a": None}, id="null is a removal"),
        pytest.param({}, {"a": None}, {}, id="null where nothing was is nothing"),
        pytest.param({"a": None}, {}, {}, id="and where nothing shall be, too"),
        pytest.param([1], [2], [2], id="an array for an array"),
        pytest.param({"a": 1}, [2], [2], id="an array for an object"),
        pytest.param([1], {"a": 1}, {"a": 1}, id="an object for an array"),
    ],
)
def test_makes_the_smallest_patch(old, new, patch):
    assert equal(create(old, new), patch)


def test_nesting_is_limited():
    deep: dict[str, object] = {}
    for _ in range(MAX_DEPTH - 1):
        deep = {"a": deep}
    assert apply({}, deep) == deep
    assert create({}, deep) == deep

    for attempt in (
        lambda: apply({}, {"a": deep}),
        lambda: create({}, {"a": deep}),
        lambda: create({"a": deep}, {}),
    ):
        with pytest.raises(PatchFailed, match="nested more than 500 levels deep"):
            attempt()


keys = st.sampled_from(["a", "b", "c", ""])
leaves = st.one_of(st.integers(0, 2), st.booleans(), st.sampled_from(["", "x"]), st.just(1.0))
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)
documents = st.dictionaries(keys, values, max_size=4)


@given(documents, documents)
def test_a_created_patch_leads_from_old_to_new(old, new):
    before = copy.deepcopy(old)

    assert equal(apply(old, create(old, new)), new)
    assert equal(old, before)


@given(documents)
def test_what_is_equal_needs_no_patch(document):
    assert create(document, copy.deepcopy(document)) == {}


@given(documents, documents)
def test_applying_a_patch_twice_is_the_same_as_once(document, patch):
    once = apply(document, patch)

    assert equal(apply(once, patch), once)
