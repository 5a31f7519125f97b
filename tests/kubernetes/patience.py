"""Virtual time beside real servers: it jumps only where nothing stirs.

A world on a real control plane waits for answers of processes that know nothing of its time. While a request is under
way time passes as it does for everybody; when nothing of ours is under way, the loop listens for a while and then
jumps to the next timer, so that an hour of backoff takes seconds. The longer the jump, the longer it listens before:
whoever lets ten seconds pass gives the controllers more than whoever lets one pass.
"""

import asyncio
import selectors
import time
from collections.abc import Awaitable
from typing import TypeVar

from kubereef.simulation import Stuck, VirtualLoop

T = TypeVar("T")

# How long to listen before a jump: the shortest, for each second of the jump, and the longest.
SHORTEST = 0.05
PER_SECOND = 0.1
LONGEST = 0.4
# How long a loop may live: whoever lets days pass here waits for minutes, and whoever waits for ever for ever.
LIFE = 300.0


class PatientLoop(VirtualLoop):
    """An event loop whose time jumps when nothing is under way and nothing has been heard for a while."""

    def __init__(self) -> None:
        self.under_way = 0
        asyncio.SelectorEventLoop.__init__(self, _ListeningSelector(self))
        self._now = 0.0

    def time(self) -> float:
        # The base class asks before there is a time.
        return getattr(self, "_now", 0.0)


class _ListeningSelector(selectors.DefaultSelector):
    """Waits for the world as any selector does, and moves the loop's time on."""

    def __init__(self, loop: PatientLoop) -> None:
        super().__init__()
        self._loop = loop
        self._ends = time.monotonic() + LIFE

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if time.monotonic() > self._ends:
            self._ends += LIFE  # for those who clean up
            raise Stuck(f"it is not done after {LIFE:g} s of real time")
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if self._loop.under_way:
            began = time.monotonic()
            ready = super().select(timeout)
            self._loop.jump(min(time.monotonic() - began, timeout))
            return ready
        ready = super().select(min(max(timeout * PER_SECOND, SHORTEST), LONGEST))
        if not ready:
            self._loop.jump(timeout)
        return ready


async def under_way(answer: Awaitable[T]) -> T:
    """Return an answer; as long as it is awaited, time does not jump."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PatientLoop)
    loop.under_way += 1
    try:
        return await answer
    finally:
        loop.under_way -= 1
