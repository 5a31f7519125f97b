"""JSON patches: what the API server's library (evanphx/json-patch v4) does with the same input."""

import copy
import time
from typing import Any

import jsonpatch as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.jsonpatch import (
    MAX_COPIED_BYTES,
    MAX_DEPTH,
    MAX_OPERATIONS,
    MalformedPatch,
    Operation,
    PatchFailed,
    PatchTooLarge,
    apply,
    equal,
    is_deeper_than,
    parse,
)


def patched(document, *operations):
    before = copy.deepcopy(document)
    result = apply(document, parse(list(operations)))
    assert equal(document, before), "the given document was changed"
    return result


@pytest.mark.parametrize(
    ("document", "operation", "result"),
    [
        pytest.param({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}, id="add a key"),
        pytest.param({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}, id="add replaces a key"),
        pytest.param(
            {"a": {}}, {"op": "add", "path": "/a/b", "value": [1]}, {"a": {"b": [1]}}, id="add below"
        ),
        pytest.param({}, {"op": "add", "path": "/", "value": 1}, {"": 1}, id="add the empty key"),
        pytest.param({}, {"op": "add", "path": "/a"}, {"a": None}, id="add without a value adds null"),
        pytest.param([1, 3], {"op": "add", "path": "/1", "value": 2}, [1, 2, 3], id="insert into an array"),
        pytest.param([1], {"op": "add", "path": "/1", "value": 2}, [1, 2], id="insert at the end"),
        pytest.param([1], {"op": "add", "path": "/-", "value": 2}, [1, 2], id="append to an array"),
        pytest.param([1], {"op": "add", "path": "/-1", "value": 2}, [1, 2], id="insert at -1 appends"),
        pytest.param([1], {"op": "add", "path": "/-2", "value": 0}, [0, 1], id="insert counts from the end"),
        pytest.param({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}, id="remove a key"),
        pytest.param({"a": None}, {"op": "remove", "path": "/a"}, {}, id="remove a null"),
        pytest.param([1, 2, 3], {"op": "remove", "path": "/1"}, [1, 3], id="remove from an array"),
        pytest.param([1, 2, 3], {"op": "remove", "path": "/-1"}, [1, 2], id="remove the last"),
        pytest.param({"a": 1}, {"op": "replace", "path": "/a", "value": 2}, {"a": 2}, id="replace a key"),
        pytest.param({}, {"op": "replace", "path": "/a", "value": 2}, {"a": 2}, id="replace a missing key"),
        pytest.param([1, 2], {"op": "replace", "path": "/01", "value": 3}, [1, 3], id="an index with a zero"),
        pytest.param([1, 2], {"op": "replace", "path": "/-2", "value": 3}, [3, 2], id="replace from the end"),
        pytest.param(
            {"a": 1}, {"op": "replace", "path": "", "value": []}, [], id="replace the whole document"
        ),
        pytest.param({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}, id="move a key"),
        pytest.param(
            {"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}, id="move to the same place"
        ),
        pytest.param(
            [1, 2, 3], {"op": "move", "from": "/0", "path": "/2"}, [2, 3, 1], id="move within an array"
        ),
        pytest.param({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}, id="copy"),
        pytest.param(
            {}, {"op": "copy", "from": "/a", "path": "/b"}, {"b": None}, id="copy a missing key gives null"
        ),
        pytest.param({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}, id="a test that holds"),
        pytest.param(
            {"a": 1}, {"op": "test", "path": "", "value": {"a": 1}}, {"a": 1}, id="a test of the whole"
        ),
        pytest.param({}, {"op": "test", "path": "/a", "value": None}, {}, id="a test that nothing is there"),
        pytest.param({}, {"op": "test", "path": "/a"}, {}, id="a test for nothing"),
        pytest.param(
            {"a": {"x/y": 1, "m~n": 2}},
            {"op": "move", "from": "/a/x~1y", "path": "/a/m~0n"},
            {"a": {"m~n": 1}},
            id="slashes and tildes in keys",
        ),
        pytest.param({"~1": 0}, {"op": "remove", "path": "/~01"}, {}, id="an escaped tilde before a one"),
        pytest.param(
            {"a": 1}, {"op": "remove", "path": "x/a"}, {}, id="text before the first slash is ignored"
        ),
    ],
)
def test_operations(document, operation, result):
    assert equal(patched(document, operation), result)


@pytest.mark.parametrize(
    ("document", "operation", "message"),
    [
        pytest.param(
            {}, {"op": "add", "path": "/a/b", "value": 1}, "the path leads nowhere", id="add below nothing"
        ),
        pytest.param(
            {"a": 1}, {"op": "add", "path": "/a/b"}, "the path leads nowhere", id="add below a number"
        ),
        pytest.param(
            {"a": None}, {"op": "add", "path": "/a/b"}, "the path leads nowhere", id="add below null"
        ),
        pytest.param(
            {}, {"op": "add", "path": "", "value": {}}, "the path leads nowhere", id="add the whole"
        ),
        pytest.param(
            {}, {"op": "add", "path": "a", "value": {}}, "the path leads nowhere", id="a path without slash"
        ),
        pytest.param(
            [1], {"op": "add", "path": "/2", "value": 0}, "index 2 is out of range", id="insert too far"
        ),
        pytest.param(
            [1], {"op": "add", "path": "/-3", "value": 0}, "index -3 is out of range", id="or too early"
        ),
        pytest.param(
            [1], {"op": "add", "path": "/x", "value": 0}, "'x' is no index of an array", id="insert at a word"
        ),
        pytest.param(
            [1], {"op": "add", "path": "/1_0"}, "'1_0' is no index of an array", id="insert at Python's 10"
        ),
        pytest.param({}, {"op": "remove", "path": "/a"}, "there is nothing to remove", id="remove nothing"),
        pytest.param(
            [], {"op": "remove", "path": "/0"}, "index 0 is out of range", id="remove from an empty array"
        ),
        pytest.param(
            [1], {"op": "remove", "path": "/-"}, "'-' is no index of an array", id="remove after the end"
        ),
        pytest.param(
            [1], {"op": "replace", "path": "/1", "value": 0}, "index 1 is out of range", id="replace too far"
        ),
        pytest.param(
            [1], {"op": "replace", "path": "/-", "value": 0}, "'-' is no index of an array", id="replace -"
        ),
        pytest.param(
            {},
            {"op": "replace", "path": "", "value": 1},
            "only an object or an array can replace the whole document",
            id="replace the whole by a number",
        ),
        pytest.param(
            {}, {"op": "move", "from": "/a", "path": "/b"}, "there is nothing to remove", id="move nothing"
        ),
        pytest.param(
            {"a": {}},
            {"op": "move", "from": "/a", "path": "/a/b"},
            "the path leads nowhere",
            id="move into itself",
        ),
        pytest.param({}, {"op": "move", "path": "/b"}, "it has no from", id="move from where"),
        pytest.param(
            [1], {"op": "copy", "from": "/1", "path": "/0"}, "index 1 is out of range", id="copy too far"
        ),
        pytest.param(
            {"a": 1}, {"op": "test", "path": "/a", "value": 2}, "the value is another one", id="a test fails"
        ),
        pytest.param(
            {}, {"op": "test", "path": "/a", "value": 2}, "the value is another one", id="a test of nothing"
        ),
        pytest.param(
            {"a": True},
            {"op": "test", "path": "/a", "value": 1},
            "the value is another one",
            id="true is not 1",
        ),
        pytest.param(
            {"a": 1.0}, {"op": "test", "path": "/a", "value": 1}, "the value is another one", id="nor is 1.0"
        ),
        pytest.param(
            {}, {"op": "explode", "path": "/a"}, "there is no operation 'explode'", id="an unknown operation"
        ),
        pytest.param({}, {"path": "/a"}, "there is no operation 'unknown'", id="no operation"),
        pytest.param({}, {"op": "add", "value": 1}, "it has no path", id="no path"),
        pytest.param(
            1,
            {"op": "add", "path": "/a", "value": 1},
            "the path leads nowhere",
            id="a document of one number",
        ),
    ],
)
def test_operations_that_fail(document, operation, message):
    with pytest.raises(PatchFailed) as failure:
        patched(document, {"op": "test", "path": "", "value": document}, operation)

    assert str(failure.value).startswith("operation 1 (")
    assert str(failure.value).endswith(f"): {message}")


def test_a_failure_names_the_operation():
    with pytest.raises(PatchFailed, match=r"^operation 0 \(move /a to /b\): "):
        patched({}, {"op": "move", "from": "/a", "path": "/b"})


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(
            {"op": "add"},
            "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            id="an object",
        ),
        pytest.param(
            "x", "json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp", id="a string"
        ),
        pytest.param(
            1, "json: cannot unmarshal number into Go value of type []handlers.jsonPatchOp", id="a number"
        ),
        pytest.param(
            [True], "json: cannot unmarshal bool into Go value of type handlers.jsonPatchOp", id="a boolean"
        ),
        pytest.param(
            [[]], "json: cannot unmarshal array into Go value of type handlers.jsonPatchOp", id="an array"
        ),
        pytest.param(
            [{"op": 1}],
            "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            id="a number for an operation",
        ),
        pytest.param(
            [{"op": "add", "path": []}],
            "json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string",
            id="an array for a path",
        ),
        pytest.param(
            [{"op": "move", "from": {}}],
            "json: cannot unmarshal object into Go struct field jsonPatchOp.from of type string",
            id="an object for a source",
        ),
    ],
)
def test_malformed_patches(patch, message):
    with pytest.raises(MalformedPatch) as refusal:
        parse(patch)

    assert str(refusal.value) == message


