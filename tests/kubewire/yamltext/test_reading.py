"""Text becomes the values that kubectl would send. Expected values were observed on kubectl."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.yamltext import Position, YamlError, decode, load, load_all, locate
from tests.quoting import quoted_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("n", False, id="a lone n is false"),
        pytest.param("on", True, id="on is true"),
        pytest.param("Yes", True, id="Yes is true"),
        pytest.param("yEs", "yEs", id="odd case is text"),
        pytest.param("0777", 511, id="a leading zero is octal"),
        pytest.param("0o17", 15, id="0o is octal"),
        pytest.param("0o8", "0o8", id="8 is no octal digit"),
        pytest.param("09", 9, id="an impossible octal is a decimal"),
        pytest.param("00", 0, id="two zeros are zero"),
        pytest.param("0X1F", 31, id="0X is hexadecimal"),
        pytest.param("-0x1F", -31, id="a negative hexadecimal"),
        pytest.param("0b11", 3, id="0b is binary"),
        pytest.param("+1", 1, id="a plus sign"),
        pytest.param("-0", 0, id="minus zero"),
        pytest.param("1_000", 1000, id="underscores are skipped"),
        pytest.param("0_7", 7, id="underscores in an octal"),
        pytest.param("1_0.5", 10.5, id="underscores in a fraction"),
        pytest.param("1:30", "1:30", id="base 60 is text"),
        pytest.param("2020-01-01", "2020-01-01", id="a date is text"),
        pytest.param(".5", 0.5, id="a bare fraction"),
        pytest.param("5.", 5, id="a whole float is an integer"),
        pytest.param("1e3", 1000, id="a whole exponent is an integer"),
        pytest.param("-.5e-3", -0.0005, id="a small negative float"),
        pytest.param("18446744073709551615", 18446744073709551615, id="the largest unsigned integer"),
        pytest.param("99999999999999999999999", 1e23, id="an integer beyond 64 bits is a float"),
        pytest.param("1e999", "1e999", id="a number beyond floats is text"),
        pytest.param("0x" + "f" * 2000, "0x" + "f" * 2000, id="a hexadecimal beyond floats is text"),
        pytest.param("=", "=", id="an equals sign is text"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("'5'", "5", id="quoted digits are text"),
        pytest.param("!!str 3", "3", id="a string tag"),
        pytest.param("!!int '3'", 3, id="an integer tag"),
        pytest.param("!!float 3", 3, id="a float tag"),
        pytest.param("! 3", "3", id="the non-specific tag makes text"),
        pytest.param("!foo 1", "1", id="an unknown tag makes text"),
        pytest.param("!!binary aGVsbG8=", "hello", id="base64 is decoded"),
        pytest.param("!!timestamp 2020-01-01", "2020-01-01", id="a timestamp is text"),
        pytest.param("!foo {a: 1}", {"a": 1}, id="an unknown tag on a mapping is skipped"),
        pytest.param("n: a", {"false": "a"}, id="a boolean key becomes its name"),
        pytest.param("1.0: a", {"1": "a"}, id="a float key becomes a number's text"),
        pytest.param("0x10: a", {"16": "a"}, id="a hexadecimal key becomes a decimal"),
        pytest.param("<<: {a: b}\na: c", {"a": "c"}, id="own keys win over merged ones"),
        pytest.param("<<: [{a: 1}, {a: 2, b: 3}]", {"a": 1, "b": 3}, id="earlier merge sources win"),
        pytest.param('"<<": {a: b}', {"<<": {"a": "b"}}, id="a quoted merge key is a key"),
        pytest.param("k: &a [1]\nj: *a", {"k": [1], "j": [1]}, id="an alias repeats its anchor"),
        pytest.param(
            '{"a": "\\/\\ud83d\\ude00",\n\t"b": 1}', {"a": "/😀", "b": 1}, id="JSON with tabs and its escapes"
        ),
        pytest.param("{a: 1, b: [2]}", {"a": 1, "b": [2]}, id="braces that are YAML, not JSON"),
        pytest.param("", None, id="nothing is null"),
        pytest.param("# only a comment\n", None, id="a comment is null"),
    ],
)
def test_a_text_has_the_value_that_kubectl_gives_it(text, value):
    found = load(text)
    assert found == value
    assert type(found) is type(value)


def test_an_alias_is_a_copy_so_that_one_place_can_change_alone():
    value = load("a: &x {k: 1}\nb: *x")
    assert isinstance(value, dict)
    value["a"]["k"] = 2
    assert value["b"] == {"k": 1}


def test_documents_come_one_by_one_with_their_places():
    found = list(load_all("---\na: 1\n---\n# nothing\n---\n- b\n"))
    assert [(d.value, d.position.line) for d in found] == [({"a": 1}, 2), (None, 5), (["b"], 6)]


def test_a_key_given_twice_is_reported_and_the_last_value_counts():
    (document,) = load_all("a: 1\nb: {c: 2, c: 3}\na: 4")
    assert document.value == {"a": 4, "b": {"c": 3}}
    assert [(d.path, d.first, d.again) for d in document.duplicates] == [
        (("b", "c"), Position(2, 5), Position(2, 11)),
        (("a",), Position(1, 1), Position(3, 1)),
    ]


def test_a_key_given_twice_in_json_is_reported_too():
    (document,) = load_all('{"a": 1,\n "a": 2}')
    assert document.value == {"a": 2}
    assert document.duplicates[0].again == Position(2, 2)


NINE_TIMES_NINE = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        pytest.param("a:\n\tb: 1", 2, 1, "indent with spaces", id="a tab"),
        pytest.param("a: &x [*x]", 1, 8, "contains itself", id="an anchor inside itself"),
        pytest.param("a: *q", 1, 4, "no anchor", id="an alias of nothing"),
        pytest.param("a: .inf", 1, 4, "finite", id="infinity"),
        pytest.param('{"a": NaN}', 1, 1, "finite", id="not a number in JSON"),
        pytest.param("a: !!bool x", 1, 4, "!!bool", id="a value that is not what its tag says"),
        pytest.param("a: !!binary '*'", 1, 4, "base64", id="broken base64"),
        pytest.param("~: a", 1, 1, "key", id="a null key"),
        pytest.param("? [1]\n: 2", 1, 3, "key", id="a list as a key"),
        pytest.param("<<: 3", 1, 5, "merges", id="merging a number"),
        pytest.param("a: [1,", 2, 1, "flow node", id="an open bracket"),
        pytest.param("a: b: c", 1, 5, "mapping values", id="two colons"),
        pytest.param("a: \x01", 1, 4, "U+0001", id="a control character"),
        pytest.param("a: 1\n--- \nb: 2", 3, 1, "second document", id="two documents where one is expected"),
        pytest.param("[" * 100_000, 1, 201, "deep", id="deep brackets"),
        pytest.param('{"a":' * 3000 + "1" + "}" * 3000, 1, 1, "deep", id="deep JSON"),
        pytest.param('{"a":' * 300 + "1" + "}" * 300, 1, 1, "deep", id="JSON just too deep"),
        pytest.param(NINE_TIMES_NINE, 6, 20, "aliases", id="anchors that explode"),
    ],
)
def test_a_text_that_cannot_be_read_says_where_and_why(text, line, column, words):
    with pytest.raises(YamlError) as refusal:
        load(text)
    assert (refusal.value.line, refusal.value.column) == (line, column)
    assert words in refusal.value.message


def test_too_many_values_are_refused():
    with pytest.raises(YamlError, match="more than 400000 values"):
        load("[" + "1," * 400_001 + "]")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(b"a: \xff", "not UTF-8", id="a byte that is no text"),
        pytest.param(b"a\0b", "binary", id="a zero byte"),
        pytest.param(b"a: 1\n" * 2_000_000, "8 MiB", id="ten megabytes"),
    ],
)
def test_bytes_that_are_no_text_are_refused(raw, words):
    with pytest.raises(YamlError, match=words):
        decode(raw)


def test_a_byte_order_mark_is_skipped():
    assert decode(b"\xef\xbb\xbfa: 1") == "a: 1"


def test_places_are_those_of_keys_and_items_and_fall_back_to_what_is_there():
    text = "x: 1\n---\na: 1\nb:\n- c: 2\n  d: [1, 2]\n"
    paths = [("a",), ("b", 0, "d", 1), ("b", 0, "missing", "deeper"), ("b", 7)]
    assert locate(text, 1, paths) == [Position(3, 1), Position(6, 10), Position(5, 3), Position(4, 1)]


def test_places_in_json_with_tabs():
    assert locate('{\n\t"a": {\n\t\t"b": 1}}', 0, [("a", "b")]) == [Position(3, 3)]


def test_a_list_inside_a_mapping_key_does_not_confuse_the_places():
    assert locate("a: &k 1\n*k : 2\nc: 3\n", 0, [("c",)]) == [Position(3, 1)]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_what_is_written_as_yaml_is_read_back(value):
    assert load(quoted_yaml(value)) == json.loads(json.dumps(value))


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_what_is_written_as_json_is_read_back(value):
    assert load(json.dumps(value)) == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_words(text):
    with contextlib.suppress(YamlError):
        list(load_all(text))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param("a: b: c", "mapping values are not allowed in this context", id="in the first line"),
        pytest.param(
            "a: b\n c: d", "line 2: mapping values are not allowed in this context", id="in another line"
        ),
        pytest.param("a: [b", "line 1: did not find expected ',' or ']'", id="at the end"),
        pytest.param("a: b\n- c", "line 1: did not find expected key", id="where a key should be"),
        pytest.param('a: "\\q"', "found unknown escape character", id="in a text"),
    ],
)
def test_a_server_says_of_text_that_is_no_yaml(text, verdict):
    with pytest.raises(YamlError) as refused:
        load(text)
    assert refused.value.verdict == verdict
