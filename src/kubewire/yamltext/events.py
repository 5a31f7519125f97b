"""The parser's events, its complaints turned into ours, and the types that a reader of text meets."""

from typing import NamedTuple, Self

import yaml

from kubewire.paths import FieldPath

MAX_BYTES = 8 * 1024 * 1024
MAX_VALUES = 400_000
MAX_DEPTH = 200

# libyaml is many times faster; the pure parser serves where PyYAML was built without it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """Text that cannot be read, with the place (both counted from 1) and what to do about it.

    `verdict` is what a Kubernetes API server says of such a text.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1, verdict: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.verdict = verdict or message


class Position(NamedTuple):
    """A place in a text, counted from 1."""

    line: int
    column: int


class Duplicate(NamedTuple):
    """A key that its mapping has already: the later value counts, as for kubectl."""

    path: FieldPath
    first: Position
    again: Position


class Document(NamedTuple):
    """One document of a text: its value, where it starts, and the keys it gives twice."""

    value: object
    position: Position
    duplicates: tuple[Duplicate, ...] = ()


class Events:
    """The events of a text, one by one; a context, because the parser holds memory outside Python."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._parser = _Loader(text)
        except yaml.reader.ReaderError as bad:
            raise self._bad_character(bad) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parser.dispose()

    def next(self) -> yaml.Event:
        try:
            event: yaml.Event = self._parser.get_event()
        except yaml.MarkedYAMLError as bad:
            raise self._complaint(bad) from None
        except yaml.reader.ReaderError as bad:
            raise self._bad_character(bad) from None
        return event

    def _complaint(self, bad: yaml.MarkedYAMLError) -> YamlError:
        mark = bad.problem_mark or bad.context_mark
        if mark is None:
            return YamlError(str(bad))
        lines = self._text.split("\n", mark.line + 1)
        if mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t":
            message = "a tab cannot stand here; indent with spaces"
        else:
            message = " ".join(part for part in (bad.context, bad.problem) if part)
        return YamlError(message, mark.line + 1, mark.column + 1, _verdict(bad))

    def _bad_character(self, bad: yaml.reader.ReaderError) -> YamlError:
        # The only complaint with no line of its own, just the position of the character.
        at = min(bad.position, len(self._text) - 1)
        line = self._text.count("\n", 0, at) + 1
        return YamlError(
            f"character U+{ord(self._text[at]):04X} is not allowed", line, at - self._text.rfind("\n", 0, at)
        )


def _verdict(bad: yaml.MarkedYAMLError) -> str:
    """Return a complaint as Go's reader of YAML has it: it counts lines from 0, and those of the scanner from 1."""
    at, around = (mark.line if mark is not None else 0 for mark in (bad.problem_mark, bad.context_mark))
    if at and isinstance(bad, yaml.scanner.ScannerError):
        at += 1
    line = at or around
    return f"line {line}: {bad.problem}" if line else str(bad.problem)


def position(event: yaml.Event) -> Position:
    """Return where an event starts."""
    mark = event.start_mark
    assert mark is not None  # both parsers mark every event
    return Position(mark.line + 1, mark.column + 1)


def error_at(event: yaml.Event, message: str) -> YamlError:
    """Return an error that names the event's place."""
    where = position(event)
    return YamlError(message, where.line, where.column)
