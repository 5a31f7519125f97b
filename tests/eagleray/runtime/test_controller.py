"""A controller: what follows from how a pass ends."""

import asyncio
import json
import logging
from collections import Counter

import pytest

from eagleray.kube.resources import Key
from eagleray.runtime.logging import LineFormatter, LogOptions
from eagleray.runtime.outcomes import Again, Done, Failed, Rejected, step
from kubereef.simulation import settle
from kubewire import errors
from tests.eagleray.runtime.standins import World

pytestmark = pytest.mark.usefixtures("virtual_time")

A = Key("default", "a")


def now():
    return asyncio.get_running_loop().time()


class Script:
    """A reconcile that ends as it is told, pass by pass, and notes when it was called."""

    def __init__(self, *endings):
        self.endings = list(endings)
        self.passes = []

    async def __call__(self, key):
        self.passes.append((round(now(), 6), key.name))
        ending = self.endings.pop(0) if self.endings else Done()
        if isinstance(ending, Exception):
            with step("create head Pod"):
                raise ending
        return ending

    @property
    def times(self):
        return [time for time, _ in self.passes]


def totals(world):
    return {
        result: int(world.metrics.total.value("raycluster", result))
        for result in ("success", "error", "requeue", "requeue_after")
        if world.metrics.total.value("raycluster", result)
    }


async def ran(script, seconds=1000):
    async with World(script) as world:
        world.queue.add(A)
        await asyncio.sleep(seconds)
        await settle()
    return world


@pytest.mark.case("OP-97")
@pytest.mark.parametrize(
    ("endings", "times", "results"),
    [
        pytest.param([Done()], [0], {"success": 1}, id="done: nothing follows"),
        pytest.param(
            [Again(after=30)], [0, 30], {"requeue_after": 1, "success": 1}, id="again after a while"
        ),
        pytest.param([Again(after=0)], [0, 0], {"requeue": 1, "success": 1}, id="again at once"),
        pytest.param(
            [Rejected("InvalidRayClusterSpec", "no")], [0], {"error": 1}, id="rejected: nothing follows"
        ),
        pytest.param(
            [errors.internal_error("x"), OSError("gone")],
            [0, 0.005, 0.015],
            {"error": 2, "success": 1},
            id="failures: backed off",
        ),
        pytest.param(
            [errors.internal_error("x"), Again(after=1), errors.internal_error("x")],
            [0, 0.005, 1.005, 1.01],
            {"error": 2, "requeue_after": 1, "success": 1},
            id="success resets the backoff",
        ),
        pytest.param(
            [errors.too_many_requests("busy", retry_after_seconds=7)],
            [0, 7],
            {"error": 1, "success": 1},
            id="a server that asks for time gets it",
        ),
        pytest.param(
            [Failed(errors.internal_error("x")), Failed(errors.internal_error("x"), within=60)],
            [0, 0.005, 0.015],
            {"error": 2, "success": 1},
            id="told failures: backed off like raised ones",
        ),
        pytest.param(
            [Failed(errors.internal_error("x"), within=0.007)] * 3,
            [0, 0.005, 0.012, 0.019],
            {"error": 3, "success": 1},
            id="told failures: never later than wanted",
        ),
    ],
)
async def test_what_follows_from_an_outcome(endings, times, results):
    script = Script(*endings)
    world = await ran(script)
    assert script.times == times
    assert totals(world) == results


@pytest.mark.case("OP-74", "OP-101")
async def test_a_crash_is_that_objects_problem_counted_logged_and_told_with_its_step(caplog):
    script = Script(KeyError("oops"))
    world = await ran(script)
    assert script.times == [0, 0.005]
    assert world.metrics.panics.value("raycluster") == 1
    assert world.metrics.errors.value("raycluster") == 1
    assert world.metrics.step_errors.value("raycluster", "create head Pod") == 1
    (event,) = world.events.all
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "ReconcileFailed", "Reconcile")
    assert event["note"] == "Step create head Pod broke, which is a bug in the operator: KeyError: 'oops'"
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "create head Pod" in record.getMessage()
    assert record.exc_info[0] is KeyError


async def test_a_refusal_is_no_crash_and_is_told_when_it_repeats(caplog):
    refusal = errors.forbidden("pods", "p", "quota")
    world = await ran(Script(refusal))
    assert world.metrics.panics.value("raycluster") == 0
    assert world.metrics.step_errors.value("raycluster", "create head Pod") == 1
    assert world.events.all == []
    world = await ran(Script(refusal, refusal))
    (event,) = world.events.all
    assert event["note"] == 'Step create head Pod failed: pods "p" is forbidden: quota'


async def test_a_conflict_is_tried_again_and_nobody_is_told(caplog):
    script = Script(*[errors.modified("rayclusters", "a")] * 3)
    with caplog.at_level(logging.INFO):
        world = await ran(script)
    assert len(script.passes) == 4
    assert world.events.all == []
    assert {record.levelno for record in caplog.records} == {logging.INFO}


async def test_a_rejected_object_gets_a_warning_and_counts_as_a_terminal_error():
    world = await ran(Script(Rejected("InvalidRayClusterSpec", "The RayCluster spec is invalid")))
    assert world.metrics.terminal_errors.value("raycluster") == 1
    (event,) = world.events.all
    assert (event["type"], event["reason"], event["action"], event["note"]) == (
        "Warning",
        "InvalidRayClusterSpec",
        "Validate",
        "The RayCluster spec is invalid",
    )


async def test_an_object_that_is_gone_gets_no_event():
    async with World(Script(KeyError("x")), find=lambda key: None) as world:
        world.queue.add(A)
        await asyncio.sleep(1)
    assert world.events.all == []


