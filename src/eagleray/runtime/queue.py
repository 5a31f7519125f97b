"""A queue of keys: what is to be looked at, changes first, namespaces in turn, each key once at a time.

All times are the event loop's, so the queue runs as well under a loop with virtual time.
"""

import asyncio
from collections import OrderedDict, deque
from typing import NamedTuple, Protocol

from eagleray.kube.resources import Key

# The wait after the first failure of a key; it doubles with each further one.
FIRST_BACKOFF = 0.005
LONGEST_BACKOFF = 1000.0
# 5 ms doubled this often is past the longest wait; counting on would only make huge numbers.
_DOUBLINGS = 18

# While rechecks wait, this many changes are handed out for each of them: changes overtake, nothing starves.
CHANGES_PER_RECHECK = 16


class QueueObserver(Protocol):
    """Who is told what happens in a queue, to count it."""

    def added(self) -> None:
        """A key came into the queue."""

    def retried(self) -> None:
        """A key will come back because its pass failed."""

    def started(self, waited: float) -> None:
        """A key was handed out after so many seconds in the queue."""

    def finished(self, worked: float) -> None:
        """The work on a key ended after so many seconds."""


class WorkQueue:
    """Keys to be looked at.

    A key is in the queue once at most; one that is being worked on comes back when that work is done, so that no two
    ever work on the same key. Changes come before rechecks (what the first list brought, what is due by time),
    and within each, namespaces take turns, so that a thousand objects in one do not hold up the one object of another.
    """

    def __init__(self, observer: QueueObserver | None = None) -> None:
        self._observer = observer
        self._changes = _Lane()
        self._rechecks = _Lane()
        self._changes_in_a_row = 0
        self._working: dict[Key, _Work] = {}
        self._timers: dict[Key, _Timer] = {}
        self._failures: dict[Key, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """How many keys wait to be handed out; those with a time to come are not among them."""
        return len(self._changes) + len(self._rechecks)

    @property
    def in_hand(self) -> int:
        """How many keys are being worked on."""
        return len(self._working)

    def add(self, key: Key, *, recheck: bool = False) -> None:
        """Have a key looked at as soon as possible; a recheck lets changes go first."""
        if self._closed:
            return
        if (work := self._working.get(key)) is not None:
            if work.again is None or work.again.recheck > recheck:
                self._working[key] = work._replace(again=_Again(recheck))
            return
        if key in self._changes:
            return
        if key in self._rechecks:
            if not recheck:
                self._changes.push(key, self._rechecks.remove(key))
            return
        (self._rechecks if recheck else self._changes).push(key, _now())
        if self._observer is not None:
            self._observer.added()
        self._wake_one()

    def add_after(self, key: Key, seconds: float, *, recheck: bool = True) -> None:
        """Have a key looked at after a while; of several such wishes the earliest counts, as the most urgent kind."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, recheck=recheck)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if (timer := self._timers.get(key)) is not None:
            due = min(due, timer.handle.when())
            recheck = recheck and timer.recheck
            timer.handle.cancel()
        self._timers[key] = _Timer(loop.call_at(due, self._due, key), recheck)

    def add_failed(self, key: Key, at_least: float = 0.0) -> float:
        """Have a key looked at again, later with each failure; return how much later."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = max(FIRST_BACKOFF * 2.0 ** min(failures, _DOUBLINGS), at_least)
        pause = min(pause, LONGEST_BACKOFF)
        if self._observer is not None:
            self._observer.retried()
        self.add_after(key, pause, recheck=False)
        return pause

    def failures(self, key: Key) -> int:
        """Return how often in a row a key has failed."""
        return self._failures.get(key, 0)

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    async def get(self) -> Key | None:
        """Return the next key, waiting for one; None once the queue is closed. Call `done` with it afterwards."""
        while not self._closed and not len(self):
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
        key, since = self._next_lane().pop()
        now = _now()
        self._working[key] = _Work(now)
        if self._observer is not None:
            self._observer.started(now - since)
        return key

    def done(self, key: Key) -> None:
        """Say that the work on a key is over; if it was added meanwhile, it comes back."""
        work = self._working.pop(key)
        if self._observer is not None:
            self._observer.finished(_now() - work.since)
        if work.again is not None:
            self.add(key, recheck=work.again.recheck)

    def close(self) -> None:
        """Give out no more keys; whoever waits for one gets None."""
        self._closed = True
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()
        while self._getters:
            self._wake_one()

    def work_seconds(self) -> tuple[float, float]:
        """Return how long all work in hand has taken so far in sum, and the longest of it."""
        if not self._working:
            return 0.0, 0.0
        now = _now()
        taken = [now - work.since for work in self._working.values()]
        return sum(taken), max(taken)

    def _next_lane(self) -> "_Lane":
        starving = len(self._rechecks) and self._changes_in_a_row >= CHANGES_PER_RECHECK
        if len(self._changes) and not starving:
            self._changes_in_a_row += 1
            return self._changes
        self._changes_in_a_row = 0
        return self._rechecks

    def _due(self, key: Key) -> None:
        self.add(key, recheck=self._timers.pop(key).recheck)

    def _wake_one(self) -> None:
        while self._getters:
            turn = self._getters.popleft()
            if not turn.done():
                turn.set_result(None)
                return


class _Again(NamedTuple):
    recheck: bool


class _Work(NamedTuple):
    """Work in hand: since when, and whether its key was added meanwhile."""

    since: float
    again: _Again | None = None


class _Timer(NamedTuple):
    handle: asyncio.TimerHandle
    recheck: bool


class _Lane:
    """Keys of one urgency with the time they came: in order within a namespace, namespaces in turn."""

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, dict[Key, float]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: Key) -> bool:
        return key in self._namespaces.get(key.namespace, ())

    def push(self, key: Key, since: float) -> None:
        self._namespaces.setdefault(key.namespace, {})[key] = since
        self._size += 1

    def pop(self) -> tuple[Key, float]:
        """Take the oldest key of the namespace whose turn it is."""
        namespace = next(iter(self._namespaces))
        key = next(iter(self._namespaces[namespace]))
        since = self.remove(key)
        if namespace in self._namespaces:
            self._namespaces.move_to_end(namespace)
        return key, since

    def remove(self, key: Key) -> float:
        keys = self._namespaces[key.namespace]
        since = keys.pop(key)
        if not keys:
            del self._namespaces[key.namespace]
        self._size -= 1
        return since


def _now() -> float:
    return asyncio.get_running_loop().time()
