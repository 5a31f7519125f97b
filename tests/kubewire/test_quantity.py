"""Quantities: the expected texts are what k8s.io/apimachinery 0.36 prints."""

import operator
import re
from fractions import Fraction
from functools import reduce

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubewire.quantity import MAX_EXPONENT, MAX_TEXT, ZERO, Quantity, QuantityError, total

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"


@pytest.mark.parametrize(
    ("text", "printed", "family"),
    [
        pytest.param("0", "0", "DecimalSI", id="zero"),
        pytest.param("-0Gi", "0", "BinarySI", id="zero prints without a suffix and keeps its family"),
        pytest.param("0e5", "0", "DecimalExponent", id="zero with an exponent"),
        pytest.param("1n", "1n", "DecimalSI", id="nano"),
        pytest.param("1u", "1u", "DecimalSI", id="micro"),
        pytest.param("1500m", "1500m", "DecimalSI", id="milli stay milli where they are no whole number"),
        pytest.param("1000m", "1", "DecimalSI", id="a thousand milli are one"),
        pytest.param("1k", "1k", "DecimalSI", id="kilo"),
        pytest.param("1000", "1k", "DecimalSI", id="a thousand is one kilo"),
        pytest.param("100000", "100k", "DecimalSI", id="a hundred thousand are a hundred kilo"),
        pytest.param("5M", "5M", "DecimalSI", id="mega"),
        pytest.param("1000M", "1G", "DecimalSI", id="giga"),
        pytest.param("3T", "3T", "DecimalSI", id="tera"),
        pytest.param("3P", "3P", "DecimalSI", id="peta"),
        pytest.param("1E", "1E", "DecimalSI", id="a lone E is exa"),
        pytest.param("100000000000000000000", "100E", "DecimalSI", id="beyond int64"),
        pytest.param(
            "123456789012345678901234567890",
            "123456789012345678901234567890",
            "DecimalSI",
            id="far beyond int64",
        ),
        pytest.param("12Ki", "12Ki", "BinarySI", id="kibi"),
        pytest.param("1024Ki", "1Mi", "BinarySI", id="1024 kibi are a mebi"),
        pytest.param("1000Ki", "1000Ki", "BinarySI", id="1000 kibi are no mebi"),
        pytest.param("4Ti", "4Ti", "BinarySI", id="tebi"),
        pytest.param("2048Ti", "2Pi", "BinarySI", id="pebi"),
        pytest.param("3Pi", "3Pi", "BinarySI", id="pebi as given"),
        pytest.param("1Ei", "1Ei", "BinarySI", id="exbi"),
        pytest.param("0.5Gi", "512Mi", "BinarySI", id="a fraction moves down to a smaller suffix"),
        pytest.param("-0.5Gi", "-512Mi", "BinarySI", id="a negative fraction does, too"),
        pytest.param("0.5Ki", "512", "BinarySI", id="less than 1024 has no suffix"),
        pytest.param("1.1Ki", "1126400m", "BinarySI", id="a fractional byte prints in decimals"),
        pytest.param("0.0001Ki", "102400u", "DecimalSI", id="less than one byte turns decimal"),
        pytest.param("0.0000000000001Ki", "1n", "DecimalSI", id="however little it is"),
        pytest.param("8Ei", "9223372036854775807", "BinarySI", id="a binary quantity is capped at int64"),
        pytest.param("-9Ei", "-9223372036854775807", "BinarySI", id="so is a negative one"),
        pytest.param("1e3", "1e3", "DecimalExponent", id="an exponent stays an exponent"),
        pytest.param(
            "1E3", "1E3", "DecimalExponent", id="a large E with digits is an exponent and stays large"
        ),
        pytest.param("1e+3", "1e+3", "DecimalExponent", id="a plus in the exponent stays"),
        pytest.param(
            "1.5e3", "1500", "DecimalExponent", id="exponents come in steps of three, none for zero"
        ),
        pytest.param("15e2", "1500", "DecimalExponent", id="hundreds become ones"),
        pytest.param("1E5", "100e3", "DecimalExponent", id="a hundred thousand with exponent"),
        pytest.param("1e100", "10e99", "DecimalExponent", id="a large exponent"),
        pytest.param("5e-1", "500e-3", "DecimalExponent", id="a negative exponent"),
        pytest.param("1e-10", "1e-9", "DecimalExponent", id="finer than nano is rounded up"),
        pytest.param("0.00000000149", "2n", "DecimalSI", id="rounding goes up"),
        pytest.param("-0.1n", "-1n", "DecimalSI", id="rounding a negative goes down, away from zero"),
        pytest.param(
            "1.23456789012345Gi", "1325607178192984789n", "BinarySI", id="binary fractions round, too"
        ),
        pytest.param(".5", "500m", "DecimalSI", id="no digit before the point"),
        pytest.param("1.0", "1", "DecimalSI", id="a zero after the point"),
        pytest.param("1.", "1.", "DecimalSI", id="no digit after the point: kept as written"),
        pytest.param("+5", "+5", "DecimalSI", id="a plus sign: kept as written"),
        pytest.param("00012", "00012", "DecimalSI", id="leading zeros: kept as written"),
        pytest.param("1.500", "1.500", "DecimalSI", id="three decimals: kept as written"),
        pytest.param("1.5000", "1500m", "DecimalSI", id="four decimals are not"),
        pytest.param("0.500", "500m", "DecimalSI", id="nor is a leading zero before decimals"),
        pytest.param("1.000000000000000001", "1000000001n", "DecimalSI", id="nor more digits than are kept"),
        pytest.param("1.000000001", "1.000000001", "DecimalSI", id="nine decimals: kept as written"),
        pytest.param("1.000000000001", "1000000001n", "DecimalSI", id="twelve decimals are not"),
        pytest.param("1.G", "1.G", "DecimalSI", id="a point before a suffix: kept as written"),
        pytest.param("1.5e1", "1.5e1", "DecimalExponent", id="tens with one decimal: kept as written"),
        pytest.param(
            "+123456789012345678", "+123456789012345678", "DecimalSI", id="18 digits: kept as written"
        ),
        pytest.param("+1234567890123456789", "1234567890123456789", "DecimalSI", id="19 digits are not"),
        pytest.param("+12345678901Ki", "+12345678901Ki", "BinarySI", id="11 digits of kibi: kept as written"),
        pytest.param("+123456789013Ki", "123456789013Ki", "BinarySI", id="12 digits of kibi are not"),
        pytest.param("+12Ti", "+12Ti", "BinarySI", id="2 digits of tebi: kept as written"),
        pytest.param("+123Ti", "123Ti", "BinarySI", id="3 digits of tebi are not"),
        pytest.param("+1Gi", "+1Gi", "BinarySI", id="a binary one with a plus: kept as written"),
        pytest.param("+8Gi", "8Gi", "BinarySI", id="unless it is divisible by eight"),
    ],
)
def test_prints_as_kubernetes_does(text, printed, family):
    quantity = Quantity.parse(text)

    assert (str(quantity), quantity.family) == (printed, family)
    assert repr(quantity) == f"Quantity({printed!r})"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", WRONG_FORMAT, id="nothing"),
        pytest.param(" 1", WRONG_FORMAT, id="a space before"),
        pytest.param("1 Gi", WRONG_FORMAT, id="a space within"),
        pytest.param("1\n", WRONG_FORMAT, id="a line break after"),
        pytest.param("1GiB", WRONG_FORMAT, id="bytes spelled out"),
        pytest.param("1,5", WRONG_FORMAT, id="a decimal comma"),
        pytest.param("1_0", WRONG_FORMAT, id="an underscore"),
        pytest.param("0x10", WRONG_FORMAT, id="hexadecimal"),
        pytest.param("NaN", WRONG_FORMAT, id="no number"),
        pytest.param("\u0661", WRONG_FORMAT, id="an Arabic digit"),
        pytest.param("1.2.3", WRONG_FORMAT, id="two points"),
        pytest.param("1e1e1", WRONG_FORMAT, id="two exponents"),
        pytest.param("1e5Ki", WRONG_FORMAT, id="an exponent and a suffix"),
        pytest.param("1e+x", WRONG_FORMAT, id="a letter for an exponent"),
        pytest.param("1K", WRONG_SUFFIX, id="a large K alone"),
        pytest.param("1ki", WRONG_SUFFIX, id="a small kibi"),
        pytest.param("1i", WRONG_SUFFIX, id="a lone i"),
        pytest.param("1e", WRONG_SUFFIX, id="an exponent without digits"),
        pytest.param("1ee5", WRONG_SUFFIX, id="a doubled e"),
        pytest.param("1m1", WRONG_SUFFIX, id="digits after a suffix"),
        pytest.param("--1", WRONG_SUFFIX, id="two signs"),
        pytest.param("1e99999999999999999999", WRONG_SUFFIX, id="an exponent beyond int64"),
        pytest.param("Pi", WRONG_NUMBER, id="a suffix alone"),
        pytest.param("-", WRONG_NUMBER, id="a sign alone"),
        pytest.param(".", WRONG_NUMBER, id="a point alone"),
    ],
)
def test_refuses_what_is_no_quantity(text, message):
    with pytest.raises(QuantityError) as refusal:
        Quantity.parse(text)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1" * (MAX_TEXT + 1), id="a long text"),
        pytest.param(f"1e{MAX_EXPONENT + 1}", id="a large exponent"),
        pytest.param(f"1e-{MAX_EXPONENT + 1}", id="a small exponent"),
        pytest.param("1e2147483648", id="an exponent that would take gigabytes"),
    ],
)
def test_refuses_texts_that_would_cost_too_much(text):
    with pytest.raises(QuantityError):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["1" * MAX_TEXT, f"1e{MAX_EXPONENT}", f"1e-{MAX_EXPONENT}"])
