"""A cluster to keep certificates in. Tests that use a `world` run under virtual time; the others speak over sockets."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eagleray.kube.client import Client
from eagleray.kube.resources import Key
from eagleray.webhooks.certificates import KeptSecret, serving_names
from kubereef.simulation import SimulatedCluster, VirtualLoop
from kubewire.certificates import Issuer
from kubewire.sources import ManualClock, SeededEntropy
from tests.eagleray.kube.local import FaultyTransport, transport_to

SERVICE = Key("default", "webhook-service")
SECRET = Key("default", "webhook-server-cert")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SECRETS = "/api/v1/namespaces/default/secrets"


def pytest_asyncio_loop_factories(config, item):
    return {"virtual": VirtualLoop} if "world" in item.fixturenames else {"real": asyncio.new_event_loop}


class Distant(FaultyTransport):
    """A transport on which requests take time, so that several are under way at once."""

    async def send(self, request):
        await asyncio.sleep(0.01)
        return await super().send(request)


class World:
    """A cluster, and replicas of an operator that keep one certificate there."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.clock = cluster.clock
        # By which certificates age: years pass at once, and not for the server with its thousand timers.
        self.calendar = ManualClock()
        self.api = cluster.client
        self.faults = Distant(transport_to(cluster.server))
        self.client = Client(self.faults, self.clock, SeededEntropy(7))

    def replica(self, *names, number=1):
        names = names or serving_names(*SERVICE, "cluster.local")
        return KeptSecret(self.client, SECRET, names, Issuer(self.calendar, SeededEntropy(number)))

    async def secret(self):
        return await self.api.get(f"{SECRETS}/{SECRET.name}")

    def writes(self):
        return [request.verb for request in self.faults.sent if request.verb != "get"]

    async def configure(self, *client_configs, name="validating-webhook-configuration"):
        webhooks = [
            {
                "name": f"v{number}.kb.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": config,
            }
            for number, config in enumerate(client_configs)
        ]
        return await self.api.create(CONFIGURATIONS, {"metadata": {"name": name}, "webhooks": webhooks})

    async def bundles(self, name="validating-webhook-configuration"):
        found = await self.api.get(f"{CONFIGURATIONS}/{name}")
        return [webhook["clientConfig"].get("caBundle") for webhook in found["webhooks"]]


@asynccontextmanager
async def cluster():
    made = SimulatedCluster()
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.fixture
async def world():
    async with cluster() as made:
        yield World(made)
