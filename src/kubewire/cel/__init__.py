"""CEL as CRDs use it: rules over `self` and `oldSelf`, type checked when they are compiled, bounded when they run.

    program = compile_rule("!has(self.max) || self.min <= self.max", ObjectType("spec", {"min": INT, "max": INT}))
    program.evaluate({"min": 5, "max": 3})    # False

Values are what JSON gives: dict, list, str, int, float, bool and None; `format: date-time` and the like are read
through the declared type. The compiler itself is imported when the first expression is compiled.
"""

from typing import TYPE_CHECKING, Literal

from kubewire.cel.cost import PER_OBJECT_LIMIT, PER_RULE_LIMIT, Budget
from kubewire.cel.errors import CelError, CompileError, CostExceeded, EvaluationError
from kubewire.cel.names import escape_name, unescape_name
from kubewire.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    ListType,
    MapType,
    ObjectType,
    PlainObjectType,
    optional_type,
)
from kubewire.cel.values import ABSENT, Duration, OptionalValue, Timestamp, UInt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubewire.cel.program import Expression, Program

__all__ = [
    "ABSENT",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "NULL",
    "PER_OBJECT_LIMIT",
    "PER_RULE_LIMIT",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "Budget",
    "CelError",
    "CelType",
    "CompileError",
    "CostExceeded",
    "Duration",
    "EvaluationError",
    "Expression",
    "ListType",
    "MapType",
    "ObjectType",
    "OptionalValue",
    "PlainObjectType",
    "Program",
    "Timestamp",
    "UInt",
    "compile_expression",
    "compile_rule",
    "escape_name",
    "optional_type",
    "unescape_name",
]


def compile_rule(
    expression: str,
    self_type: CelType,
    old_self: Literal["none", "required", "optional"] = "required",
    *,
    result: CelType | None = BOOL,
) -> "Program":
    """Compile a rule of a schema; raises CompileError when it cannot work, or has another type than `result`.

    `old_self` says what `oldSelf` is: not declared, the former value (a transition rule), or an optional that
    is empty when there was none.
    """
    from kubewire.cel.program import Program

    return Program(expression, self_type, old_self, result)


def compile_expression(
    expression: str, variables: "Mapping[str, CelType]", result: CelType | None = None
) -> "Expression":
    """Compile an expression over any variables, for `evaluate({name: value})`; any result will do by default."""
    from kubewire.cel.program import Expression

    return Expression(expression, variables, result)


def __getattr__(name: str) -> object:
    if name in ("Expression", "Program"):
        from kubewire.cel import program

        return getattr(program, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
