"""Values in messages look as Go prints them."""

import pytest

from kubewire import fielderrors
from kubewire.fielderrors import OMITTED, FieldError, Verbatim, as_json, printed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param('a"b\n', '"a\\"b\\n"', id="texts are quoted"),
        pytest.param(Verbatim("as is"), "as is", id="what is printed already is not"),
        pytest.param(5, "5", id="an integer"),
        pytest.param(True, "true", id="a boolean"),
        pytest.param(None, "null", id="null"),
        pytest.param(0.0, "0", id="zero"),
        pytest.param(-1.50, "-1.5", id="a fraction"),
        pytest.param(100000.0, "100000", id="six digits"),
        pytest.param(1000000.0, "1e+06", id="seven digits have an exponent"),
        pytest.param(123456789.0, "1.23456789e+08", id="many digits have an exponent"),
        pytest.param(0.0001, "0.0001", id="a small fraction"),
        pytest.param(0.00001, "1e-05", id="a smaller one has an exponent"),
        pytest.param(5e-324, "5e-324", id="the smallest"),
        pytest.param(float("inf"), "+Inf", id="infinity"),
        pytest.param(float("nan"), "NaN", id="no number"),
        pytest.param(
            {"b": [1, 2.5], "a": "<&>"}, '{"a":"\\u003c\\u0026\\u003e","b":[1,2.5]}', id="the rest is JSON"
        ),
    ],
)
def test_printed(value, text):
    assert printed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(1e20, "100000000000000000000", id="large numbers are written out"),
        pytest.param(1e21, "1e+21", id="larger ones are not"),
        pytest.param(0.000001, "0.000001", id="small numbers are written out"),
        pytest.param('"\\\t\x01\u2028é', '"\\"\\\\\\t\\u0001\\u2028é"', id="texts are escaped"),
    ],
)
def test_json(value, text):
    assert as_json(value) == text


def test_json_that_is_nested_too_deep_is_cut_short():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert as_json(deep) == "[" * 65 + '"…"' + "]" * 65


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (fielderrors.invalid(("a", 0), 1, "no"), "FieldValueInvalid", "a[0]: Invalid value: 1: no"),
        (fielderrors.invalid(("a",), OMITTED, "no"), "FieldValueInvalid", "a: Invalid value: no"),
        (fielderrors.type_invalid(("a",), "x", "no"), "FieldValueTypeInvalid", 'a: Invalid value: "x": no'),
        (fielderrors.required(("a",)), "FieldValueRequired", "a: Required value"),
        (fielderrors.required(("a",), "why"), "FieldValueRequired", "a: Required value: why"),
        (fielderrors.forbidden(("a",), "why"), "FieldValueForbidden", "a: Forbidden: why"),
        (fielderrors.duplicate(("a",), "x"), "FieldValueDuplicate", 'a: Duplicate value: "x"'),
        (
            fielderrors.not_supported(("a",), "x", ["y", 1]),
            "FieldValueNotSupported",
            'a: Unsupported value: "x": supported values: "y", "1"',
        ),
        (fielderrors.not_supported(("a",), "x", []), "FieldValueNotSupported", 'a: Unsupported value: "x"'),
        (fielderrors.too_long(("a",), 5), "FieldValueTooLong", "a: Too long: may not be more than 5 bytes"),
        (
            fielderrors.too_many(("a",), 6, 5),
            "FieldValueTooMany",
            "a: Too many: 6: must have at most 5 items",
        ),
    ],
)
def test_kinds_of_errors(error, reason, text):
    assert (error.reason, str(error)) == (reason, text)


def test_a_special_spelling_wins():
    assert FieldError("FieldValueRequired", ("a", "b c"), "m").field == "a[b c]"
    assert FieldError("FieldValueRequired", ("a", "b c"), "m", "a.b c").field == "a.b c"