def test_takes_texts_up_to_the_limits(text):
    assert Quantity.parse(text)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        pytest.param("250m", "250m", id="a string"),
        pytest.param(" 1Gi ", "1Gi", id="a string with spaces around it"),
        pytest.param(1, "1", id="an integer"),
        pytest.param(-2000, "-2k", id="a negative integer"),
        pytest.param(0.5, "500m", id="a fraction"),
        pytest.param(1e22, "10e21", id="a large float"),
        pytest.param(1e-7, "100e-9", id="a small float"),
    ],
)
def test_takes_what_manifests_hold(value, printed):
    assert str(Quantity.of(value)) == printed


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(True, id="a boolean"),
        pytest.param(None, id="nothing"),
        pytest.param([1], id="a list"),
        pytest.param(Fraction(1), id="another kind of number"),
        pytest.param(float("nan"), id="a float that is no number"),
        pytest.param(float("inf"), id="an infinite float"),
        pytest.param(10**100_000, id="a huge integer"),
    ],
)
def test_refuses_other_values_in_manifests(value):
    with pytest.raises(QuantityError):
        Quantity.of(value)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param("1", "1000m", id="milli"),
        pytest.param("1Ki", "1024", id="binary and decimal"),
        pytest.param("1e3", "1k", id="exponent and suffix"),
        pytest.param("+5", "5", id="a text that was kept"),
    ],
)
def test_equal_amounts_are_equal_in_any_family(left, right):
    left, right = Quantity.parse(left), Quantity.parse(right)

    assert left == right
    assert hash(left) == hash(right)
    assert left <= right
    assert left >= right
    assert not left < right
    assert not left > right


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        pytest.param("999m", "1", id="milli"),
        pytest.param("1G", "1Gi", id="giga and gibi"),
        pytest.param("-1", "1n", id="a negative"),
        pytest.param("9223372036854775807", "10E", id="beyond int64"),
    ],
)
def test_order_crosses_families(smaller, larger):
    smaller, larger = Quantity.parse(smaller), Quantity.parse(larger)

    assert smaller < larger
    assert smaller <= larger
    assert larger > smaller
    assert larger >= smaller
    assert smaller != larger


