"""Text that is no JSON is refused in the words of Go's parser; the wanted ones were said by Go itself."""

import json
import re

import pytest

from kubereef.server.media import decoded_json
from kubewire.badjson import complaint, without_half_characters

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", END),
        ("  ", END),
        ("{", END),
        ('{"a"', END),
        ('{"a":', END),
        ('{"a":1', END),
        ('{"a":1,', END),
        ('["x', END),
        ("{not json", "invalid character 'n' looking for beginning of object key string"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1, ]", "invalid character ']' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ('{"a":[1 2]}', "invalid character '2' after array element"),
        ('{"[":[1],"b" "c"}', "invalid character '\"' after object key"),
        ('{"a]":{"b":"}"} 1}', "invalid character '1' after object key:value pair"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("kind: Pod", "invalid character 'k' looking for beginning of value"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        ('{"a":nope}', "invalid character 'o' in literal null (expecting 'u')"),
        ('{"a":fals', "invalid character ' ' in literal false (expecting 'e')"),
        ('{"a":NaN}', "invalid character 'N' looking for beginning of value"),
        ('{"a":-}', "invalid character '}' in numeric literal"),
        ('{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        ('{"a":1.5.}', "invalid character '.' after object key:value pair"),
        ('{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        ('{"a":1e+}', "invalid character '}' in exponent of numeric literal"),
        ('{"a":1e5e}', "invalid character 'e' after object key:value pair"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":"b\nc"}', r"invalid character '\n' in string literal"),
        (r'{"a":"\x"}', "invalid character 'x' in string escape code"),
        ('{"a":"\\', "invalid character ' ' in string escape code"),
        (r'{"a":"\u12g4"}', r"invalid character 'g' in \u hexadecimal character escape"),
        (r'{"a":"\u12', r"invalid character ' ' in \u hexadecimal character escape"),
        (r'{"a":"\u1234', END),
    ],
)
def test_text_that_is_no_json_is_refused_in_gos_words(text, want):
    with pytest.raises(ValueError, match=rf"^{re.escape(want)}$"):
        decoded_json(text.encode())


@pytest.mark.parametrize(
    ("problem", "text", "at", "want"),
    [
        (
            "Illegal trailing comma before end of object",
            '{"a":1 , }',
            7,
            "'}' looking for beginning of object key string",
        ),
        ("Illegal trailing comma before end of array", "[1,]", 2, "']' looking for beginning of value"),
    ],
    ids=["in an object", "in a list"],
)
def test_trailing_commas_are_told_alike_by_newer_pythons(problem, text, at, want):
    assert complaint(text, json.JSONDecodeError(problem, text, at)) == f"invalid character {want}"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ud83d"', "\ufffd"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\ud83d\u0041"', "\ufffdA"),
        (r'"\uD83Dx"', "\ufffdx"),
    ],
    ids=[
        "a pair",
        "the first half",
        "halves in the wrong order",
        "an escaped backslash",
        "half and a letter",
        "capitals",
    ],
)
def test_half_a_character_is_replaced_as_go_does(text, want):
    assert json.loads(without_half_characters(text)) == want
    assert decoded_json(text.encode()).value == want


def test_bytes_that_are_no_utf_8_are_replaced_as_go_does():
    assert decoded_json(b'{"a":"\xff"}').value == {"a": "\ufffd"}


def test_a_number_beyond_reading_is_refused():
    with pytest.raises(ValueError, match="a number has more digits than are read here"):
        decoded_json(b"[" + b"1" * 10_000 + b"]")
