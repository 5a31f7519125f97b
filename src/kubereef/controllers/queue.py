"""A queue of keys: what is to be looked at, each once at a time, again later, or again after failures."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

K = TypeVar("K")

# The first wait after a failure; it doubles with every further one of the same key.
FIRST_BACKOFF = 0.05
LONGEST_BACKOFF = 60.0


class WorkQueue(Generic[K]):
    """Keys in the order in which they came.

    A key that is in the queue is not added again, and one that is being worked on comes back when the work is done,
    so that no two work on it at the same time. All times are the event loop's.
    """

    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._waiting: dict[K, None] = {}  # in the queue
        self._working: dict[K, bool] = {}  # being worked on; True if it was added meanwhile
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Have a key looked at as soon as possible."""
        if self._closed or key in self._waiting:
            return
        if key in self._working:
            self._working[key] = True
            return
        self._waiting[key] = None
        self._ready.append(key)
        self._wake_one()

    def add_after(self, key: K, seconds: float) -> None:
        """Have a key looked at after a while; of several such wishes the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._due, key)

    def add_failed(self, key: K) -> float:
        """Have a key looked at again, later with every failure; return how much later."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min(FIRST_BACKOFF * 2.0 ** min(failures, 30), LONGEST_BACKOFF)
        self.add_after(key, pause)
        return pause

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    async def get(self) -> K | None:
        """Return the next key, waiting for one; None once the queue is closed. Call `done` with it afterwards."""
        while not self._ready:
            if self._closed:
                return None
            turn = asyncio.get_running_loop().create_future()
            self._getters.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_one()  # somebody else has to take what this one was woken for
                raise
        if self._closed:
            return None
        key = self._ready.popleft()
        del self._waiting[key]
        self._working[key] = False
        return key

    def done(self, key: K) -> None:
        """Say that the work on a key is over."""
        if self._working.pop(key, False):
            self.add(key)

    def close(self) -> None:
        """Give out no more keys; whoever waits for one gets None."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        while self._getters:
            self._wake_one()

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake_one(self) -> None:
        while self._getters:
            turn = self._getters.popleft()
            if not turn.done():
                turn.set_result(None)
                return
