"""What can go wrong with an expression: it does not compile, it fails on a value, or it costs too much."""


class CelError(Exception):
    """Any refusal of this package; `message` is the sentence without a position."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CompileError(CelError):
    """The expression is wrong whatever the values are; line and column count from 1.

    The text of the exception is what Kubernetes prints after `compilation failed: `.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1, source: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.source = source

    def __str__(self) -> str:
        lines = self.source.split("\n")
        shown = lines[self.line - 1] if self.line <= len(lines) else ""
        marker = "." * (self.column - 1) + "^"
        return f"ERROR: <input>:{self.line}:{self.column}: {self.message}\n | {shown}\n | {marker}"


class EvaluationError(CelError):
    """The expression failed on these values, as in `no such key: x` or `division by zero`."""


class CostExceeded(CelError):
    """The evaluation was stopped because it cost too much.

    `of_budget` tells the two limits apart: false when one evaluation passed its own limit, true when the
    budget that all evaluations of an object share ran out.
    """

    def __init__(self, message: str, *, of_budget: bool = False) -> None:
        super().__init__(message)
        self.of_budget = of_budget


def no_such_key(key: object) -> EvaluationError:
    return EvaluationError(f"no such key: {str(key).lower() if isinstance(key, bool) else key}")


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")
