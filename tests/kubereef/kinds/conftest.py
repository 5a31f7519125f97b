"""A server with the built-in kinds that lets everybody do everything."""

import pytest

from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.server.addresses import ServiceAddresses
from kubereef.server.admission import Admission
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.inprocess import LocalClient
from kubereef.server.open import OpenGate
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SeededEntropy


@pytest.fixture
def reef():
    """Return a function that makes a client of a new server; it takes the range of addresses and the store."""

    def make(cidr="10.96.0.0/16", node_ports=range(30000, 32768), store=None, admission=()):
        addresses = ServiceAddresses(SeededEntropy(2), cidr, node_ports)
        around = Surroundings(
            store or Store(),
            Registry(builtin_types()),
            ManualClock(),
            SeededEntropy(1),
            Admission((), (*admission, addresses)),
        )
        return LocalClient(Server(around, OpenGate()))

    return make


@pytest.fixture
def client(reef):
    return reef()
