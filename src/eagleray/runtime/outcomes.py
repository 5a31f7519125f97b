"""How a pass over an object ends, and the name of the step in which one broke."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Done(NamedTuple):
    """Nothing is left to do until something changes."""


class Again(NamedTuple):
    """Look again after so many seconds, even if nothing is seen to change until then; 0 is at once."""

    after: float


class Rejected(NamedTuple):
    """The object itself is wrong: its owner is told why, and nothing happens until it changes."""

    reason: str
    message: str
    action: str = "Validate"


class Failed(NamedTuple):
    """Something was refused: again after a pause that grows, but not later than `within` seconds if that is given."""

    error: Exception
    within: float | None = None


Outcome = Done | Again | Rejected | Failed

# The step of a failure outside of every named step.
UNNAMED_STEP = "reconcile"

_NOTE = "in step "
# A chain of causes is as long as the code that raised; more than this is a loop or an attack.
_DEEPEST_CAUSE = 32


@contextmanager
def step(name: str) -> Iterator[None]:
    """Give a part of a pass its name, so that a failure inside is logged, counted and told under it.

    Steps may be nested: the innermost names the failure. The name stays with the exception, as a note that
    tracebacks show, too.
    """
    try:
        yield
    except Exception as error:
        error.add_note(f"{_NOTE}{name}")
        raise


def failed_step(error: BaseException) -> str:
    """Return the name of the step in which an exception, or what caused it, was raised."""
    causes: list[BaseException] = [error]
    for _ in range(_DEEPEST_CAUSE):
        if not causes:
            break
        cause = causes.pop(0)
        if (name := _noted_step(cause)) is not None:
            return name
        if isinstance(cause, BaseExceptionGroup):
            causes.extend(cause.exceptions)
        if cause.__cause__ is not None:
            causes.append(cause.__cause__)
    return UNNAMED_STEP


def _noted_step(error: BaseException) -> str | None:
    """Return the first step that an exception passed on its way out, which is the innermost."""
    for note in getattr(error, "__notes__", ()):
        if note.startswith(_NOTE):
            return str(note.removeprefix(_NOTE))
    return None
