"""What `why` answers: a verdict, its causes with a way out of each, and what happens next."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

# A few lines are read, a page is not.
MOST_CAUSES = 10
MOST_STEPS = 5


class Report(NamedTuple):
    """What is to be said of an object. Notes change nothing about the verdict."""

    verdict: str
    is_ready: bool = False
    causes: Sequence[str] = ()
    notes: Sequence[str] = ()
    steps: Sequence[str] = ()  # what the operator does next
    stages: Sequence[str] = ()  # what it has come through, with times


def lines(report: Report) -> Iterator[str]:
    """Yield a report as it is printed."""
    yield report.verdict
    yield from _listed(report.stages, MOST_STEPS, "stage: ")
    yield from _listed(report.causes, MOST_CAUSES, "- ")
    yield from _listed(report.notes, MOST_CAUSES, "note: ")
    yield from _listed(report.steps, MOST_STEPS, "next: ")


def _listed(sentences: Sequence[str], most: int, mark: str) -> Iterator[str]:
    unique = list(dict.fromkeys(" ".join(sentence.split()) for sentence in sentences))
    for sentence in unique[:most]:
        yield f"{mark}{sentence}"
    if len(unique) > most:
        yield f"{mark}and {len(unique) - most} more"
