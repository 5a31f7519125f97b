"""Expressions made at random over a few variables: mostly well typed, with errors of every kind mixed in."""

from random import Random

from kubewire.cel import BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT, ListType, MapType, UInt

TYPES = {
    "i": INT,
    "u": UINT,
    "d": DOUBLE,
    "s": STRING,
    "b": BOOL,
    "y": BYTES,
    "l": ListType(INT),
    "ls": ListType(STRING),
    "m": MapType(STRING, INT),
    "x": DYN,
}
VARIABLES = {
    "i": 3,
    "u": UInt(4),
    "d": 2.5,
    "s": "hello",
    "b": True,
    "y": b"ab",
    "l": [3, 1, 2],
    "ls": ["a", "b"],
    "m": {"a": 1, "b": 2},
    "x": {"n": 5, "t": "text", "list": [1, "two"]},
}

_LEAVES = {
    "int": ["i", "0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808", "x.n", "l[0]", "l[9]",
            "m.a", "m['b']", "m.zz", "size(s)", "s.size()", "0x1F"],
    "uint": ["u", "0u", "1u", "3u", "18446744073709551615u"],
    "double": ["d", "0.0", "1.5", "-2.0", "1e300", "1.0"],
    "string": ["s", "''", "'a'", '"b c"', "'ä€'", "ls[0]", "ls[5]", "x.t", r"'l\n'", "r'\\d'"],
    "bool": ["b", "true", "false", "has(m.a)", "has(m.zz)", "has(x.n)", "has(x.q)"],
    "bytes": ["y", "b''", "b'ab'", r"b'\xff'"],
    "list": ["l", "[1, 2]", "[i]", "x.list", "[2, 1]"],
    "strings": ["ls", "['a']", "[s, 'b']"],
    "map": ["m", "{'a': 1}", "{'k': i}"],
    "dyn": ["x", "x.n", "x.t", "x.list", "x.list[1]", "dyn(1)", "dyn('a')", "dyn(1.0)", "dyn(1u)", "dyn(null)"],
    "duration": ["duration('1h')", "duration('90s')", "duration('-1.5s')", "duration('0')"],
    "timestamp": ["timestamp('2020-02-29T12:30:45.5Z')", "timestamp('1969-12-31T23:59:59Z')",
                  "timestamp('2011-08-18T00:00:00.000+01:00')"],
}  # fmt: skip

