"""The life of an operator process, under virtual time."""

import asyncio

import pytest

from eagleray.kube.resources import Key
from eagleray.runtime.leases import LEASE_NAME, Election
from eagleray.runtime.manager import Caches, Manager
from eagleray.runtime.outcomes import Done
from eagleray.runtime.series import LeaderMetrics
from kubereef.simulation import VirtualClock, settle
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.runtime.standins import Leases, World

pytestmark = pytest.mark.usefixtures("virtual_time")

SERIES = f'leader_election_master_status{{name="{LEASE_NAME}"}}'


def now():
    return asyncio.get_running_loop().time()


class Process:
    """An operator with one controller, whose passes take a while."""

    def __init__(self, leases=None, name="one", pass_seconds=0.0, fill_seconds=1.0):
        self.passes = []
        self.fill_seconds = fill_seconds
        self.pass_seconds = pass_seconds
        self.caches_stopped = False
        self.world = World(self.reconcile)
        self.stop = asyncio.Event()
        leader = LeaderMetrics(self.world.registry, LEASE_NAME)
        election = None
        if leases is not None:
            election = Election(
                leases,
                "ops",
                name,
                clock=VirtualClock(),
                entropy=SeededEntropy(name),
                told=leader.leads,
            )
        self.manager = Manager(
            [self.world.controller],
            [self.world.recorder],
            Caches(self.fill, lambda: ["rayclusters"], self.stop_caches),
            self.world.registry,
            election=election,
        )
        self.task = asyncio.create_task(self.manager.run(self.stop))

    async def reconcile(self, key):
        await asyncio.sleep(self.pass_seconds)
        self.passes.append(now())
        return Done()

    async def fill(self):
        await asyncio.sleep(self.fill_seconds)
        self.world.queue.add(Key("default", "a"), recheck=True)

    async def stop_caches(self):
        self.caches_stopped = True

    async def end(self):
        self.stop.set()
        return await self.task

    @property
    def leads(self):
        return f"{SERIES} 1" in self.world.registry.render()


@pytest.mark.case("OP-6", "OP-100")
async def test_of_two_operators_one_acts_and_the_other_acts_when_the_first_has_stopped():
    leases = Leases()
    one = Process(leases)
    await asyncio.sleep(2)
    two = Process(leases, "two")
    await asyncio.sleep(60)
    assert (len(one.passes), len(two.passes)) == (1, 0)
    assert (one.leads, two.leads) == (True, False)
    assert await one.end() == 0
    stopped = now()
    await asyncio.sleep(3)
    assert two.passes[0] - stopped <= 2.4
    assert (one.leads, two.leads) == (False, True)
    assert await two.end() == 0


@pytest.mark.case("OP-7")
async def test_without_leader_election_the_operator_acts_and_there_is_no_lease():
    one = Process()
    await asyncio.sleep(2)
    assert one.passes == [1]
    assert await one.end() == 0


@pytest.mark.case("OP-76")
async def test_an_operator_that_loses_its_lease_ends_with_a_failure_and_leaves_passes_undone():
    leases = Leases()
    one = Process(leases, pass_seconds=1e6)
    await asyncio.sleep(5.5)
    leases.away = errors.service_unavailable("away")
    assert await one.task == 1
    assert now() < 20
    assert one.passes == []
    assert one.caches_stopped


@pytest.mark.case("OP-77")
async def test_a_stop_lets_running_passes_finish_begins_no_new_one_and_releases_the_lease():
    leases = Leases()
    one = Process(leases, pass_seconds=25)
    await asyncio.sleep(5)
    one.stop.set()
    await settle()
    one.world.queue.add(Key("default", "too late"))
    assert leases.holder() == "one"
    assert await one.task == 0
    assert one.passes == [26]
    assert leases.holder() == ""
    assert now() < 35


@pytest.mark.case("OP-77")
async def test_a_stop_waits_at_most_30_seconds():
    leases = Leases()
    one = Process(leases, pass_seconds=1e6)
    await asyncio.sleep(5)
    before = now()
    assert await one.end() == 0
    assert 30 <= now() - before < 40
    assert leases.holder() == ""


async def test_a_stop_before_it_leads_ends_at_once():
    leases = Leases()
    one = Process(leases)
    await asyncio.sleep(2)
    two = Process(leases, "two")
    await asyncio.sleep(10)
    before = now()
    assert await two.end() == 0
    assert now() == before
    assert two.caches_stopped
    await one.end()


async def test_caches_that_are_not_filled_after_two_minutes_end_the_process(caplog):
    one = Process(fill_seconds=1e6)
    assert await one.task == 1
    assert now() == 120
    assert "not filled within 120 s; missing: rayclusters" in caplog.text


async def test_readiness_tells_whether_the_caches_are_filled():
    one = Process(fill_seconds=10)
    await asyncio.sleep(5)
    page = one.manager.readiness.page()
    assert (page.status, "not filled yet: rayclusters" in page.text) == (500, True)
    assert one.manager.health.page().status == 200
    await asyncio.sleep(6)
    assert one.manager.readiness.page().status == 200
    await one.end()


async def test_health_tells_of_a_controller_that_is_no_longer_at_work():
    one = Process()
    await asyncio.sleep(2)
    assert one.manager.health.page().status == 200
    handing_out = one.world.controller._handing_out
    assert handing_out is not None
    handing_out.cancel()
    await settle()
    page = one.manager.health.page()
    assert (page.status, "not at work: raycluster" in page.text) == (500, True)
    await one.end()


async def test_health_tells_of_a_leader_whose_lease_has_run_out():
    leases = Leases()
    one = Process(leases)
    await asyncio.sleep(2)
    page = one.manager.health.page()
    assert (page.status, "[+]lease ok" in page.text) == (200, True)
    assert one.manager._election is not None
    one.manager._election._renewed_at -= 20  # as if the loop had stood still
    page = one.manager.health.page()
    assert (page.status, "and has run out" in page.text) == (500, True)
    await one.end()


async def test_a_process_that_waits_for_the_lease_is_healthy_and_ready():
    leases = Leases()
    one = Process(leases)
    await asyncio.sleep(2)
    two = Process(leases, "two")
    await asyncio.sleep(100)
    assert two.manager.health.page().status == two.manager.readiness.page().status == 200
    await two.end()
    await one.end()
