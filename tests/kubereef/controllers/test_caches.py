"""Caches that a watch keeps up to date, and that are never behind one's own writes."""

import asyncio
from collections import deque

import pytest

from kubereef.controllers.caches import Cache, Caches, by_label
from kubereef.controllers.resources import CONFIG_MAPS, Resource
from kubereef.simulation import settle
from kubewire import errors

CM = "/api/v1/namespaces/default/configmaps"


def config_map(name, version, uid=None, namespace="default", labels=None, owners=()):
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-of-{name}",
            "resourceVersion": str(version),
            "labels": labels or {},
            "ownerReferences": [{"uid": owner} for owner in owners],
        }
    }


def names(objects):
    return [obj["metadata"]["name"] for obj in objects]


@pytest.fixture
def cache():
    return Cache(CONFIG_MAPS)


class Told:
    """Remembers what a cache told."""

    def __init__(self, cache):
        self.changes = []
        cache.listen(self)

    def __call__(self, old, new):
        versions = [obj and obj["metadata"]["resourceVersion"] for obj in (old, new)]
        self.changes.append(((new or old)["metadata"]["name"], *versions))


# --- what a watch tells


def test_a_list_and_changes_make_the_content(cache):
    cache.replace([config_map("a", 1), config_map("b", 2)], 2)
    cache.apply("MODIFIED", config_map("a", 3), 3)
    cache.apply("ADDED", config_map("c", 4), 4)
    cache.apply("DELETED", config_map("b", 5), 5)
    assert names(cache) == ["a", "c"]
    assert cache.get(("default", "a"))["metadata"]["resourceVersion"] == "3"
    assert cache.get(("default", "b")) is None


def test_listeners_hear_of_every_change_and_first_of_what_is_there(cache):
    cache.replace([config_map("a", 1)], 1)
    told = Told(cache)
    cache.apply("MODIFIED", config_map("a", 2), 2)
    cache.apply("ADDED", config_map("b", 3), 3)
    cache.apply("DELETED", config_map("a", 4), 4)
    assert told.changes == [("a", None, "1"), ("a", "1", "2"), ("b", None, "3"), ("a", "2", None)]


def test_a_new_list_tells_only_what_is_different(cache):
    cache.replace([config_map("stays", 1), config_map("goes", 2), config_map("changes", 3)], 3)
    told = Told(cache)
    told.changes.clear()
    cache.replace([config_map("stays", 1), config_map("changes", 5), config_map("comes", 4)], 9)
    assert sorted(told.changes) == [("changes", "3", "5"), ("comes", None, "4"), ("goes", "2", None)]


def test_a_successor_of_the_same_name_is_another_object(cache):
    cache.replace([config_map("a", 1, uid="first")], 1)
    told = Told(cache)
    told.changes.clear()
    cache.replace([config_map("a", 5, uid="second")], 5)
    assert told.changes == [("a", "1", None), ("a", None, "5")]


def test_a_listener_that_fails_does_not_keep_others_from_hearing(cache, caplog):
    def fragile(old, new):
        raise RuntimeError("dropped it")

    cache.listen(fragile)
    told = Told(cache)
    cache.replace([config_map("a", 1), config_map("b", 2)], 2)
    assert [name for name, *_ in told.changes] == ["a", "b"]
    assert "dropped it" in caplog.text


# --- indexes


def test_objects_are_found_by_namespace_owner_and_label(cache):
    cache.index("app", by_label("app"))
    cache.replace(
        [
            config_map("a", 1, labels={"app": "web"}, owners=["o1"]),
            config_map("b", 2, namespace="other", labels={"app": "web"}),
            config_map("c", 3, owners=["o1", "o2"]),
        ],
        3,
    )
    assert names(cache.in_namespace("default")) == ["a", "c"]
    assert names(cache.owned_by("o1")) == ["a", "c"]
    assert names(cache.owned_by("o2")) == ["c"]
    assert names(cache.by("app", "web")) == ["a", "b"]


def test_an_index_follows_changes_and_removals(cache):
    cache.replace([config_map("a", 1, owners=["o1"]), config_map("b", 2, owners=["o1"])], 2)
    cache.apply("MODIFIED", config_map("a", 3, owners=["o2"]), 3)
    assert names(cache.owned_by("o1")) == ["b"]
    assert names(cache.owned_by("o2")) == ["a"]
    cache.apply("DELETED", config_map("b", 4), 4)
    assert cache.owned_by("o1") == []


def test_an_index_that_comes_later_knows_what_is_there(cache):
    cache.replace([config_map("a", 1, labels={"app": "web"})], 1)
    cache.index("app", by_label("app"))
    assert names(cache.by("app", "web")) == ["a"]


# --- one's own writes


def test_what_was_written_is_seen_before_the_watch_tells_of_it(cache):
    cache.replace([], 5)
    cache.saw(config_map("a", 7))
    assert names(cache) == ["a"]
    cache.apply("ADDED", config_map("a", 6), 6)
    assert cache.get(("default", "a"))["metadata"]["resourceVersion"] == "7"


