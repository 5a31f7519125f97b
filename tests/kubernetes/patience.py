"""Virtual time beside real servers: it jumps only where nothing stirs.

A world on a real control plane waits for answers of processes that know nothing of its time. While a request is under
way time stands still. Otherwise the loop's time jumps to the next timer, so that an hour of backoff takes seconds, but
not before the plane has had its say: whoever has written or heard something has the loop listen for a while, and what
the plane is known to owe is waited for until it has come. Where a controller of the plane lets time pass by its own
clock, the world's goes along.
"""

import asyncio
import selectors
import time
from collections.abc import Awaitable
from typing import TypeVar

from kubereef.simulation import Stuck, VirtualLoop

T = TypeVar("T")

# How long to listen for an echo of what only the world itself looks at.
ECHO = 0.05
# How long to listen for what controllers of the plane do.
REACTION = 0.25
# They may need longer: for a while they get so much for each second of a jump, and at most so much.
SETTLING = 2.0
PER_SECOND = 0.02
LONGEST = 0.4
# How long a loop may live: whoever lets days pass here waits for minutes, and whoever waits for ever for ever.
LIFE = 300.0


class PatientLoop(VirtualLoop):
    """An event loop whose time jumps when nothing is under way, nothing is owed and nothing was heard for a while."""

    def __init__(self) -> None:
        self.under_way = 0
        self._is_quiet_at = 0.0
        self._is_settled_at = 0.0
        self._owed: dict[str, float] = {}
        self._promised: dict[str, float] = {}
        asyncio.SelectorEventLoop.__init__(self, _ListeningSelector(self))
        self._now = 0.0

    def time(self) -> float:
        # The base class asks before there is a time.
        return getattr(self, "_now", 0.0)

    def listen(self, seconds: float) -> None:
        """Have time stand still for so long, in case something comes."""
        self._is_quiet_at = max(self._is_quiet_at, time.monotonic() + seconds)

    def stir(self) -> None:
        """Something has happened that controllers of the plane look at: have them react."""
        self.listen(REACTION)
        self._is_settled_at = time.monotonic() + SETTLING

    def owe(self, debt: str, seconds: float) -> None:
        """Have time stand still until a debt is paid, or until it is clear that it never will be."""
        self._owed.setdefault(debt, time.monotonic() + seconds)

    def promise(self, debt: str, seconds: float) -> None:
        """Have time pass as it does for the plane until a debt is paid: it is due after that long."""
        self._promised.setdefault(debt, time.monotonic() + seconds)

    def pay(self, debt: str) -> None:
        self._owed.pop(debt, None)
        self._promised.pop(debt, None)

    @property
    def pace(self) -> float:
        """How long time will pass as it does for everybody."""
        return max(0.0, max(self._promised.values(), default=0.0) - time.monotonic())

    def listening(self, jump: float) -> float:
        """Return how long to listen before a jump."""
        now = time.monotonic()
        still = max(self._is_quiet_at, *self._owed.values(), 0.0) - now
        return max(still, min(jump * PER_SECOND, LONGEST) if now < self._is_settled_at else 0.0)


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
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        if timeout is None or self._loop.under_way:
            return super().select(self._ends - time.monotonic())
        if pace := self._loop.pace:
            began = time.monotonic()
            ready = super().select(min(timeout, pace))
            self._loop.jump(min(time.monotonic() - began, timeout))
            return ready
        ready = super().select(self._loop.listening(timeout))
        if not ready:
            self._loop.jump(timeout)
        return ready


def patient_loop() -> PatientLoop:
    """Return the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PatientLoop)
    return loop


async def under_way(answer: Awaitable[T]) -> T:
    """Return an answer; as long as it is awaited, time stands still."""
    loop = patient_loop()
    loop.under_way += 1
    try:
        return await answer
    finally:
        loop.under_way -= 1
