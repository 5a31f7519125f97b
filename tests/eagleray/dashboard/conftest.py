"""Virtual time for every test of the dashboard that asks for it, and scripted heads to ask."""

import asyncio

import pytest

from kubereef.simulation import VirtualClock, VirtualLoop
from tests.eagleray.dashboard.scripted import ScriptedDashboards

VIRTUAL = {"virtual_time", "heads"}


def pytest_asyncio_loop_factories(config, item):
    """Run the tests that ask for virtual time on a loop that never waits."""
    is_virtual = VIRTUAL & set(item.fixturenames)
    return {"virtual": VirtualLoop} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
def virtual_time():
    """Make a test run under virtual time; the clock that shows it."""
    return VirtualClock()


@pytest.fixture
def heads(virtual_time):
    """A network of scripted heads, still empty."""
    return ScriptedDashboards(virtual_time)
