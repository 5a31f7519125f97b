"""What keeps a configuration from being merged, in the server's words."""

import pytest

from kubewire.apply.validating import problems, summary
from tests.kubewire.apply.kinds import SHAPE


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"color": "red", "count": 1, "on": True, "either": "5%"}, [], id="what fits"),
        pytest.param({"color": None, "parts": None, "labels": None}, [], id="null fits everywhere"),
        pytest.param(
            {"color": 5},
            [".spec.color: expected string, got &value.valueUnstructured{Value:5}"],
            id="no text",
        ),
        pytest.param(
            {"color": {"a": ["x", 1.5, None]}},
            [
                (
                    ".spec.color: expected string, got &value.valueUnstructured{Value:"
                    'map[string]interface {}{"a":[]interface {}{"x", 1.5, interface {}(nil)}}}'
                )
            ],
            id="an object for a text",
        ),
        pytest.param(
            {"count": "1"}, [".spec.count: expected numeric (int or float), got string"], id="no number"
        ),
        pytest.param({"on": "yes"}, [".spec.on: expected boolean, got &{yes}"], id="no boolean"),
        pytest.param({"labels": "x"}, [".spec.labels: expected map, got &{x}"], id="no object"),
        pytest.param({"tags": "x"}, [".spec.tags: expected list, got &{x}"], id="no list"),
        pytest.param({"sails": 1}, [".spec.sails: field not declared in schema"], id="an unknown field"),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "a"}]},
            ['.spec.parts: duplicate entries for key [name="a"]'],
            id="the same key twice",
        ),
        pytest.param(
            {"tags": ["z", "z"]}, ['.spec.tags: duplicate entries for key [="z"]'], id="a member twice"
        ),
        pytest.param(
            {"parts": [{"size": 1}]},
            [
                (
                    ".spec.parts: element 0: associative list with keys has an element that omits all key fields "
                    '["name"] (and doesn\'t have default values for any key fields)'
                )
            ],
            id="no key",
        ),
        pytest.param(
            {"tags": [None]},
            [".spec.tags: element 0: associative list without keys has an element that's an explicit null"],
            id="null in a set",
        ),
        pytest.param(
            {"order": ["a", 2]},
            [".spec.order[1]: expected string, got &value.valueUnstructured{Value:2}"],
            id="inside an atomic list",
        ),
    ],
)
def test_problems(spec, told):
    assert problems(SHAPE, {"spec": spec}) == told


def test_several_problems_are_told_together():
    found = problems(SHAPE, {"spec": {"color": 1, "count": "x"}})
    assert summary(found).splitlines() == [
        "errors:",
        "  .spec.color: expected string, got &value.valueUnstructured{Value:1}",
        "  .spec.count: expected numeric (int or float), got string",
    ]


def test_only_so_many_problems_are_told():
    assert len(problems(SHAPE, {"spec": {"order": [1] * 1000}})) == 100
