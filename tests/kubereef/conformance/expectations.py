"""What is known to differ from a real API server: `expected-differences.yaml`, read and checked."""

from pathlib import Path
from typing import NamedTuple

import yaml

from tests.kubereef.conformance.judging import Judged

FILE = Path(__file__).with_name("expected-differences.yaml")


class Expected(NamedTuple):
    """What is expected of one scenario: whether all of it comes later, and else the steps that differ."""

    all_later: bool
    differing: frozenset[str]


def expected(scenario: str) -> Expected:
    """Return what is expected of a scenario."""
    content = yaml.safe_load(FILE.read_text())
    later = [entries[scenario] for entries in content["later"].values() if scenario in entries]
    steps = {step for entry in later if entry != "all" for step in entry}
    return Expected("all" in later, frozenset(steps | set(content["differences"].get(scenario, {}))))


def disagreements(judged: list[Judged], expectation: Expected) -> list[str]:
    """Return what is not as expected: steps that differ unexpectedly, or that are listed and no longer differ."""
    differing = {step.name: step.differences for step in judged if step.differences}
    if expectation.all_later:
        found = [f"{step.name}: the server broke ({step.status})" for step in judged if step.status >= 500]
        return (
            found
            if differing
            else [*found, "every step is as it should be: take it from the list of later topics"]
        )
    found = [
        "\n  ".join((name, *differences[:10]))
        for name, differences in differing.items()
        if name not in expectation.differing
    ]
    return found + [
        f"{name}: does not differ any more; take it from the list"
        for name in sorted(expectation.differing - differing.keys())
    ]
