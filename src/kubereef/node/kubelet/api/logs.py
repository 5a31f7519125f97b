"""Logs of containers, read from their files: from where the reader wants, as far as it wants, and on as they grow.

A line of a file is `<time> stdout|stderr F|P <text>`: P is a part of a line that the next ones of the same stream go on
with, F its end. A file that grew too long was renamed to `<name>.<when>`; all of a run's files are read as one.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from kubewire.sources import Clock

BLOCK = 256 * 1024
_MOST_LINE = 1024 * 1024
"""Longer lines are not what a container runtime writes; they are passed over."""

_PAUSE = 0.1
_SECONDS_DIGITS = 19


class LogOptions(NamedTuple):
    """What of a log is wanted. `stream` is empty for all of it."""

    follow: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: str = ""


class Entry(NamedTuple):
    """One line of a log file."""

    time: bytes
    stream: bytes
    is_whole: bool
    text: bytes


def read_entry(line: bytes) -> Entry | None:
    """Return what a line of a log file says, or None for something else than a log line."""
    parts = line.split(b" ", 3)
    if len(parts) != 4 or parts[1] not in (b"stdout", b"stderr"):
        return None
    # Tags may be more than one, with colons between.
    return Entry(parts[0], parts[1], b"P" not in parts[2].split(b":"), parts[3])


async def read_log(
    path: Path, options: LogOptions, clock: Clock, ended: Callable[[], bool] = lambda: True
) -> AsyncIterator[bytes]:
    """Yield what a log holds in portions. To follow it, `ended` tells whether its container has written its last."""
    reader = _Reader(path, options)
    left = options.limit_bytes
    try:
        await asyncio.to_thread(reader.seek)
        while True:
            # Asked before reading: what is written before the end is then read for certain.
            is_last = not options.follow or ended()
            data = await asyncio.to_thread(reader.read)
            if data:
                if left is not None:
                    data = data[:left]
                    left -= len(data)
                yield data
                if left == 0:
                    return
            elif reader.is_at_end:
                if is_last:
                    return
                await clock.sleep(_PAUSE)
    finally:
        reader.close()


class _Reader:
    """Reads the files of one log, oldest first. Its methods block."""

    def __init__(self, path: Path, options: LogOptions) -> None:
        self._path = path
        self._stream = options.stream.lower().encode()
        self._since = _sortable(_stamp(options.since)) if options.since is not None else b""
        self._timestamps = options.timestamps
        self._tail = options.tail_lines
        self._file = -1
        self._rest = b""
        self._in_line: dict[bytes, bool] = {}
        self.is_at_end = False

    def seek(self) -> None:
        """Go to where reading begins."""
        files = _files(self._path)
        start = 0
        if self._tail is not None:
            files, start = self._tail_place(files)
        if files:
            self._open(files[0])
            if self._file >= 0:
                os.lseek(self._file, start, os.SEEK_SET)

    def read(self) -> bytes:
        """Return the next of what is wanted; possibly nothing, which is all there is at present if `is_at_end`."""
        self.is_at_end = False
        if self._file < 0 and not self._open(self._path):
            self.is_at_end = True
            return b""
        data = os.read(self._file, BLOCK)
        if not data:
            self.is_at_end = not self._open_next()
            return b""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[:_MOST_LINE]
        return b"".join(self._shown(entry) for line in lines if (entry := read_entry(line)) is not None)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _shown(self, entry: Entry) -> bytes:
        if self._stream and entry.stream != self._stream:
            return b""
        if self._since and _sortable(entry.time) < self._since:
            return b""
        begins = not self._in_line.get(entry.stream, False)
        self._in_line[entry.stream] = not entry.is_whole
        text = entry.text + b"\n" if entry.is_whole else entry.text
        return entry.time + b" " + text if self._timestamps and begins else text

    def _open(self, path: Path) -> bool:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self.close()
        self._file, self._rest = file, b""
        return True

    def _open_next(self) -> bool:
        """Go on with the file that took the place of the present one, if there is one."""
        present = os.fstat(self._file).st_ino
        files = _files(self._path)
        numbers = [_number(file) for file in files]
        if present not in numbers:  # it was renamed and then removed: everything there is came after it
            return bool(files) and self._open(files[0])
        place = numbers.index(present) + 1
        return place < len(files) and self._open(files[place])

    def _tail_place(self, files: list[Path]) -> tuple[list[Path], int]:
        """Return the files that hold the last lines, and where in the first of them these begin."""
        assert self._tail is not None
        count = 0
        for index in range(len(files) - 1, -1, -1):
            start = size = files[index].stat().st_size
            for offset, line in _backwards(files[index], size):
                entry = read_entry(line)
                if entry is None or (self._stream and entry.stream != self._stream):
                    continue
                if entry.is_whole or count == 0:  # a last line without its end counts as well
                    if count == self._tail:
                        return files[index:], start
                    count += 1
                start = offset
        return files, 0


def _files(path: Path) -> list[Path]:
    """Return the files of a log, the oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*")) if path.parent.is_dir() else []
    return [*older, path] if path.exists() else older


def _number(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_ino
    return -1


def _backwards(path: Path, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file from the last to the first, each with where it begins."""
    with path.open("rb") as file:
        rest = b""
        while end > 0:
            begin = max(0, end - BLOCK)
            file.seek(begin)
            lines = (file.read(end - begin) + rest).split(b"\n")
            place = begin + sum(len(line) + 1 for line in lines) - 1
            while len(lines) > 1:
                line = lines.pop()
                place -= len(line)
                if line:
                    yield place, line
                place -= 1
            rest, end = lines[0], begin
        if rest:
            yield 0, rest


def _stamp(moment: datetime) -> bytes:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()


def _sortable(stamp: bytes) -> bytes:
    """Return a time of a log such that earlier ones sort first: fractions of a second may be of any length."""
    return stamp[:_SECONDS_DIGITS] + stamp[_SECONDS_DIGITS + 1 :].rstrip(b"Z").ljust(9, b"0")
