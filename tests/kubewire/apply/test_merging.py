"""What an applied configuration makes of an object."""

import pytest

from kubewire.apply import MergeFailed
from kubewire.apply.merging import merge, without
from tests.kubewire.apply.kinds import SHAPE


def named(names):
    return [{"name": name} for name in names]


def merged(live, config):
    return merge(SHAPE, {"spec": live}, {"spec": config})["spec"]


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        pytest.param({"color": "red"}, {"count": 1}, {"color": "red", "count": 1}, id="fields are joined"),
        pytest.param({"color": "red"}, {"color": "blue"}, {"color": "blue"}, id="the configuration wins"),
        pytest.param({"color": "red"}, {"color": None}, {"color": None}, id="null replaces a plain value"),
        pytest.param(
            {"labels": {"a": "1"}}, {"labels": None}, {"labels": {"a": "1"}}, id="null empties no map"
        ),
        pytest.param({"tags": ["a"]}, {"tags": ["b"]}, {"tags": ["a", "b"]}, id="sets are joined"),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {"tags": ["b", "a"]}, id="in the new order"),
        pytest.param({"order": ["a"]}, {"order": ["b"]}, {"order": ["b"]}, id="atomic lists are replaced"),
        pytest.param(
            {"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}, id="atomic maps too"
        ),
        pytest.param(
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a", "tags": ["x"]}]},
            {"parts": [{"name": "a", "size": 1, "tags": ["x"]}]},
            id="items are merged by their key",
        ),
        pytest.param(
            {"ports": [{"port": 80, "protocol": "TCP", "title": "web"}]},
            {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]},
            {"ports": [{"port": 80, "protocol": "TCP", "title": "web"}, {"port": 80, "protocol": "UDP"}]},
            id="by several keys, one of them its default",
        ),
        pytest.param(
            {"parts": [{"name": "a", "size": 1}, {"name": "a", "size": 2}]},
            {"parts": [{"name": "a", "tags": ["x"]}]},
            {"parts": [{"name": "a", "tags": ["x"]}]},
            id="what is there twice is merged with neither",
        ),
        pytest.param(
            {"free": {"x": {"a": 1}}}, {"free": {"x": "t"}}, {"free": {"x": "t"}}, id="another type"
        ),
    ],
)
def test_merge(live, config, result):
    assert merged(live, config) == result


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        pytest.param("abc", "", "abc", id="all stay"),
        pytest.param("", "abc", "abc", id="all are new"),
        pytest.param("ab", "cd", "abcd", id="new ones come behind"),
        pytest.param("xaby", "ba", "xbya", id="shared ones in the new order, others where they stood"),
        pytest.param("axb", "nbma", "xnbma", id="new ones right before the shared one that follows them"),
        pytest.param("abcd", "dxb", "acdxb", id="one that has to wait is passed over"),
        pytest.param("aax", "an", "anx", id="one that is there twice becomes one"),
    ],
)
def test_items_are_put_in_order(live, config, result):
    items = merged({"parts": named(live)}, {"parts": named(config)})["parts"]
    assert "".join(item["name"] for item in items) == result


@pytest.mark.parametrize(
    ("live", "config", "told"),
    [
        pytest.param([{"size": 1}], [{"name": "a"}], "element 0: .* omits all key fields", id="no key"),
        pytest.param(["a"], [{"name": "a"}], "non-map elements", id="no object"),
        pytest.param([], named("aa"), r'duplicate entries for key \[name="a"\]', id="the same twice"),
    ],
)
def test_what_cannot_be_told_apart_cannot_be_merged(live, config, told):
    with pytest.raises(MergeFailed, match=told):
        merged({"parts": live}, {"parts": config})


def test_merging_changes_neither_side():
    live, config = {"spec": {"parts": named("a")}}, {"spec": {"parts": [{"name": "a", "size": 1}]}}
    merge(SHAPE, live, config)
    assert (live, config) == (
        {"spec": {"parts": named("a")}},
        {"spec": {"parts": [{"name": "a", "size": 1}]}},
    )


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        pytest.param({"f:color": {}}, {"parts": [{"name": "a", "size": 1}], "tags": ["x"]}, id="a field"),
        pytest.param(
            {"f:parts": {'k:{"name":"a"}': {"f:size": {}}}},
            {"color": "red", "parts": [{"name": "a"}], "tags": ["x"]},
            id="a field of an item",
        ),
        pytest.param(
            {"f:tags": {'v:"x"': {}}},
            {"color": "red", "parts": [{"name": "a", "size": 1}], "tags": None},
            id="the last member leaves null",
        ),
    ],
)
def test_fields_are_taken_out(fields, left):
    obj = {"spec": {"color": "red", "parts": [{"name": "a", "size": 1}], "tags": ["x"]}}
    assert without(SHAPE, obj, {"f:spec": fields}) == {"spec": left}
