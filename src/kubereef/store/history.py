"""The recent changes, kept for watchers that come back and for readers of an older moment."""

from collections import deque
from collections.abc import Iterator

from kubereef.store.errors import Compacted
from kubereef.store.records import Change, Key, Record

MAX_CHANGES = 50_000
MAX_BYTES = 64 * 1024 * 1024


class History:
    """A window over the newest changes, bounded in number and in bytes."""

    def __init__(self, start: int, max_changes: int = MAX_CHANGES, max_bytes: int = MAX_BYTES) -> None:
        self._changes: deque[Change] = deque()
        self._bytes = 0
        self._max_changes = max_changes
        self._max_bytes = max_bytes
        # The newest revision whose successors are all here.
        self.compacted = start

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._bytes += change.weight
        while len(self._changes) > self._max_changes or self._bytes > self._max_bytes:
            dropped = self._changes.popleft()
            self._bytes -= dropped.weight
            self.compacted = dropped.revision

    def compact(self, revision: int) -> None:
        """Forget the changes up to a revision."""
        while self._changes and self._changes[0].revision <= revision:
            self._bytes -= self._changes.popleft().weight
        self.compacted = max(self.compacted, revision)

    def since(self, revision: int) -> Iterator[Change]:
        """Yield the changes after a revision, oldest first."""
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        newer: list[Change] = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            newer.append(change)
        return reversed(newer)

    def rewind(self, records: dict[Key, Record], resource: str, revision: int) -> dict[Key, Record]:
        """Return the records of a resource as they were at a revision, given those of now."""
        past = dict(records)
        for change in reversed(list(self.since(revision))):
            if change.key.resource != resource:
                continue
            if change.previous is None:
                past.pop(change.key, None)
            else:
                past[change.key] = change.previous
        return past
