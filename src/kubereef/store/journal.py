"""Durability: the objects in one SQLite file, written by one thread in groups.

The whole state lives in memory while the server runs, so the file is read once, at the start. A commit is one
transaction, however many writes had gathered; WAL mode makes it survive the death of the process.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kubereef.store.errors import InUse, Unusable, WriteFailed
from kubereef.store.records import Key, Record

# Each entry upgrades the file by one version; `user_version` says how many have been applied.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE objects (
        resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        revision INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (resource, namespace, name)
    ) WITHOUT ROWID;
    CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL);
    INSERT INTO state VALUES (1, 1);
    """,
)


class Entry(NamedTuple):
    """One write on its way to the disk; without data it is a removal."""

    key: Key
    revision: int
    data: bytes | None


class Journal(Protocol):
    """Where writes become durable."""

    def load(self) -> tuple[int, Iterator[Record]]: ...

    def commit(self, entries: Sequence[Entry]) -> None: ...

    def close(self) -> None: ...


class SqliteJournal:
    """A journal in a directory of its own, which no other process may use meanwhile."""

    def __init__(self, directory: Path) -> None:
        self._lock = lock_directory(directory)
        try:
            self._database = _opened(directory / "state.db")
        except BaseException:
            os.close(self._lock)
            raise

    def load(self) -> tuple[int, Iterator[Record]]:
        """Return the last revision and the objects."""
        revision: int = self._database.execute("SELECT revision FROM state").fetchone()[0]
        rows = self._database.execute("SELECT resource, namespace, name, revision, data FROM objects")
        return revision, (Record(Key(*row[:3]), row[3], row[4]) for row in rows)

    def commit(self, entries: Sequence[Entry]) -> None:
        """Make the writes durable, all of them or none."""
        puts = [(*entry.key, entry.revision, entry.data) for entry in entries if entry.data is not None]
        try:
            with contextlib.closing(self._database.cursor()) as cursor:
                cursor.execute("BEGIN IMMEDIATE")
                if len(puts) == len(entries):
                    cursor.executemany("REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", puts)
                else:
                    # A key may be written and removed in one group, so the order counts.
                    for entry in entries:
                        _apply(cursor, entry)
                cursor.execute("UPDATE state SET revision = ?", (entries[-1].revision,))
                cursor.execute("COMMIT")
        except sqlite3.Error as bad:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise WriteFailed(f"the write could not be stored: {bad}") from bad

    def close(self) -> None:
        self._database.close()
        os.close(self._lock)


def _apply(cursor: sqlite3.Cursor, entry: Entry) -> None:
    if entry.data is None:
        cursor.execute("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", entry.key)
    else:
        cursor.execute(
            "REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", (*entry.key, entry.revision, entry.data)
        )


def lock_directory(directory: Path) -> int:
    """Make a directory, if need be, that no other process may use until the returned handle is closed."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InUse(f"another process uses {directory}; stop it or choose another data directory") from None
    return handle


def _opened(path: Path) -> sqlite3.Connection:
    # The writer thread commits what the main thread loaded; the store never lets both at it at once.
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        path.chmod(0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        _upgrade(database, path)
    except sqlite3.DatabaseError as bad:
        database.close()
        raise Unusable(f"{path} cannot be used: {bad}") from bad
    except BaseException:
        database.close()
        raise
    return database


def _upgrade(database: sqlite3.Connection, path: Path) -> None:
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise Unusable(
            f"{path} is of version {version}, made by a newer release; this one knows {len(MIGRATIONS)}"
        )
    for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
        database.executescript(f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT;")
