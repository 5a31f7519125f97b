"""A cluster, a webhook of our own beside it, and configurations that lead there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubereef.cluster import Cluster
from kubereef.server.lines import DirectLines
from kubereef.store.store import Store
from kubewire.sources import SeededEntropy, SystemClock
from tests.kubereef.webhooks.asked import Api
from tests.kubereef.webhooks.outsider import Outsider


@pytest.fixture
async def outsider(tmp_path: Path) -> AsyncIterator[Outsider]:
    outsider = Outsider(tmp_path, "127.0.0.1", "hook.outside.svc")
    await outsider.start()
    yield outsider
    await outsider.stop()


@pytest.fixture
def lines() -> DirectLines:
    return DirectLines()


@pytest.fixture
async def cluster(lines: DirectLines) -> AsyncIterator[Cluster]:
    cluster = Cluster(Store(), clock=SystemClock(), entropy=SeededEntropy(1), lines=lines)
    await cluster.start()
    await cluster.client().create(
        "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
    )
    yield cluster
    await cluster.stop()


@pytest.fixture
async def api(cluster: Cluster, outsider: Outsider) -> Api:
    return Api(cluster, outsider)
