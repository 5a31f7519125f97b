"""A server that knows Pods and lets everybody do everything, without the rest of a cluster."""

import pytest

from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.server import podparts
from kubereef.server.admission import Admission, namespace_lifecycle
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.inprocess import LocalClient
from kubereef.server.open import OpenGate
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SeededEntropy


@pytest.fixture(scope="session")
def registry():
    return Registry(builtin_types())


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def server(registry, clock):
    around = Surroundings(Store(), registry, clock, SeededEntropy(1), Admission((), (namespace_lifecycle,)))
    server = Server(around, OpenGate())
    podparts.offer(server)
    return server


@pytest.fixture
async def client(server):
    client = LocalClient(server)
    await client.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return client
