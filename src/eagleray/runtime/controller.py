"""A controller: passes over the objects of one kind, and the one switch that says what follows from each."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from eagleray.kube.resources import Key
from eagleray.kube.writer import NameTaken
from eagleray.runtime.events import Recorder
from eagleray.runtime.logging import about, fields
from eagleray.runtime.outcomes import Again, Done, Failed, Outcome, Rejected, failed_step
from eagleray.runtime.series import ControllerMetrics
from kubewire import errors
from kubewire.sources import Entropy

# How long a stop waits for passes under way; the packaged Pod's grace period is longer.
STOP_PATIENCE = 30.0

FAILED_REASON = "ReconcileFailed"
FAILED_ACTION = "Reconcile"

# What a pass over a sound program may still meet: a refusing API server or a broken network. All else is a bug.
_EXPECTED = (errors.ApiError, OSError)

# A refusal that the next try mends is nobody's business; from this one in a row on, users are told.
_TOLD_FROM = 2

Reconcile = Callable[[Key], Awaitable[Outcome]]


class Controller:
    """Reconciles the objects whose keys come into its `queue`: many at once, never one twice at the same time.

    `reconcile` makes one pass over a key. `find` returns the object of a key, to tell its events, or None if it is
    gone. At most `cap` passes run at once, if it is given; a pass that takes longer than `timeout` seconds, if that
    is given, is cancelled and counts as failed.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        reconcile: Reconcile,
        *,
        find: Callable[[Key], Mapping[str, Any] | None],
        events: Recorder,
        metrics: ControllerMetrics,
        entropy: Entropy,
        cap: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.queue = metrics.queue(name)
        self._reconcile = reconcile
        self._find = find
        self._events = events
        self._metrics = metrics
        self._entropy = entropy
        self._timeout = timeout
        self._slots = asyncio.Semaphore(cap) if cap else None
        self._handing_out: asyncio.Task[None] | None = None
        self._passes: set[asyncio.Task[None]] = set()
        self._log = logging.getLogger(f"controllers.{name}")
        metrics.start(name, cap)

    @property
    def is_alive(self) -> bool:
        """Whether keys are being handed out."""
        return self._handing_out is not None and not self._handing_out.done()

    def start(self) -> None:
        """Begin with the keys that are in the queue and go on with those that come."""
        self._handing_out = asyncio.create_task(self._hand_out(), name=f"{self.name} queue")

    async def stop(self, patience: float = STOP_PATIENCE) -> bool:
        """Begin no new pass, let those under way finish, and return whether they did in time; the rest is cancelled."""
        self.queue.close()
        if self._handing_out is not None:
            self._handing_out.cancel()  # it may wait for a slot that a hanging pass never frees
            await asyncio.gather(self._handing_out, return_exceptions=True)
        if not self._passes:
            return True
        _, late = await asyncio.wait(self._passes, timeout=patience)
        for task in late:
            self._log.warning("%s does not end; it is cancelled", task.get_name())
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return not late

    async def _hand_out(self) -> None:
        while True:
            if self._slots is not None:
                await self._slots.acquire()
            key = await self.queue.get()
            if key is None:
                return
            task = asyncio.create_task(self._work_on(key), name=f"the pass over {self.kind} {key}")
            self._passes.add(task)
            task.add_done_callback(self._passes.discard)
            # One pass gets going before the next key is chosen, so that a change that it brings is not last in line.
            await asyncio.sleep(0)

    async def _work_on(self, key: Key) -> None:
        self._metrics.active.set(self.queue.in_hand, self.name)
        try:
            await self._pass(key)
        finally:
            self.queue.done(key)
            self._metrics.active.set(self.queue.in_hand, self.name)
            if self._slots is not None:
                self._slots.release()

    async def _pass(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        subject = {"name": key.name, "namespace": key.namespace}
        with about(**{"controller": self.name, self.kind: subject, "reconcileID": self._entropy.uid()}):
            deadline = asyncio.timeout(self._timeout)
            try:
                async with deadline:
                    outcome = await self._reconcile(key)
                self._settle(key, outcome)
            except Exception as error:  # noqa: BLE001 - one object's failure must not end the others' controller
                if deadline.expired():
                    self._metrics.timeouts.add(self.name)
                self._fail(key, error)
            finally:
                self._metrics.seconds.observe(loop.time() - started, self.name)

    def _settle(self, key: Key, outcome: Outcome) -> None:
        """The switch: what follows from an outcome."""
        match outcome:
            case Done():
                self._metrics.total.add(self.name, "success")
                self.queue.succeeded(key)
            case Again(after):
                self._metrics.total.add(self.name, "requeue_after" if after > 0 else "requeue")
                self.queue.succeeded(key)
                self.queue.add_after(key, after)
            case Rejected(reason, message, action):
                self._metrics.total.add(self.name, "error")
                self._metrics.errors.add(self.name)
                self._metrics.terminal_errors.add(self.name)
                self.queue.succeeded(key)
                self._log.warning("%s", message, extra=fields(reason=reason))
                self._tell(key, reason, action, message)
            case Failed(error, within):
                self._fail(key, error)
                if within is not None:
                    self.queue.add_after(key, within)
            case _:
                raise TypeError(
                    f"a pass ends in Done, Again, Rejected, Failed or an exception, not in {outcome!r}"
                )

    def _fail(self, key: Key, error: Exception) -> None:
        """The other half of the switch: what follows from an exception."""
        step = failed_step(error)
        self._metrics.total.add(self.name, "error")
        self._metrics.errors.add(self.name)
        self._metrics.step_errors.add(self.name, step)
        asked = error.retry_after_seconds if isinstance(error, errors.ApiError) else 0
        pause = self.queue.add_failed(key, at_least=asked)
        if isinstance(error, errors.Conflict) and not isinstance(error, NameTaken):
            self._log.info(
                "The object changed meanwhile; again in %g s",
                pause,
                extra=fields(step=step, error=str(error)),
            )
            return
        if isinstance(error, _EXPECTED):
            self._log.error(
                "Step %s failed; again in %g s", step, pause, extra=fields(step=step, error=_said(error))
            )
            if self.queue.failures(key) >= _TOLD_FROM:
                self._tell(key, FAILED_REASON, FAILED_ACTION, f"Step {step} failed: {_said(error)}")
            return
        self._metrics.panics.add(self.name)
        self._log.error("Step %s broke; again in %g s", step, pause, exc_info=error, extra=fields(step=step))
        note = f"Step {step} broke, which is a bug in the operator: {type(error).__name__}: {error}"
        self._tell(key, FAILED_REASON, FAILED_ACTION, note)

    def _tell(self, key: Key, reason: str, action: str, note: str) -> None:
        if (obj := self._find(key)) is not None:
            self._events.warning(obj, reason, action, note)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