def test_an_answer_that_the_watch_has_overtaken_brings_nothing_back(cache):
    cache.replace([], 5)
    cache.apply("ADDED", config_map("a", 6), 6)
    cache.apply("DELETED", config_map("a", 7), 7)
    cache.saw(config_map("a", 6))
    assert names(cache) == []


def test_what_was_deleted_is_not_brought_back_by_older_news(cache):
    cache.replace([config_map("a", 1)], 1)
    cache.saw_deleted(config_map("a", 1))
    assert names(cache) == []
    cache.apply("MODIFIED", config_map("a", 2), 2)
    assert names(cache) == []
    cache.apply("DELETED", config_map("a", 3), 3)
    cache.apply("ADDED", config_map("a", 4, uid="successor"), 4)
    assert names(cache) == ["a"]


def test_a_new_list_keeps_what_was_written_after_it(cache):
    cache.replace([], 5)
    cache.saw(config_map("newer", 9))
    cache.replace([], 8)
    assert names(cache) == ["newer"]


# --- over the API


class FlakyReader:
    """A client whose watches end as the test says: each entry is the events of one watch and how it ends."""

    def __init__(self, client, endings):
        self.client = client
        self.endings = deque(endings)
        self.lists = 0
        self.since = []

    async def get(self, url):
        self.lists += 1
        return await self.client.get(url)

    async def watch(self, url):
        self.since.append(int(url.partition("resourceVersion=")[2]))
        count, ending = self.endings.popleft() if self.endings else (10**6, None)
        async for event in self.client.watch(url):
            if count <= 0:
                break
            count -= 1
            yield event
        if isinstance(ending, errors.ApiError):
            yield {"type": "ERROR", "object": ending.status()}
        elif ending is not None:
            raise ending


async def filled(client, *endings):
    reader = FlakyReader(client, endings)
    caches = Caches(reader)
    cache = caches.of(CONFIG_MAPS)
    await caches.start()
    return reader, caches, cache


async def create(client, *names_of_new):
    for name in names_of_new:
        await client.create(CM, {"metadata": {"name": name}})
        await settle()


async def test_a_watch_that_ends_is_resumed_without_a_new_list(simulated_cluster):
    reader, caches, cache = await filled(simulated_cluster.client, (1, None))
    await create(simulated_cluster.client, "a", "b", "c")
    await asyncio.sleep(1)
    assert names(cache) == ["a", "b", "c"]
    assert reader.lists == 1
    assert reader.since[1] > reader.since[0]
    await caches.stop()


async def test_a_version_that_is_too_old_leads_to_a_new_list(simulated_cluster):
    reader, caches, cache = await filled(simulated_cluster.client, (1, errors.expired("too old")))
    await create(simulated_cluster.client, "a", "b", "c")
    await asyncio.sleep(1)
    assert names(cache) == ["a", "b", "c"]
    assert reader.lists == 2
    await caches.stop()


async def test_a_failing_server_is_asked_again(simulated_cluster, caplog):
    reader, caches, cache = await filled(
        simulated_cluster.client,
        (1, errors.service_unavailable("not now")),
        (0, errors.service_unavailable("nor now")),
    )
    await create(simulated_cluster.client, "a", "b", "c")
    await asyncio.sleep(10)
    assert names(cache) == ["a", "b", "c"]
    assert reader.lists == 1
    assert "cannot follow" in caplog.text
    await caches.stop()


async def test_a_surprise_leads_to_a_new_list(simulated_cluster, caplog):
    reader, caches, cache = await filled(simulated_cluster.client, (1, RuntimeError("out of the blue")))
    await create(simulated_cluster.client, "a", "b")
    await asyncio.sleep(10)
    assert names(cache) == ["a", "b"]
    assert reader.lists == 2
    assert "beginning anew" in caplog.text
    await caches.stop()


async def test_a_watch_outlives_the_time_after_which_the_server_ends_it(simulated_cluster):
    reader, caches, cache = await filled(simulated_cluster.client)
    await asyncio.sleep(6 * 3600)
    await create(simulated_cluster.client, "late")
    assert names(cache) == ["late"]
    assert reader.lists == 1
    assert len(reader.since) > 5
    await caches.stop()


async def test_what_is_not_served_has_no_objects_and_holds_up_nobody(simulated_cluster):
    caches = Caches(simulated_cluster.client)
    cache = caches.of(Resource("example.com", "v1", "widgets", "Widget"))
    await caches.start()
    assert len(cache) == 0
    await caches.stop()


async def test_a_stopped_cache_leaves_no_watch_behind(simulated_cluster):
    before = simulated_cluster.store.watcher_count
    caches = Caches(simulated_cluster.client)
    caches.of(CONFIG_MAPS)
    await caches.start()
    await settle()
    assert simulated_cluster.store.watcher_count == before + 1
    await caches.stop()
    assert simulated_cluster.store.watcher_count == before
