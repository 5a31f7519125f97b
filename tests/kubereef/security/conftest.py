"""A cluster without a wire, on a clock that the test owns."""

from urllib.parse import parse_qs

import pytest

from kubereef.cluster import Cluster
from kubereef.server.requests import ADMINISTRATOR, Request, User
from kubereef.server.tokens import StaticTokens
from kubereef.store.records import decode, encode
from kubereef.store.store import Store
from kubewire import errors
from kubewire.sources import ManualClock, SeededEntropy

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def cluster(clock):
    tokens = StaticTokens({"admin-token": ADMINISTRATOR})
    cluster = Cluster(Store(), clock=clock, entropy=SeededEntropy(1), tokens=tokens)
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.fixture
def admin(cluster):
    return cluster.client()


class Someone:
    """Sends requests that carry nothing but headers, as a stranger on the wire would."""

    def __init__(self, cluster, token="", **headers):
        self._server = cluster.server
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    async def send(self, method, url, body=None):
        path, _, query = url.partition("?")
        data = b"" if body is None else encode(body)
        return await self._server.handle(Request(method, path, parse_qs(query), self._headers, data))

    async def call(self, method, url, body=None):
        answer = await self.send(method, url, body)
        if answer.status >= 400:
            raise errors.from_status(decode(answer.body), answer.status)
        return decode(answer.body)

    async def get(self, url):
        return await self.call("GET", url)

    async def create(self, url, body):
        return await self.call("POST", url, body)


@pytest.fixture
def someone(cluster):
    return lambda token="", **headers: Someone(cluster, token, **headers)


@pytest.fixture
def as_user(cluster):
    """Speak as a user without saying how it was recognised."""
    return lambda name, *groups: cluster.client(User(name, groups))


@pytest.fixture
def grant(admin):
    """Bind rules to subjects: cluster-wide, or in a namespace."""

    async def bind(rules, *subjects, namespace="", name="granted"):
        base = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        role, binding = ("roles", "rolebindings") if namespace else ("clusterroles", "clusterrolebindings")
        kind = "Role" if namespace else "ClusterRole"
        await admin.create(f"{base}/{role}", {"metadata": {"name": name}, "rules": rules})
        await admin.create(
            f"{base}/{binding}",
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": list(subjects),
            },
        )

    return bind