@pytest.mark.parametrize(
    "compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.add, operator.sub, operator.mul]
)
def test_does_not_mix_with_other_types(compare):
    with pytest.raises(TypeError):
        compare(Quantity.parse("1"), "1")


def test_is_not_equal_to_its_text():
    assert Quantity.parse("1") != "1"


@pytest.mark.parametrize(
    ("addends", "printed"),
    [
        pytest.param(["500m", "2"], "2500m", id="cpus"),
        pytest.param(["2Gi", "200Mi", "1Gi"], "3272Mi", id="binary memory"),
        pytest.param(["100G", "20G"], "120G", id="decimal memory"),
        pytest.param(["1Gi", "1024k"], "1049576Ki", id="the first family wins"),
        pytest.param(["1024k", "1Gi"], "1074765824", id="also when it is the decimal one"),
        pytest.param(["1e3", "1k"], "2e3", id="also when it is the exponents'"),
        pytest.param(["0", "1Gi", "1Gi"], "2Gi", id="a zero gives its family away"),
        pytest.param(["0Mi", "1k"], "1k", id="a binary zero, too"),
        pytest.param(["1Gi", "500m"], "1073741824500m", id="fractions of a byte print in decimals"),
        pytest.param(["0.5Ki", "0.5Ki"], "1Ki", id="two halves of a kibi"),
        pytest.param(["1.500", "1"], "2500m", id="a sum is canonical even where an addend was not"),
        pytest.param(["9223372036854775807", "1"], "9223372036854775808", id="no overflow"),
        pytest.param([], "0", id="nothing"),
    ],
)
def test_sums(addends, printed):
    assert str(total(map(Quantity.parse, addends))) == printed


