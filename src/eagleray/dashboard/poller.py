"""Asks many dashboards for many objects, so that no reconcile waits for one.

A controller follows questions and gives orders; both return at once. What comes of them is kept here, and every change
wakes the object that it is about.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from eagleray.dashboard.address import Address
from eagleray.dashboard.cache import ObservationCache
from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import DashboardError, NotThere, Unreachable
from eagleray.dashboard.lanes import Lanes, TurnEnd
from eagleray.dashboard.orders import Entry, Order, OrderBook, Outcome, Owner, carry_out
from eagleray.dashboard.questions import (
    Found,
    HealthOf,
    Interview,
    JobOf,
    Observation,
    Question,
    ServeOf,
    SessionOf,
)
from eagleray.dashboard.words import JobInfo
from kubewire.sources import Clock, Entropy

log = logging.getLogger(__name__)

# 3 s doubled this often is past the longest pause; counting on would only make huge numbers.
_DOUBLINGS: Final = 16
# Where nothing has changed for long, news may come later by this part of that time.
_CALM_PART: Final = 0.1
# What is asked no more seldom than so, however calm it is: a proxy may have stopped to take users' requests meanwhile.
_NEVER_CALMER: Final[Mapping[type, float]] = {ServeOf: 30.0, HealthOf: 10.0}


class Limits(NamedTuple):
    """How much, how often and for how long."""

    # Requests at once, those to dashboards that hang included.
    at_once: int = 256
    # Seconds between two rounds of one dashboard, and the most that failures make of them.
    interval: float = 3.0
    longest_pause: float = 30.0
    # The most that they become while nothing changes; less for Serve and its proxies.
    calm_interval: float = 60.0
    # However often it is hurried, a dashboard is left alone for so long.
    least_gap: float = 0.2
    # A round that takes longer makes room for others.
    slow_after: float = 0.5
    cache_size: int = 10_000
    cache_age: float = 600.0


class _Followed:
    """A question with those who want it answered."""

    __slots__ = ("failing_since", "is_expected", "is_settled", "mark", "owners")

    def __init__(self) -> None:
        self.owners: dict[Owner, None] = {}
        self.is_expected = False
        # What tells the latest result from one that would be news; it outlives the cached observation.
        self.mark: object = None
        self.is_settled = False
        self.failing_since: datetime | None = None


class _Line:
    """The questions and orders for one dashboard."""

    __slots__ = ("address", "changed_at", "failures", "followed", "interview", "orders")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.followed: dict[Question, _Followed] = {}
        self.orders: deque[Entry] = deque()
        self.interview = Interview()
        self.failures = 0
        # When there was something new, or somebody expected that there is.
        self.changed_at = _now()

    @property
    def open_questions(self) -> list[Question]:
        return [question for question, followed in self.followed.items() if not followed.is_settled]


class Poller:
    """Keeps what dashboards say, and carries out orders; see the module.

    Questions of one dashboard share its rounds. A job that has ended is not asked for again. What nobody follows any
    more is dropped at once. `wake` is called with the owner of whatever has changed; it must not wait.
    """

    def __init__(
        self,
        connect: Callable[[Address], Dashboard],
        clock: Clock,
        entropy: Entropy,
        wake: Callable[[Owner], None],
        limits: Limits | None = None,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._entropy = entropy
        self._wake = wake
        self._limits = limits or Limits()
        self._cache = ObservationCache(self._limits.cache_size, self._limits.cache_age)
        self._book = OrderBook()
        # By host: one dashboard has one line, whatever else is known of its address.
        self._lines: dict[str, _Line] = {}
        self._questions: dict[Owner, dict[Question, None]] = {}
        self._lanes = Lanes(
            self._round,
            at_once=self._limits.at_once,
            least_gap=self._limits.least_gap,
            slow_after=self._limits.slow_after,
        )

    # --- questions

    def follow(self, owner: Owner, question: Question, *, is_expected: bool = False) -> Observation | None:
        """Return the latest that is known, None if nothing is yet; from now on changes wake the owner.

        `is_expected` says that by all that is known otherwise there is somebody to answer: when that comes about it is
        asked at once, and what failed before makes no pause longer.
        """
        line = self._line(question.address)
        is_new = question not in line.followed
        followed = line.followed.setdefault(question, _Followed())
        followed.owners[owner] = None
        self._questions.setdefault(owner, {})[question] = None
        observation = self._cache.get(question, _now())
        if observation is None and (is_new or followed.mark is not None):
            # If it was known once, it is not kept any more: whoever asks now must hear even what is no news. The next
            # round will tell, unless none is to come; hurried ones would only drive each other out of a small cache.
            followed.mark = None
            if is_new or followed.is_settled:
                self._call(line)
            followed.is_settled = False
        if is_expected and not followed.is_expected and line.failures:
            line.failures = 0
            self._call(line)
        followed.is_expected = is_expected
        return observation

    def unfollow(self, owner: Owner, question: Question) -> None:
        """Wake the owner no more for this question; if nobody else follows it, it is asked no more."""
        questions = self._questions.get(owner, {})
        if question not in questions:
            return
        del questions[question]
        if not questions:
            del self._questions[owner]
        line = self._lines[question.address.host]
        followed = line.followed[question]
        del followed.owners[owner]
        if not followed.owners:
            del line.followed[question]
            self._cache.drop(question)
            self._drop_if_empty(line)

    def hurry(self, owner: Owner) -> None:
        """Ask what the owner follows soon, because something else that happened suggests that there is news."""
        for question in self._questions.get(owner, ()):
            line = self._lines[question.address.host]
            if not line.followed[question].is_settled:
                line.failures = 0
                self._call(line)

    # --- orders

    def order(self, owner: Owner, order: Order, *, again: bool = False) -> Outcome | None:
        """Have something done once; returns what came of it, None if that is not known yet or was taken.

        Giving the same order any number of times is one order. `again` gives one that has ended anew.
        """
        entry = self._book.add(owner, order, again=again)
        if entry is not None:
            line = self._line(order.address)
            line.orders.append(entry)
            self._call(line)
        return self._book.outcome(owner, order.id)

    def outcome(self, owner: Owner, order_id: str) -> Outcome | None:
        """Return what came of an order, and keep it."""
        return self._book.outcome(owner, order_id)

    def take(self, owner: Owner, order_id: str) -> Outcome | None:
        """Return what came of an order, and keep only that it was carried out."""
        return self._book.take(owner, order_id)

    def cancel(self, owner: Owner, order_id: str) -> bool:
        """Withdraw an order; returns whether it certainly will not be carried out."""
        entry = self._book.cancel(owner, order_id)
        if entry is None:
            return False
        self._withdraw(entry)
        return True

    # --- the end

    def forget(self, owner: Owner) -> None:
        """Drop all that an object has followed and ordered. An order that is being carried out ends silently."""
        for question in list(self._questions.get(owner, ())):
            self.unfollow(owner, question)
        for entry in self._book.forget(owner):
            self._withdraw(entry)

    async def close(self) -> None:
        """Break off everything."""
        await self._lanes.close()

    # --- rounds

    async def _round(self, host: str) -> TurnEnd:
        """Carry out the orders for a dashboard, then ask it everything that is open."""
        line = self._lines.get(host)
        if line is None:
            return TurnEnd(None)
        dashboard = self._connect(line.address)
        failures = await self._carry_out_orders(dashboard, line)
        is_answered = False
        if not failures:
            asked, spared = self._asked_and_spared(line)
            async for found in line.interview.ask(dashboard, asked, spared):
                self._note(line, found)
                if isinstance(found.result, DashboardError) and not isinstance(found.result, NotThere):
                    failures.append(found.result)
                else:
                    is_answered = True
        # A dashboard of which a part answers is not left alone for longer because of the other.
        line.failures = line.failures + 1 if failures and not is_answered else 0
        is_slow = any(isinstance(failure, Unreachable) and failure.timed_out for failure in failures)
        return TurnEnd(self._pause(line), is_slow)

    async def _carry_out_orders(self, dashboard: Dashboard, line: _Line) -> list[DashboardError]:
        """Carry out what is ordered; a failure to reach the dashboard is returned, and leaves the rest for later."""
        while line.orders:
            entry = line.orders.popleft()
            entry.is_started = True
            error = await _error_of(dashboard, entry.order)
            if not entry.is_cancelled:
                if error is None or not error.certainly_not_done:
                    self._outdate(entry.owner, line)
                entry.outcome = Outcome(entry.order, self._clock.now(), error)
                self._wake(entry.owner)
            if isinstance(error, Unreachable):
                return [error]
        return []

    def _outdate(self, owner: Owner, line: _Line) -> None:
        """Forget what an owner knew of a dashboard: a job that was missing before it was submitted is not lost."""
        for question in self._questions.get(owner, ()):
            followed = line.followed.get(question)
            if followed is not None:
                self._cache.drop(question)
                followed.mark = None
                followed.is_settled = False

    def _note(self, line: _Line, found: Found) -> None:
        """Keep what a question brought, and wake whoever follows it if that is news."""
        question, result = found
        followed = line.followed.get(question)
        if followed is None:
            return  # nobody wants to know any more
        now = self._clock.now()
        if isinstance(result, DashboardError):
            if isinstance(result, NotThere):
                followed.failing_since = None
            else:
                followed.failing_since = followed.failing_since or now
            before = self._cache.get(question, _now())
            last = before.value if before is not None else None
            observation = Observation(last, result, now, followed.failing_since)
            mark: object = result.sort
        else:
            followed.failing_since = None
            followed.is_settled = isinstance(result, JobInfo) and result.is_terminal
            observation = Observation(result, None, now)
            mark = hash(result)
        self._cache.put(question, observation, _now())
        if mark != followed.mark:
            followed.mark = mark
            line.changed_at = _now()
            for owner in followed.owners:
                self._wake(owner)

    def _pause(self, line: _Line) -> float | None:
        """Return how long to leave a dashboard alone; None if nothing is left to ask."""
        if self._lines.get(line.address.host) is not line or not (line.orders or line.open_questions):
            self._drop_if_empty(line)
            return None
        interval = self._limits.interval
        if not line.failures:
            calm = min(_CALM_PART * (_now() - line.changed_at), self._calmest(line))
            pause = max(interval, calm)
            return self._entropy.uniform(0.9 * pause, 1.1 * pause)
        pause = min(interval * 2.0 ** min(line.failures, _DOUBLINGS), self._limits.longest_pause)
        return self._entropy.uniform(pause / 2, pause)

    def _calmest(self, line: _Line) -> float:
        at_most = self._limits.calm_interval
        return min(
            (_NEVER_CALMER.get(type(question), at_most) for question in line.followed), default=at_most
        )

    def _asked_and_spared(self, line: _Line) -> tuple[list[Question], list[Question]]:
        """Return what to ask, and what need not be asked while the jobs are there: a session that is known."""
        asked = line.open_questions
        if not any(isinstance(question, JobOf) for question in asked):
            return asked, []
        spared: list[Question] = [
            question for question in asked if isinstance(question, SessionOf) and self._is_known(question)
        ]
        return [question for question in asked if question not in spared], spared

    def _is_known(self, question: Question) -> bool:
        known = self._cache.get(question, _now())
        return known is not None and known.error is None

    def _call(self, line: _Line) -> None:
        """Ask a dashboard at once, and often for a while: something has happened."""
        line.changed_at = _now()
        self._lanes.call(line.address.host)

    # --- lines

    def _line(self, address: Address) -> _Line:
        line = self._lines.get(address.host)
        if line is None:
            line = self._lines[address.host] = _Line(address)
        line.address = address  # its Secret may be another one by now
        return line

    def _drop_if_empty(self, line: _Line) -> None:
        host = line.address.host
        if not line.followed and not line.orders and self._lines.get(host) is line:
            del self._lines[host]
            self._lanes.drop(host)

    def _withdraw(self, entry: Entry) -> None:
        line = self._lines.get(entry.order.address.host)
        if line is not None and entry in line.orders:
            line.orders.remove(entry)
            self._drop_if_empty(line)


async def _error_of(dashboard: Dashboard, order: Order) -> DashboardError | None:
    """Carry out an order and return how it failed, if it did. Whoever waits for it hears of every end."""
    try:
        await carry_out(dashboard, order.action)
    except DashboardError as failure:
        return failure
    except Exception as bug:
        log.exception("%s: order %s failed in a way that nobody expected", dashboard.address, order.id)
        return DashboardError(f"order {order.id}: {type(bug).__name__}: {bug}", certainly_not_done=False)
    return None


def _now() -> float:
    return asyncio.get_running_loop().time()
