"""The webhooks as an operator serves them: where the certificate comes from, and who trusts it."""

import base64
import json
from pathlib import Path

import pytest

from eagleray.kube.client import Client
from eagleray.runtime.metrics import Registry
from eagleray.webhooks.service import Place, Webhooks
from kubewire.certificates import Identity, Issuer
from kubewire.sources import SystemClock, SystemEntropy
from tests.eagleray.kube.local import FaultyTransport, transport_to
from tests.eagleray.webhooks.conftest import SERVICE, World, cluster
from tests.eagleray.webhooks.https import ANY_PORT, Asker, trusting
from tests.eagleray.webhooks.test_reviews import review
from tests.eagleray.world import raycluster

CLUSTERS = "/validate-ray-io-v1-raycluster"


@pytest.fixture
async def reef():
    async with cluster() as made:
        yield World(made)


def webhooks_of(reef, directory=Path("/nowhere")):
    place = Place(ANY_PORT, directory, SERVICE, "validating-webhook-configuration", "cluster.local")
    reef.faults = FaultyTransport(transport_to(reef.cluster.server))
    client = Client(reef.faults, SystemClock(), SystemEntropy())
    return Webhooks(place, client, Registry(), clock=SystemClock(), entropy=SystemEntropy())


async def ready(webhooks):
    clock = SystemClock()
    for _ in range(200):
        if webhooks.check() is None:
            return
        await clock.sleep(0.02)
    raise AssertionError(webhooks.check())


async def allowed(port, authority, name):
    status, body = await Asker(port, trusting(authority)).post(CLUSTERS, review(raycluster(name)))
    assert status == 200
    return json.loads(body)["response"]["allowed"]


async def trusted(reef):
    """Return the authority that the configuration names, once it does."""
    clock = SystemClock()
    for _ in range(200):
        (bundle,) = await reef.bundles()
        if bundle:
            return base64.b64decode(bundle)
        await clock.sleep(0.02)
    raise AssertionError("nobody is trusted")


async def test_two_replicas_serve_what_the_configuration_trusts(reef):
    await reef.configure(
        {"service": {"namespace": SERVICE.namespace, "name": SERVICE.name, "path": CLUSTERS}}
    )
    first, second = webhooks_of(reef), webhooks_of(reef)
    assert first.check() == "no certificate: not looked for yet"
    await first.start()
    await second.start()
    try:
        await ready(first)
        await ready(second)
        authority = await trusted(reef)
        for replica in (first, second):
            assert await allowed(replica.port, authority, "c")
            assert not await allowed(replica.port, authority, "c" * 54)
    finally:
        await first.stop()
        await second.stop()


async def test_files_are_served_as_they_are_and_nothing_is_written(reef, tmp_path):
    issuer = Issuer(SystemClock(), SystemEntropy())
    authority = issuer.authority("theirs")
    pair = issuer.serving(authority, Identity("x"), ["webhook-service.default.svc"])
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    webhooks = webhooks_of(reef, tmp_path)
    await webhooks.start()
    try:
        await ready(webhooks)
        assert await allowed(webhooks.port, authority.certificate_pem, "c")
    finally:
        await webhooks.stop()
    assert reef.faults.sent == []


async def test_an_end_of_the_keeping_that_nobody_foresaw_is_told(reef, monkeypatch):
    webhooks = webhooks_of(reef)

    async def broken():
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(webhooks._keeper, "refresh", broken)
    await webhooks.start()
    try:
        await SystemClock().sleep(0.05)
        assert "a mistake of ours" in str(webhooks.check())
    finally:
        await webhooks.stop()


async def test_a_port_that_is_taken_is_an_error_at_the_start(reef):
    first = webhooks_of(reef)
    await first.start()
    second = webhooks_of(reef)
    second._address = ANY_PORT._replace(port=first.port)
    try:
        with pytest.raises(OSError, match="address already in use"):
            await second.start()
    finally:
        await second.stop()
        await first.stop()
