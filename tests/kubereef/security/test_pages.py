"""Health, version, metrics and the other pages about the server itself."""

import json

import pytest

from kubereef.cluster import Cluster
from kubereef.server.health import Health
from kubereef.server.requests import ANONYMOUS, Request
from kubereef.server.routing import target_of
from kubereef.store.store import Store
from kubewire.sources import SeededEntropy


@pytest.fixture
def page(admin):
    async def get(url, method="GET"):
        answer = await admin.send(method, url)
        return answer.status, answer.body.decode()

    return get


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
async def test_a_healthy_server_says_ok(page, name):
    assert await page(f"/{name}") == (200, "ok")
    assert await page(f"/{name}/ping") == (200, "ok")
    status, text = await page(f"/{name}?verbose")
    assert status == 200
    assert text.startswith("[+]ping ok\n")
    assert text.endswith(f"{name} check passed\n")


async def test_a_check_that_does_not_exist_is_not_found(page):
    assert (await page("/livez/nothing"))[0] == 404


async def test_health_and_version_cannot_be_posted_to(page):
    assert (await page("/livez", "POST"))[0] == 405
    assert (await page("/version", "POST"))[0] == 405


async def test_a_server_is_ready_between_start_and_stop_and_alive_before(clock):
    cluster = Cluster(Store(), clock=clock, entropy=SeededEntropy(1))

    async def status(path):
        return (await cluster.client().send("GET", path)).status

    assert (await status("/readyz"), await status("/livez")) == (500, 200)
    await cluster.start()
    assert await status("/readyz") == 200
    cluster.drain()
    assert (await status("/readyz"), await status("/livez")) == (500, 200)
    await cluster.stop()


def asked(health, url):
    path, _, query = url.partition("?")
    parameters = {part.partition("=")[0]: [part.partition("=")[2]] for part in query.split("&") if part}
    request = Request("GET", path, parameters)
    answer = health.page(request, target_of(request), ANONYMOUS)
    return answer.status, answer.body.decode()


def test_a_failed_check_is_told():
    health = Health({}, {"disk": lambda: "full"})
    assert asked(health, "/livez") == (200, "ok")
    assert asked(health, "/readyz") == (500, "[+]ping ok\n[-]disk failed: full\nreadyz check failed\n")
    assert asked(health, "/readyz/disk") == (500, "[-]disk failed: full\nreadyz check failed\n")


def test_one_failed_check_is_enough():
    health = Health({"disk": lambda: "full"}, {"startup": lambda: ""})
    assert asked(health, "/readyz")[0] == 500


def test_a_check_can_be_left_out():
    health = Health({}, {"disk": lambda: "full"})
    assert asked(health, "/readyz?exclude=disk") == (200, "ok")
    assert "no matches for" in asked(health, "/readyz?exclude=nothing")[1]


async def test_the_version_is_that_of_kubernetes_with_our_name(page):
    version = json.loads((await page("/version"))[1])
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")
    assert "+kubereef" in version["gitVersion"]


async def test_the_root_lists_paths(page):
    paths = json.loads((await page("/"))[1])["paths"]
    assert {"/api/v1", "/apis/apps/v1", "/healthz", "/version", "/metrics"} <= set(paths)
    assert paths == sorted(paths)


async def test_what_does_not_exist_is_a_plain_404(page):
    assert await page("/no-such-path") == (404, "404 page not found\n")


async def test_the_metrics_count_requests_objects_and_watchers(page, admin, cluster):
    async for _ in admin.watch("/api/v1/namespaces?timeoutSeconds=1"):
        break
    await admin.send("GET", "/api/v1/namespaces/nowhere")
    await admin.send("BREW", "/api/v1/pods")
    status, text = await page("/metrics")
    lines = text.splitlines()
    assert status == 200
    assert 'apiserver_request_total{verb="GET",code="404"} 1' in lines
    assert 'apiserver_resource_objects{resource="namespaces"} 4' in lines
    assert f"kubereef_store_revision {cluster.store.revision}" in lines
    assert any(line.startswith("kubereef_store_watchers ") for line in lines)
    assert 'verb="OTHER"' in text
    assert "BREW" not in text


async def test_those_who_check_tokens_themselves_find_the_keys(page):
    document = json.loads((await page("/.well-known/openid-configuration"))[1])
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    (key,) = json.loads((await page("/openid/v1/jwks"))[1])["keys"]
    assert key["alg"] == "ES256"
