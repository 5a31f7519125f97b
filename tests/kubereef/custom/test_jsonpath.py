"""Paths find what kubectl's would."""

import pytest

from kubereef.kinds.custom.jsonpath import BadPath, JsonPath

OBJECT = {
    "spec": {
        "size": 3,
        "a.b": "dotted",
        "parts": [{"name": "x", "n": 1}, {"name": "y", "n": 2}, {"name": "z", "n": 3}],
    },
    "status": {
        "conditions": [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "False", "on": True}]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".spec.size", [3], id="a field"),
        pytest.param(".spec.nothing.below", [], id="nothing, where there is nothing"),
        pytest.param(".spec.size.below", [], id="nothing below a number"),
        pytest.param(".spec['a.b']", ["dotted"], id="a quoted name"),
        pytest.param(r".spec.a\.b", ["dotted"], id="an escaped dot"),
        pytest.param(".spec.parts[0].name", ["x"], id="an item"),
        pytest.param(".spec.parts[-1].name", ["z"], id="an item from the end"),
        pytest.param(".spec.parts[7].name", [], id="no item beyond the end"),
        pytest.param(".spec.parts[1:].name", ["y", "z"], id="a slice"),
        pytest.param(".spec.parts[0:3:2].name", ["x", "z"], id="a slice with a step"),
        pytest.param(".spec.parts[0,2].name", ["x", "z"], id="a union"),
        pytest.param(".spec.parts[*].name", ["x", "y", "z"], id="every item"),
        pytest.param("..name", ["x", "y", "z"], id="a name anywhere"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', ["False"], id="a filter"),
        pytest.param(
            ".status.conditions[?(@.type=='Ready')].status", ["False"], id="a filter in single quotes"
        ),
        pytest.param('.status.conditions[?(@.type != "Ready")].status', ["True"], id="a filter with unequal"),
        pytest.param(".status.conditions[?(@.on)].type", ["Ready"], id="a filter for existence"),
        pytest.param(".status.conditions[?(@.on==true)].type", ["Ready"], id="a filter for a boolean"),
        pytest.param(".spec.parts[?(@.n>=2)].name", ["y", "z"], id="a filter for numbers"),
        pytest.param(".spec.parts[?(@.n==1.0)].name", ["x"], id="a filter for a fraction"),
        pytest.param('.spec.parts[?(@.n<"a")].name', [], id="a filter that compares apples with pears"),
    ],
)
def test_a_path_finds(path, found):
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize(
    "path",
    ["spec", ".spec[", ".spec[]", ".a[?(@.b", ".a[?(3)]", ".a[0:3:0]", ".a..", ".a[?(@.b==x)]", "." * 5000],
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(BadPath):
        JsonPath(path)


def test_a_path_that_finds_everything_many_times_over_ends():
    wide = {"a": [[{"b": 1}] * 100] * 100}
    assert len(JsonPath("..*..*").find(wide)) <= 10_000
