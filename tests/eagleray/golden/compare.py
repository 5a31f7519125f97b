"""Where two recordings differ, and which of the differences are meant to be."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

# What an allowance may say of values.
_SHAPES = ({"replaced", "by"}, {"like"}, {"ours", "recorded"}, {"added"})

ALLOWED_FILE = Path(__file__).with_name("allowed.yaml")


class Difference(NamedTuple):
    """A place, as the keys that lead to it, and what each side has there; `ABSENT` if it has nothing."""

    path: tuple[str, ...]
    ours: Any
    recorded: Any

    def __str__(self):
        return f"{' / '.join(self.path)}: ours {self.ours!r}, recorded {self.recorded!r}"


class _Absent:
    def __repr__(self):
        return "nothing"


ABSENT = _Absent()


def differences(ours, recorded, path=()):
    """Return every place where two values differ. Entries of lists that have names go by their names."""
    if isinstance(ours, dict) and isinstance(recorded, dict):
        return [
            difference
            for key in sorted(ours.keys() | recorded.keys())
            for difference in differences(ours.get(key, ABSENT), recorded.get(key, ABSENT), (*path, key))
        ]
    if isinstance(ours, list) and isinstance(recorded, list):
        mine, theirs = _by_name(ours), _by_name(recorded)
        if mine is not None and theirs is not None:
            found = differences(mine, theirs, path)
            shared = [
                [name for name in one if name in other] for one, other in ((mine, theirs), (theirs, mine))
            ]
            return found + ([Difference((*path, "order"), *shared)] if shared[0] != shared[1] else [])
        return differences(_numbered(ours), _numbered(recorded), path)
    return [] if ours == recorded and type(ours) is type(recorded) else [Difference(path, ours, recorded)]


def _numbered(values):
    return {str(at): value for at, value in enumerate(values)}


def _by_name(entries):
    """Return entries by what tells them from each other; None if nothing does."""
    names = [_name(entry) for entry in entries]
    if None in names or len(set(names)) != len(names):
        return None
    return dict(zip(names, entries, strict=True))


def _name(entry):
    if not isinstance(entry, dict):
        return None
    if "metadata" in entry:
        return f"{entry['kind']} {entry['metadata']['name']}"
    if "lastTransitionTime" in entry:
        return entry["type"]
    if "reason" in entry and "message" in entry and "regarding" in entry:
        return entry["reason"]
    return next((entry[key] for key in ("name", "mountPath") if isinstance(entry.get(key), str)), None)


class Allowance(NamedTuple):
    """A difference that is meant to be, and the reason.

    In a path, `*` is anything within one key and `**` any number of keys. Each entry says which values may differ:
    `replaced` that only this text does, for which ours has `by`; `like` that both match an expression, whose groups
    are the same; `ours` and `recorded` what each side has, null for nothing; `added` that only ours has something,
    which matches an expression.
    """

    reason: str
    paths: tuple[tuple[str, ...], ...]
    values: dict[str, Any]

    def covers(self, difference):
        return any(_leads(path, difference.path) for path in self.paths) and self._fits(difference)

    def _fits(self, difference):
        given = self.values
        if "replaced" in given:
            recorded = difference.recorded
            return isinstance(recorded, str) and (
                recorded.replace(given["replaced"], given["by"]) == difference.ours
            )
        if "like" in given:
            ours = re.fullmatch(given["like"], str(difference.ours), re.DOTALL)
            recorded = re.fullmatch(given["like"], str(difference.recorded), re.DOTALL)
            return ours is not None and recorded is not None and ours.groups() == recorded.groups()
        if "added" in given:
            is_like = re.fullmatch(given["added"], str(difference.ours), re.DOTALL)
            return difference.recorded is ABSENT and is_like is not None
        return all(_shown(getattr(difference, side)) == given[side] for side in ("ours", "recorded"))


def _shown(value):
    return None if value is ABSENT else value


def _leads(pattern, path):
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_leads(pattern[1:], path[start:]) for start in range(len(path) + 1))
    if not path or not re.fullmatch(re.escape(pattern[0]).replace(r"\*", ".*"), path[0], re.DOTALL):
        return False
    return _leads(pattern[1:], path[1:])


def read_allowances(text, **words):
    """Return the allowances of a file; `${word}` in it stands for what the caller gives."""
    found = []
    for entry in yaml.safe_load(text):
        values = {key: _filled(entry[key], words) for key in entry.keys() - {"reason", "paths"}}
        if values.keys() not in _SHAPES:
            raise ValueError(f"not narrow enough to be allowed: {entry['reason']}")
        found.append(Allowance(entry["reason"], tuple(tuple(path) for path in entry["paths"]), values))
    return found


def _filled(value, words):
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"${{{name}}}", word)
    return value


def judged(found, allowances):
    """Return the differences that nothing allows, and the allowances that some difference needed."""
    refused, used = [], set()
    for difference in found:
        covering = [allowance for allowance in allowances if allowance.covers(difference)]
        used |= {allowance.reason for allowance in covering}
        if not covering:
            refused.append(difference)
    return refused, used
