"""Which files of a directory stay behind: the rules of .gitignore files. Pure.

rules = read_rules("*.log\\n!keep.log\\n/build/\\n")
verdict(rules, ("src", "a.log"), is_directory=False)      # True: left out; None: no rule says anything
"""

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import NamedTuple

_ANY_DIRECTORIES = "**"
_CLASS_OR_ESCAPE = re.compile(r"\\(.)|\[\^", re.DOTALL)


class Rule(NamedTuple):
    """One line: steps of a path, each a regular expression, or None for any number of directories."""

    steps: tuple[re.Pattern[str] | None, ...]
    brings_back: bool
    only_directories: bool

    def matches(self, path: Sequence[str], *, is_directory: bool) -> bool:
        """Tell whether a path is meant. The time that it takes grows with both lengths and no faster."""
        if self.only_directories and not is_directory:
            return False
        reached = self._beyond_gaps({0})
        for step in path:
            after: set[int] = set()
            for index in reached:
                if index == len(self.steps):
                    continue
                pattern = self.steps[index]
                if pattern is None:
                    after.add(index)
                    if index == len(self.steps) - 1:
                        after.add(index + 1)
                elif pattern.match(step):
                    after.add(index + 1)
            reached = self._beyond_gaps(after)
            if not reached:
                return False
        return len(self.steps) in reached

    def _beyond_gaps(self, reached: set[int]) -> set[int]:
        """Add what is reached by letting a gap be empty; one at the end stands for something inside."""
        found = set(reached)
        for index in sorted(reached):
            while index < len(self.steps) - 1 and self.steps[index] is None:
                index += 1  # noqa: PLW2901 - goes on from here
                found.add(index)
        return found


def read_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a file, in their order."""
    return tuple(rule for line in text.splitlines() if (rule := _rule(line)) is not None)


def verdict(rules: Sequence[Rule], path: Sequence[str], *, is_directory: bool) -> bool | None:
    """Return whether a path, given relative to the rules' file, is left out: the last rule that means it decides."""
    for rule in reversed(rules):
        if rule.matches(path, is_directory=is_directory):
            return not rule.brings_back
    return None


def _rule(line: str) -> Rule | None:
    text = _without_trailing_spaces(line)
    if not text or text.startswith("#"):
        return None
    brings_back = text.startswith("!")
    text = text.removeprefix("!")
    only_directories = text.endswith("/")
    text = text.rstrip("/") if only_directories else text
    if not text:
        return None
    is_anchored = "/" in text
    names = text.removeprefix("/").split("/")
    if not is_anchored:
        names = [_ANY_DIRECTORIES, *names]
    steps = tuple(None if name == _ANY_DIRECTORIES else _step(name) for name in names)
    return Rule(steps, brings_back, only_directories)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    # A backslash keeps the space after it.
    return f"{stripped} " if stripped.endswith("\\") and stripped != line else stripped


def _step(name: str) -> re.Pattern[str]:
    """Return a name with wildcards as a regular expression; Python's own knows all but two ways of writing."""

    def rewritten(found: re.Match[str]) -> str:
        if found[0] == "[^":
            return "[!"
        return f"[{found[1]}]" if found[1] in "*?[" else str(found[1])

    return re.compile(translate(_CLASS_OR_ESCAPE.sub(rewritten, name)))
