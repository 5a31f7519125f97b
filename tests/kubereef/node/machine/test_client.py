"""The client by which a node speaks to the API server."""

import asyncio
import ssl

import pytest

from kubereef.node.machine import client as client_module
from kubereef.node.machine.client import HttpsClient, TokenFile
from kubereef.serving import Settings, serving
from kubewire import errors
from kubewire.sources import ManualClock

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def served(tmp_path):
    async with serving(Settings(tmp_path, in_memory=True)) as served:
        yield served


@pytest.fixture
async def client(served):
    pki = served.credentials.certificates.directory
    tls = ssl.create_default_context(cafile=pki / "ca.crt")
    tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    client = HttpsClient(served.url, tls)
    yield client
    await client.close()


async def test_objects_are_made_read_changed_and_removed(client):
    made = await client.create(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (await client.get(f"{MAPS}/a"))["metadata"]["uid"] == made["metadata"]["uid"]
    assert (await client.patch(f"{MAPS}/a", {"data": {"k": "w"}}))["data"] == {"k": "w"}
    changed = await client.patch(f"{MAPS}/a", [{"op": "remove", "path": "/data/k"}], "json")
    assert not changed.get("data")
    await client.delete(f"{MAPS}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})
    with pytest.raises(errors.NotFound):
        await client.get(f"{MAPS}/a")


async def test_a_server_may_have_another_name_than_its_address(served, tmp_path):
    tls = ssl.create_default_context(cafile=served.credentials.certificates.authority_path)
    (tmp_path / "token").write_text("nobody")
    clients = [
        HttpsClient(served.url, tls, server_name=name, token=TokenFile(tmp_path / "token", ManualClock()))
        for name in ("kubernetes.default.svc", "elsewhere.example")
    ]
    with pytest.raises(errors.Unauthorized):
        await clients[0].get("/api")
    with pytest.raises(errors.ServiceUnavailable, match="Hostname mismatch"):
        await clients[1].get("/api")
    for client in clients:
        await client.close()


async def test_a_token_is_read_again_while_the_last_one_is_kept(tmp_path):
    file, clock = tmp_path / "token", ManualClock()
    token = TokenFile(file, clock)
    with pytest.raises(errors.Unauthorized, match="cannot be read"):
        token.headers()
    file.write_text("first\n")
    assert token.headers() == {"Authorization": "Bearer first"}
    file.write_text("second\n")
    assert token.headers() == {"Authorization": "Bearer first"}
    clock.advance(60)
    assert token.headers() == {"Authorization": "Bearer second"}
    file.unlink()
    clock.advance(60)
    assert token.headers() == {"Authorization": "Bearer second"}


async def test_refusals_are_raised_by_their_reason(client):
    await client.create(MAPS, {"metadata": {"name": "a"}})
    with pytest.raises(errors.AlreadyExists):
        await client.create(MAPS, {"metadata": {"name": "a"}})
    with pytest.raises(errors.NotFound):
        await client.get("/apis/nobody.example/v1/things")


async def test_a_watch_tells_what_happens(client):
    listed = await client.get(MAPS)
    events = client.watch(f"{MAPS}?resourceVersion={listed['metadata']['resourceVersion']}")
    await client.create(MAPS, {"metadata": {"name": "a"}, "data": {"long": "x" * 500_000}})
    async with asyncio.timeout(5):
        event = await anext(events)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    await events.aclose()


async def test_an_event_beyond_measure_breaks_the_watch_off(client, monkeypatch):
    monkeypatch.setattr(client_module, "_MOST_EVENT", 1000)
    listed = await client.get(MAPS)
    events = client.watch(f"{MAPS}?resourceVersion={listed['metadata']['resourceVersion']}")
    await client.create(MAPS, {"metadata": {"name": "a"}, "data": {"long": "x" * 900_000}})
    with pytest.raises(errors.ApiError, match="more than 1000 bytes"):
        await anext(events)


async def test_a_watch_tells_many_things_in_their_order(client):
    listed = await client.get(MAPS)
    events = client.watch(f"{MAPS}?resourceVersion={listed['metadata']['resourceVersion']}")
    names = [f"m{number}" for number in range(30)]
    for name in names:
        await client.create(MAPS, {"metadata": {"name": name}})
    async with asyncio.timeout(5):
        assert [(await anext(events))["object"]["metadata"]["name"] for _ in names] == names
    await events.aclose()


async def test_a_watch_that_is_refused_is_raised(client):
    with pytest.raises(errors.NotFound):
        await anext(client.watch("/api/v1/nothings"))


async def test_a_server_that_is_not_there_is_unavailable(unused_tcp_port):
    client = HttpsClient(f"https://127.0.0.1:{unused_tcp_port}", ssl.create_default_context())
    with pytest.raises(errors.ServiceUnavailable, match="cannot be reached"):
        await client.get("/version")
    with pytest.raises(errors.ServiceUnavailable, match="cannot be reached"):
        await anext(client.watch("/api/v1/pods"))
    await client.close()
