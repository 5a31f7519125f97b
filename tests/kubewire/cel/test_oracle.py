"""Random expressions have the same outcome here as in Google's C++ implementation: a value, an error, or a refusal."""

import datetime as dt
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewire.cel import (
    CompileError,
    Duration,
    EvaluationError,
    OptionalValue,
    Timestamp,
    compile_expression,
)
from kubewire.cel.values import TypeValue
from tests.kubewire.cel.generator import TYPES, VARIABLES, expression

cel = pytest.importorskip("cel_expr_python.cel")
ext_optional = pytest.importorskip("cel_expr_python.ext.ext_optional")
ext_strings = pytest.importorskip("cel_expr_python.ext.ext_strings")

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

# Where C++ and Kubernetes go different ways, Kubernetes is followed; capture/ shows its answers.
KNOWN = {
    r"ndexOf\(": "a position behind the end finds nothing; in C++ it is an error",
    r"split\(": "an empty string split at nothing has no parts; in C++ it has one, which is empty",
    r"string\(.*(duration|timestamp)": "durations are written without trailing zeros; in C++ with",
    r"int\(.*(duration|timestamp)": "a duration is an int of nanoseconds; in C++ it cannot be converted",
    r"getMilliseconds": "all of a duration is counted; in C++ only what is left after the seconds",
    r"(^|[( ])\{": "keys may be of any kind, the last of equal ones wins; in C++ both are errors",
    r"[<>]": "numbers of different kinds have one order; in C++ they must be converted first",
    r"\[\?": "any number is an index, and only a key is a key; in C++ only an int is, and others find nothing",
    r"substring\(.*,": "a part of a string may reach to its end; in C++ that is out of range",
    r" in m\b": "nothing but a string is ever a key of m; in C++ asking for something else is an error",
    r"has\(\(dyn": "what has no fields has not this one; in C++ asking is an error",
}


def environment():
    kinds = cel.Type
    declared = {
        "i": kinds.INT,
        "u": kinds.UINT,
        "d": kinds.DOUBLE,
        "s": kinds.STRING,
        "b": kinds.BOOL,
        "y": kinds.BYTES,
        "l": kinds.List(kinds.INT),
        "ls": kinds.List(kinds.STRING),
        "m": kinds.Map(kinds.STRING, kinds.INT),
        "x": kinds.DYN,
    }
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional()]
    return cel.NewEnv(variables=declared, extensions=extensions)


ENVIRONMENT = environment()


def theirs(text):
    """Return what C++ makes of an expression, as a kind of outcome and a value that can be compared."""
    try:
        compiled = ENVIRONMENT.compile(text)
    except RuntimeError:
        return "refused", None
    try:
        value = compiled.eval(data=VARIABLES)
    except RuntimeError:
        return "error", None
    if value.type() == cel.Type.ERROR:
        return "error", None
    return "value", comparable(value.plain_value())


def ours(text):
    """Return our outcome, and the message of a refusal."""
    try:
        compiled = compile_expression(text, TYPES)
    except CompileError as refusal:
        never_works = isinstance(refusal.__cause__, EvaluationError) or refusal.message.startswith("invalid ")
        return "refused", "literal" if never_works else refusal.message
    try:
        return "value", comparable(compiled.evaluate(VARIABLES))
    except EvaluationError:
        return "error", None


def comparable(value):
    """Return a value in a form that both sides can be brought to; times are microseconds."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, dt.datetime):
        return "timestamp", (value - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.timedelta):
        return "duration", value // dt.timedelta(microseconds=1)
    if isinstance(value, Timestamp):
        return "timestamp", value.nanoseconds // 1000
    if isinstance(value, Duration):
        return "duration", int(value) // 1000
    if isinstance(value, OptionalValue):
        return comparable(value.value) if value.present else None
    if isinstance(value, TypeValue):
        return "type"
    if isinstance(value, cel.Type):
        return "type"
    return "nan" if isinstance(value, float) and value != value else value


def same(their, our):
    """Tell whether two outcomes agree."""
    if their == our:
        return True
    if our[0] == "refused":
        # A literal that can only fail is refused even if it is never reached, and so are lists and maps of mixed types.
        return their[0] != "value" or our[1] == "literal" or our[1].startswith("expected type")
    return False


def known(text):
    return next((reason for pattern, reason in KNOWN.items() if re.search(pattern, text)), None)


@settings(max_examples=600, derandomize=True, deadline=None)
@given(st.integers(0, 2**62), st.integers(1, 3))
def test_a_random_expression_has_the_outcome_it_has_in_cpp(seed, depth):
    text = expression(Random(seed), depth=depth)
    their, our = theirs(text), ours(text)
    assert same(their, our) or known(text), (text, their, our)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.integers(0, 2**62))
def test_an_expression_full_of_mistakes_has_the_outcome_it_has_in_cpp(seed):
    text = expression(Random(seed), depth=2, mistakes=0.4)
    their, our = theirs(text), ours(text)
    assert same(their, our) or known(text), (text, their, our)


@pytest.mark.parametrize("share", [pytest.param("value", id="values"), pytest.param("error", id="errors")])
def test_the_random_expressions_are_worth_comparing(share):
    outcomes = [ours(expression(Random(seed), depth=2))[0] for seed in range(300)]
    assert outcomes.count(share) > 30
