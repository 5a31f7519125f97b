"""Whether a text matches a pattern, in time that grows with the text and not with the pattern's ambiguity."""

from __future__ import annotations

from functools import lru_cache

from kubewire.cel.regex import pattern_of
from kubewire.cel.regex_syntax import RegexError

# Objects repeat themselves: the same few quantities and names are matched again and again.
_REMEMBERED = 1024
_LONGEST_REMEMBERED = 100

# States of the pattern that may be visited for one text; a second's work, far above what a sane pattern needs.
_MAX_EFFORT = 2_000_000


class TooMuchEffort(Exception):
    """Matching was given up because the pattern is too large for a text of this length."""


def pattern_problem(pattern: str) -> str:
    """Return why this is no regular expression, in Go's words, or an empty text if it is one."""
    try:
        pattern_of(pattern)
    except RegexError as error:
        return error.message
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text; raises RegexError or TooMuchEffort."""
    return _remembered(pattern, text) if len(text) <= _LONGEST_REMEMBERED else _search(pattern, text)


def _search(pattern: str, text: str) -> bool:
    effort = 0

    def spend(states: int) -> None:
        nonlocal effort
        effort += states
        if effort > _MAX_EFFORT:
            raise TooMuchEffort

    return pattern_of(pattern).search(text, spend)


_remembered = lru_cache(maxsize=_REMEMBERED)(_search)