def test_subtracts_negates_and_multiplies():
    gibi, mebi = Quantity.parse("1Gi"), Quantity.parse("512Mi")

    assert str(gibi - mebi) == "512Mi"
    assert str(ZERO - mebi) == "-512Mi"
    assert str(-gibi) == "-1Gi"
    assert str(-Quantity.parse("1Ki")) == "-1Ki"
    assert str(mebi * 4) == "2Gi"
    assert str(3 * Quantity.parse("500m")) == "1500m"
    assert str(mebi * 0) == "0"


@pytest.mark.parametrize(
    ("text", "value", "milli_value"),
    [
        pytest.param("2", 2, 2000, id="a whole number"),
        pytest.param("1500m", 2, 1500, id="a fraction is rounded up"),
        pytest.param("1n", 1, 1, id="the smallest amount counts as one"),
        pytest.param("-1500m", -2, -1500, id="a negative is rounded away from zero"),
        pytest.param("1Ki", 1024, 1_024_000, id="a binary one"),
        pytest.param("0", 0, 0, id="zero"),
    ],
)
def test_rounds_to_integers(text, value, milli_value):
    quantity = Quantity.parse(text)

    assert (quantity.value(), quantity.milli_value()) == (value, milli_value)


def test_converts_to_float():
    assert float(Quantity.parse("250m")) == 0.25
    assert float(Quantity.parse("1e999")) == float("inf")
    assert float(Quantity.parse("-1e999")) == float("-inf")


def test_is_false_only_when_zero():
    assert not Quantity.parse("0Gi")
    assert Quantity.parse("1n")


@pytest.mark.parametrize("attribute", ["nano", "family"])
def test_cannot_be_changed(attribute):
    with pytest.raises(AttributeError):
        setattr(Quantity.parse("1"), attribute, 2)


def test_large_round_amounts_keep_their_value():
    """A difference to apimachinery, which prints 1 for all of these."""
    assert str(Quantity.parse("1Ei") * 1024) == "1024Ei"
    assert str(Quantity.parse("1000E")) == "1000E"
    assert str(Quantity.parse("1000000000000000000000")) == "1000E"


def test_sums_of_the_samples_are_those_that_were_recorded(reference):
    """What a cluster asks for: the head's containers and each group's, so many times."""
    compared = 0
    for sample in sorted((reference / "samples").glob("ray-cluster.*.yaml")):
        golden = reference / "golden" / sample.name
        clusters = [
            doc for doc in yaml.safe_load_all(sample.read_text()) if doc and doc["kind"] == "RayCluster"
        ]
        if len(clusters) != 1 or not golden.is_file():
            continue
        for resource, field in (("cpu", "desiredCPU"), ("memory", "desiredMemory")):
            recorded = re.search(rf"^    {field}: '?([^'\n]+)'?$", golden.read_text(), re.MULTILINE)
            if recorded:
                assert str(_asked_for(clusters[0]["spec"], resource)) == recorded[1], (sample.name, resource)
                compared += 1
    assert compared > 30


def _asked_for(spec, resource):
    groups = [(spec["headGroupSpec"], 1)]
    groups += [
        (group, group.get("replicas", 0) * group.get("numOfHosts", 1))
        for group in spec.get("workerGroupSpecs", [])
    ]
    return total(
        total(_of_container(container, resource) for container in group["template"]["spec"]["containers"])
        * times
        for group, times in groups
    )


def _of_container(container, resource):
    resources = container.get("resources", {})
    return Quantity.of({**resources.get("limits", {}), **resources.get("requests", {})}.get(resource, "0"))


texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**22),
    st.one_of(st.just(""), st.integers(0, 10**12).map(".{}".format)),
    st.sampled_from([*"numkMGTPE", "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4", "e+20"]),
)
quantities = texts.map(Quantity.parse)


@given(quantities)
def test_what_is_printed_means_the_same(quantity):
    again = Quantity.parse(str(quantity))

    assert again == quantity
    assert str(again) == str(quantity)


@given(quantities, quantities)
def test_exactly_one_order_holds(left, right):
    assert [left < right, left == right, left > right].count(True) == 1


@given(st.lists(quantities, max_size=5))
def test_addition_is_exact_in_any_order(addends):
    assert total(addends).nano == sum(addend.nano for addend in addends)
    assert total(reversed(addends)) == total(addends)
    assert reduce(operator.sub, addends, total(addends)) == ZERO


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_refused(text):
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(quantity)) == quantity
