"""The state of the cluster: objects under keys, one revision after the other.

Everything lives in memory; a journal makes writes durable before anybody sees them. A write is staged at
once, so that the next writer builds on it, and published when it is durable: only then do readers and
watchers see it, and only then is it answered. Without a journal both happen in one step, without a thread.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubereef.store.errors import Conflict, FutureRevision, WriteFailed
from kubereef.store.history import History
from kubereef.store.journal import Entry, Journal
from kubereef.store.records import Change, ChangeType, Key, Record, encode
from kubereef.store.watchers import Watcher

# A new store begins above zero, because clients take the version "0" to mean "any".
FIRST_REVISION = 1


class Write:
    """A staged write: what it makes of the record, and when it has become durable."""

    __slots__ = ("_durable", "change")

    def __init__(self, change: Change, durable: asyncio.Future[None] | None) -> None:
        self.change = change
        self._durable = durable

    @property
    def record(self) -> Record:
        return self.change.record

    async def done(self) -> Record:
        """Wait until the write is durable; raises WriteFailed if it could not be made so."""
        if self._durable is not None:
            await self._durable
        return self.change.record


class Store:
    """Objects and their history. All methods belong to the event loop's thread."""

    def __init__(self, journal: Journal | None = None, history: History | None = None) -> None:
        self._journal = journal
        self._records: dict[str, dict[Key, Record]] = {}
        self._order: dict[str, list[Key]] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._staged: dict[Key, Record | None] = {}
        self._queue: list[tuple[Change, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "kubereef-journal") if journal else None
        self.revision = FIRST_REVISION
        if journal:
            self.revision, loaded = journal.load()
            for record in loaded:
                self._records.setdefault(record.key.resource, {})[record.key] = record
        self._next = self.revision
        self.history = history or History(self.revision)

    # --- reading what is durable

    def get(self, key: Key) -> Record | None:
        """Return the record under a key."""
        return self._records.get(key.resource, {}).get(key)

    def records(self, resource: str, namespace: str | None = None) -> Iterator[Record]:
        """Yield the records of a resource in the order of their keys; of one namespace, if one is given."""
        records = self._records.get(resource, {})
        order = self._keys(resource)
        if namespace is None:
            return (records[key] for key in order)
        first = bisect_left(order, Key(resource, namespace, ""))
        last = bisect_left(order, Key(resource, namespace + "\0", ""))
        return (records[key] for key in order[first:last])

    def records_at(self, resource: str, namespace: str | None, revision: int) -> Iterator[Record]:
        """Yield the records of a resource as they were at a revision; Compacted if that is too long ago."""
        self._check_future(revision)
        if revision == self.revision:
            return self.records(resource, namespace)
        past = self.history.rewind(self._records.get(resource, {}), resource, revision)
        keys = sorted(key for key in past if namespace is None or key.namespace == namespace)
        return (past[key] for key in keys)

    def count(self, resource: str) -> int:
        return len(self._records.get(resource, {}))

    def resources(self) -> Iterable[str]:
        """Return the resources of which there is or was an object."""
        return [resource for resource, records in self._records.items() if records]

    def watch(self, resource: str, since: int) -> Watcher:
        """Return a watcher that hears of every change of a resource after a revision.

        Raises Compacted if the history does not reach back so far, and FutureRevision if it is yet to come.
        """
        self._check_future(since)
        missed = [change for change in self.history.since(since) if change.key.resource == resource]
        watcher = Watcher(resource, self._forget, missed)
        self._watchers.setdefault(resource, []).append(watcher)
        return watcher

    # --- writing

    def latest(self, key: Key) -> Record | None:
        """Return the record under a key as the last writer left it, durable or not."""
        if key in self._staged:
            return self._staged[key]
        return self.get(key)

    def put(self, key: Key, obj: dict[str, Any], expected: Record | None) -> Write:
        """Stage an object in place of the `expected` record; its new resourceVersion is written into it."""
        self._check_expected(key, expected)
        revision = self._advance()
        obj["metadata"]["resourceVersion"] = str(revision)
        record = Record(key, revision, encode(obj))
        return self._stage("ADDED" if expected is None else "MODIFIED", record, expected)

    def remove(self, key: Key, obj: dict[str, Any], expected: Record) -> Write:
        """Stage the removal of a record; `obj` is the last state that watchers will see."""
        self._check_expected(key, expected)
        revision = self._advance()
        obj["metadata"]["resourceVersion"] = str(revision)
        return self._stage("DELETED", Record(key, revision, encode(obj)), expected)

    def end_watches(self, resource: str | None = None) -> None:
        """Send all watchers away, or those of one resource; each still gets what has come for it."""
        ended = list(self._watchers.values()) if resource is None else [self._watchers.get(resource, [])]
        for watchers in ended:
            for watcher in list(watchers):
                watcher.close()

    @property
    def watcher_count(self) -> int:
        """How many watchers there are."""
        return sum(map(len, self._watchers.values()))

    async def close(self) -> None:
        """Finish the writes on their way and let go of the journal."""
        while self._committing is not None:
            await asyncio.wait([self._committing])
        self.end_watches()
        if self._thread is not None:
            self._thread.shutdown()
        if self._journal is not None:
            self._journal.close()

    # --- inside

    def _advance(self) -> int:
        self._next += 1
        return self._next

    def _check_future(self, revision: int) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)

    def _check_expected(self, key: Key, expected: Record | None) -> None:
        if self.latest(key) is not expected:
            raise Conflict("the object has been changed by another writer")

    def _stage(self, kind: ChangeType, record: Record, previous: Record | None) -> Write:
        change = Change(kind, record, previous)
        if self._journal is None:
            self._publish([change])
            return Write(change, None)
        durable = asyncio.get_running_loop().create_future()
        self._staged[record.key] = None if kind == "DELETED" else record
        self._queue.append((change, durable))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit())
        return Write(change, durable)

    async def _commit(self) -> None:
        """Commit in groups until nothing is staged: what gathers during one commit is the next group."""
        assert self._journal is not None
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                group, self._queue = self._queue, []
                entries = [_entry(change) for change, _ in group]
                try:
                    await loop.run_in_executor(self._thread, self._journal.commit, entries)
                except WriteFailed as bad:
                    self._fail([*group, *self._queue], bad)
                    continue
                self._publish([change for change, _ in group])
                for change, durable in group:
                    self._unstage(change)
                    if not durable.done():
                        durable.set_result(None)
        finally:
            self._committing = None

    def _fail(self, group: list[tuple[Change, asyncio.Future[None]]], bad: WriteFailed) -> None:
        # Writes staged meanwhile were built on those that failed, so they fail with them.
        self._queue = []
        self._staged.clear()
        for _, durable in group:
            if not durable.done():
                durable.set_exception(WriteFailed(str(bad)))

    def _unstage(self, change: Change) -> None:
        wanted = None if change.type == "DELETED" else change.record
        if self._staged.get(change.key, change) is wanted:
            del self._staged[change.key]

    def _publish(self, changes: list[Change]) -> None:
        heard: dict[str, list[Change]] = {}
        for change in changes:
            self._keep(change)
            self.history.append(change)
            heard.setdefault(change.key.resource, []).append(change)
        self.revision = changes[-1].revision
        for resource, of_resource in heard.items():
            for watcher in list(self._watchers.get(resource, ())):
                watcher.deliver(of_resource)

    def _keep(self, change: Change) -> None:
        key = change.key
        records = self._records.setdefault(key.resource, {})
        if change.type == "DELETED":
            records.pop(key, None)
            self._order.pop(key.resource, None)
        else:
            if key not in records:
                self._order.pop(key.resource, None)
            records[key] = change.record

    def _keys(self, resource: str) -> list[Key]:
        order = self._order.get(resource)
        if order is None:
            order = self._order[resource] = sorted(self._records.get(resource, ()))
        return order

    def _forget(self, watcher: Watcher) -> None:
        watchers = self._watchers.get(watcher.resource, [])
        if watcher in watchers:
            watchers.remove(watcher)


def _entry(change: Change) -> Entry:
    data = None if change.type == "DELETED" else change.record.data
    return Entry(change.key, change.revision, data)