def test_an_empty_patch_changes_nothing():
    document = {"a": 1}

    assert apply(document, parse([])) is document
    assert apply(document, parse(None)) is document


def test_a_null_among_operations_is_an_unknown_operation():
    assert parse([None]) == (Operation("unknown"),)


def test_operations_are_limited_in_number():
    test = {"op": "test", "path": "/a"}
    assert patched({}, *[test] * MAX_OPERATIONS) == {}

    with pytest.raises(PatchTooLarge) as refusal:
        parse([test] * (MAX_OPERATIONS + 1))
    assert str(refusal.value) == "The allowed maximum operations in a JSON patch is 10000, got 10001"


def test_copies_are_limited_in_size():
    document = {"a": "x" * (MAX_COPIED_BYTES // 2 - 10)}
    twice = [{"op": "copy", "from": "/a", "path": f"/{index}"} for index in range(2)]
    assert len(patched(document, *twice)) == 3

    with pytest.raises(PatchFailed, match="exceed 3145728 bytes"):
        patched(document, *twice, *twice)


def test_doubling_copies_end_soon():
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(100)]

    with pytest.raises(PatchFailed, match="exceed 3145728 bytes"):
        patched({"a": ["x" * 1000]}, *doubling)


def test_nesting_is_limited():
    def nested(levels):
        deeper = [{"op": "add", "path": "/a" * level, "value": {}} for level in range(1, levels)]
        return patched({}, *deeper)

    assert not is_deeper_than(nested(MAX_DEPTH), MAX_DEPTH)
    with pytest.raises(PatchFailed, match="nested more than 500 levels deep"):
        nested(MAX_DEPTH + 1)


def test_moves_cannot_nest_without_limit():
    chain: dict[str, object] = {"a": {}, "b": {}}
    nest = [
        operation
        for _ in range(MAX_DEPTH)
        for operation in (
            {"op": "move", "from": "/a", "path": "/b/x"},
            {"op": "move", "from": "/b", "path": "/a"},
            {"op": "add", "path": "/b", "value": {}},
        )
    ]

    with pytest.raises(PatchFailed, match="levels deep"):
        patched(chain, *nest)


def test_many_operations_on_a_large_document_are_quick():
    document = {"items": list(range(100_000)), "x": {}}
    operations = [{"op": "add", "path": f"/x/{index}", "value": index} for index in range(MAX_OPERATIONS)]
    start = time.perf_counter()
    result = apply(document, parse(operations))

    assert time.perf_counter() - start < 2  # copying what is there for every operation takes minutes
    assert len(result["x"]) == MAX_OPERATIONS


def test_untouched_parts_are_shared():
    document = {"touched": {"list": [1]}, "untouched": {"x": 1}}
    result = patched(document, {"op": "add", "path": "/touched/list/-", "value": 2})

    assert result == {"touched": {"list": [1, 2]}, "untouched": {"x": 1}}
    assert result["untouched"] is document["untouched"]


def test_a_copy_is_independent_of_its_source():
    result = patched(
        {"a": {"x": [1]}},
        {"op": "add", "path": "/a/y", "value": 2},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/x/-", "value": 3},
        {"op": "remove", "path": "/b/y"},
    )

    assert result == {"a": {"x": [1], "y": 2}, "b": {"x": [1, 3]}}


def test_the_values_of_a_patch_are_not_changed_either():
    operations = parse(
        [
            {"op": "add", "path": "/a", "value": {"list": []}},
            {"op": "add", "path": "/a/list/-", "value": 1},
            {"op": "replace", "path": "", "value": {"list": []}},
            {"op": "add", "path": "/list/-", "value": 2},
        ]
    )

    assert apply({}, operations) == {"list": [2]}
    assert apply({}, operations) == {"list": [2]}


def test_a_moved_value_of_the_document_is_not_changed():
    document = {"a": {"x": 1}}
    result = patched(
        document, {"op": "move", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/y", "value": 2}
    )

    assert result == {"b": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, id="the order of keys does not matter"),
        pytest.param([1, 2], [2, 1], False, id="the order of items does"),
        pytest.param([1], [1, 1], False, id="nor does one stand for two"),
        pytest.param({"a": None}, {}, False, id="a null is not nothing"),
        pytest.param([True], [1], False, id="true is not 1"),
        pytest.param({"a": [{}]}, {"a": [[]]}, False, id="an object is not an array"),
        pytest.param("a", "a", True, id="equal strings"),
    ],
)
def test_equality_of_json(left, right, same):
    assert equal(left, right) is same
    assert equal(right, left) is same