async def test_a_pass_that_ends_in_nothing_is_a_bug_that_is_told():
    world = await ran(Script(None), seconds=0.001)
    assert world.metrics.panics.value("raycluster") == 1


async def test_a_pass_over_its_time_is_cancelled_and_counted():
    calls = []

    async def hangs_once(key):
        calls.append(now())
        if len(calls) == 1:
            await asyncio.sleep(1e6)
        return Done()

    async with World(hangs_once, timeout=10) as world:
        world.queue.add(A)
        await asyncio.sleep(20)
    assert calls == [0, 10.005]
    assert world.metrics.timeouts.value("raycluster") == 1
    assert world.metrics.panics.value("raycluster") == 0


@pytest.mark.case("OP-73")
async def test_an_object_that_always_fails_delays_no_other_and_its_retries_grow():
    times: dict[str, list[float]] = {}

    async def reconcile(key):
        times.setdefault(key.name, []).append(now())
        if key.name == "bad":
            raise errors.internal_error("always")
        return Done()

    async with World(reconcile) as world:
        world.queue.add(Key("default", "bad"))
        for number in range(100):
            await asyncio.sleep(1)
            world.queue.add(Key("default", f"good {number}"))
        await asyncio.sleep(10_000)
    assert all(times[f"good {number}"] == [number + 1] for number in range(100))
    gaps = [round(after - before, 3) for before, after in zip(times["bad"], times["bad"][1:], strict=False)]
    assert gaps[:4] == [0.005, 0.01, 0.02, 0.04]
    assert max(gaps) == 1000
    assert sorted(gaps) == gaps


class Busy:
    """Passes that hang; notes how many of them are under way at once, and that no key is twice."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.running: Counter[Key] = Counter()
        self.most = 0
        self.finished = []

    async def __call__(self, key):
        self.running[key] += 1
        assert self.running[key] == 1
        self.most = max(self.most, self.running.total())
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running[key] -= 1
        self.finished.append(key.name)
        return Done()


@pytest.mark.case("OP-9")
async def test_without_a_cap_fifty_hanging_passes_do_not_delay_the_next():
    started = {}

    async def hangs(key):
        started[key.name] = now()
        await asyncio.sleep(1e6)

    async with World(hangs) as world:
        for number in range(50):
            world.queue.add(Key("default", f"c{number}"))
        await asyncio.sleep(5)
        world.queue.add(Key("default", "the 51st"))
        await settle()
        assert started["the 51st"] == 5
        assert world.metrics.active.value("raycluster") == 51


@pytest.mark.case("OP-9")
async def test_with_a_cap_of_two_never_more_than_two_are_reconciled_at_once():
    busy = Busy(seconds=1)
    async with World(busy, cap=2) as world:
        for number in range(10):
            world.queue.add(Key("default", f"c{number}"))
        await asyncio.sleep(5.5)
    assert busy.most == 2
    assert len(busy.finished) == 10
    assert world.metrics.max_concurrent.value("raycluster") == 2


async def test_one_object_is_never_reconciled_twice_at_once():
    busy = Busy(seconds=10)
    async with World(busy) as world:
        for _ in range(50):
            world.queue.add(A)
            await asyncio.sleep(1)
        await asyncio.sleep(100)
    assert busy.most == 1
    assert 2 <= len(busy.finished) <= 6


@pytest.mark.case("OP-75")
async def test_a_change_is_reconciled_before_the_thousand_objects_of_the_start_are_through():
    order = []

    async def reconcile(key):
        order.append(key.name)
        if len(order) == 10:
            world.queue.add(Key("default", "changed"))
        return Done()

    async with World(reconcile) as world:
        for number in range(1000):
            world.queue.add(Key("default", f"idle {number}"), recheck=True)
        await asyncio.sleep(1)
    assert len(order) == 1001
    assert order.index("changed") <= 12


async def test_a_stop_begins_no_new_pass_and_lets_those_under_way_finish():
    busy = Busy(seconds=20)
    world = World(busy, cap=1)
    world.controller.start()
    for name in "ab":
        world.queue.add(Key("default", name))
    await asyncio.sleep(1)
    assert world.controller.is_alive
    assert await world.controller.stop(patience=30) is True
    assert (now(), busy.finished) == (20, ["a"])
    assert not world.controller.is_alive


async def test_a_pass_that_does_not_end_is_cancelled_after_the_patience():
    busy = Busy(seconds=1e6)
    world = World(busy, cap=1)
    world.controller.start()
    world.queue.add(A)
    await asyncio.sleep(1)
    assert await world.controller.stop(patience=30) is False
    assert (now(), busy.finished, busy.running.total()) == (31, [], 0)


@pytest.mark.case("OP-80")
async def test_lines_of_a_pass_carry_the_object_the_pass_and_the_failed_step():
    lines = []

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(json.loads(self.format(record)))

    handler = Lines()
    handler.setFormatter(LineFormatter("json", LogOptions()))
    logger = logging.getLogger("controllers.raycluster")
    logger.addHandler(handler)

    async def reconcile(key):
        logger.warning("looking at the Pods of %s", key.name)
        with step("create head Pod"):
            raise errors.forbidden("pods", "p", "quota")

    try:
        async with World(reconcile) as world:
            world.queue.add(A)
            await asyncio.sleep(0.006)
    finally:
        logger.removeHandler(handler)
    first, failed, second = lines[:3]
    assert first["msg"] == "looking at the Pods of a"
    assert {"level", "ts", "msg", "reconcileID"} <= first.keys()
    assert first["RayCluster"] == {"name": "a", "namespace": "default"}
    assert (failed["level"], failed["step"]) == ("error", "create head Pod")
    assert failed["error"] == 'pods "p" is forbidden: quota'
    assert failed["reconcileID"] == first["reconcileID"] != second["reconcileID"]
