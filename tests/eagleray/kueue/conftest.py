"""Everything about Kueue runs under virtual time."""

from kubereef.simulation import VirtualLoop


def pytest_asyncio_loop_factories(config, item):
    return {"virtual": VirtualLoop}
