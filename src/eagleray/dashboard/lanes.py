"""Turns: who is to be asked when, so many at once, and those that hang in a lane of their own.

All times are the event loop's. This module knows nothing of dashboards: it gives turns to names.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

log = logging.getLogger(__name__)

# Of all that may run at once, this part is for names that hang.
_SLOW_PART: Final = 8
# Turns that are this far away fall on common ticks: waking up for each of them costs more than the turns themselves.
_TOGETHER_FROM: Final = 5.0
_TICK: Final = 1.0
# When a turn ends with an error that nobody expected.
_AFTER_A_BUG: Final = 30.0


class TurnEnd(NamedTuple):
    """How a turn has ended: when the next one is due (None: never), and whether the name hangs."""

    after: float | None
    is_slow: bool = False


class _Lane:
    __slots__ = ("running", "slots", "waiting")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.running = 0
        self.waiting: deque[_Seat] = deque()


class _Seat:
    """One name: when its turn is due, or that it waits for a free slot, or has its turn."""

    __slots__ = (
        "ended",
        "is_dropped",
        "is_running",
        "is_slow",
        "is_waiting",
        "lane",
        "name",
        "wanted",
        "when",
    )

    def __init__(self, name: str, lane: _Lane) -> None:
        self.name = name
        self.lane = lane
        self.when: float | None = None
        # Asked for during a turn: the next one is due then at the latest.
        self.wanted: float | None = None
        self.ended = float("-inf")
        self.is_running = False
        self.is_waiting = False
        self.is_slow = False
        self.is_dropped = False


class Lanes:
    """Gives turns. A name never has two at once, nor two within `least_gap` seconds.

    A turn that lasts longer than `slow_after` gives its slot back and goes on in the lane for those that hang, while
    there is room; after a turn that its end calls slow, the next one begins there. So the many that answer never wait
    for the few that do not.
    """

    def __init__(
        self,
        take_turn: Callable[[str], Coroutine[Any, Any, TurnEnd]],
        *,
        at_once: int,
        least_gap: float,
        slow_after: float,
    ) -> None:
        self._take_turn = take_turn
        self._least_gap = least_gap
        self._slow_after = slow_after
        slow_slots = at_once // _SLOW_PART
        self._usual = _Lane(at_once - slow_slots)
        # With so few slots that none can be set aside, all share one lane.
        self._slow = _Lane(slow_slots) if slow_slots else self._usual
        self._seats: dict[str, _Seat] = {}
        self._due: list[tuple[float, int, _Seat]] = []
        self._pushes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._turns: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def running(self) -> int:
        """How many have their turn."""
        return len(self._turns)

    def call(self, name: str, after: float = 0.0) -> None:
        """Give a name its turn after so many seconds at the latest, or on the tick that follows if that is long."""
        if self._is_closed:
            return
        seat = self._seats.get(name)
        if seat is None:
            seat = self._seats[name] = _Seat(name, self._usual)
        at = max(_now() + after, seat.ended + self._least_gap)
        if after >= _TOGETHER_FROM:
            at = math.ceil(at / _TICK) * _TICK
        if seat.is_running:
            seat.wanted = at if seat.wanted is None else min(seat.wanted, at)
        elif not seat.is_waiting and (seat.when is None or at < seat.when):
            seat.when = at
            self._pushes += 1  # a tie-breaker: the order of calls
            heappush(self._due, (at, self._pushes, seat))
            self._set_timer()

    def drop(self, name: str) -> None:
        """Give a name no more turns; one that has begun goes on to its end."""
        seat = self._seats.get(name)
        if seat is None:
            return
        seat.wanted = None
        if not seat.is_running:
            seat.is_dropped = True
            del self._seats[name]

    async def close(self) -> None:
        """Break off all turns and give no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for turn in self._turns:
            turn.cancel()
        await asyncio.gather(*self._turns, return_exceptions=True)

    def _set_timer(self) -> None:
        if not self._due or self._is_closed:
            return
        at = self._due[0][0]
        if self._timer is not None:
            if self._timer.when() <= at and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._tick)

    def _tick(self) -> None:
        self._timer = None
        # The loop runs timers that are due within its clock's resolution; those must not be set again and again.
        now = _now() + 1e-9
        while self._due and self._due[0][0] <= now:
            at, _, seat = heappop(self._due)
            if seat.is_dropped or seat.when != at:
                continue  # its turn was called for an earlier time, or not at all
            seat.when = None
            seat.is_waiting = True
            seat.lane = self._slow if seat.is_slow else self._usual
            seat.lane.waiting.append(seat)
        self._fill(self._usual)
        self._fill(self._slow)
        self._set_timer()

    def _fill(self, lane: _Lane) -> None:
        while lane.waiting and lane.running < lane.slots and not self._is_closed:
            seat = lane.waiting.popleft()
            if seat.is_dropped:
                continue
            seat.is_waiting = False
            seat.is_running = True
            lane.running += 1
            turn = asyncio.get_running_loop().create_task(self._turn(seat), name=f"asks {seat.name}")
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)

    async def _turn(self, seat: _Seat) -> None:
        lasts = asyncio.get_running_loop().call_later(self._slow_after, self._set_aside, seat)
        end = TurnEnd(_AFTER_A_BUG)
        try:
            end = await self._take_turn(seat.name)
        except Exception:
            log.exception("%s: a turn failed in a way that nobody expected", seat.name)
        finally:
            lasts.cancel()
            self._end(seat, end)

    def _set_aside(self, seat: _Seat) -> None:
        """Have a turn that lasts go on in the lane for those that hang."""
        if seat.lane is self._slow or self._slow.running >= self._slow.slots:
            return
        self._usual.running -= 1
        self._slow.running += 1
        seat.lane = self._slow
        self._fill(self._usual)

    def _end(self, seat: _Seat, end: TurnEnd) -> None:
        seat.lane.running -= 1
        seat.is_running = False
        seat.is_slow = end.is_slow
        seat.ended = now = _now()
        wanted, seat.wanted = seat.wanted, None
        waits = [] if end.after is None else [end.after]
        if wanted is not None:
            waits.append(wanted - now)
        if waits:
            self.call(seat.name, max(0.0, min(waits)))
        else:
            del self._seats[seat.name]
        self._fill(self._usual)
        self._fill(self._slow)


def _now() -> float:
    return asyncio.get_running_loop().time()
