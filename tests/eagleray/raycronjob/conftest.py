"""Tests that ask for virtual time run on a loop that never waits."""

import asyncio

import pytest

from tests.eagleray import world as worlds


def pytest_asyncio_loop_factories(config, item):
    is_virtual = "virtual_time" in item.fixturenames
    return {"virtual": worlds.loop_of} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
def virtual_time():
    """Make a test run under virtual time."""
