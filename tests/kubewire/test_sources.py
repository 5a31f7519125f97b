import asyncio
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.names import SUFFIX_ALPHABET
from kubewire.sources import Clock, Entropy, ManualClock, SeededEntropy, SystemClock, SystemEntropy


def test_the_system_clock_tells_the_time_in_utc():
    clock: Clock = SystemClock()

    assert clock.now().tzinfo is UTC
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.monotonic() <= clock.monotonic()


@pytest.mark.parametrize("seconds", [0.01, 0, -1])
def test_sleeping_on_the_system_clock_takes_about_that_long(seconds):
    clock = SystemClock()
    start = clock.monotonic()
    asyncio.run(clock.sleep(seconds))

    assert clock.monotonic() - start >= seconds


def test_a_manual_clock_stands_still_until_it_is_advanced():
    clock = ManualClock(datetime(2024, 1, 1, tzinfo=UTC))
    assert (clock.now(), clock.monotonic()) == (datetime(2024, 1, 1, tzinfo=UTC), 0)

    clock.advance(0)
    clock.advance(90.5)
    assert clock.now() == datetime(2024, 1, 1, 0, 1, 30, 500_000, tzinfo=UTC)
    assert clock.monotonic() == 90.5


def test_a_manual_clock_is_in_utc_wherever_it_starts():
    start = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2)))

    assert ManualClock(start).now().tzinfo is UTC
    assert ManualClock(start).now() == start


def test_a_manual_clock_refuses_nonsense():
    with pytest.raises(ValueError, match="time zone"):
        ManualClock(datetime(2024, 1, 1))  # noqa: DTZ001 - that it has no time zone is the point
    with pytest.raises(ValueError, match="does not go back"):
        ManualClock().advance(-1)


def test_sleepers_wake_in_the_order_of_their_deadlines():
    async def story():
        clock: ManualClock = ManualClock()
        woken = []

        async def sleeper(name, seconds):
            await clock.sleep(seconds)
            woken.append(name)

        async with asyncio.TaskGroup() as tasks:
            for name, seconds in (("late", 3), ("early", 1), ("also early", 1), ("at once", 0)):
                tasks.create_task(sleeper(name, seconds))
            await settle()
            assert (woken, clock.sleepers) == (["at once"], 3)
            clock.advance(0.5)
            await settle()
            assert woken == ["at once"]
            clock.advance(0.5)
            await settle()
            assert (woken, clock.sleepers) == (["at once", "early", "also early"], 1)
            clock.advance(10)
        assert woken == ["at once", "early", "also early", "late"]

    asyncio.run(story())


def test_one_advance_wakes_all_that_are_due_in_order():
    async def story():
        clock = ManualClock()
        woken = []

        async def sleeper(seconds):
            await clock.sleep(seconds)
            woken.append(seconds)

        async with asyncio.TaskGroup() as tasks:
            for seconds in (3, 1, 2):
                tasks.create_task(sleeper(seconds))
            await settle()
            clock.advance(5)
        return woken

    assert asyncio.run(story()) == [1, 2, 3]


def test_a_cancelled_sleeper_is_forgotten():
    async def story():
        clock = ManualClock()
        task = asyncio.create_task(clock.sleep(1))
        await settle()
        task.cancel()
        await settle()
        assert clock.sleepers == 0
        clock.advance(2)

    asyncio.run(story())


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "entropy",
    [pytest.param(SystemEntropy(), id="the system's"), pytest.param(SeededEntropy(1), id="a seeded one")],
)
def test_entropy_gives_what_it_promises(entropy: Entropy):
    assert len(entropy.suffix(5)) == 5
    assert set(entropy.suffix(100)) <= set(SUFFIX_ALPHABET)
    assert uuid.UUID(entropy.uid()).version == 4
    assert entropy.uid() != entropy.uid()
    assert len(entropy.token(32)) == 32
    assert entropy.token(32) != entropy.token(32)
    assert 2 <= entropy.uniform(2, 3) <= 3
    assert entropy.choice(["a", "b"]) in ("a", "b")


@given(st.one_of(st.integers(), st.text()))
def test_the_same_seed_gives_the_same_sequence(seed):
    def draw(entropy):
        options = range(100)
        return (
            entropy.suffix(5),
            entropy.uid(),
            entropy.token(8),
            entropy.uniform(0, 1),
            entropy.choice(options),
        )

    assert draw(SeededEntropy(seed)) == draw(SeededEntropy(seed))


def test_other_seeds_give_other_sequences():
    assert SeededEntropy(1).uid() != SeededEntropy(2).uid()
    assert SeededEntropy("1").uid() != SeededEntropy(1).uid()


def test_importing_the_sources_loads_nothing_slow():
    slow = ["asyncio", "dataclasses", "random", "secrets", "uuid", "datetime"]
    program = f"import sys, kubewire.sources; print(*(set({slow}) & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == ""
