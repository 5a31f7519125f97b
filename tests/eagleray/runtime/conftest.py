"""Virtual time, and stand-ins for the API server, for every test of the runtime."""

import asyncio

import pytest

from kubereef.simulation import VirtualLoop


def pytest_asyncio_loop_factories(config, item):
    """Run the tests that ask for virtual time on a loop that never waits."""
    is_virtual = "virtual_time" in item.fixturenames
    return {"virtual": VirtualLoop} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
def virtual_time():
    """Make a test run under virtual time: `asyncio.sleep(3600)` takes no time."""
