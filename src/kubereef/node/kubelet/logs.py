"""A container's log on disk, in the format that every kubelet writes, in files of bounded size.

Writing to a file that nobody syncs goes to memory and does not hold up the event loop.
"""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

from kubewire.sources import Clock

Stream = Literal["stdout", "stderr"]

LONGEST_LINE = 16 * 1024
MOST_BYTES = 10 * 1024 * 1024
MOST_FILES = 5
_TAIL_BYTES = 64 * 1024


class ContainerLog:
    """The log of one run: `<time> <stream> F <line>`, with P instead of F where a long line goes on."""

    def __init__(
        self, file: Path, clock: Clock, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file
        self._clock = clock
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._open = file.open("ab", buffering=0)
        self._size = os.fstat(self._open.fileno()).st_size
        self._begun: dict[Stream, bytes] = {}

    def write(self, stream: Stream, data: bytes) -> None:
        """Take over what the container wrote; a line is written when it is whole, or too long."""
        *lines, rest = (self._begun.get(stream, b"") + data).split(b"\n")
        stamp = _stamp(self._clock.now())
        parts = [part for line in lines for part in _cut(line, is_whole=True)]
        if len(rest) > LONGEST_LINE:
            *long, (_, rest) = _cut(rest, is_whole=False)
            parts += long
        self._begun[stream] = rest
        for tag, text in parts:
            self._append(b"%s %s %s %s\n" % (stamp, stream.encode(), tag, text))

    def close(self) -> None:
        """Write what is left of lines without an end, and close the file."""
        stamp = _stamp(self._clock.now())
        for stream, rest in self._begun.items():
            if rest:
                self._append(b"%s %s P %s\n" % (stamp, stream.encode(), rest))
        self._begun.clear()
        self._open.close()

    def _append(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._most_bytes:
            self._rotate()
        self._open.write(line)
        self._size += len(line)

    def _rotate(self) -> None:
        self._open.close()
        moment = self._clock.now().strftime("%Y%m%d-%H%M%S.%f")
        self._file.rename(f"{self._file}.{moment}")
        for old in rotated(self._file)[: -(self._most_files - 1)]:
            old.unlink()
        self._open = self._file.open("ab", buffering=0)
        self._size = 0


def rotated(file: Path) -> list[Path]:
    """Return the earlier parts of a log, the oldest first."""
    return sorted(file.parent.glob(f"{file.name}.*"))


def log_tail(file: Path, most_lines: int, most_bytes: int) -> str:
    """Return the last of what a container wrote, without times. Blocks."""
    with suppress(FileNotFoundError), file.open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - _TAIL_BYTES))
        lines = log.read().splitlines(keepends=True)[-most_lines:]
        text = b""
        for line in lines:
            fields = line.split(b" ", 3)
            if len(fields) == 4:
                text += fields[3][:-1] if fields[2] == b"P" else fields[3]
        return text[-most_bytes:].decode(errors="replace")
    return ""


def _cut(line: bytes, *, is_whole: bool) -> list[tuple[bytes, bytes]]:
    parts = [line[at : at + LONGEST_LINE] for at in range(0, len(line), LONGEST_LINE)] or [b""]
    tagged = [(b"P", part) for part in parts]
    if is_whole:
        tagged[-1] = (b"F", parts[-1])
    return tagged


def _stamp(moment: datetime) -> bytes:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
