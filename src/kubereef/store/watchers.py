"""Those who want to hear of changes, each with a bounded queue of its own."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from kubereef.store.records import Change

QUEUE_LIMIT = 8192
# As many bytes as the history may have: a watcher that holds more keeps what everybody else may forget.
QUEUE_BYTES = 64 * 1024 * 1024


class CutOff(Exception):
    """The watcher was too slow; what it missed is in the history, or it must begin anew."""


class Watcher:
    """A queue of changes. One that nobody empties is cut off, so that it holds neither memory nor others."""

    def __init__(
        self, resource: str, forget: Callable[["Watcher"], None], missed: Iterable[Change] = ()
    ) -> None:
        self.resource = resource
        self._forget = forget
        self._queue: deque[Change] = deque(missed)
        # What was missed is in the history anyway; only what comes on top of it counts as being slow.
        self._limit = len(self._queue) + QUEUE_LIMIT
        self._bytes = 0
        self._waiting: asyncio.Future[None] | None = None
        self._closed = False
        self._cut_off = False

    def deliver(self, changes: Sequence[Change]) -> None:
        self._queue.extend(changes)
        self._bytes += sum(change.weight for change in changes)
        if len(self._queue) > self._limit or self._bytes > QUEUE_BYTES:
            self._queue.clear()
            self._cut_off = True
            self._forget(self)
        self._wake()

    @property
    def has_news(self) -> bool:
        """Whether changes have come that nobody has taken yet."""
        return bool(self._queue)

    async def next(self) -> list[Change]:
        """Return the changes that have come, waiting for the first; none once the watcher is closed."""
        while not self._queue:
            if self._cut_off:
                raise CutOff
            if self._closed:
                return []
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._taken()

    def drain(self) -> list[Change]:
        """Return the changes that have come, without waiting for any; CutOff if none will come any more."""
        if self._cut_off or (self._closed and not self._queue):
            raise CutOff
        if not self._queue:
            return []
        return self._taken()

    def close(self) -> None:
        """Take no more changes; whoever waits gets what is left and then nothing."""
        self._closed = True
        self._forget(self)
        self._wake()

    def _taken(self) -> list[Change]:
        changes = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        return changes

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
