"""The one provider of clock, randomness and ids: the real ones, and ones that a test drives.

Whatever decides by time or chance is given a `Clock` or an `Entropy`, so that a whole cluster can
run under a clock that a test owns and take the same path for the same seed.
"""

# Modules such as asyncio, random and uuid are imported where they are first used: most commands
# import this module and need none of them.
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol, TypeVar

from kubewire.names import SUFFIX_ALPHABET

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Sequence
    from datetime import datetime
    from random import Random

T = TypeVar("T")


class Clock(Protocol):
    """What time it is, and a way to wait."""

    def now(self) -> "datetime":
        """Return the time of day, with UTC as its time zone."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment; they never go back, whatever happens to the time of day."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return once that much time has passed; at least one other task gets its turn."""
        ...


class Entropy(Protocol):
    """Chance: names, ids, secrets and jitter."""

    def suffix(self, length: int) -> str:
        """Return random characters such as Kubernetes appends to names."""
        ...

    def uid(self) -> str:
        """Return a new object uid (a version 4 UUID)."""
        ...

    def token(self, nbytes: int) -> bytes:
        """Return that many random bytes."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Return a number between low and high."""
        ...

    def choice(self, options: "Sequence[T]") -> T:
        """Return one of the options; there must be one."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> "datetime":
        from datetime import UTC, datetime

        return datetime.now(UTC)

    def monotonic(self) -> float:
        from time import monotonic

        return monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(max(seconds, 0))


class ManualClock:
    """A clock that stands still until it is advanced.

    Sleepers wake in the order of their deadlines, and those of the same deadline in the order in which
    they went to sleep. They run when the event loop next does, and see the time that was advanced to.
    """

    __slots__ = ("_asleep", "_elapsed", "_sleeps", "_start")

    def __init__(self, start: "datetime | None" = None) -> None:
        from datetime import UTC, datetime

        start = start or datetime(2030, 1, 1, tzinfo=UTC)
        if start.tzinfo is None:
            raise ValueError("the start needs a time zone: datetime(…, tzinfo=UTC)")
        self._start = start.astimezone(UTC)
        self._elapsed = 0.0
        self._sleeps = 0
        self._asleep: list[tuple[float, int, Future[None]]] = []

    @property
    def sleepers(self) -> int:
        """How many tasks wait for this clock."""
        return sum(not wakeup.done() for _, _, wakeup in self._asleep)

    def now(self) -> "datetime":
        from datetime import timedelta

        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        import asyncio

        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wakeup: Future[None] = asyncio.get_running_loop().create_future()
        self._sleeps += 1  # a tie-breaker: futures do not compare
        heappush(self._asleep, (self._elapsed + seconds, self._sleeps, wakeup))
        await wakeup

    def advance(self, seconds: float) -> None:
        """Let that much time pass and wake everyone whose time has come."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} s")
        self._elapsed += seconds
        while self._asleep and self._asleep[0][0] <= self._elapsed:
            _, _, wakeup = heappop(self._asleep)
            if not wakeup.done():  # a cancelled sleeper is done already
                wakeup.set_result(None)


class _RandomEntropy:
    """Everything an Entropy gives, drawn from one generator."""

    __slots__ = ("_random",)

    def __init__(self, generator: "Random") -> None:
        self._random = generator

    def suffix(self, length: int) -> str:
        return "".join(self._random.choice(SUFFIX_ALPHABET) for _ in range(length))

    def uid(self) -> str:
        from uuid import UUID

        return str(UUID(bytes=self._random.randbytes(16), version=4))

    def token(self, nbytes: int) -> bytes:
        return self._random.randbytes(nbytes)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def choice(self, options: "Sequence[T]") -> T:
        return self._random.choice(options)


class SystemEntropy(_RandomEntropy):
    """The operating system's randomness; its tokens are fit for secrets."""

    __slots__ = ()

    def __init__(self) -> None:
        from random import SystemRandom

        super().__init__(SystemRandom())


class SeededEntropy(_RandomEntropy):
    """Randomness that repeats itself: the same seed gives the same sequence. Not for secrets."""

    __slots__ = ()

    def __init__(self, seed: int | str) -> None:
        from random import Random

        super().__init__(Random(seed))  # noqa: S311 - repeatable on purpose, and says so