# A hole names the kind of expression that goes there.
_RULES = {
    "int": ["{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} / {int}", "{int} % {int}", "-({int})",
            "({bool} ? {int} : {int})", "int({double})", "int({uint})", "int({string})", "int({timestamp})",
            "size({list})", "{list}.size()", "size({map})", "{list}[{int}]", "{map}[{string}]", "size({bytes})",
            "{timestamp}.getFullYear()", "{timestamp}.getDayOfYear()", "{timestamp}.getMonth()",
            "{timestamp}.getDate()", "{timestamp}.getHours('+05:30')", "{timestamp}.getDayOfWeek()",
            "{duration}.getSeconds()", "{duration}.getMinutes()", "{timestamp}.getMilliseconds()",
            "{list}.filter(e, {bool}).size()", "{string}.indexOf({string})", "{string}.lastIndexOf({string})",
            "{string}.indexOf({string}, {int})", "{string}.lastIndexOf({string}, {int})",
            "m[?{string}].orValue({int})", "optional.of({int}).value()", "m.?zz.orValue({int})",
            "optional.none().value()", "l[?{int}].or(m.?a).value()"],
    "uint": ["{uint} + {uint}", "{uint} - {uint}", "{uint} * {uint}", "{uint} / {uint}", "{uint} % {uint}",
             "uint({int})", "uint({double})", "uint({string})"],
    "double": ["{double} + {double}", "{double} * {double}", "{double} / {double}", "{double} - {double}",
               "-({double})", "double({int})", "double({uint})", "double({string})"],
    "string": ["{string} + {string}", "string({int})", "string({uint})", "string({bool})", "string({bytes})",
               "({bool} ? {string} : {string})", "string({duration})", "{strings}[{int}]",
               "{string}.charAt({int})", "{string}.lowerAscii()",
               "{string}.upperAscii()", "{string}.replace({string}, {string})", "{string}.substring({int})",
               "{string}.replace({string}, {string}, {int})", "{string}.substring({int}, {int})", "{string}.trim()",
               "{strings}.join()", "{strings}.join({string})"],
    "bool": ["{bool} && {bool}", "{bool} || {bool}", "!({bool})", "{int} == {int}", "{int} != {int}",
             "{int} < {int}", "{int} >= {int}", "{string} < {string}", "{string} == {string}", "{double} > {double}",
             "{uint} <= {uint}", "{bytes} == {bytes}", "{bytes} < {bytes}", "{bool} == {bool}", "{dyn} == {dyn}",
             "{dyn} == {int}", "{dyn} != {string}", "{int} in {list}", "{string} in {strings}",
             "{string} in {map}", "{dyn} in {list}", "{list} == {list}", "{map} == {map}",
             "{string}.startsWith({string})",
             "{string}.endsWith({string})", "{string}.contains({string})", "{string}.matches('^[a-h]+$')",
             "{string}.matches('l{{2}}|b')", "{list}.all(e, {bool})", "{list}.exists(e, {bool})",
             "{list}.exists_one(e, {bool})", "{list}.all(e, e > {int})", "{list}.exists(e, e == {int})",
             "{map}.all(k, k == {string})", "{map}.exists(k, m[k] > {int})", "{strings}.exists_one(e, e == {string})",
             "type({dyn}) == {type}", "type({int}) == {type}", "{duration} < {duration}", "{timestamp} < {timestamp}",
             "{timestamp} == {timestamp}", "({bool} ? {bool} : {bool})", "bool({string})", "{bool} < {bool}",
             "{dyn} < {int}", "{dyn} + {int} == {int}", "has({map}.a)", "{dyn} && {bool}", "{dyn} in {map}",
             "m[?{string}].hasValue()", "optional.of({int}) == m.?a", "has(x.?list)", "m.?b == optional.none()"],
    "bytes": ["{bytes} + {bytes}", "bytes({string})"],
    "list": ["{list} + {list}", "{list}.filter(e, e > {int})", "{list}.map(e, e + {int})", "[{int}, {int}]",
             "{list}.map(e, e > {int}, e * 2)", "{strings}.map(e, size(e))", "({bool} ? {list} : {list})"],
    "strings": ["[{string}, {string}]", "{strings} + {strings}", "{strings}.filter(e, e != {string})",
                "{string}.split({string})", "{string}.split({string}, {int})"],
    "map": ["{{{string}: {int}}}", "{{{string}: {int}, 'q': {int}}}"],
    "dyn": ["dyn({int})", "dyn({string})", "dyn({double})", "dyn({list})", "x[{string}]", "dyn({bool})"],
    "duration": ["{duration} + {duration}", "{duration} - {duration}", "{timestamp} - {timestamp}",
                 "duration({string})"],
    "timestamp": ["{timestamp} + {duration}", "{timestamp} - {duration}", "timestamp({int})"],
}  # fmt: skip

_TYPES = ["int", "uint", "double", "string", "bool", "bytes", "list", "map", "null_type", "type"]


def expression(random: Random, kind: str | None = None, depth: int = 3, mistakes: float = 0.02) -> str:
    """Return an expression of a kind; now and then a part of it is of another."""
    wanted = kind or random.choice(list(_RULES))
    if random.random() < mistakes:
        wanted = random.choice(list(_RULES))
    if depth == 0 or random.random() < 0.25:
        return random.choice(_LEAVES[wanted])
    return _filled(random, random.choice(_RULES[wanted]), depth - 1, mistakes)


def _filled(random: Random, template: str, depth: int, mistakes: float) -> str:
    kinds = {name: lambda name=name: expression(random, name, depth, mistakes) for name in _RULES}
    parts: list[str] = []
    rest = template
    while rest:
        if rest.startswith(("{{", "}}")):
            parts.append(rest[0])
            rest = rest[2:]
        elif rest.startswith("{"):
            name, _, rest = rest[1:].partition("}")
            inner = random.choice(_TYPES) if name == "type" else kinds[name]()
            parts.append(f"({inner})" if rest.startswith((".", "[")) or " " in inner else inner)
        else:
            parts.append(rest[0])
            rest = rest[1:]
    return "".join(parts)
