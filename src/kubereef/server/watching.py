"""watch: what happens to the selected objects, as it happens."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.answers import Wish, object_bytes, partial
from kubereef.server.listing import number, parse_revision, selected_records
from kubereef.server.requests import Request, Response
from kubereef.server.selection import Selection
from kubereef.server.tables import table
from kubereef.store.errors import Compacted, FutureRevision
from kubereef.store.records import Change, Record, decode, encode
from kubereef.store.store import Store
from kubereef.store.watchers import CutOff, Watcher
from kubewire import errors, fielderrors
from kubewire.sources import Entropy

# Clients that say nothing are sent away after half an hour to an hour, at different times.
_DEFAULT_TIMEOUT = 1800.0
BOOKMARK_INTERVAL = 60.0
# A last bookmark comes this long before the end, so that the next watch begins late in the history.
_LAST_BOOKMARK = 2.0


def watch(store: Store, selection: Selection, request: Request, wish: Wish, entropy: Entropy) -> Response:
    """Answer with a stream of events that ends after the timeout, or when the client has fallen behind."""
    _check_watch_options(request)
    wanted = request.parameter("resourceVersion")
    since = parse_revision(wanted, errors.ApiError) if wanted else 0
    seconds = number(request, "timeoutSeconds") or _DEFAULT_TIMEOUT * entropy.uniform(1.0, 2.0)
    feed = Feed(selection, wish, bookmarks=request.flag("allowWatchBookmarks"))
    asked = request.flag("sendInitialEvents")
    begins_with_present = asked if "sendInitialEvents" in request.query else since == 0
    present = list(selected_records(store, selection)) if begins_with_present else []
    if begins_with_present or since == 0:
        since = store.revision
    try:
        watcher = store.watch(selection.resource_type.storage, since)
    except Compacted as old:
        return _single(feed.failure(errors.expired(f"too old resource version: {old.wanted} ({old.oldest})")))
    except FutureRevision:
        # The version is of a time before the last restart; the client must list again.
        return _single(feed.failure(errors.expired(f"too old resource version: {since} ({store.revision})")))
    stream = _events(store, feed, watcher, present, seconds, since if asked and feed.bookmarks else None)
    return Response(200, stream=stream)


class Feed:
    """Turns changes into the lines of one watch."""

    def __init__(self, selection: Selection, wish: Wish, *, bookmarks: bool) -> None:
        self.selection = selection
        self.resource_type: ResourceType = selection.resource_type
        self.wish = wish
        self.bookmarks = bookmarks
        # Whether the columns of the table have been told; the first event does it.
        self._told = False

    def lines(self, changes: Iterable[Change]) -> list[bytes]:
        """Return the events of the changes that this watch can see."""
        found = []
        for change in changes:
            line = self._line(change)
            if line is not None:
                found.append(line)
        return found

    def added(self, records: Iterable[Record]) -> list[bytes]:
        return [self._event(b"ADDED", record.data) for record in records]

    def bookmark(self, revision: int, *, ends_initial: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if ends_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return self._event(b"BOOKMARK", encode({"metadata": metadata}))

    def failure(self, error: errors.ApiError) -> bytes:
        return encode({"type": "ERROR", "object": error.status()}) + b"\n"

    def _line(self, change: Change) -> bytes | None:
        is_in = change.type != "DELETED" and self.selection.has_cached(change, change.record)
        was_in = change.previous is not None and self.selection.has_cached(change, change.previous)
        if not is_in and not was_in:
            return None
        kind = b"MODIFIED" if is_in and was_in else b"ADDED" if is_in else b"DELETED"
        # An event is written once for all watchers that want the same form of it.
        form = self.wish.form
        key = (
            kind,
            self.resource_type.opening,
            form.shape,
            form.version,
            self.wish.include,
            self._told,
        )
        line: bytes | None = change.cache.get(key)
        if line is None:
            data = change.record.data
            if kind == b"DELETED" and change.type != "DELETED" and change.previous is not None:
                # It left the selection: the watcher sees what it knew, at the version of the change.
                obj = change.previous.object()
                obj["metadata"]["resourceVersion"] = str(change.revision)
                data = encode(obj)
            line = change.cache[key] = self._event(kind, data)
        self._told = True
        return line

    def _event(self, kind: bytes, data: bytes) -> bytes:
        shape = self.wish.form.shape
        if not shape:
            shown = object_bytes(self.resource_type, data)
        else:
            obj: Object = decode(data)
            if kind != b"BOOKMARK":
                obj = self.resource_type.from_stored(obj)
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            if shape == "Table":
                rows = [] if kind == b"BOOKMARK" else [obj]
                wish = self.wish
                shown = encode(
                    table(
                        self.resource_type,
                        rows,
                        metadata,
                        wish.include,
                        wish.moment,
                        version=wish.form.version,
                        told=self._told,
                    )
                )
                self._told = True
            else:
                shown = encode(partial(obj, self.wish.form.version))
        return b'{"type":"%s","object":%s}\n' % (kind, shown)


async def _events(
    store: Store, feed: Feed, watcher: Watcher, present: list[Record], seconds: float, marked: int | None
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    silent_until = loop.time() + BOOKMARK_INTERVAL
    told = False
    try:
        if opening := b"".join(feed.added(present)):
            yield opening
        if marked is not None:
            yield feed.bookmark(marked, ends_initial=True)
        while (left := end - loop.time()) > 0:
            # Changes that this watch does not show leave it silent, however many there are.
            pause = min(left, max(0.0, silent_until - loop.time())) if feed.bookmarks else left
            if feed.bookmarks and not told and left > _LAST_BOOKMARK:
                pause = min(pause, left - _LAST_BOOKMARK)
            try:
                async with asyncio.timeout(pause):
                    changes = await watcher.next()
            except TimeoutError:
                if watcher.has_news:
                    continue  # they came in this very moment, and a bookmark says that all before it was told
                told = told or end - loop.time() <= _LAST_BOOKMARK
                if feed.bookmarks and end - loop.time() > 0:
                    yield feed.bookmark(store.revision)
                    silent_until = loop.time() + BOOKMARK_INTERVAL
                continue
            except CutOff:
                yield feed.failure(errors.expired("the watch fell too far behind; list again"))
                return
            if not changes:
                return
            if lines := feed.lines(changes):
                yield b"".join(lines)
                silent_until = loop.time() + BOOKMARK_INTERVAL
    finally:
        watcher.close()


def _single(line: bytes) -> Response:
    async def stream() -> AsyncIterator[bytes]:
        yield line

    return Response(200, stream=stream())


async def collected(response: Response) -> list[bytes]:
    """Return all chunks of a stream that ends."""
    assert response.stream is not None
    async with aclosing(response.stream) as stream:  # type: ignore[type-var]  # our streams are generators
        return [chunk async for chunk in stream]


def _check_watch_options(request: Request) -> None:
    problems: list[fielderrors.FieldError] = []
    match = request.parameter("resourceVersionMatch")
    at = ("resourceVersionMatch",)
    if "sendInitialEvents" in request.query:
        if match != "NotOlderThan":
            problems.append(
                fielderrors.forbidden(
                    at, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                )
            )
    elif match:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        problems.append(fielderrors.forbidden(at, detail))
    if match not in ("", "NotOlderThan"):
        problems.append(fielderrors.not_supported(at, match, ("NotOlderThan",)))
    if problems:
        raise errors.invalid("ListOptions", "", problems, group="meta.k8s.io")
