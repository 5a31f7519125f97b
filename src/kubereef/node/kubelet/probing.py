"""Probes: whether a container has started, still lives, and is ready.

`Tally` counts the answers and is pure; `Probes` asks, from the start of a container's run to its end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.interfaces import Answer
from kubereef.node.kubelet.tasks import Tasks
from kubewire.sources import Clock

ProbeKind = Literal["startup", "liveness", "readiness"]


class Tally:
    """Counts the answers of one probe: a result holds when enough answers in a row agree."""

    def __init__(self, probe: Object) -> None:
        self._success = probe.get("successThreshold") or 1
        self._failure = probe.get("failureThreshold") or 3
        self._last: bool | None = None
        self._count = 0

    def add(self, passed: bool) -> bool | None:
        """Return the result that holds now, or None while there are too few answers of the kind."""
        self._count = self._count + 1 if passed == self._last else 1
        self._last = passed
        return passed if self._count >= (self._success if passed else self._failure) else None


class Asking(NamedTuple):
    """How probes act on the world: ask, tell of an answer that failed, and take over a result."""

    ask: Callable[[Object, float], Awaitable[Answer]]
    failed: Callable[[ProbeKind, Answer], None]
    concluded: Callable[[ProbeKind, Object, bool], None]


class Probes:
    """The probes of one run of a container. Startup comes first: until it passes, the others do not ask."""

    def __init__(self, container: Object, asking: Asking, clock: Clock) -> None:
        self._container = container
        self._asking = asking
        self._clock = clock
        self._tasks = Tasks()
        self._loops: dict[ProbeKind, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Begin to ask; a probe that the container does not have passes at once."""
        if probe := self._container.get("startupProbe"):
            self._spawn("startup", probe)
        else:
            self._asking.concluded("startup", {}, True)
            self._begin_others()

    def stop_restarting(self) -> None:
        """Ask no more whether the container lives or has started: it is being ended."""
        for kind in ("startup", "liveness"):
            if task := self._loops.get(kind):
                task.cancel()

    async def end(self) -> None:
        """Stop asking."""
        await self._tasks.close()

    def _begin_others(self) -> None:
        if probe := self._container.get("livenessProbe"):
            self._spawn("liveness", probe)
        if probe := self._container.get("readinessProbe"):
            self._spawn("readiness", probe)
        else:
            self._asking.concluded("readiness", {}, True)

    def _spawn(self, kind: ProbeKind, probe: Object) -> None:
        self._loops[kind] = self._tasks.spawn(
            self._loop(kind, probe), f"{kind} probe of {self._container['name']}"
        )

    async def _loop(self, kind: ProbeKind, probe: Object) -> None:
        await self._clock.sleep(probe.get("initialDelaySeconds") or 0)
        tally = Tally(probe)
        period = probe.get("periodSeconds") or 10
        while True:
            began = self._clock.monotonic()
            answer = await self._asking.ask(probe, float(probe.get("timeoutSeconds") or 1))
            if not answer.passed:
                self._asking.failed(kind, answer)
            result = tally.add(answer.passed)
            if result is not None:
                self._asking.concluded(kind, probe, result)
                if kind == "startup" and result:
                    self._begin_others()
                if kind == "startup" or (kind == "liveness" and not result):
                    return
            await self._clock.sleep(max(0.0, period - (self._clock.monotonic() - began)))
