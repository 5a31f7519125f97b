"""The webhooks as a part of the operator's life: ready with a certificate, and served by whoever does not lead, too."""

import socket

import pytest

from tests.eagleray.world import world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

ENABLED = {"ENABLE_WEBHOOKS": "true"}
ANY_PORT = "--webhook-addr=127.0.0.1:0"


@pytest.fixture
async def world():
    async with world_of(operator=False, variables=ENABLED, flags=(ANY_PORT,)) as made:
        yield made


def readiness(world):
    page = world.operator.manager.readiness.page("webhooks")
    return page.status, page.text


async def test_an_operator_is_ready_once_there_is_a_certificate(world):
    allow = world.faults.refuse("get", "secrets")
    await world.start_operator()
    await world.pass_time(5)
    status, text = readiness(world)
    assert status == 500
    assert "no certificate: the quota is used up" in text
    allow()
    await world.pass_time(5)
    assert readiness(world)[0] == 200
    assert await world.stop_operator() == 0


async def test_a_replica_that_does_not_lead_serves_all_the_same(world):
    world.flags = (*world.flags, "--enable-leader-election")
    now = "2030-01-01T00:00:00.000000Z"
    lease = {"holderIdentity": "another", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}
    await world.create({"kind": "Lease", "metadata": {"name": "ray-operator-leader"}, "spec": lease})
    await world.start_operator()
    await world.pass_time(5)
    assert (await world.get("Lease", "ray-operator-leader"))["spec"]["holderIdentity"] == "another"
    assert readiness(world)[0] == 200
    assert await world.get("Secret", "webhook-server-cert")


async def test_a_port_that_is_taken_ends_the_operator_with_1(world, caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        world.flags = (*world.flags, f"--webhook-addr=127.0.0.1:{taken.getsockname()[1]}")
        await world.start_operator()
        assert await world._running == 1
    assert "address already in use" in caplog.text


@pytest.mark.parametrize(
    "flag", ["--dry-run", "--webhook-addr=0"], ids=["in a dry run", "where there is no place for them"]
)
async def test_webhooks_are_not_served(world, flag):
    world.flags = (*world.flags, flag)
    await world.start_operator()
    await world.pass_time(5)
    assert world.operator.webhooks is None
    assert await world.get("Secret", "webhook-server-cert") is None
    assert readiness(world)[0] == 404
