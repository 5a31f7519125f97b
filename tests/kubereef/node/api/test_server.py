"""The front door of the kubelet's API: TLS, access and pages."""

import asyncio

import aiohttp
import pytest


async def text_of(client, path, code=200, **options):
    async with asyncio.timeout(10), client.get(path, **options) as answer:
        text = await answer.text()
        assert answer.status == code, text
        return text


async def test_a_certificate_of_the_cluster_opens_the_door(client):
    assert await text_of(client, "/healthz") == "ok"


async def test_a_token_opens_the_door_too(url, keys):
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=keys.client())) as anybody:
        assert await text_of(anybody, "/healthz", headers={"Authorization": "Bearer good"}) == "ok"


@pytest.mark.parametrize("path", ["/healthz", "/pods", "/containerLogs/default/web/app", "/nothing"])
async def test_nobody_comes_in_without_a_name(url, keys, path):
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=keys.client())) as anybody:
        assert await text_of(anybody, path, 401) == "Unauthorized"


async def test_who_may_not_is_refused(client, reviews):
    reviews.allowed.clear()
    assert "Forbidden (user=ann" in await text_of(client, "/exec/default/web/app?command=true&output=1", 403)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/nothing", "404 page not found"),
        ("/stats/everything", "404 page not found"),
        ("/containerLogs/default/web", "404 page not found"),
        ("/containerLogs/default/other/app", 'pod "other" not found'),
        ("/containerLogs/default/web/other", 'container "other" not found in pod "web"'),
        ("/portForward/default/other", 'pod "other" not found'),
    ],
)
async def test_what_is_not_there_is_not_found(client, path, text):
    assert await text_of(client, path, 404) == text


async def test_a_pod_may_be_named_with_its_uid(client, container):
    container.over.set()
    assert await text_of(client, "/containerLogs/default/web/u-1/app") == ""
    await text_of(client, "/containerLogs/default/web/u-2/app", 404)


async def test_the_pods_of_the_node_are_listed(client, pods):
    async with client.get("/pods") as answer:
        listed = await answer.json()
    assert listed["kind"] == "PodList"
    assert listed["items"] == [pods.pods[0].manifest]


async def test_usage_is_told_of_containers_pods_and_the_node(client):
    async with client.get("/stats/summary") as answer:
        told = await answer.json()
    (pod,) = told["pods"]
    assert pod["podRef"] == {"name": "web", "namespace": "default", "uid": "u-1"}
    for one in (told["node"], pod, pod["containers"][0]):
        assert one["memory"]["usageBytes"] == 300
        assert one["memory"]["workingSetBytes"] == 200
        assert one["cpu"]["usageCoreNanoSeconds"] == 1_500_000_000
    assert told["node"]["nodeName"] == "n"


async def test_a_log_is_followed_while_the_container_runs(client, container):
    container.log.write_text("2030-01-01T00:00:01Z stdout F one\n")
    async with client.get("/containerLogs/default/web/app?follow=true") as answer:
        assert await answer.content.readline() == b"one\n"
        with container.log.open("a") as file:
            file.write("2030-01-01T00:00:02Z stdout F two\n")
        assert await answer.content.readline() == b"two\n"
        container.over.set()
        async with asyncio.timeout(5):
            assert await answer.content.read() == b""


async def test_the_log_of_the_run_before_is_another_file(client, container, tmp_path):
    container.previous = tmp_path / "before.log"
    container.previous.write_text("2030-01-01T00:00:01Z stdout F before\n")
    assert await text_of(client, "/containerLogs/default/web/app?previous=true&follow=true") == "before\n"


async def test_a_log_that_is_not_there_is_explained(client, container, pods):
    container.log = None
    path = "/containerLogs/default/web/app"
    told = await text_of(client, path, 400)
    assert told == 'container "app" in pod "web" is waiting to start: ContainerCreating'
    waiting = {"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pods.pods[0].manifest["status"] = {"containerStatuses": [waiting]}
    told = await text_of(client, path, 400)
    assert told == 'container "app" in pod "web" is waiting to start: ImagePullBackOff'
    told = await text_of(client, f"{path}?previous=true", 400)
    assert told == 'previous terminated container "app" in pod "web" not found'


async def test_an_option_that_means_nothing_is_refused(client):
    assert "tailLines" in await text_of(client, "/containerLogs/default/web/app?tailLines=x", 400)
