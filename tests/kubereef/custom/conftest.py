"""Clusters that know no definition, or one."""

import pytest

from tests.kubereef.custom.examples import DEFINITIONS, definition, version


@pytest.fixture
async def client(simulated_cluster):
    """A client of a cluster without any definition."""
    return simulated_cluster.client


@pytest.fixture
async def boxes(client):
    """A client of a cluster that knows boxes, with status and scale."""
    parts = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    await client.create(DEFINITIONS, definition(version(subresources=parts), shortNames=["bx"]))
    return client
