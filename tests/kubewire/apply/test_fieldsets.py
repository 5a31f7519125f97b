"""Sets of field paths: their wire form, and what is in one set and the other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewire.apply.fieldsets import (
    MalformedFields,
    difference,
    has,
    intersection,
    of_paths,
    ordered,
    parse,
    paths,
    show_path,
    union,
    without_all,
)

STEPS = ["f:a", "f:b", 'k:{"name":"x"}', 'v:"x"', "v:1", "i:0"]
PATHS = st.lists(st.sampled_from(STEPS), min_size=1, max_size=4).map(tuple)
MEMBERS = st.frozensets(PATHS, max_size=8)


def made(members):
    return of_paths(*members)


@settings(max_examples=50, deadline=None)
@given(MEMBERS)
def test_a_set_has_the_paths_it_was_made_of_and_no_other(members):
    assert set(paths(made(members))) == members
    assert all(has(made(members), path) for path in members)


@settings(max_examples=50, deadline=None)
@given(MEMBERS)
def test_what_is_printed_is_read_as_the_same(members):
    assert parse(ordered(made(members))) == made(members)


@settings(max_examples=50, deadline=None)
@given(MEMBERS, MEMBERS)
def test_sets_of_paths_obey_the_laws_of_sets(one, other):
    mine, theirs = made(one), made(other)
    assert union(mine, theirs) == made(one | other)
    assert intersection(mine, theirs) == made(one & other)
    assert difference(mine, theirs) == made(one - other)


@settings(max_examples=50, deadline=None)
@given(MEMBERS, MEMBERS)
def test_no_operation_changes_its_arguments(one, other):
    mine, theirs = made(one), made(other)
    for operation in (union, intersection, difference, without_all):
        operation(mine, theirs)
    assert (mine, theirs) == (made(one), made(other))


@settings(max_examples=50, deadline=None)
@given(MEMBERS, MEMBERS)
def test_taking_fields_away_takes_all_below_them(one, other):
    left = {path for path in one if not any(path[: len(gone)] == gone for gone in other)}
    assert without_all(made(one), made(other)) == made(left)


@settings(max_examples=50, deadline=None)
@given(MEMBERS, MEMBERS)
def test_a_difference_that_takes_nothing_is_the_set_itself(one, other):
    mine = made(one)
    assert (difference(mine, made(other)) is mine) == (not one & other)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param({"f:a": {}}, {"f:a": {}}, id="a field"),
        pytest.param({"f:a": {".": {}, "f:b": {}}}, {"f:a": {".": {}, "f:b": {}}}, id="with what is below"),
        pytest.param({"f:a": {".": {}}}, {"f:a": {}}, id="a lone point says nothing new"),
        pytest.param({'k:{"b":1, "a":"x"}': {}}, {'k:{"a":"x","b":1}': {}}, id="keys in one order"),
        pytest.param({'v:"\\u0061"': {}}, {'v:"a"': {}}, id="values in one spelling"),
        pytest.param({"v:1.0": {}}, {"v:1": {}}, id="numbers in one spelling"),
        pytest.param({'v:"<"': {}}, {'v:"\\u003c"': {}}, id="angle brackets escaped, as Go does"),
        pytest.param({"x:later": {"f:a": {}}, "f:b": {}}, {"f:b": {}}, id="unknown steps are left out"),
        pytest.param({".": {}}, {}, id="the root itself is nobody's"),
    ],
)
def test_a_set_from_outside_is_read(written, read):
    assert parse(written) == read


@pytest.mark.parametrize(
    "written",
    [
        pytest.param([], id="a list"),
        pytest.param({"f:a": 1}, id="a number below a step"),
        pytest.param({"f": {}}, id="no colon"),
        pytest.param({"v:": {}}, id="no value"),
        pytest.param({"v:{": {}}, id="half a value"),
        pytest.param({"k:[]": {}}, id="a key without fields"),
        pytest.param({"i:x": {}}, id="an index that is no number"),
        pytest.param({"v:" + "[" * 2000: {}}, id="a value too deep to read"),
    ],
)
def test_what_is_no_set_is_refused(written):
    with pytest.raises(MalformedFields):
        parse(written)


def test_a_set_too_deep_to_walk_is_refused():
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"f:a": deep}
    with pytest.raises(MalformedFields, match="100 steps"):
        parse(deep)


def test_steps_are_written_in_the_servers_order():
    mixed: dict[str, Any] = {
        "v:2": {},
        "v:10": {},
        'v:"a"': {},
        "v:true": {},
        "f:b": {},
        ".": {},
        "f:a": {},
        "i:1": {},
    }
    keys: dict[str, Any] = {'k:{"port":80}': {}, 'k:{"port":9}': {}, 'k:{"name":"z"}': {}}
    assert list(ordered({**mixed, **keys})) == [
        *(".", "f:a", "f:b", 'k:{"name":"z"}', 'k:{"port":9}', 'k:{"port":80}'),
        *("v:2", "v:10", 'v:"a"', "v:true", "i:1"),
    ]


def test_a_path_is_shown_as_messages_show_it():
    path = ("f:spec", 'k:{"port":53,"protocol":"UDP"}', "f:names", 'v:"a\\"b"', "i:3")
    assert show_path(path) == '.spec[port=53,protocol="UDP"].names[="a\\"b"][3]'
