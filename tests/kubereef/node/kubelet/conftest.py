"""A kubelet with scripted containers, for every test that asks for one."""

import pytest

from tests.kubereef.node.kubelet.fakes import Bench


@pytest.fixture
async def bench(simulated_cluster, tmp_path):
    bench = Bench(simulated_cluster, tmp_path)
    account = {"metadata": {"name": "default"}}
    await simulated_cluster.client.create("/api/v1/namespaces/default/serviceaccounts", account)
    await bench.start()
    yield bench
    await bench.stop()
