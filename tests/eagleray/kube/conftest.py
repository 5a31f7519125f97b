"""A cluster under virtual time, a client that speaks to it in process, and faults on the way."""

import asyncio

import pytest

from eagleray.kube.client import Client
from eagleray.kube.informers import Informers
from eagleray.kube.writer import Writer
from kubereef.simulation import SimulatedCluster, VirtualClock, VirtualLoop
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import FaultyTransport, transport_to

VIRTUAL = {"world", "virtual_time"}


def pytest_asyncio_loop_factories(config, item):
    """Run the tests that use the cluster, or ask for virtual time, on a loop that never waits."""
    is_virtual = VIRTUAL & set(item.fixturenames)
    return {"virtual": VirtualLoop} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
def virtual_time():
    """Make a test run under virtual time; the clock that shows it."""
    return VirtualClock()


class World:
    """A cluster, the way to it, and what stands in the way."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.clock = cluster.clock
        self.entropy = SeededEntropy(7)
        self.server = cluster.client
        self.faults = FaultyTransport(transport_to(cluster.server))
        self.client = Client(self.faults, self.clock, self.entropy)
        self.started = []

    async def informers(self, *additions, **options):
        """Return started informers: one for each (resource, view, options)."""
        informers = Informers(self.client, self.clock, self.entropy, **options)
        added = [informers.add(resource, view, **more) for resource, view, more in additions]
        self.started.append(informers)
        await informers.start()
        return informers, *(informer.cache for informer in added)

    def writer(self, informers):
        return Writer(self.client, informers)


@pytest.fixture
async def world():
    cluster = SimulatedCluster()
    await cluster.start()
    world = World(cluster)
    yield world
    for informers in world.started:
        await informers.stop()
    await cluster.stop()
