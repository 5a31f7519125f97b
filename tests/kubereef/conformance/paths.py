"""Paths into documents, as scenarios write them: `status.phase`, `items[*].metadata.name`, `c[?type==Ready].status`."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

_PART = re.compile(
    r"\.?(?P<key>[^.\[\]]+)"
    r"|\[(?P<index>\d+)\]"
    r"|\[(?P<every>\*)\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[\?(?P<by>[^=\]]+)==(?P<value>[^\]]*)\]"
)


class Part(NamedTuple):
    """One step of a path: a key, an index, every item (None), or the items where a path has a value."""

    at: str | int | None
    where: tuple[str, str] | None = None

    def children(self, value: Any) -> Iterator[Any]:
        if isinstance(self.at, str):
            if isinstance(value, dict) and self.at in value:
                yield value[self.at]
        elif not isinstance(value, list):
            return
        elif self.where is not None:
            path, wanted = self.where
            yield from (item for item in value if wanted in map(str, find(item, path)))
        elif self.at is None:
            yield from value
        else:
            yield from value[self.at : self.at + 1]


def parse(path: str) -> list[Part]:
    """Return the parts of a path."""
    path = path.removeprefix("$").removeprefix(".")
    parts, position = [], 0
    while position < len(path):
        match = _PART.match(path, position)
        if match is None:
            raise ValueError(f"cannot read the path {path!r} at {path[position:]!r}")
        parts.append(_part(match))
        position = match.end()
    return parts


def is_plural(path: str) -> bool:
    """Tell whether a path may lead to several values."""
    return any(part.at is None for part in parse(path))


def find(document: Any, path: str) -> list[Any]:
    """Return every value that a path leads to."""
    found = [document]
    for part in parse(path):
        found = [child for value in found for child in part.children(value)]
    return found


def assign(document: Any, path: str, new: Any) -> None:
    """Set one value, making the maps and lists on the way; an index one past the end appends."""
    parts = parse(path)
    for part, following in pairwise(parts):
        empty: Any = [] if isinstance(following.at, int) else {}
        if isinstance(document, dict):
            document = document.setdefault(part.at, empty)
        else:
            if part.at == len(document):
                document.append(empty)
            document = document[part.at]
    last = parts[-1].at
    if isinstance(document, list) and last == len(document):
        document.append(new)
    else:
        document[last] = new


def remove(document: Any, path: str) -> None:
    """Remove one value; KeyError, IndexError or TypeError if there is none."""
    *way, last = parse(path)
    for part in way:
        document = document[part.at]
    del document[last.at]


def _part(match: re.Match[str]) -> Part:
    if match["by"] is not None:
        return Part(None, (match["by"], match["value"]))
    if match["every"]:
        return Part(None)
    if match["index"] is not None:
        return Part(int(match["index"]))
    return Part(match["key"] if match["key"] is not None else match["quoted"])
