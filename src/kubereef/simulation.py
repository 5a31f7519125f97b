"""Virtual time: an event loop that never waits, so that an hour of backoff takes milliseconds.

When nothing is ready to run, the loop's time jumps to the next timer. Whatever keeps to the loop's time
(`asyncio.sleep`, `asyncio.timeout`, `call_later`) and to the `VirtualClock` therefore takes the same path on every
run, provided that it uses no threads and no sockets.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from kubereef.cluster import Cluster
from kubereef.controllers.runtime import Factory, Runner
from kubereef.controllers.standard import runner_for
from kubereef.store.store import Store
from kubewire.sources import SeededEntropy

T = TypeVar("T")

START = datetime(2030, 1, 1, tzinfo=UTC)

# A moment that no timer of ours is as short as: whoever sleeps for it comes after all that is ready now.
_MOMENT = 1e-6


class Stuck(RuntimeError):
    """Everybody waits, and no timer will ever wake anybody."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing else is to be done, and then at once."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """Let that much time pass."""
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would wait for the world, this one moves the loop's time on."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Stuck("every task waits for something that no timer will bring")
        self._loop.jump(timeout)
        return ready


class VirtualClock:
    """A clock that shows the time of the loop that runs."""

    __slots__ = ("_start",)

    def __init__(self, start: datetime = START) -> None:
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))


async def settle() -> None:
    """Return once nothing is left that could happen now; time does not pass for anybody who could notice."""
    await asyncio.sleep(_MOMENT)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine under virtual time and return what it returns."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


class SimulatedCluster:
    """A whole cluster in memory, under virtual time: the API server with the controllers of one's choice.

    It lives on a `VirtualLoop`; the same seed and the same requests lead to the same writes. Unless it
    `tracks_owners`, only fields that somebody applied have owners: following every write would cost a quarter of its
    time, and no controller asks.
    """

    def __init__(self, seed: int = 1, root_ca: str = "a certificate", *, tracks_owners: bool = False) -> None:
        self.clock = VirtualClock()
        self.entropy = SeededEntropy(seed)
        self.store = Store()
        self.cluster = Cluster(
            self.store,
            clock=self.clock,
            entropy=self.entropy,
            authority=root_ca.encode(),
            tracks_owners=tracks_owners,
        )
        self.server = self.cluster.server
        self.client = self.cluster.client()
        self._runner: Runner | None = None

    async def start(self) -> None:
        """Make the server ready; no controller runs yet."""
        await self.cluster.start()

    async def run(self, *factories: Factory) -> None:
        """Start controllers, besides those that run already."""
        if self._runner is not None:
            factories = (*self._runner.factories, *factories)
        await self.stop_controllers()
        self._runner = runner_for(self.cluster, factories)
        await self._runner.start()
        await settle()

    async def stop_controllers(self) -> None:
        """Stop the controllers, as if their process had ended; what they knew is forgotten."""
        if self._runner is not None:
            await self._runner.stop()

    async def restart_controllers(self) -> None:
        """Start the controllers anew."""
        assert self._runner is not None
        await self._runner.stop()
        await self._runner.start()
        await settle()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and whatever it brings happen."""
        await asyncio.sleep(seconds)
        await settle()

    async def stop(self) -> None:
        """End everything."""
        await self.stop_controllers()
        await self.cluster.stop()
