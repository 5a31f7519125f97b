"""The language by example: literals, operators, conversions, macros, functions."""

import pytest

from kubewire.cel import (
    BOOL,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CompileError,
    Duration,
    EvaluationError,
    ListType,
    MapType,
    Timestamp,
    UInt,
    compile_expression,
)

VARIABLES = {"n": INT, "name": STRING, "tags": ListType(STRING), "limits": MapType(STRING, INT), "any": DYN}
VALUES = {
    "n": 5,
    "name": "ray-head",
    "tags": ["gpu", "spot"],
    "limits": {"cpu": 4, "gpu": 1},
    "any": {"port": 8265, "list": [1, "a"]},
}


def evaluate(text):
    return compile_expression(text, VARIABLES).evaluate(VALUES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("-9223372036854775808", -(2**63)),
        ("0x1f", 31),
        ("7u", UInt(7)),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        (r"'tab\tand \'quote\' and \u00e9'", "tab\tand 'quote' and é"),
        (r'r"no \escape"', r"no \escape"),
        ("'''two\nlines'''", "two\nlines"),
        (r"b'\x00\377é'", b"\x00\xff\xc3\xa9"),
        ("null", None),
        ("[1, 2,]", [1, 2]),
        ("{'a': 1, 'b': 2}", {"a": 1, "b": 2}),
        ("1 // a comment\n + 1", 2),
    ],
)
def test_literals(text, value):
    result = evaluate(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.0 / 2.0", 3.5),
        ("1.0 / 0.0", float("inf")),
        ("'ray' + '-' + 'head'", "ray-head"),
        ("[1] + [2]", [1, 2]),
        ("b'a' + b'b'", b"ab"),
        ("!(n > 3) || n == 5", True),
        ("1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2", True),
        ("2 < 2.5 && 2u < 3 && 2.5 > 1u", True),
        ("'a' < 'b'", True),
        ("dyn(1) == 1.0 && dyn(1u) == 1", True),
        ("dyn(true) == 1", False),
        ("'gpu' in tags && !('tpu' in tags)", True),
        ("'cpu' in limits", True),
        ("1 / 0 in []", False),
        ("n > 3 ? 'many' : 'few'", "many"),
        ("true ? 1 : 1 / 0", 1),
        ("tags[1]", "spot"),
        ("limits['cpu'] + limits.gpu", 5),
        ("any.port + 1", 8266),
        ("any['list'][1]", "a"),
    ],
)
def test_operators(text, value):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && false", False),
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 || true", True),
        ("[0, 1].exists(e, 1 / e == 1)", True),
        ("[0, 1].all(e, 1 / e == 2)", False),
    ],
)
def test_an_error_is_forgotten_when_the_rest_decides(text, value):
    assert evaluate(text) is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775807 - 2", "integer overflow"),
        ("9223372036854775807 * 2", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
        ("tags[2]", "index out of bounds: 2"),
        ("tags[-1]", "index out of bounds: -1"),
        ("limits.memory", "no such key: memory"),
        ("any.missing", "no such key: missing"),
        ("any.port.startsWith('8')", "no such overload"),
        ("true && 1 / 0 == 1", "division by zero"),
        ("false || any.port", "no such overload"),
        ("any.port ? 1 : 2", "no such overload"),
        ("int(name)", "type conversion error from 'string' to 'int'"),
        ("tags.filter(t, any.port)", "no such overload"),
        ("duration('200000h') + duration('2500000h')", "duration overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        ("[].min()", "min called on empty list"),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_errors(text, message):
    with pytest.raises(EvaluationError) as failure:
        evaluate(text)
    assert failure.value.message == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int('42') + int(1.9) + int(3u)", 46),
        ("uint(3)", UInt(3)),
        ("double('1.5') + double(1)", 2.5),
        ("string(1.0) + string(true) + string(3u) + string(b'x')", "1true3x"),
        ("bytes('é')", b"\xc3\xa9"),
        ("bool('true')", True),
        ("type(1) == int && type('') == string && type([]) == list && type(null) == null_type", True),
        ("type(timestamp(0)) == google.protobuf.Timestamp", True),
        ("timestamp('1970-01-01T00:01:00+01:00')", Timestamp(-3540 * 10**9)),
        ("duration('1h30m') + duration('-30m')", Duration(3600 * 10**9)),
        ("string(duration('1.5s'))", "1.5s"),
        ("string(timestamp('2024-02-29T12:00:00.5Z') + duration('24h'))", "2024-03-01T12:00:00.5Z"),
        ("timestamp('2024-02-29T23:30:00Z').getDayOfYear()", 59),
        ("timestamp('2024-02-29T23:30:00Z').getDate('+01:00')", 1),
        ("timestamp('2024-07-01T00:00:00Z').getHours('America/New_York')", 20),
        ("size('é') + size(b'\\xc3\\xa9') + size([1]) + size({'a': 1})", 5),
    ],
)
def test_conversions_and_times(text, value):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tags.all(t, t.size() >= 3)", True),
        ("tags.exists(t, t == 'spot')", True),
        ("[1, 2, 2].exists_one(e, e == 2)", False),
        ("[1, 2, 3].filter(e, e > 1)", [2, 3]),
        ("[1, 2, 3].map(e, e * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(e, e > 1, e * 2)", [4, 6]),
        ("limits.all(k, limits[k] > 0)", True),
        ("limits.map(k, k)", ["cpu", "gpu"]),
        ("[[1, 2], [3]].map(row, row.map(e, e + n))", [[6, 7], [8]]),
        ("[1, 2].all(n, n < 3)", True),
        ("[].all(e, e > 1 / 0)", True),
        ("has(limits.cpu) && !has(limits.memory) && has(any.port)", True),
    ],
)
def test_macros(text, value):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("name.startsWith('ray') && name.endsWith('head') && name.contains('-')", True),
        ("name.charAt(3) + name.substring(4) + name.substring(0, 3)", "-headray"),
        ("name.indexOf('a') * 10 + name.lastIndexOf('a')", 16),
        ("name.upperAscii().lowerAscii() == name", True),
        ("' x '.trim() + 'a,b'.split(',').join('+')", "xa+b"),
        ("name.replace('-', '_').replace('a', 'A', 1)", "rAy_head"),
        ("name.matches('^[a-z]+-[a-z]+$')", True),
        ("'worker-12'.find('[0-9]+') + '1,2'.findAll('[0-9]').join()", "1212"),
        ("'%s has %d tags (%s)'.format([name, tags.size(), tags])", 'ray-head has 2 tags (["gpu", "spot"])'),
        ("[3, 1, 2].min() + [3, 1, 2].max() + [3, 1, 2].sum()", 10),
        ("[1, 2].isSorted() && ![2, 1].isSorted()", True),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)", 2),
        (
            "sets.contains(tags, ['gpu']) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
            True,
        ),
        ("quantity('1Gi').isGreaterThan(quantity('1G')) && !isQuantity('much')", True),
        ("quantity('1500m').add(quantity('500m')).asInteger()", 2),
        ("url('https://head:8265/api?x=1').getPort() + url('https://h/a').getScheme()", "8265https"),
        ("isURL('https://head') && !isURL('head')", True),
        ("ip('10.0.0.7').family() == 4 && cidr('10.0.0.0/8').containsIP('10.0.0.7')", True),
        ("optional.of(1).orValue(2) + limits.?memory.orValue(10) + limits[?'cpu'].orValue(0)", 15),
        ("optional.of(n).optMap(v, v + 1).value() + optional.none().or(optional.of(1)).value()", 7),
        ("[?limits.?cpu, ?limits.?memory]", [4]),
        ("strings.quote('a\"b')", '"a\\"b"'),
    ],
)
def test_functions(text, value):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("nmae == ''", "undeclared reference to 'nmae' (in container '')", 1, 1),
        ("name.starts('r')", "undeclared reference to 'starts' (in container '')", 1, 12),
        ("n + name", "found no matching overload for '_+_' applied to '(int, string)'", 1, 3),
        ("name.startsWith(1)", "found no matching overload for 'startsWith' applied to 'string.(int)'", 1, 16),
        ("tags['a']", "found no matching overload for '_[_]' applied to '(list(string), string)'", 1, 5),
        ("n.field", "type 'int' does not support field selection", 1, 2),
        ("n && true", "expected type 'bool' but found 'int'", 1, 1),
        ("n ? 1 : 2", "found no matching overload for '_?_:_' applied to '(int, int, int)'", 1, 3),
        ("[1, 'a']", "expected type 'int' but found 'string'", 1, 5),
        ("n.all(e, true)",
         "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)", 1, 1),
        ("[[]].all(x, x == [x])",
         "found no matching overload for '_==_' applied to '(list(dyn), list(list(dyn)))'", 1, 15),
        ("has(n)", "invalid argument to has() macro", 1, 5),
        ("tags.all(1, true)", "argument must be a simple name", 1, 10),
        ("tags.filter(t, t)",
         "found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'", 1, 12),
        ("n ==\n  namespace", "reserved identifier: namespace", 2, 3),
        ("n == ", "Syntax error: mismatched input '<EOF>' expecting an expression", 1, 6),
        ("(n == 1", "Syntax error: mismatched input '<EOF>' expecting ')'", 1, 8),
        ("n = 1", "Syntax error: token recognition error at: '='", 1, 3),
        ("9223372036854775808", "invalid int literal", 1, 1),
        ("duration('soon')", "invalid duration argument", 1, 10),
        ("int('x')", "type conversion error from 'string' to 'int'", 1, 1),
        ("'%d'.format([1, 2])", "too many arguments supplied to string.format (expected 1, got 2)", 1, 12),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_its_place(text, message, line, column):
    with pytest.raises(CompileError) as refusal:
        compile_expression(text, VARIABLES)
    assert (refusal.value.message, refusal.value.line, refusal.value.column) == (message, line, column)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1 == 1", BOOL),
        ("n + 1", INT),
        ("[]", ListType(DYN)),
        ("[] + [1]", ListType(INT)),
        ("any.port", DYN),
        ("any.port + 1", INT),
        ("any.port + any.port", DYN),
        ("limits.map(k, limits[k])", ListType(INT)),
        ("{'a': [n]}", MapType(STRING, ListType(INT))),
        ("timestamp(0) - timestamp(0)", DURATION),
        ("timestamp(0) - duration('1s')", TIMESTAMP),
        ("true ? any : 1", DYN),
    ],
)
def test_the_type_of_an_expression_is_known(text, kind):
    assert compile_expression(text, VARIABLES).result_type == kind
