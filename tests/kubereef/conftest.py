"""A cluster under virtual time, for every test that asks for one."""

import asyncio

import pytest

from kubereef.simulation import SimulatedCluster, VirtualLoop


def pytest_asyncio_loop_factories(config, item):
    """Run the tests that use the simulated cluster, or ask for virtual time, on a loop that never waits."""
    is_virtual = {"simulated_cluster", "virtual_time"} & set(item.fixturenames)
    return {"virtual": VirtualLoop} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
def virtual_time():
    """Make a test run under virtual time: `asyncio.sleep(3600)` takes no time."""


@pytest.fixture
async def simulated_cluster():
    """A started cluster without controllers; `await simulated_cluster.run(GarbageCollector, …)` starts some."""
    cluster = SimulatedCluster()
    await cluster.start()
    yield cluster
    await cluster.stop()
