"""The server answers, without a wire."""

import pytest

from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.server.admission import Admission, namespace_lifecycle
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.inprocess import LocalClient
from kubereef.server.open import OpenGate
from kubereef.store.store import Store
from kubewire import errors
from kubewire.sources import ManualClock, SeededEntropy

CM = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    around = Surroundings(
        Store(),
        Registry(builtin_types()),
        ManualClock(),
        SeededEntropy(1),
        Admission((), (namespace_lifecycle,)),
    )
    client = LocalClient(Server(around, OpenGate()))
    await client.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return client


async def test_an_object_is_created_read_changed_and_deleted(client):
    made = await client.create(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert made["kind"] == "ConfigMap"
    assert (await client.get(f"{CM}/a")) == made
    changed = await client.patch(f"{CM}/a", {"data": {"k": "w"}})
    assert changed["data"] == {"k": "w"}
    assert (await client.get(CM))["items"][0]["data"] == {"k": "w"}
    await client.delete(f"{CM}/a")
    with pytest.raises(errors.NotFound):
        await client.get(f"{CM}/a")
