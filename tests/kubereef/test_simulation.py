"""Time that passes only when nothing else happens."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from kubereef.simulation import START, Stuck, VirtualClock, VirtualLoop, run, settle
from tests.kubereef.life import writes


def test_a_month_takes_no_time():
    async def wait():
        clock = VirtualClock()
        await clock.sleep(30 * 24 * 3600)
        return clock.now() - START

    before = perf_counter()
    assert run(wait()).days == 30
    assert perf_counter() - before < 1


def test_everybody_wakes_in_the_order_of_their_time():
    async def order():
        woken = []

        async def sleeper(seconds):
            await asyncio.sleep(seconds)
            woken.append((seconds, asyncio.get_running_loop().time()))

        await asyncio.gather(*map(sleeper, (30, 0.5, 7200, 0.5)))
        return woken

    assert run(order()) == [(0.5, 0.5), (0.5, 0.5), (30, 30), (7200, 7200)]


def test_time_stands_still_while_somebody_works():
    async def work():
        before = asyncio.get_running_loop().time()
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time() - before

    assert run(work()) == 0


def test_waiting_for_nothing_is_an_error_and_not_a_hang():
    async def forever():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        run(forever())


async def test_settling_lets_everything_happen_that_can_happen_now(virtual_time):
    happened = []

    async def several_steps():
        for step in range(50):
            await asyncio.sleep(0)
            happened.append(step)

    task = asyncio.create_task(several_steps())
    await settle()
    assert task.done()
    assert len(happened) == 50


async def test_a_test_that_asks_for_virtual_time_gets_it(virtual_time):
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)


async def test_a_test_that_does_not_ask_runs_in_real_time():
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)


def test_the_same_seed_leads_to_the_same_writes_and_another_to_others():
    first = writes(7)
    touched = {resource for _, resource, *_ in first}
    assert {"pods", "jobs.batch", "events", "namespaces", "serviceaccounts", "configmaps"} <= touched
    assert first == writes(7)
    assert first != writes(8)


def test_the_writes_do_not_depend_on_the_order_of_sets():
    def digest(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, str(Path(__file__).with_name("life.py")), "7"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert digest("1") == digest("2") != ""
