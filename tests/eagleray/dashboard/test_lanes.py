"""Turns: at most so many at once, never two for one name, and those that hang apart."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from eagleray.dashboard.lanes import Lanes, TurnEnd


class Turns:
    """Turns that last as long as a test says, and what was seen of them."""

    def __init__(self):
        self.lasts = {}
        self.ends = {}
        self.started = []
        self.ended = []
        self.at_once: Counter[str] = Counter()
        self.most = 0
        self.most_of_one = 0

    async def __call__(self, name):
        now = asyncio.get_running_loop().time()
        self.started.append((name, round(now, 3)))
        self.at_once[name] += 1
        self.most = max(self.most, self.at_once.total())
        self.most_of_one = max(self.most_of_one, self.at_once[name])
        try:
            await asyncio.sleep(self.lasts.get(name, 0.01))
        finally:
            self.at_once[name] -= 1
        self.ended.append(name)
        return self.ends.get(name, TurnEnd(None))

    def times(self, name):
        return [at for of, at in self.started if of == name]


@pytest.fixture
def turns(virtual_time):
    return Turns()


def lanes_for(turns, at_once=16, **options):
    return Lanes(turns, at_once=at_once, **{"least_gap": 0.2, "slow_after": 0.5, **options})


async def test_a_turn_comes_when_it_is_due_and_again_as_its_end_says(turns):
    lanes = lanes_for(turns)
    turns.ends["a"] = TurnEnd(3.0)
    lanes.call("a", 1.0)
    await asyncio.sleep(8)
    assert turns.times("a") == [1.0, 4.01, 7.02]
    await lanes.close()


async def test_turns_that_are_far_away_come_together(turns):
    lanes = lanes_for(turns)
    for name, after in {"a": 5.1, "b": 5.9, "c": 6.0, "d": 4.9}.items():
        lanes.call(name, after)
    await asyncio.sleep(20)
    assert turns.started == [("d", 4.9), ("a", 6.0), ("b", 6.0), ("c", 6.0)]
    await lanes.close()


async def test_the_earliest_of_several_calls_counts(turns):
    lanes = lanes_for(turns)
    lanes.call("a", 9.0)
    lanes.call("a", 2.0)
    lanes.call("a", 5.0)
    await asyncio.sleep(20)
    assert turns.times("a") == [2.0]
    await lanes.close()


async def test_a_call_during_a_turn_brings_another_after_a_gap(turns):
    lanes = lanes_for(turns)
    turns.lasts["a"] = 1.0
    lanes.call("a")
    await asyncio.sleep(0.5)
    lanes.call("a")
    lanes.call("a")
    await asyncio.sleep(20)
    assert turns.times("a") == [0.0, 1.2]
    assert turns.most_of_one == 1
    await lanes.close()


async def test_however_often_it_is_called_a_name_is_left_alone_for_the_gap(turns):
    lanes = lanes_for(turns)
    turns.ends["a"] = TurnEnd(3.0)
    for _ in range(1_000):
        lanes.call("a")
        await asyncio.sleep(0.001)
    assert len(turns.times("a")) <= 6
    await lanes.close()


async def test_no_more_than_allowed_have_their_turn_at_once_and_all_get_one(turns):
    lanes = lanes_for(turns, at_once=16)
    for i in range(200):
        turns.lasts[f"n{i}"] = 0.1
        lanes.call(f"n{i}")
    await asyncio.sleep(10)
    assert turns.most == 14  # the rest is for those that hang
    assert len(turns.ended) == 200
    assert lanes.running == 0
    await lanes.close()


async def test_turns_that_hang_go_on_elsewhere_so_that_others_need_not_wait(turns):
    lanes = lanes_for(turns, at_once=16)
    for i in range(2):
        turns.lasts[f"hangs{i}"] = 60.0
        lanes.call(f"hangs{i}")
    await asyncio.sleep(0.55)
    for i in range(14):
        turns.lasts[f"lasts{i}"] = 0.1
        lanes.call(f"lasts{i}")
    await asyncio.sleep(0.05)
    # All fourteen usual slots are free although two turns hang.
    assert turns.at_once.total() == 16
    await lanes.close()


async def test_after_a_slow_turn_the_next_ones_take_no_usual_slot(turns):
    lanes = lanes_for(turns, at_once=16)
    for i in range(40):
        turns.lasts[f"hangs{i}"] = 2.0
        turns.ends[f"hangs{i}"] = TurnEnd(1.0, is_slow=True)
        lanes.call(f"hangs{i}")
    await asyncio.sleep(60)
    waits = []
    for i in range(100):
        lanes.call(f"quick{i}")
        called = asyncio.get_running_loop().time()
        await asyncio.sleep(0.05)
        waits += [at - called for at in turns.times(f"quick{i}")]
    assert len(waits) == 100
    assert max(waits) < 0.01
    assert turns.most <= 16
    hanging = [at for i in range(40) for at in turns.times(f"hangs{i}") if at > 30]
    assert hanging  # they keep getting turns too
    await lanes.close()


async def test_one_that_hangs_no_more_comes_back_to_the_others(turns):
    lanes = lanes_for(turns, at_once=8)
    turns.ends["a"] = TurnEnd(1.0, is_slow=True)
    turns.lasts["a"] = 2.0
    turns.ends["b"] = TurnEnd(1.0, is_slow=True)
    turns.lasts["b"] = 2.0
    lanes.call("a")
    lanes.call("b")
    await asyncio.sleep(30)
    turns.ends["a"], turns.lasts["a"] = TurnEnd(1.0), 0.01
    await asyncio.sleep(30)
    times = turns.times("a")[-10:]
    # It does not wait for the one slow slot, which `b` holds two thirds of the time.
    assert max(later - before for before, later in pairwise(times)) < 1.05
    await lanes.close()


@pytest.mark.parametrize("at_once", [1, 2, 7])
async def test_with_few_slots_all_share_them(turns, at_once):
    lanes = lanes_for(turns, at_once=at_once)
    for i in range(20):
        turns.lasts[f"n{i}"] = 1.0
        turns.ends[f"n{i}"] = TurnEnd(5.0, is_slow=True)
        lanes.call(f"n{i}")
    await asyncio.sleep(60)
    assert turns.most == at_once
    assert len({name for name, _ in turns.started}) == 20
    await lanes.close()


async def test_a_dropped_name_gets_no_turn(turns):
    lanes = lanes_for(turns, at_once=1)
    turns.lasts["holds"] = 5.0
    lanes.call("holds")
    lanes.call("waits", 0.1)
    lanes.call("due later", 10.0)
    await asyncio.sleep(1)
    for name in ("waits", "due later", "nobody"):
        lanes.drop(name)
    await asyncio.sleep(20)
    assert [name for name, _ in turns.started] == ["holds"]
    await lanes.close()


async def test_dropped_and_called_again_during_its_turn_a_name_still_never_has_two(turns):
    lanes = lanes_for(turns)
    turns.lasts["a"] = 1.0
    lanes.call("a")
    await asyncio.sleep(0.1)
    lanes.drop("a")
    lanes.call("a")
    await asyncio.sleep(10)
    assert turns.times("a") == [0.0, 1.2]
    assert turns.most_of_one == 1
    await lanes.close()


async def test_a_turn_that_fails_unexpectedly_is_logged_and_the_name_gets_another(virtual_time, caplog):
    times = []

    async def fails(name):
        times.append(asyncio.get_running_loop().time())
        raise KeyError("a bug")

    lanes = lanes_for(fails)
    lanes.call("a")
    await asyncio.sleep(100)
    assert len(times) == 4
    assert "a: a turn failed" in caplog.text
    await lanes.close()


async def test_closing_breaks_off_what_runs_and_starts_nothing(turns):
    lanes = lanes_for(turns)
    turns.lasts["a"] = 60.0
    lanes.call("a")
    lanes.call("b", 1.0)
    await asyncio.sleep(0.5)
    await lanes.close()
    lanes.call("c")
    await asyncio.sleep(100)
    assert [name for name, _ in turns.started] == ["a"]
    assert turns.ended == []
