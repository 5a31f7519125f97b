"""A configuration is told whom to trust, where it leads to us, and is otherwise left as it is."""

import base64

import pytest

from eagleray.kube.resources import Key
from eagleray.webhooks.trust import Configuration
from kubewire import errors
from kubewire.certificates import Issuer
from kubewire.sources import ManualClock, SeededEntropy
from tests.eagleray.webhooks.conftest import CONFIGURATIONS, SERVICE

NAME = "validating-webhook-configuration"
AUTHORITY = Issuer(ManualClock(), SeededEntropy(1)).authority("ours").certificate_pem
BUNDLE = base64.b64encode(AUTHORITY).decode()
JOBS = "/validate-ray-io-v1-rayjob"


def service(path=JOBS, namespace="default", name="webhook-service"):
    return {"service": {"namespace": namespace, "name": name, "path": path}}


def configuration(world, name=NAME, service=SERVICE):
    return Configuration(world.client, name, service)


async def test_what_leads_to_us_trusts_us_and_the_rest_stays(world):
    await world.configure(
        service(),
        service("/validate-ray-io-v1-raycluster"),
        service("/other"),
        service(name="another"),
        service(namespace="elsewhere"),
        {"url": f"https://127.0.0.1:9443{JOBS}"},
        {"url": "https://127.0.0.1:9443/other"},
    )
    before = await world.api.get(f"{CONFIGURATIONS}/{NAME}")
    assert await configuration(world).trust(AUTHORITY) == ""
    assert await world.bundles() == [BUNDLE, BUNDLE, None, None, None, BUNDLE, None]
    after = await world.api.get(f"{CONFIGURATIONS}/{NAME}")
    for webhook in after["webhooks"]:
        webhook["clientConfig"].pop("caBundle", None)
    assert after["webhooks"] == before["webhooks"]


async def test_trust_that_is_there_costs_no_write(world):
    await world.configure(service())
    await configuration(world).trust(AUTHORITY)
    await configuration(world).trust(AUTHORITY)
    assert world.writes() == ["patch"]


async def test_a_change_in_between_is_a_conflict_and_not_overwritten(world):
    await world.configure(service())
    send = world.faults.send

    async def meddle(request):
        if request.method == "PATCH":
            change = {"metadata": {"labels": {"somebody": "else"}}}
            await world.api.patch(f"{CONFIGURATIONS}/{NAME}", change)
        return await send(request)

    world.faults.send = meddle
    with pytest.raises(errors.Conflict):
        await configuration(world).trust(AUTHORITY)


async def test_a_missing_configuration_is_told(world):
    assert "nobody asks before it is installed" in await configuration(world).trust(AUTHORITY)
    assert world.writes() == []


async def test_a_configuration_that_leads_elsewhere_is_told(world):
    await world.configure(service(name="another"))
    told = await configuration(world, service=Key("default", "mine")).trust(AUTHORITY)
    assert "leads to Service default/mine" in told
    assert world.writes() == []
