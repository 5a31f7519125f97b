"""A log file that starts anew when it is full and keeps a bounded past."""

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from kubewire.sources import Clock

_STAMP = "%Y-%m-%dT%H-%M-%S"


class Bounds(NamedTuple):
    """How much is kept: bytes of one file, how many old files, and how long."""

    size: int = 500 * 1024 * 1024
    backups: int = 10
    age: timedelta = timedelta(days=30)


class RotatingFile(logging.Handler):
    """Appends lines to `name.log`; a full file is renamed to `name-<time>.log`, and the oldest of those go."""

    def __init__(self, path: Path, clock: Clock, bounds: Bounds | None = None) -> None:
        super().__init__()
        self._path = path
        self._clock = clock
        self._bounds = bounds or Bounds()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._size = path.stat().st_size
        self._prune()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
            if self._size and self._size + len(line) > self._bounds.size:
                self._rotate()
            self._file.write(line)
            self._file.flush()
            self._size += len(line)
        except Exception:  # noqa: BLE001 - a full disk must not end a pass; logging's own way reports it
            self.handleError(record)

    def close(self) -> None:
        self._file.close()
        super().close()

    def backups(self) -> list[Path]:
        """Return the old files, the newest first."""
        dated = ((self._stamp_of(path), path) for path in self._path.parent.glob(f"{self._path.stem}-*"))
        return [path for stamp, path in sorted(dated, reverse=True, key=lambda pair: str(pair[0])) if stamp]

    def _rotate(self) -> None:
        self._file.close()
        try:
            self._path.rename(self._free_name())
        finally:  # a file that cannot be renamed is written on
            self._file = self._path.open("ab")
            self._size = self._path.stat().st_size
        self._prune()

    def _free_name(self) -> Path:
        moment = self._clock.now()
        while True:
            stamp = f"{moment.strftime(_STAMP)}.{moment.microsecond // 1000:03d}"
            name = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
            if not name.exists():
                return name
            moment += timedelta(milliseconds=1)

    def _prune(self) -> None:
        oldest = self._clock.now() - self._bounds.age
        for number, path in enumerate(self.backups()):
            stamp = self._stamp_of(path)
            if number >= self._bounds.backups or (stamp is not None and stamp < oldest):
                path.unlink(missing_ok=True)

    def _stamp_of(self, path: Path) -> datetime | None:
        """Return when a file was put aside, by its name; None for files that are not ours."""
        if path.suffix != self._path.suffix:
            return None
        stamp = path.name.removeprefix(f"{self._path.stem}-").removesuffix(self._path.suffix)
        try:
            return datetime.strptime(f"{stamp}000+0000", f"{_STAMP}.%f%z")
        except ValueError:
            return None
