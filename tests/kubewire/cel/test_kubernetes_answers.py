"""Every expression in capture/ has the value, the type, the error, the refusal and the cost that Kubernetes gives it.

The answers come from Kubernetes' own Go packages; capture/main.go asks them.
"""

import json
import re
from pathlib import Path

import pytest

from kubewire.cel import (
    Budget,
    CompileError,
    Duration,
    EvaluationError,
    OptionalValue,
    Timestamp,
    compile_expression,
)
from kubewire.cel.values import TypeValue, UInt, type_name
from tests.kubewire.cel.generator import TYPES, VARIABLES

CAPTURE = Path(__file__).parent / "capture"
ANSWERS = {answer["expression"]: answer for answer in json.loads((CAPTURE / "answers.json").read_text())}


def shown(value):
    """Return a value in the words of the capture."""
    if isinstance(value, bool):
        return f"bool:{str(value).lower()}"
    if isinstance(value, float):
        return f"double:{value!r}"
    if isinstance(value, str):
        return f"string:{json.dumps(value)}"
    if isinstance(value, bytes):
        return f"bytes:{value.hex()}"
    if value is None:
        return "null"
    if isinstance(value, Timestamp):
        return f"timestamp:{value.nanoseconds}"
    if isinstance(value, Duration):
        return f"duration:{int(value)}"
    if isinstance(value, int):
        return f"{'uint' if isinstance(value, UInt) else 'int'}:{int(value)}"
    if isinstance(value, OptionalValue):
        return f"optional({shown(value.value)})" if value.present else "none"
    if isinstance(value, TypeValue):
        return f"type:{value.name}"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{shown(key)}={shown(item)}" for key, item in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return type_name(value)


def ours(expression):
    """Return our answer in the form of the capture."""
    budget = Budget(10**9)
    answer = {"expression": expression, "cost": 0}
    try:
        compiled = compile_expression(expression, TYPES)
    except CompileError as error:
        return answer | {"refused": f"{error.line}:{error.column}: {error.message}"}
    try:
        answer["value"] = shown(compiled.evaluate(VARIABLES, budget))
        answer["type"] = str(compiled.result_type)
    except EvaluationError as error:
        answer["error"] = error.message
    return answer | {"cost": 10**9 - budget.remaining}


def normal(answer):
    """Return an answer without what is only a matter of spelling."""
    answer = dict(answer)
    if "value" in answer:
        answer["value"] = re.sub(
            r"double:([^\s,\]}]+)", lambda found: f"double:{float(found[1])!r}", answer["value"]
        )
        answer["value"] = re.sub(
            r'string:("(?:[^"\\]|\\.)*")', lambda found: "string:" + unquoted(found[1]), answer["value"]
        )
        answer["type"] = re.sub(
            r"google\.protobuf\.(\w+)", lambda found: found[1].lower(), answer["type"]
        ).replace("null_type", "null")
    return answer


def unquoted(literal):
    """Return the text of a quoted string; Go writes bytes and rare characters in ways JSON does not."""
    return re.sub(r"\\[xaU]", "?", literal) if re.search(r"\\[xavU]", literal) else json.loads(literal)


# Where we answer differently, and why that is right or does not matter.
DIFFERENCES = {
    "x.?list[?1].orValue('none')": "an alternative of another type than dyn does not narrow the result to its own",
    "x.list.min()": "elements without a common order are refused whatever their order in the list",
    "ip('1.2.3')": "the reason comes from another parser",
    "ip('01.2.3.4')": "the reason comes from another parser",
    "cidr('10.1.2.3/33')": "the reason comes from another parser",
    "cidr('10.1.2.3/08')": "the reason comes from another parser",
    "url('http://h#f').getHost()": "the reason does not quote the character",
    "'%f'.format([1])": "what a clause is given is checked when it is evaluated",
    "'%d'.format([1.5])": "what a clause is given is checked when it is evaluated",
    "'%.100000f'.format([1.0])": "a precision above a thousand is refused",
    "'%.f'.format([1.0])": "the reason does not quote Go's number parser",
    "'%s'.format([{1: 'a', true: 2}])": "true and 1 are one key in a Python dict; only format takes such literals",
    "optional.of(1).optFlatMap(v, optional.none())": "a variable that is not used is charged for",
    "optional.of(1).optMap(v, 2)": "a variable that is not used is charged for",
    "'\\ud800'": "all escapes that stand for nothing are refused in the same words",
    ".foo": "the leading dot is not repeated in the message",
    "[,]": "a list of nothing but a comma is refused",
    "type(type)": "the type of types is shown with its parameter",
    "Foo{a: 1}": "messages are refused before their name is looked up",
    "x{a: 1}": "messages are refused before their name is looked up",
}


def differs(theirs, mine):
    """Tell whether two answers differ in what matters."""
    if "refused" in theirs and "refused" in mine:
        # ANTLR's syntax errors list the tokens of its grammar, and regular expressions are refused with a reason here.
        if "Syntax error" in theirs["refused"] or "error parsing regexp" in mine["refused"]:
            return False
        return theirs["refused"] != mine["refused"]
    if "error" in theirs and "error" in mine:
        # Kubernetes goes on charging for what stands around an error; some of its errors name the overload.
        message = "no such overload" if theirs["error"].startswith("no such overload: ") else theirs["error"]
        return message != mine["error"] or mine["cost"] > theirs["cost"]
    return normal(theirs) != normal(mine)


@pytest.mark.parametrize("expression", [name for name in ANSWERS if name not in DIFFERENCES])
def test_an_expression_has_the_answer_of_kubernetes(expression):
    mine = ours(expression)
    assert not differs(ANSWERS[expression], mine), (normal(ANSWERS[expression]), normal(mine))


@pytest.mark.parametrize("expression", DIFFERENCES)
def test_a_listed_difference_is_still_there(expression):
    assert differs(ANSWERS[expression], ours(expression))


def test_the_capture_answers_the_expressions_it_asks():
    assert list(ANSWERS) == json.loads((CAPTURE / "expressions.json").read_text())
