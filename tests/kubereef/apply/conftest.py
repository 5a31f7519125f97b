"""A cluster that follows who owns what, with a small client for applying."""

import pytest

from kubereef.simulation import SimulatedCluster

NAMESPACE = "/api/v1/namespaces/default"
MAPS = f"{NAMESPACE}/configmaps"
PODS = f"{NAMESPACE}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

APPLY = "application/apply-patch+yaml"


class Applier:
    """Applies to a cluster, and shows what its objects say of their owners."""

    def __init__(self, cluster):
        self.client = cluster.client
        self.server = cluster.server
        self.clock = cluster.clock

    async def apply(self, url, body, manager="alice", **query):
        """Apply an object and return it as it is then."""
        return await self.client.call(
            "PATCH", self._address(url, manager, query), body, {"content-type": APPLY}
        )

    async def answer(self, url, body, manager="alice", **query):
        """Apply an object and return the answer, whatever it is."""
        return await self.client.send(
            "PATCH", self._address(url, manager, query), body, {"content-type": APPLY}
        )

    async def owners(self, url):
        """Return what each manager of an object owns."""
        entries = (await self.client.get(url))["metadata"].get("managedFields", [])
        return {entry["manager"]: entry["fieldsV1"] for entry in entries}

    def _address(self, url, manager, query):
        query = {"fieldManager": manager, **query}
        return f"{url}?" + "&".join(f"{name}={value}" for name, value in query.items())


@pytest.fixture
async def reef(virtual_time):
    """A started cluster without controllers that tracks owners; the service account that Pods need is there."""
    cluster = SimulatedCluster(tracks_owners=True)
    await cluster.start()
    await cluster.client.create(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    yield Applier(cluster)
    await cluster.stop()


def config_map(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def deployment(**spec):
    template = {
        "metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