def test_equality_and_depth_need_no_recursion():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert equal(deep, deep)
    assert is_deeper_than(deep, 99_999)
    deep_end = deep
    while deep_end:
        deep_end[:], deep_end = [], deep_end[0]  # taken apart by hand: freeing it at once would recurse


keys = st.sampled_from(["a", "b", "x/y", "m~n", ""])
leaves = st.one_of(st.integers(0, 3), st.sampled_from(["", "x"]), st.booleans())
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(keys, documents, max_size=4)


def places(document, pointer=""):
    """All pointers to something in the document."""
    found = [pointer]
    children = document if isinstance(document, dict) else {}
    if isinstance(document, list):
        children = dict(enumerate(document))
    for key, child in children.items():
        step = str(key).replace("~", "~0").replace("/", "~1")
        found += places(child, f"{pointer}/{step}")
    return found


@st.composite
def patches(draw):
    """A document and operations that mostly fit it, without those that libraries understand differently."""
    document = draw(objects)
    current = document
    operations = []
    for _ in range(draw(st.integers(1, 5))):
        here = st.sampled_from([place for place in places(current) if place] or ["/a"])
        path = draw(here)
        kind = draw(st.sampled_from(["add", "add below", "remove", "replace", "move", "copy", "test"]))
        operation = {"op": kind.split()[0], "path": path}
        if kind == "add below":
            operation["path"] += draw(st.sampled_from(["/a", "/b", "/0", "/-"]))
        if kind in ("move", "copy"):
            operation["from"] = draw(here)
        else:
            operation["value"] = draw(documents)
        operations.append(operation)
        try:
            current = oracle.apply_patch(current, [operation])
        except (oracle.JsonPatchException, oracle.JsonPointerException):
            break
    return document, operations


@given(patches())
def test_agrees_with_another_implementation_where_it_applies(case):
    document, operations = case
    try:
        expected = oracle.apply_patch(document, operations)
    except (oracle.JsonPatchException, oracle.JsonPointerException):
        return
    assert patched(document, *operations) == expected


wild_paths = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "-1", "x~1y", "m~0n", ""]), max_size=4).map(
    lambda steps: "".join(f"/{step}" for step in steps)
)
wild_operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": wild_paths},
    optional={"from": wild_paths, "value": documents},
)


@given(objects, st.lists(wild_operations, max_size=6))
def test_any_patch_applies_or_fails_and_changes_nothing_given(document, operations):
    try:
        patched(document, *operations)
    except PatchFailed:
        return
