"""Go's ways with text; the expected values are Go's."""

import pytest

from kubewire.gotext import parse_int64, quote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("", '""', id="nothing"),
        pytest.param("plain text", '"plain text"', id="plain text"),
        pytest.param('a "b"', r'"a \"b\""', id="quotes"),
        pytest.param("a\\b", r'"a\\b"', id="a backslash"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="control characters with a letter"),
        pytest.param("\x00\x1f\x7f", r'"\x00\x1f\x7f"', id="control characters without one"),
        pytest.param("é ü 日 😀", '"é ü 日 😀"', id="printable text of any script"),
        pytest.param("\u00a0\u2028\ufeff", r'"\u00a0\u2028\ufeff"', id="invisible characters"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="invisible characters far up"),
    ],
)
def test_quotes_as_go_does(text, quoted):
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("+7", 7, id="a plus"),
        pytest.param("-7", -7, id="a minus"),
        pytest.param("007", 7, id="leading zeros"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the largest"),
        pytest.param("-9223372036854775808", -(2**63), id="the smallest"),
        pytest.param("9223372036854775808", None, id="beyond the largest"),
        pytest.param("-9223372036854775809", None, id="beyond the smallest"),
        pytest.param("9" * 10_000, None, id="very many digits"),
        pytest.param("", None, id="nothing"),
        pytest.param("-", None, id="a sign alone"),
        pytest.param("1_0", None, id="an underscore"),
        pytest.param(" 1", None, id="a space"),
        pytest.param("1.0", None, id="a fraction"),
        pytest.param("\u0661", None, id="an Arabic digit"),
        pytest.param("\u00b2", None, id="a superscript"),
    ],
)
def test_reads_integers_as_go_does(text, number):
    assert parse_int64(text) == number
