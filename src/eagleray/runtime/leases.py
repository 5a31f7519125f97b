"""Leader election: of several processes the one that holds a Lease acts.

A holder renews its Lease every two seconds and gives up when it could not for ten; others take a Lease that they saw
unchanged for fifteen. Only durations are compared, never two machines' clocks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kubewire import errors
from kubewire.sources import Clock, Entropy
from kubewire.times import format_micro_time

log = logging.getLogger(__name__)

LEASE_NAME = "ray-operator-leader"
# Where a Pod finds the namespace that it is in.
POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

# The next try comes up to so much later than the retry period, so that candidates do not ask in step.
_JITTER = 1.2

Lease = dict[str, Any]


class LeaseClient(Protocol):
    """The part of a client that election takes; refusals are `kubewire.errors`."""

    async def get(self, namespace: str, name: str) -> Lease:
        """Return a Lease; NotFound if there is none."""
        ...

    async def create(self, namespace: str, lease: Lease) -> Lease:
        """Create a Lease; AlreadyExists if somebody was faster."""
        ...

    async def replace(self, namespace: str, lease: Lease) -> Lease:
        """Replace the Lease of this resourceVersion; Conflict if it has changed since."""
        ...


class Times(NamedTuple):
    """Seconds: how long a Lease holds, how long a holder tries to renew it, and how often everybody asks."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class LeaseLost(Exception):
    """This process no longer leads: it could not renew its Lease in time, or somebody else has it."""


class Election:
    """One process's part in the election for a Lease."""

    def __init__(
        self,
        client: LeaseClient,
        namespace: str,
        identity: str,
        *,
        clock: Clock,
        entropy: Entropy,
        name: str = LEASE_NAME,
        times: Times | None = None,
        told: Callable[[bool], None] | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._entropy = entropy
        self._times = times or Times()
        self._told = told
        self._lease: Lease = {}
        self._is_current = False
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self.is_leading = False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until this process leads, then do the work; the Lease is released when it is done or fails.

        Raises LeaseLost, after the work was cancelled and has ended, if the Lease is lost before that.
        """
        await self._campaign()
        working = asyncio.ensure_future(_coroutine(work))
        renewing = asyncio.create_task(self._keep_renewing(), name="lease")
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                renewing.result()  # raises LeaseLost
            await working
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._release()

    @property
    def holds(self) -> bool:
        """Whether this process leads by its own clock. One that has slept past its Lease sees it here first."""
        return self.is_leading and self._clock.monotonic() - self._renewed_at <= self._times.lease

    def check(self) -> str | None:
        """Return what is wrong if this process still acts as the leader though its Lease has run out."""
        if not self.is_leading or self.holds:
            return None
        age = self._clock.monotonic() - self._renewed_at
        return f"the Lease {self._namespace}/{self._name} was renewed {age:.0f} s ago and has run out"

    async def _campaign(self) -> None:
        log.info("Waiting for the Lease %s/%s as %s", self._namespace, self._name, self._identity)
        while not await self._try():
            await self._clock.sleep(self._entropy.uniform(self._times.retry, self._times.retry * _JITTER))
        self._leads(True)
        log.info("Leading: the Lease %s/%s is held by %s", self._namespace, self._name, self._identity)

    async def _keep_renewing(self) -> None:
        while True:
            await self._clock.sleep(self._times.retry)
            deadline = self._renewed_at + self._times.renew
            while not await self._try(deadline):
                if self._holder() not in ("", self._identity):
                    raise LeaseLost(f"the Lease {self._namespace}/{self._name} is held by {self._holder()}")
                if self._clock.monotonic() >= deadline:
                    raise LeaseLost(
                        f"the Lease {self._namespace}/{self._name} could not be renewed for {self._times.renew:g} s"
                    )
                pause = min(self._times.retry, deadline - self._clock.monotonic())
                await self._clock.sleep(pause)

    async def _try(self, deadline: float | None = None) -> bool:
        """Take or renew the Lease, and return whether this process has it now; no try outlasts the deadline."""
        started = self._clock.monotonic()
        patience = self._times.renew if deadline is None else max(deadline - started, 0)
        try:
            async with asyncio.timeout(patience):
                is_ours = await self._take(started)
        except (errors.Conflict, errors.AlreadyExists):
            self._is_current = False  # somebody was faster, or an answer was lost: the next look shows
            return False
        except (errors.ApiError, OSError) as refusal:
            log.warning(
                "The Lease %s/%s: %s", self._namespace, self._name, str(refusal) or "no answer in time"
            )
            return False
        if is_ours:
            # From when the request was sent: what the others see of it is no older than that.
            self._renewed_at = started
        return is_ours

    async def _take(self, now: float) -> bool:
        try:
            # A holder that knows the version it wrote last need not ask before it renews.
            if not (self.is_leading and self._is_current):
                self._look(await self._client.get(self._namespace, self._name), now)
        except errors.NotFound:
            fresh = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._spec(transitions=0),
            }
            self._look(await self._client.create(self._namespace, fresh), now)
            return True
        holder = self._holder()
        if holder not in ("", self._identity) and now < self._seen_at + self._held_for():
            return False
        spec = self._lease.get("spec") or {}
        transitions = int(spec.get("leaseTransitions") or 0) + (holder != self._identity)
        wanted = self._spec(transitions)
        if holder == self._identity:
            wanted["acquireTime"] = spec.get("acquireTime") or wanted["acquireTime"]
        replaced = await self._client.replace(self._namespace, {**self._lease, "spec": wanted})
        self._look(replaced, now)
        return True

    def _look(self, lease: Lease, now: float) -> None:
        """Note what a Lease says; its time runs from when it was first seen to say so."""
        spec = lease.get("spec") or {}
        seen = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
        if seen != self._seen or not self._lease:
            self._seen = seen
            self._seen_at = now
        self._lease = lease
        self._is_current = True

    def _holder(self) -> str:
        return self._seen[0]

    def _held_for(self) -> float:
        """Return for how long the Lease holds, by its own word."""
        seconds = (self._lease.get("spec") or {}).get("leaseDurationSeconds")
        return float(seconds) if isinstance(seconds, int) and seconds > 0 else self._times.lease

    def _spec(self, transitions: int) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._times.lease),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Let go of the Lease, so that the next one need not wait for its end."""
        was_leading = self.is_leading
        self._leads(False)
        if not was_leading or self._holder() != self._identity:
            return
        now = format_micro_time(self._clock.now())
        transitions = (self._lease.get("spec") or {}).get("leaseTransitions") or 0
        free = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        try:
            async with asyncio.timeout(self._times.retry):
                await self._client.replace(self._namespace, {**self._lease, "spec": free})
        except (errors.ApiError, OSError) as refusal:
            log.warning("The Lease was not released and runs out by itself: %s", refusal)
        else:
            log.info("Released the Lease %s/%s", self._namespace, self._name)

    def _leads(self, leading: bool) -> None:
        self.is_leading = leading
        if self._told is not None:
            self._told(leading)


def identity(hostname: str, entropy: Entropy) -> str:
    """Return a name for this process that no other one has, not even the next in the same Pod."""
    return f"{hostname}_{entropy.uid()}"


async def _coroutine(work: Callable[[], Awaitable[None]]) -> None:
    await work()


def lease_namespace(told: str, otherwise: str = "default", account: Path = POD_NAMESPACE) -> str:
    """Return the namespace of the Lease: the one that was told, else the Pod's own, else (not in a Pod) the last."""
    if told:
        return told
    try:
        return account.read_text("utf-8").strip() or otherwise
    except FileNotFoundError:
        return otherwise
