"""Semantic versions and named formats, which Kubernetes adds to CEL."""

import pytest

from kubewire.cel import BOOL, EvaluationError, compile_expression


def evaluated(expression):
    return compile_expression(expression, {}, BOOL).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("isSemver('1.2.3')", True, id="three numbers"),
        pytest.param("isSemver('1.2')", False, id="two numbers"),
        pytest.param("isSemver('v1.2.3')", False, id="a leading v"),
        pytest.param("isSemver('01.2.3')", False, id="a leading zero"),
        pytest.param("isSemver('1.2.3-rc.01')", False, id="a leading zero before a release"),
        pytest.param("isSemver('1.2.3-rc.1+build.01')", True, id="a leading zero after a plus sign"),
        pytest.param("isSemver('99999999999999999999.0.0')", False, id="a number beyond 64 bits"),
        pytest.param("isSemver('1.2', true)", True, id="two numbers are completed"),
        pytest.param("isSemver('v1', true)", True, id="one number and a v are completed"),
        pytest.param("isSemver('1-rc', true)", False, id="what is no number is not completed"),
        pytest.param("isSemver('01.02.00-a', true)", True, id="zeros are dropped"),
        pytest.param("isSemver('', true)", False, id="nothing is not completed"),
        pytest.param(
            "semver('1.10.0').isGreaterThan(semver('1.9.0'))", True, id="numbers compare as numbers"
        ),
        pytest.param("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", True, id="a candidate comes before"),
        pytest.param("semver('1.0.0-2').isLessThan(semver('1.0.0-10'))", True, id="numbers in candidates"),
        pytest.param("semver('1.0.0-10').isLessThan(semver('1.0.0-a'))", True, id="numbers before words"),
        pytest.param("semver('1.0.0-a').isLessThan(semver('1.0.0-a.1'))", True, id="fewer parts before more"),
        pytest.param("semver('1.0.0+a') == semver('1.0.0+b')", True, id="builds do not count"),
        pytest.param("semver('1.2.3').compareTo(semver('1.2.3')) == 0", True, id="equal versions"),
        pytest.param("semver('1.2.3').compareTo(semver('2.0.0')) == -1", True, id="an older one"),
        pytest.param("semver('v1.2', true).major() == 1", True, id="the first number"),
        pytest.param("semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3", True, id="the others"),
        pytest.param("format.dns1123Label().validate('a-b').hasValue()", False, id="a good label"),
        pytest.param("format.dns1123Label().validate('A').hasValue()", True, id="a bad label"),
        pytest.param(
            "format.dns1123Label().validate('a-').hasValue()", True, id="a label that ends in a hyphen"
        ),
        pytest.param("format.dns1123LabelPrefix().validate('a-').hasValue()", False, id="which a prefix may"),
        pytest.param("format.dns1035Label().validate('1a').hasValue()", True, id="a digit to begin with"),
        pytest.param("format.dns1123Subdomain().validate('a.b').hasValue()", False, id="a subdomain"),
        pytest.param("format.qualifiedName().validate('a.b/C_d').hasValue()", False, id="a qualified name"),
        pytest.param("format.labelValue().validate('').hasValue()", False, id="an empty label value"),
        pytest.param(
            "format.uuid().validate('x').value()[0].contains('UUID')", True, id="what is wrong is told"
        ),
        pytest.param("format.byte().validate('!').hasValue()", True, id="no base64"),
        pytest.param("format.date().validate('2026-02-29').hasValue()", True, id="no day"),
        pytest.param("format.datetime().validate('2026-02-28T10:00:00Z').hasValue()", False, id="a time"),
        pytest.param("format.uri().validate('https://a/b').hasValue()", False, id="a URI"),
        pytest.param("format.named('uuid').value() == format.uuid()", True, id="a format by its name"),
        pytest.param("format.named('colour').hasValue()", False, id="a format that is none"),
    ],
)
def test_an_expression_is(expression, value):
    assert evaluated(expression) is value


def test_what_is_no_version_cannot_be_compared():
    with pytest.raises(EvaluationError, match="no semantic version"):
        evaluated("semver('one').isLessThan(semver('2.0.0'))")
