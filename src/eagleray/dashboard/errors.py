"""How a dashboard fails to answer as hoped, told apart by what a caller does about it."""

from typing import Final

# Longer texts are cut: Ray answers with whole tracebacks.
_LONGEST: Final = 4000


class DashboardError(Exception):
    """A question or an order that did not end as hoped.

    `certainly_not_done` is true if whatever was asked for has not happened because of this request. Otherwise nobody
    knows: it may have happened, or may still.
    """

    def __init__(self, message: str, *, certainly_not_done: bool) -> None:
        super().__init__(clipped(message, _LONGEST))
        self.certainly_not_done = certainly_not_done

    @property
    def sort(self) -> tuple[str, int]:
        """What tells this failure from one that would be news: its kind, not its wording."""
        return type(self).__name__, 0


class Unreachable(DashboardError):
    """No answer: refused connection, unknown name, a broken line, or a deadline (`timed_out`)."""

    def __init__(self, message: str, *, certainly_not_done: bool, timed_out: bool = False) -> None:
        super().__init__(message, certainly_not_done=certainly_not_done)
        self.timed_out = timed_out


class NotThere(DashboardError):
    """Ray says that it has no such job, or no such package."""


class Unauthorised(DashboardError):
    """The token is missing or was refused."""


class Malformed(DashboardError):
    """An answer that is not what Ray answers: wrong JSON, a wrong shape, or without end."""


class SessionChanged(DashboardError):
    """Another head than the expected one answers at this address."""


class Refused(DashboardError):
    """The dashboard answered that it did not do it, or failed while doing it."""

    def __init__(self, code: int, message: str, *, certainly_not_done: bool) -> None:
        super().__init__(message, certainly_not_done=certainly_not_done)
        self.code = code

    @property
    def sort(self) -> tuple[str, int]:
        return type(self).__name__, self.code


class AlreadyThere(Refused):
    """The submission id is taken: an earlier request of ours was received, or somebody else uses it."""


def clipped(text: str, longest: int) -> str:
    """Return the text, cut where it goes on for too long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
