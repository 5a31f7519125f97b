"""The work queue, under virtual time."""

import asyncio

import pytest

from eagleray.kube.resources import Key
from eagleray.runtime.queue import CHANGES_PER_RECHECK, WorkQueue
from kubereef.simulation import settle

pytestmark = pytest.mark.usefixtures("virtual_time")


def key(name, namespace="default"):
    return Key(namespace, name)


def now():
    return asyncio.get_running_loop().time()


async def taken(queue, count=None):
    """The names of the next keys, in order."""
    names = []
    for _ in range(len(queue) if count is None else count):
        found = await queue.get()
        queue.done(found)
        names.append(found.name)
    return names


async def test_keys_come_in_order_and_each_once():
    queue = WorkQueue()
    for name in "abcab":
        queue.add(key(name))
    assert len(queue) == 3
    assert await taken(queue) == ["a", "b", "c"]


async def test_a_key_in_hand_is_not_handed_out_again_but_comes_back_once_afterwards():
    queue = WorkQueue()
    queue.add(key("a"))
    assert await queue.get() == key("a")
    queue.add(key("a"))
    queue.add(key("a"))
    assert (len(queue), queue.in_hand) == (0, 1)
    queue.done(key("a"))
    assert await taken(queue) == ["a"]
    assert (len(queue), queue.in_hand) == (0, 0)


async def test_changes_come_before_rechecks():
    queue = WorkQueue()
    for name in "abc":
        queue.add(key(name), recheck=True)
    queue.add(key("changed"))
    assert await taken(queue) == ["changed", "a", "b", "c"]


async def test_a_recheck_that_changes_moves_up_and_comes_once():
    queue = WorkQueue()
    for name in "abc":
        queue.add(key(name), recheck=True)
    queue.add(key("c"))
    queue.add(key("c"), recheck=True)
    assert await taken(queue) == ["c", "a", "b"]


async def test_a_change_during_the_work_counts_as_one_though_a_recheck_was_asked_for_as_well():
    queue = WorkQueue()
    queue.add(key("a"))
    await queue.get()
    queue.add(key("a"), recheck=True)
    queue.add(key("a"))
    queue.add(key("a"), recheck=True)
    queue.add(key("waiting"), recheck=True)
    queue.done(key("a"))
    assert await taken(queue) == ["a", "waiting"]


async def test_a_recheck_asked_for_during_the_work_lets_changes_go_first():
    queue = WorkQueue()
    queue.add(key("a"))
    await queue.get()
    queue.add(key("a"), recheck=True)
    queue.done(key("a"))
    queue.add(key("changed"))
    assert await taken(queue) == ["changed", "a"]


async def test_rechecks_do_not_starve_under_a_stream_of_changes():
    queue = WorkQueue()
    queue.add(key("recheck"), recheck=True)
    for number in range(100):
        queue.add(key(f"change {number}"))
    assert (await taken(queue)).index("recheck") == CHANGES_PER_RECHECK


async def test_namespaces_take_turns():
    queue = WorkQueue()
    for number in range(1000):
        queue.add(key(f"big {number}", "big"))
    queue.add(key("small 0", "small"))
    queue.add(key("small 1", "small"))
    assert await taken(queue, 5) == ["big 0", "small 0", "big 1", "small 1", "big 2"]


async def test_a_key_comes_after_its_time():
    queue = WorkQueue()
    queue.add_after(key("a"), 30)
    assert len(queue) == 0
    assert await queue.get() == key("a")
    assert now() == 30


@pytest.mark.parametrize("waits", [(30, 10), (10, 30)], ids=["the second", "the first"])
async def test_of_two_times_the_earlier_counts_and_the_key_comes_once(waits):
    queue = WorkQueue()
    for wait in waits:
        queue.add_after(key("a"), wait)
    assert await queue.get() == key("a")
    assert now() == 10
    queue.done(key("a"))
    await asyncio.sleep(100)
    assert len(queue) == 0


async def test_of_a_recheck_and_a_retry_at_one_time_the_more_urgent_counts():
    queue = WorkQueue()
    queue.add(key("old"), recheck=True)
    queue.add_after(key("a"), 10, recheck=False)
    queue.add_after(key("a"), 5)
    await asyncio.sleep(6)
    assert await taken(queue) == ["a", "old"]


@pytest.mark.parametrize("wait", [0, -1])
async def test_a_time_that_has_come_is_now(wait):
    queue = WorkQueue()
    queue.add_after(key("a"), wait)
    assert len(queue) == 1


@pytest.mark.case("OP-73")
async def test_each_failure_doubles_the_wait_from_5_ms_to_1000_s_and_success_resets_it():
    queue = WorkQueue()
    waits = [queue.add_failed(key("a")) for _ in range(25)]
    assert waits[:5] == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert waits[17:20] == [655.36, 1000, 1000]
    assert waits[-1] == 1000
    assert queue.add_failed(key("another")) == 0.005
    assert queue.failures(key("a")) == 25
    queue.succeeded(key("a"))
    assert queue.failures(key("a")) == 0
    assert queue.add_failed(key("a")) == 0.005


@pytest.mark.parametrize(
    ("asked", "pause"),
    [
        pytest.param(7, 7, id="longer than the backoff"),
        pytest.param(0.001, 0.005, id="shorter than the backoff"),
        pytest.param(1e9, 1000, id="longer than anybody waits"),
    ],
)
async def test_the_server_may_ask_for_a_wait(asked, pause):
    queue = WorkQueue()
    assert queue.add_failed(key("a"), at_least=asked) == pause
    assert await queue.get() == key("a")
    assert now() == pause


async def test_closing_sends_everybody_home_and_drops_what_is_left():
    queue = WorkQueue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.add_after(key("late"), 5)
    queue.close()
    assert await asyncio.gather(*waiting) == [None, None, None]
    queue.add(key("later still"))
    queue.add_after(key("never"), 1)
    await asyncio.sleep(10)
    assert len(queue) == 0


async def test_a_closed_queue_hands_out_nothing_though_keys_are_left():
    queue = WorkQueue()
    queue.add(key("a"))
    queue.close()
    assert await queue.get() is None


async def test_a_worker_that_is_cancelled_when_its_key_comes_leaves_it_to_another():
    queue = WorkQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    queue.add(key("a"))
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.result() == key("a")


async def test_the_work_in_hand_is_timed():
    queue = WorkQueue()
    assert queue.work_seconds() == (0, 0)
    for name in "ab":
        queue.add(key(name))
    await queue.get()
    await asyncio.sleep(10)
    await queue.get()
    await asyncio.sleep(5)
    assert queue.work_seconds() == (20, 15)
