"""Compiled expressions: rules over `self` and `oldSelf`, and expressions over any variables."""

from collections.abc import Mapping
from typing import Literal

from kubewire.cel import operators as _operators  # noqa: F401 - declares the operators
from kubewire.cel.checker import Checker
from kubewire.cel.compiler import compiled
from kubewire.cel.cost import PER_RULE_LIMIT, Budget, Run, too_expensive
from kubewire.cel.errors import CelError, CompileError, EvaluationError
from kubewire.cel.lexer import compile_error
from kubewire.cel.parser import parse
from kubewire.cel.reading import reader_of
from kubewire.cel.types import CelType, optional_type
from kubewire.cel.validators import check_literals
from kubewire.cel.values import ABSENT, NONE, OptionalValue, Value

OldSelf = Literal["none", "required", "optional"]


class Expression:
    """A compiled expression over named variables; it can be evaluated any number of times."""

    __slots__ = ("_code", "_readers", "_spare", "names", "result_type", "source", "used")

    def __init__(self, source: str, variables: Mapping[str, CelType], result: CelType | None) -> None:
        self.source = source
        self.names = tuple(variables)
        try:
            tree = parse(source)
            checker = Checker(source, variables)
            self.result_type = checker.check(tree)
            if result is not None and self.result_type != result:
                raise compile_error(f"cel expression must evaluate to a {result}", source, 0)
            check_literals(checker.nodes, checker.uniform, source)
            self._code = compiled(tree)
        except EvaluationError as certain:  # a conversion of a literal fails for every value
            raise CompileError(certain.message, source=source) from certain
        except RecursionError as deep:
            raise CompileError("expression recursion limit exceeded", source=source) from deep
        self.used = frozenset(checker.used)
        self._spare = [None] * (checker.slots - len(variables))
        readers = enumerate(map(reader_of, variables.values()))
        self._readers = [(slot, reader) for slot, reader in readers if reader is not None]

    def evaluate(self, values: Mapping[str, Value], budget: Budget | int | None = None) -> Value:
        """Return the value of the expression, given what its variables are."""
        for name in self.names:
            if name in self.used and name not in values:
                raise EvaluationError(f"no such attribute(s): {name}")
        return self.run([values.get(name) for name in self.names], budget)

    def run(self, values: list[Value], budget: Budget | int | None) -> Value:
        """Return the value of the expression, given its variables in the order of their declaration."""
        limit = budget.per_rule if isinstance(budget, Budget) else budget
        run = Run(values + self._spare, PER_RULE_LIMIT if limit is None else limit)
        problem: CelError | None = None
        result: Value = None
        try:
            for slot, reader in self._readers:
                if type(values[slot]) is not reader.ready:
                    run.slots[slot] = reader.convert(run, values[slot])
            result = self._code(run)
        except RecursionError:
            problem = EvaluationError("expression recursion limit exceeded")
        except CelError as error:
            problem = error
        if isinstance(budget, Budget):
            budget.spend(run.cost)
        if run.cost > run.limit:  # straight code adds its price without looking, so the last look is here
            raise too_expensive()
        if problem is not None:
            raise problem
        return result


class Program:
    """A rule of a schema: an expression over `self` and, where the rule asks for it, `oldSelf`."""

    __slots__ = ("_expression", "_old_self", "result_type", "source", "uses_old_self")

    def __init__(self, source: str, self_type: CelType, old_self: OldSelf, result: CelType | None) -> None:
        variables = {"self": self_type}
        if old_self != "none":
            variables["oldSelf"] = optional_type(self_type) if old_self == "optional" else self_type
        self.source = source
        self._expression = Expression(source, variables, result)
        self._old_self = old_self
        self.result_type = self._expression.result_type
        self.uses_old_self = "oldSelf" in self._expression.used

    def evaluate(
        self, self_value: Value, old_value: Value = ABSENT, budget: Budget | int | None = None
    ) -> Value:
        """Return the value of the rule for one value and, if there was one, its predecessor.

        A budget is shared by many evaluations; a number is the limit of this one alone. Raises
        EvaluationError when the rule fails on these values and CostExceeded when it is too expensive.
        """
        if self._old_self == "none":
            return self._expression.run([self_value], budget)
        if self._old_self == "optional":
            old_value = NONE if old_value is ABSENT else OptionalValue(old_value)
        elif old_value is ABSENT and self.uses_old_self:
            raise EvaluationError("no such attribute(s): oldSelf")
        return self._expression.run([self_value, old_value], budget)
