"""A queue of keys, under virtual time."""

import asyncio

import pytest

from kubereef.controllers.queue import FIRST_BACKOFF, LONGEST_BACKOFF, WorkQueue
from kubereef.simulation import settle

pytestmark = pytest.mark.usefixtures("virtual_time")


def now():
    return asyncio.get_running_loop().time()


async def test_keys_come_in_order_and_each_once():
    queue: WorkQueue[str] = WorkQueue()
    for key in "abcab":
        queue.add(key)
    assert len(queue) == 3
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


async def test_a_key_that_is_added_while_it_is_worked_on_comes_back_once_afterwards():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert len(queue) == 1
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_key_comes_after_its_time():
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 30)
    assert await queue.get() == "a"
    assert now() == 30


@pytest.mark.parametrize("waits", [(30, 10), (10, 30)])
async def test_of_two_times_the_earlier_counts_and_the_key_comes_once(waits):
    queue: WorkQueue[str] = WorkQueue()
    for wait in waits:
        queue.add_after("a", wait)
    assert await queue.get() == "a"
    assert now() == 10
    queue.done("a")
    await asyncio.sleep(100)
    assert len(queue) == 0


async def test_every_failure_doubles_the_wait_up_to_a_limit():
    queue: WorkQueue[str] = WorkQueue()
    waits = [queue.add_failed("a") for _ in range(20)]
    assert waits[:4] == [FIRST_BACKOFF * factor for factor in (1, 2, 4, 8)]
    assert waits[-1] == LONGEST_BACKOFF
    assert queue.add_failed("another") == FIRST_BACKOFF


async def test_a_success_makes_the_failures_forgotten():
    queue: WorkQueue[str] = WorkQueue()
    queue.add_failed("a")
    queue.add_failed("a")
    queue.succeeded("a")
    assert queue.add_failed("a") == FIRST_BACKOFF


async def test_closing_sends_everybody_home_and_drops_what_is_left():
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.add_after("late", 5)
    queue.close()
    assert await asyncio.gather(*waiting) == [None, None, None]
    queue.add("later still")
    await asyncio.sleep(10)
    assert len(queue) == 0


async def test_a_worker_that_is_cancelled_when_its_key_comes_leaves_it_to_another():
    queue: WorkQueue[str] = WorkQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    queue.add("a")
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.done()
    assert second.result() == "a"
