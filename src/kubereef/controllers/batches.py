"""Many similar requests, carefully: if the first is refused, the others are not even tried."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

# How many requests of one controller are under way at once.
_AT_ONCE = 64


async def slow_start(count: int, act: Callable[[], Awaitable[object]]) -> None:
    """Do something a number of times, in batches that double while all goes well; raises what went wrong first."""
    batch = 1
    while count > 0:
        batch = min(batch, count, _AT_ONCE)
        await _all(act() for _ in range(batch))
        count -= batch
        batch *= 2


async def for_each(things: Iterable[T], act: Callable[[T], Awaitable[object]]) -> None:
    """Do something to each thing, several at once; all are tried, then what went wrong first is raised."""
    left = list(things)
    failures = []
    while left:
        batch, left = left[:_AT_ONCE], left[_AT_ONCE:]
        answers = await asyncio.gather(*map(act, batch), return_exceptions=True)
        failures += [answer for answer in answers if isinstance(answer, BaseException)]
    if failures:
        raise failures[0]


async def _all(acts: Iterable[Awaitable[object]]) -> None:
    """Wait for all, then raise what went wrong first."""
    answers = await asyncio.gather(*acts, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
