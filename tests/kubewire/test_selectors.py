"""Selectors: the expected texts and messages are those of k8s.io/apimachinery 0.36."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.selectors import (
    EVERYTHING,
    NOTHING,
    FieldSelector,
    FieldTerm,
    LabelSelector,
    Requirement,
    SelectorError,
)

NO_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NO_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("  \t\n", "", id="space"),
        pytest.param("a", "a", id="a label that exists"),
        pytest.param("!a", "!a", id="a label that does not"),
        pytest.param(" ! a ", "!a", id="spaces around"),
        pytest.param("a=b", "a=b", id="equal"),
        pytest.param("a==b", "a==b", id="equal with two signs"),
        pytest.param("a!=b", "a!=b", id="not equal"),
        pytest.param("a\t=\nb", "a=b", id="spaces within"),
        pytest.param("a=", "a=", id="an empty value"),
        pytest.param("a in (y, x)", "a in (x,y)", id="values are sorted"),
        pytest.param("a notin(x)", "a notin (x)", id="no space before the parenthesis"),
        pytest.param("a in (x,x)", "a in (x)", id="values are told once"),
        pytest.param("a in ()", "a in ()", id="no value is the empty one"),
        pytest.param("a in (,x)", "a in (,x)", id="an empty value among others"),
        pytest.param("a in (x,,y)", "a in (,x,y)", id="an empty value between others"),
        pytest.param("a>1", "a>1", id="greater"),
        pytest.param("z,!y,c=d,k in (b,a)", "c=d,k in (a,b),!y,z", id="requirements are sorted by label"),
        pytest.param("b=2,a=1,b!=3", "a=1,b=2,b!=3", id="those of one label keep their order"),
        pytest.param("in in (notin)", "in in (notin)", id="operators may be labels and values"),
        pytest.param("example.com/a=b", "example.com/a=b", id="a label with a prefix"),
    ],
)
def test_reads_and_prints_label_queries(query, printed):
    assert str(LabelSelector.parse(query)) == printed


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            "a b=c",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            id="a space in a label",
        ),
        pytest.param("a=b=c", "found '=', expected: ',' or 'end of string'", id="two equal signs"),
        pytest.param(
            "a===b", "unable to parse requirement: found '=', expected: identifier", id="three equal signs"
        ),
        pytest.param("a in x", "unable to parse requirement: found 'x' expected: '('", id="no parenthesis"),
        pytest.param("a in", "unable to parse requirement: found '' expected: '('", id="no values"),
        pytest.param(
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
            id="nothing inside",
        ),
        pytest.param(
            "a in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
            id="a sign inside",
        ),
        pytest.param(
            "a in (x", "unable to parse requirement: found '', expected: ',' or ')'", id="no closing"
        ),
        pytest.param(
            "a in (x,",
            "unable to parse requirement: found '', expected: ',', or identifier",
            id="a comma at the end",
        ),
        pytest.param(
            "a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'", id="a space inside"
        ),
        pytest.param("a in (x))", "found ')', expected: ',' or 'end of string'", id="closed twice"),
        pytest.param("a,", "found '', expected: identifier after ','", id="a comma last"),
        pytest.param("a,,b", "found ',', expected: identifier after ','", id="two commas"),
        pytest.param(",a", "found ',', expected: !, identifier, or 'end of string'", id="a comma first"),
        pytest.param("=a", "found '=', expected: !, identifier, or 'end of string'", id="no label"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="not what"),
        pytest.param("!a=b", "found '=', expected: ',' or 'end of string'", id="not and equal"),
        pytest.param(
            "a=!", "unable to parse requirement: found '!', expected: identifier", id="a sign for a value"
        ),
        pytest.param(
            "-a", f'unable to parse requirement: <nil>: Invalid value: "-a": {NO_KEY}', id="a bad label"
        ),
        pytest.param(
            "app=-bad-",
            f'unable to parse requirement: values[0][app]: Invalid value: "-bad-": {NO_VALUE}',
            id="a bad value",
        ),
        pytest.param(
            "a in (ok,-x,-y)",
            f'unable to parse requirement: [values[0][a]: Invalid value: "-x": {NO_VALUE},'
            f' values[1][a]: Invalid value: "-y": {NO_VALUE}]',
            id="several bad values",
        ),
        pytest.param(
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x":'
            " for 'Gt', 'Lt' operators, the value must be an integer",
            id="greater than a word",
        ),
    ],
)
def test_explains_bad_label_queries(query, message):
    with pytest.raises(SelectorError) as refusal:
        LabelSelector.parse(query)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("query", "labels", "chosen"),
    [
        pytest.param("", {}, True, id="nothing asked, no labels"),
        pytest.param("a=b", {"a": "b"}, True, id="equal"),
        pytest.param("a=b", {"a": "c"}, False, id="not equal"),
        pytest.param("a=b", {}, False, id="missing"),
        pytest.param("a=", {}, False, id="a missing label is not the empty one"),
        pytest.param("a=", {"a": ""}, True, id="an empty label"),
        pytest.param("a==b", {"a": "b"}, True, id="equal with two signs"),
        pytest.param("a!=b", {"a": "c"}, True, id="another value"),
        pytest.param("a!=b", {"a": "b"}, False, id="the unwanted value"),
        pytest.param("a!=b", {}, True, id="a missing label is unequal"),
        pytest.param("a in (b,c)", {"a": "c"}, True, id="among"),
        pytest.param("a in (b,c)", {"a": "d"}, False, id="not among"),
        pytest.param("a in (b,c)", {}, False, id="missing among"),
        pytest.param("a notin (b)", {"a": "b"}, False, id="among the unwanted"),
        pytest.param("a notin (b)", {"a": "c"}, True, id="not among the unwanted"),
        pytest.param("a notin (b)", {}, True, id="missing is not among the unwanted"),
        pytest.param("a", {"a": ""}, True, id="exists"),
        pytest.param("a", {"b": ""}, False, id="does not exist"),
        pytest.param("!a", {"b": ""}, True, id="is not there, as wanted"),
        pytest.param("!a", {"a": ""}, False, id="is there, though unwanted"),
        pytest.param("a>5", {"a": "6"}, True, id="greater"),
        pytest.param("a>5", {"a": "5"}, False, id="equal is not greater"),
        pytest.param("a>5", {"a": "10"}, True, id="compared as numbers"),
        pytest.param("a<5", {"a": "4"}, True, id="less"),
        pytest.param("a<5", {"a": "5"}, False, id="equal is not less"),
        pytest.param("a<5", {"a": "x"}, False, id="a word is not less"),
        pytest.param("a<5", {}, False, id="a missing number"),
        pytest.param("a=b,c", {"a": "b", "c": "d"}, True, id="all of them"),
        pytest.param("a=b,c", {"a": "b"}, False, id="one of them is not enough"),
    ],
)
def test_chooses_by_labels(query, labels, chosen):
    assert LabelSelector.parse(query).matches(labels) is chosen


@pytest.mark.parametrize(
    ("selector", "printed"),
    [
        pytest.param({}, "", id="an empty one"),
        pytest.param({"matchLabels": None, "matchExpressions": []}, "", id="empty fields"),
        pytest.param({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1", id="labels"),
        pytest.param(
            {
                "matchLabels": {"b": "1"},
                "matchExpressions": [
                    {"key": "c", "operator": "In", "values": ["y", "x"]},
                    {"key": "d", "operator": "NotIn", "values": ["z"]},
                    {"key": "a", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist", "values": []},
                ],
            },
            "a,b=1,c in (x,y),d notin (z),!e",
            id="labels and expressions",
        ),
    ],
)
def test_reads_selectors_in_objects(selector, printed):
    assert str(LabelSelector.of(selector)) == printed


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        pytest.param(
            {"matchExpressions": [{"key": "c", "operator": "In"}]},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="in nothing",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "c", "operator": "Exists", "values": ["a", "b"]}]},
            'values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist',
            id="exists with values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "c", "operator": "Gt", "values": ["1"]}]},
            '"Gt" is not a valid label selector operator',
            id="an unknown operator",
        ),
        pytest.param(
            {"matchLabels": {"-": "-"}},
            f'[key: Invalid value: "-": {NO_KEY}, values[0][-]: Invalid value: "-": {NO_VALUE}]',
            id="a bad label with a bad value",
        ),
        pytest.param(
            {"matchLabels": ["a"]}, "matchLabels: must be an object of strings", id="a list of labels"
        ),
        pytest.param({"matchLabels": {"a": 1}}, "matchLabels: must be an object of strings", id="a number"),
        pytest.param(
            {"matchExpressions": {}}, "matchExpressions: must be a list", id="an object of expressions"
        ),
        pytest.param(
            {"matchExpressions": ["a"]}, "matchExpressions: must be a list of objects", id="a string"
        ),
        pytest.param(
            {"matchExpressions": [{"key": 1, "operator": "In"}]},
            "matchExpressions: key and operator must be strings",
            id="a number for a label",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "matchExpressions: values must be strings",
            id="a number for a value",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
            "values: must be a list",
            id="a string for values",
        ),
    ],
)
def test_explains_bad_selectors_in_objects(selector, message):
    with pytest.raises(SelectorError) as refusal:
        LabelSelector.of(selector)

    assert str(refusal.value) == message


def test_an_empty_selector_chooses_everything_and_a_missing_one_nothing():
    assert LabelSelector.of({}) == LabelSelector.parse("") == EVERYTHING
    assert EVERYTHING.matches({"a": "b"})
    assert EVERYTHING.matches(None)
    assert LabelSelector.of(None) == NOTHING
    assert not NOTHING.matches({"a": "b"})
    assert not NOTHING.matches({})


def test_exact_labels_need_not_be_valid():
    selector = LabelSelector.exactly({"b": "-", "a": "1"})

    assert str(selector) == "a=1,b=-"
    assert selector.matches({"a": "1", "b": "-", "c": "2"})
    assert not selector.matches({"a": "1"})


words = st.sampled_from(["a", "b", "in", "notin", "x.y/z", "1"])
values = st.sampled_from(["", "a", "b", "1", "in"])
requirements = st.one_of(
    st.builds(Requirement, words, st.sampled_from(["exists", "!"]), st.just(())),
    st.builds(Requirement, words, st.sampled_from(["=", "==", "!="]), values.map(lambda value: (value,))),
    st.builds(
        Requirement, words, st.sampled_from(["gt", "lt"]), st.integers(0).map(lambda n: (str(min(n, 9)),))
    ),
    st.builds(
        Requirement,
        words,
        st.sampled_from(["in", "notin"]),
        st.sets(values, min_size=1).map(lambda chosen: tuple(sorted(chosen))),
    ),
)
selectors = st.lists(requirements, max_size=4).map(
    lambda found: LabelSelector(tuple(sorted(found, key=lambda requirement: requirement.key)))
)


@given(selectors)
def test_a_printed_label_selector_is_read_again(selector):
    assert LabelSelector.parse(str(selector)) == selector


@given(selectors, st.dictionaries(words, values))
def test_a_selector_chooses_what_all_its_requirements_choose(selector, labels):
    parts = [LabelSelector((requirement,)) for requirement in selector.requirements]

    assert selector.matches(labels) == all(part.matches(labels) for part in parts)


@given(st.text("ab=!(),<> in\\", max_size=20))
def test_any_text_is_a_selector_or_refused(text):
    for kind in (LabelSelector, FieldSelector):
        try:
            selector = kind.parse(text)
        except SelectorError:
            continue
        assert kind.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("metadata.name=x", "metadata.name=x", id="equal"),
        pytest.param("metadata.name==x", "metadata.name=x", id="equal with two signs"),
        pytest.param("a==b,c!=d", "a=b,c!=d", id="equal and unequal"),
        pytest.param("z=1,a=2", "a=2,z=1", id="terms are sorted"),
        pytest.param(",a=b,,", "a=b", id="empty terms do not count"),
        pytest.param("=,!=", "", id="terms of nothing do not count either"),
        pytest.param("a=", "a=", id="an empty value"),
        pytest.param(r"a=b\,c", r"a=b\,c", id="an escaped comma"),
        pytest.param(r"a=b\=c", r"a=b\=c", id="an escaped equal sign"),
        pytest.param(r"a=b\\", r"a=b\\", id="an escaped backslash"),
        pytest.param(r"a=b\\,c=d", r"a=b\\,c=d", id="a comma after an escaped backslash"),
    ],
)
def test_reads_and_prints_field_queries(query, printed):
    assert str(FieldSelector.parse(query)) == printed


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            "nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'", id="no operator"
        ),
        pytest.param("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'", id="no operator in a term"),
        pytest.param(
            r"a=b\x", r"invalid field selector: invalid escape sequence: \x", id="an unknown escape"
        ),
        pytest.param("a=b\\", "invalid field selector: invalid escape sequence: \\", id="a backslash last"),
        pytest.param(
            "a=b=c", "invalid field selector: unescaped character in value: 61", id="two equal signs"
        ),
    ],
)
def test_explains_bad_field_queries(query, message):
    with pytest.raises(SelectorError) as refusal:
        FieldSelector.parse(query)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        pytest.param("", True, id="nothing asked"),
        pytest.param("metadata.name=web", True, id="equal"),
        pytest.param("metadata.name=db", False, id="not equal"),
        pytest.param("status.phase!=Running", False, id="the unwanted value"),
        pytest.param("status.phase!=Failed", True, id="another value"),
        pytest.param("metadata.name=web,status.phase=Running", True, id="both"),
        pytest.param("metadata.name=web,status.phase=Failed", False, id="one of two"),
        pytest.param("spec.nodeName=", True, id="a missing field is empty"),
        pytest.param("spec.nodeName!=", False, id="and not anything else"),
        pytest.param(r"spec.odd=a\,b\=c\\", True, id="an escaped value"),
    ],
)
def test_chooses_by_fields(query, chosen):
    fields = {"metadata.name": "web", "status.phase": "Running", "spec.odd": "a,b=c\\"}

    assert FieldSelector.parse(query).matches(lambda field: fields.get(field, "")) is chosen


def test_terms_can_be_read_one_by_one():
    assert FieldSelector.parse("a=b,c!=d").terms == (FieldTerm("a", "b"), FieldTerm("c", "d", negated=True))


@given(st.text("ab,=\\", max_size=10), st.booleans())
def test_any_value_can_be_escaped(value, negated):
    selector = FieldSelector((FieldTerm("field", value, negated),))

    assert FieldSelector.parse(str(selector)) == selector
