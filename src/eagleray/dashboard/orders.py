"""Orders to dashboards: what is to be done once, who wants it, and what came of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from eagleray.dashboard.address import Address
from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import DashboardError, SessionChanged
from eagleray.dashboard.requests import Submission
from eagleray.kube.resources import Key

# Orders of one owner that are remembered after their outcome was taken, so that they are not carried out again.
REMEMBERED: Final = 64


class Owner(NamedTuple):
    """The object that wants something done or known."""

    kind: str
    key: Key

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Submit(msgspec.Struct, frozen=True):
    """Run a job, if the head is still the one of this session."""

    submission: Submission
    # Another head would run it a second time, so it is asked for its session first. Empty: whatever head there is.
    session: str = ""


class Stop(msgspec.Struct, frozen=True):
    """Stop a job."""

    job_id: str


class Delete(msgspec.Struct, frozen=True):
    """Have Ray forget a job."""

    job_id: str


class PutServe(msgspec.Struct, frozen=True):
    """Have the Serve applications become these."""

    configuration: Mapping[str, Any]


Action: TypeAlias = Submit | Stop | Delete | PutServe


class Order(NamedTuple):
    """Something to be done at a dashboard. Given any number of times under one `id` of its owner, it is one order."""

    id: str
    address: Address
    action: Action


class Outcome(NamedTuple):
    """What came of an order."""

    order: Order
    at: datetime
    error: DashboardError | None = None

    @property
    def is_success(self) -> bool:
        return self.error is None


async def carry_out(dashboard: Dashboard, action: Action) -> None:
    """Do it, once; how it fails says whether it may have happened all the same."""
    match action:
        case Submit(submission, session):
            if session:
                await _require_session(dashboard, session)
            await dashboard.submit(submission)
        case Stop(job_id):
            await dashboard.stop(job_id)
        case Delete(job_id):
            await dashboard.delete(job_id)
        case PutServe(configuration):
            await dashboard.put_serve(configuration)


async def _require_session(dashboard: Dashboard, session: str) -> None:
    found = (await dashboard.version()).session_name
    if found != session:
        raise SessionChanged(
            f"{dashboard.address}: the head is {found or 'one that does not tell its session'}, not {session}",
            certainly_not_done=True,
        )


class Entry:
    """An order on its way."""

    __slots__ = ("is_cancelled", "is_started", "is_taken", "order", "outcome", "owner")

    def __init__(self, owner: Owner, order: Order) -> None:
        self.owner = owner
        self.order = order
        self.outcome: Outcome | None = None
        self.is_started = False
        self.is_taken = False
        self.is_cancelled = False


class OrderBook:
    """All orders by owner and id, with their outcomes until these are taken."""

    def __init__(self) -> None:
        self._owners: dict[Owner, dict[str, Entry]] = {}

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._owners.values())

    def add(self, owner: Owner, order: Order, *, again: bool) -> Entry | None:
        """Take an order; None if it is known. One that has ended is taken once more only if told so (`again`)."""
        entries = self._owners.setdefault(owner, {})
        known = entries.get(order.id)
        if known is not None and (known.outcome is None or not again):
            return None
        entries.pop(
            order.id, None
        )  # the order in which they were given is the order in which they are forgotten
        entries[order.id] = entry = Entry(owner, order)
        self._forget_oldest(entries)
        return entry

    def outcome(self, owner: Owner, order_id: str) -> Outcome | None:
        """Return what came of an order; None while nothing has, and once it was taken."""
        entry = self._owners.get(owner, {}).get(order_id)
        return entry.outcome if entry is not None and not entry.is_taken else None

    def take(self, owner: Owner, order_id: str) -> Outcome | None:
        """Return what came of an order, this one time."""
        found = self.outcome(owner, order_id)
        if found is not None:
            self._owners[owner][order_id].is_taken = True
        return found

    def cancel(self, owner: Owner, order_id: str) -> Entry | None:
        """Withdraw an order; None if it is too late, or there is none."""
        entries = self._owners.get(owner, {})
        entry = entries.get(order_id)
        if entry is None or entry.is_started:
            return None
        entry.is_cancelled = True
        del entries[order_id]
        if not entries:
            del self._owners[owner]
        return entry

    def forget(self, owner: Owner) -> list[Entry]:
        """Drop all orders of an owner; those that have been started end without anybody being told."""
        entries = list(self._owners.pop(owner, {}).values())
        for entry in entries:
            entry.is_cancelled = True
        return entries

    @staticmethod
    def _forget_oldest(entries: dict[str, Entry]) -> None:
        taken = [order_id for order_id, entry in entries.items() if entry.is_taken]
        for order_id in taken[: max(0, len(taken) - REMEMBERED)]:
            del entries[order_id]
