"""The life of an operator process: probes up, caches filled, Lease held, controllers at work, and an orderly end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from eagleray.runtime.addresses import Address
from eagleray.runtime.controller import STOP_PATIENCE, Controller
from eagleray.runtime.events import Recorder
from eagleray.runtime.health import Checks, PageServer, Pulse, metrics_server, probe_server
from eagleray.runtime.leases import Election, LeaseLost
from eagleray.runtime.metrics import Registry

log = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_FAILURE = 1

# A cache that is not filled by then will not be: wrong rights, a missing CRD, no server.
FILL_SECONDS = 120.0


class Caches(NamedTuple):
    """What controllers read from: `fill` returns once everything is there, `missing` names what is not."""

    fill: Callable[[], Awaitable[None]]
    missing: Callable[[], Sequence[str]]
    stop: Callable[[], Awaitable[None]]


class Manager:
    """Runs controllers until it is told to stop, and returns the exit code of the process.

    Once `serving` is set, `ports` are those of the metrics and the probes.
    """

    def __init__(
        self,
        controllers: Sequence[Controller],
        recorders: Sequence[Recorder],
        caches: Caches,
        registry: Registry,
        *,
        election: Election | None,
        metrics_address: Address | None = None,
        probe_address: Address | None = None,
    ) -> None:
        self._controllers = controllers
        self._recorders = recorders
        self._caches = caches
        self._election = election
        self._pulse = Pulse()
        self._has_begun = False
        self._at_work = False
        self._is_filled = False
        self.health = Checks()
        self.readiness = Checks()
        self._servers: list[tuple[PageServer, Address]] = []
        if metrics_address is not None:
            self._servers.append((metrics_server(registry), metrics_address))
        if probe_address is not None:
            self._servers.append((probe_server(self.health, self.readiness), probe_address))
        self.ports: list[int] = []
        self.serving = asyncio.Event()
        self.health.add("loop", self._pulse.check)
        self.health.add("controllers", self._dead_controllers)
        self.readiness.add("caches", self._unfilled_caches)
        if election is not None:
            self.health.add("lease", election.check)

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set (0), or until the process can no longer do its work (1)."""
        self._pulse.start()
        try:
            for server, address in self._servers:
                self.ports.append(await server.start(address))
            self.serving.set()
            return await self._work_until(stop)
        except OSError as refusal:
            log.error("%s", refusal)
            return EXIT_FAILURE
        finally:
            await self._caches.stop()
            for server, _ in self._servers:
                await server.stop()
            await self._pulse.stop()

    async def _work_until(self, stop: asyncio.Event) -> int:
        stopping = asyncio.create_task(stop.wait(), name="stop signal")
        working = asyncio.create_task(self._fill_and_lead(stop), name="work")
        try:
            await asyncio.wait((stopping, working), return_when=asyncio.FIRST_COMPLETED)
            if not self._has_begun:
                working.cancel()  # nothing is under way yet that could be finished
            await asyncio.wait((working,))
            return EXIT_OK if working.cancelled() else working.result()
        finally:
            for task in (stopping, working):
                task.cancel()
            await asyncio.gather(stopping, working, return_exceptions=True)

    async def _fill_and_lead(self, stop: asyncio.Event) -> int:
        try:
            async with asyncio.timeout(FILL_SECONDS):
                await self._caches.fill()
        except TimeoutError:
            missing = ", ".join(self._caches.missing()) or "nothing in particular"
            log.error("The caches were not filled within %g s; missing: %s", FILL_SECONDS, missing)
            return EXIT_FAILURE
        self._is_filled = True
        try:
            if self._election is None:
                await self._work(stop)
            else:
                await self._election.lead(lambda: self._work(stop))
        except LeaseLost as lost:
            log.error("No longer leading: %s", lost)
            return EXIT_FAILURE
        return EXIT_OK

    async def _work(self, stop: asyncio.Event) -> None:
        self._has_begun = self._at_work = True
        try:
            for recorder in self._recorders:
                recorder.start()
            for controller in self._controllers:
                controller.start()
            await stop.wait()
            log.info("Stopping; passes under way have %g s", STOP_PATIENCE)
            await asyncio.gather(*(controller.stop() for controller in self._controllers))
            await asyncio.gather(*(recorder.stop() for recorder in self._recorders))
        finally:
            self._at_work = False
            # Cancelled because the Lease is lost: whoever holds it now must not meet our writes.
            await asyncio.gather(*(controller.stop(patience=0) for controller in self._controllers))
            await asyncio.gather(*(recorder.stop(patience=0) for recorder in self._recorders))

    def _dead_controllers(self) -> str | None:
        dead = [one.name for one in self._controllers if not one.is_alive] if self._at_work else []
        return f"not at work: {', '.join(dead)}" if dead else None

    def _unfilled_caches(self) -> str | None:
        if self._is_filled:
            return None
        return f"not filled yet: {', '.join(self._caches.missing()) or 'in progress'}"
