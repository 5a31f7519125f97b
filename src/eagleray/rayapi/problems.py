"""What is wrong with an object: where, what, and the way out."""

from typing import Literal, NamedTuple

from kubewire.paths import FieldPath, show

Severity = Literal["error", "warning"]

_LONGEST_QUOTE = 64


class Problem(NamedTuple):
    """One rule broken in one place.

    A `stricter` problem breaks a rule that the reference does not have: it refuses an object that runs
    nothing yet and is no more than a warning for one that runs already.
    """

    rule: str
    path: FieldPath
    message: str
    way_out: str
    severity: Severity = "error"
    stricter: bool = False

    def __str__(self) -> str:
        return f"{show(self.path)}: {self.message}; {self.way_out}"


def at(prefix: FieldPath, problem: Problem) -> Problem:
    """Return a problem of an embedded object as its host shows it: the inner `spec` stands at `prefix` there.

    Metadata is not embedded: the inner object is judged with its host's annotations, so paths into them stay.
    """
    if problem.path[:1] != ("spec",):
        return problem
    return problem._replace(path=(*prefix, *problem.path[1:]))


def quoted(value: str) -> str:
    """Return text from an object in quotes, fit for a message: cut when long, nothing unprintable."""
    return f'"{shortened(value, _LONGEST_QUOTE)}"'


def shortened(value: str, limit: int) -> str:
    """Return text cut to the limit, with what cannot be printed as escapes."""
    if len(value) > limit:
        value = f"{value[: limit - 3]}..."
    return value if value.isprintable() else value.encode("unicode_escape").decode("ascii")
