"""Controllers that work on every kind work on custom ones, also on those that come while they run."""

import pytest

from kubereef.controllers.garbage import GarbageCollector
from kubereef.controllers.namespaces import NamespaceController
from kubewire import errors
from tests.kubereef.custom.examples import BOXES, DEFINITIONS, box, definition

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def cluster(simulated_cluster):
    await simulated_cluster.run(GarbageCollector, NamespaceController)
    await simulated_cluster.client.create(DEFINITIONS, definition())
    await simulated_cluster.pass_time(60)
    return simulated_cluster


async def test_what_an_object_owns_goes_with_it(cluster):
    owner = await cluster.client.create(BOXES, box())
    reference = {
        "apiVersion": "example.com/v1",
        "kind": "Box",
        "name": "b",
        "uid": owner["metadata"]["uid"],
    }
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    await cluster.client.create(MAPS, owned)
    await cluster.pass_time(60)
    await cluster.client.get(f"{MAPS}/owned")
    await cluster.client.delete(f"{BOXES}/b")
    await cluster.pass_time(60)
    with pytest.raises(errors.NotFound):
        await cluster.client.get(f"{MAPS}/owned")


async def test_objects_go_with_their_namespace(cluster):
    await cluster.client.create("/api/v1/namespaces", {"metadata": {"name": "gone"}})
    boxes = BOXES.replace("default", "gone")
    await cluster.client.create(boxes, box())
    await cluster.client.delete("/api/v1/namespaces/gone")
    await cluster.pass_time(120)
    assert (await cluster.client.get(boxes))["items"] == []
    with pytest.raises(errors.NotFound):
        await cluster.client.get("/api/v1/namespaces/gone")
