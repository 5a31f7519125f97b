"""Regular expressions with RE2's promise: the time is proportional to the text, whatever the pattern.

A pattern becomes a nondeterministic automaton, and all of its states are followed at once, so nothing is ever
tried twice. For `matches` the sets of states met on the way are kept as states of a deterministic automaton;
for `find` they are followed in order of preference, which gives the match that a backtracking engine would.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

from kubewire.cel.regex_syntax import (
    Assertion,
    Characters,
    Choice,
    RegexError,
    Repeat,
    Sequence,
    Tree,
    parse_regex,
)

MAX_STATES = 5000
_MAX_CACHED_SETS = 500
_MAX_CACHED_STEPS = 300

# Told how many states were visited, so that the caller can stop a search that takes too long.
Spend = Callable[[int], None]

_BEGIN, _NEWLINE, _WORD, _OTHER = range(4)
_WORD_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@lru_cache(maxsize=128)
def pattern_of(pattern: str) -> "Pattern":
    """Return a pattern ready for matching; raises EvaluationError when it is malformed or too large."""
    return Pattern(pattern)


def _kind(character: str) -> int:
    if character in _WORD_CHARACTERS:
        return _WORD
    return _NEWLINE if character == "\n" else _OTHER


class _State:
    """A place in the automaton: it consumes a character, or it leads on to other places without one."""

    __slots__ = ("assertion", "highs", "lows", "next", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.next: list[_State] = []
        self.assertion = ""
        self.lows: list[int] = []
        self.highs: list[int] = []

    def consumes(self, code: int) -> bool:
        at = bisect_right(self.lows, code) - 1
        return at >= 0 and code <= self.highs[at]


class _Set:
    """A set of places reached together, with the steps from it that are known already."""

    __slots__ = ("before", "places", "steps")

    def __init__(self, places: tuple[_State, ...], before: int) -> None:
        self.places = places
        self.before = before
        self.steps: dict[str, _Set | None] = {}


class Pattern:
    """A compiled regular expression."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._count = 0
        self._accepting = self._new()
        self._start = self._built(parse_regex(source), self._accepting)
        self._sets: dict[tuple[tuple[int, ...], int], _Set] = {}
        self._first = _Set((self._start,), _BEGIN)

    def search(self, text: str, spend: Spend) -> bool:
        """Tell whether the pattern matches somewhere in the text."""
        current = self._first
        for character in text:
            following = current.steps.get(character, current)
            if following is current:
                following = self._step(current, character, spend)
            if following is None:
                return True
            current = following
        return self._step(current, "", spend) is None

    def _step(self, current: _Set, character: str, spend: Spend) -> _Set | None:
        """Return the set behind a character, or None when the pattern has matched before it.

        The empty string stands for the end of the text.
        """
        places = self._closure(current.places, current.before, character)
        spend(len(places) + 1)
        following: _Set | None
        if self._accepting in places:
            following = None
        elif not character:
            return current
        else:
            code = ord(character)
            reached = {
                place.next[0].number: place.next[0] for place in places if place.lows and place.consumes(code)
            }
            reached[self._start.number] = self._start  # a match may begin behind every character
            following = self._set(tuple(reached.values()), _kind(character))
        if len(current.steps) < _MAX_CACHED_STEPS:
            current.steps[character] = following
        return following

    def _set(self, places: tuple[_State, ...], before: int) -> _Set:
        key = tuple(sorted(place.number for place in places)), before
        found = self._sets.get(key)
        if found is None:
            if len(self._sets) >= _MAX_CACHED_SETS:
                self._sets.clear()
                self._first.steps.clear()
            found = self._sets[key] = _Set(places, before)
        return found

    def find(self, text: str, start: int, spend: Spend) -> tuple[int, int] | None:
        """Return where the first match at or after a position begins and ends."""
        found: tuple[int, int] | None = None
        threads: list[tuple[_State, int]] = []
        for at in range(start, len(text) + 1):
            before = _BEGIN if at == 0 else _kind(text[at - 1])
            character = text[at : at + 1]
            if found is None:
                threads.append((self._start, at))
            following: list[tuple[_State, int]] = []
            seen: set[int] = set()
            for place, begin in threads:
                reached = self._closure((place,), before, character, seen)
                accepted = self._advance(reached, begin, character, following)
                spend(3 * len(reached) + 3)  # a step that is not kept for the next time takes longer
                if accepted:
                    found = begin, at
                    break  # what is left of the threads is of lower preference
            threads = following
            if not threads and found is not None:
                break
        return found

    def _advance(
        self, places: list[_State], begin: int, character: str, following: list[tuple[_State, int]]
    ) -> bool:
        """Move the places before an accepting one behind a character; tell whether one accepts."""
        for place in places:
            if place is self._accepting:
                return True
            if character and place.lows and place.consumes(ord(character)):
                following.append((place.next[0], begin))
        return False

    def _closure(
        self, places: tuple[_State, ...], before: int, character: str, seen: set[int] | None = None
    ) -> list[_State]:
        """Return all places that can be reached without a character, in order of preference."""
        seen = set() if seen is None else seen
        result: list[_State] = []
        stack = list(reversed(places))
        while stack:
            place = stack.pop()
            if place.number in seen:
                continue
            seen.add(place.number)
            if place.assertion and not _holds(place.assertion, before, character):
                continue
            result.append(place)
            if not place.lows:
                stack.extend(reversed(place.next))
        return result

    def _new(self) -> _State:
        self._count += 1
        if self._count > MAX_STATES:
            raise RegexError("expression too large", self.source[:40])
        return _State(self._count)

    def _built(self, tree: Tree, following: _State) -> _State:
        """Return the place where a tree begins, given what follows it."""
        if isinstance(tree, Characters):
            return self._consuming(tree, following)
        if isinstance(tree, Assertion):
            place = self._new()
            place.assertion, place.next = tree.kind, [following]
            return place
        if isinstance(tree, Sequence):
            for part in reversed(tree.parts):
                following = self._built(part, following)
            return following
        if isinstance(tree, Choice):
            place = self._new()
            place.next = [self._built(part, following) for part in tree.parts]
            return place
        return self._repeated(tree, following)

    def _consuming(self, tree: Characters, following: _State) -> _State:
        place = self._new()
        place.next = [following]
        for low, high in sorted(tree.ranges):
            if place.highs and low <= place.highs[-1] + 1:
                place.highs[-1] = max(place.highs[-1], high)
            else:
                place.lows.append(low)
                place.highs.append(high)
        if not place.lows:  # an empty class matches nothing
            place.lows, place.highs = [-1], [-1]
        return place

    def _repeated(self, tree: Repeat, following: _State) -> _State:
        copies = tree.least
        if tree.most is None:
            # The way back and the way in are two places: a part that matches nothing then goes on behind the loop.
            again = self._new()
            body = self._built(tree.part, again)
            again.next = _preferred(body, following, tree)
            if tree.least == 0:
                entry = self._new()
                entry.next = again.next
                return entry
            following, copies = body, tree.least - 1
        else:
            end = following
            for _ in range(tree.most - tree.least):
                place = self._new()
                place.next = _preferred(self._built(tree.part, following), end, tree)
                following = place
        for _ in range(copies):
            following = self._built(tree.part, following)
        return following


def _preferred(once_more: _State, on: _State, tree: Repeat) -> list[_State]:
    return [once_more, on] if tree.greedy else [on, once_more]


def _holds(assertion: str, before: int, character: str) -> bool:
    """Tell whether an assertion holds between what came before and the next character (empty at the end)."""
    if assertion == "begin":
        return before == _BEGIN
    if assertion == "end":
        return not character
    if assertion == "line begin":
        return before in (_BEGIN, _NEWLINE)
    if assertion == "line end":
        return not character or character == "\n"
    at_boundary = (before == _WORD) is not (character in _WORD_CHARACTERS if character else False)
    return at_boundary is (assertion == "boundary")
