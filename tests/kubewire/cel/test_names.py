"""Property names and the identifiers that select them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.cel import escape_name, unescape_name


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("name", "name"),
        ("cluster-name", "cluster__dash__name"),
        ("app.kubernetes.io/name", "app__dot__kubernetes__dot__io__slash__name"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("a__b", "a__underscores__b"),
        ("a___b", "a__underscores___b"),
        ("_private", "_private"),
        ("-", "__dash__"),
        ("nameSpace", "nameSpace"),
    ],
)
def test_a_name_is_escaped_and_comes_back(name, identifier):
    assert escape_name(name) == identifier
    assert unescape_name(identifier) == name


@pytest.mark.parametrize("name", ["", "1st", "k!", "a b", "naïve", "a\0b"])
def test_a_name_that_no_expression_can_reach(name):
    assert escape_name(name) is None


@pytest.mark.parametrize(
    "identifier",
    ["namespace", "true", "a__namespace__", "__unknown__", "x__plus__y"],
    ids=["a reserved word", "a keyword", "a reserved word inside", "no such escape", "no such escape inside"],
)
def test_an_identifier_that_selects_nothing(identifier):
    assert unescape_name(identifier) is None


@given(st.text(alphabet="ab_-./0n", max_size=12))
def test_escaping_can_always_be_undone(name):
    identifier = escape_name(name)
    if identifier is not None:
        assert identifier.isidentifier()
        assert unescape_name(identifier) == name
