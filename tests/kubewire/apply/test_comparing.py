"""Which fields an object has, and which ones two objects differ in."""

from typing import Any

import pytest

from kubewire.apply.comparing import compare, owned
from kubewire.apply.shapes import definition_shape
from tests.kubewire.apply.kinds import SHAPE

A = 'k:{"name":"a"}'
LEAF: dict[str, Any] = {}


def changes(old, new):
    found = compare(SHAPE, {"spec": old}, {"spec": new})
    return found.changed.get("f:spec"), found.removed.get("f:spec")


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        pytest.param({"color": "red"}, {"color": "red"}, None, None, id="nothing"),
        pytest.param({"color": "red"}, {"color": "blue"}, {"f:color": LEAF}, None, id="another value"),
        pytest.param({}, {"color": "red"}, {"f:color": LEAF}, None, id="a new field"),
        pytest.param({"color": "red", "count": 1}, {"count": 1}, None, {"f:color": LEAF}, id="a field gone"),
        pytest.param({"count": 1}, {"count": 1.0}, None, None, id="the same number"),
        pytest.param(
            {},
            {"labels": {"a": "1"}},
            {"f:labels": {".": LEAF, "f:a": LEAF}},
            None,
            id="a new object and all in it",
        ),
        pytest.param({}, {"labels": {}}, {"f:labels": LEAF}, None, id="a new empty object"),
        pytest.param({"labels": None}, {"labels": {}}, {"f:labels": LEAF}, None, id="empty instead of null"),
        pytest.param(
            {"labels": None},
            {"labels": {"a": "1"}},
            {"f:labels": {"f:a": LEAF}},
            None,
            id="an object that was null is not new itself",
        ),
        pytest.param({"order": ["a"]}, {"order": ["a", "b"]}, {"f:order": LEAF}, None, id="an atomic list"),
        pytest.param({"whole": {"a": "1"}}, {"whole": {}}, {"f:whole": LEAF}, None, id="an atomic object"),
        pytest.param(
            {"tags": ["a", "b"]},
            {"tags": ["b", "c"]},
            {"f:tags": {'v:"c"': LEAF}},
            {"f:tags": {'v:"a"': LEAF}},
            id="members of a set",
        ),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, None, None, id="the order of a set"),
        pytest.param(
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a", "size": 2}]},
            {"f:parts": {A: {"f:size": LEAF}}},
            None,
            id="a field of an item",
        ),
        pytest.param(
            {"parts": [{"name": "a"}]},
            {"parts": []},
            None,
            {"f:parts": {A: {".": LEAF, "f:name": LEAF}}},
            id="an item gone",
        ),
        pytest.param(
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:protocol": LEAF}}},
            None,
            id="a key left out is its default",
        ),
        pytest.param(
            {"parts": [{"name": "a"}]},
            {"parts": [{"name": "a"}, {"name": "a", "size": 1}]},
            {"f:parts": {A: LEAF}},
            {"f:parts": {A: {".": LEAF, "f:name": LEAF}}},
            id="an item that came twice is one whole",
        ),
        pytest.param(
            {},
            {"parts": [{"name": "a"}, {"name": "a"}]},
            {"f:parts": {".": LEAF, A: LEAF}},
            None,
            id="new items that share a key are one whole",
        ),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "a"}]},
            {"parts": [{"name": "a"}]},
            {"f:parts": {A: {".": LEAF, "f:name": LEAF}}},
            {"f:parts": {A: LEAF}},
            id="an item that is there but once again",
        ),
        pytest.param(
            {"free": {"x": {"a": 1}}},
            {"free": {"x": "text"}},
            {"f:free": {"f:x": LEAF}},
            {"f:free": {"f:x": {"f:a": LEAF}}},
            id="a value of another type",
        ),
    ],
)
def test_compare(old, new, changed, removed):
    assert changes(old, new) == (changed, removed)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({"color": "red"}, {"f:color": LEAF}, id="a plain value"),
        pytest.param({"color": None}, {"f:color": LEAF}, id="null"),
        pytest.param(
            {"labels": {"a": "1"}}, {"f:labels": {"f:a": LEAF}}, id="entries, not the map around them"
        ),
        pytest.param({"labels": {}}, {"f:labels": LEAF}, id="an empty map itself"),
        pytest.param({"tags": []}, None, id="nothing of an empty set"),
        pytest.param({"order": []}, {"f:order": LEAF}, id="an empty atomic list"),
        pytest.param(
            {"parts": [{"name": "a"}]},
            {"f:parts": {A: {".": LEAF, "f:name": LEAF}}},
            id="an item with its fields",
        ),
        pytest.param(
            {"entries": {"x": {"size": 1}}},
            {"f:entries": {"f:x": {".": LEAF, "f:size": LEAF}}},
            id="an entry that is an object",
        ),
        pytest.param(
            {"free": {"a": {"b": [1]}}}, {"f:free": {"f:a": {".": LEAF, "f:b": LEAF}}}, id="free fields"
        ),
    ],
)
def test_who_applies_owns_what_it_says(spec, fields):
    assert owned(SHAPE, {"spec": spec}).get("f:spec") == fields


def test_what_is_deeper_than_anybody_writes_is_owned_as_a_whole():
    deep: dict[str, Any] = {"a": 1}
    for _ in range(400):
        deep = {"a": deep}
    step, count = owned(SHAPE, {"spec": {"free": deep}})["f:spec"]["f:free"], 0
    while step:
        step, count = step["f:a"], count + 1
    assert count < 100
    assert compare(SHAPE, {}, {"spec": {"free": deep}}).changed


def test_published_definitions_tell_lists_apart():
    pod = {
        "spec": {
            "containers": [{"name": "c", "args": ["x"], "ports": [{"containerPort": 80}]}],
            "tolerations": [{"key": "k"}],
            "nodeSelector": {"a": "b"},
        }
    }
    port = 'k:{"containerPort":80,"protocol":"TCP"}'
    assert owned(definition_shape("io.k8s.api.core.v1.Pod"), pod)["f:spec"] == {
        "f:containers": {
            'k:{"name":"c"}': {
                ".": LEAF,
                "f:name": LEAF,
                "f:args": LEAF,
                "f:ports": {port: {".": LEAF, "f:containerPort": LEAF}},
            }
        },
        "f:tolerations": LEAF,
        "f:nodeSelector": LEAF,
    }
