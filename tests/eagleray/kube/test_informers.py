"""Informers against a whole API server, under virtual time, with faults on the way."""

import asyncio

import msgspec
import pytest

from eagleray.kube.client import Client
from eagleray.kube.informers import Informers, Timing
from eagleray.kube.resources import CONFIG_MAPS, NODES, RAY_CLUSTERS, Ref
from eagleray.kube.transport import Answer, AnswerLost, LocalTransport, Reply
from eagleray.kube.views import typed, whole
from kubereef.simulation import SimulatedCluster, run, settle
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.conftest import World
from tests.eagleray.kube.local import status

MAPS = "/api/v1/namespaces/{}/configmaps"
WHOLE = (CONFIG_MAPS, whole(CONFIG_MAPS), {"label_selector": "test"})
NO_WATCH_LIST = status(errors.Invalid("sendInitialEvents is forbidden"))


async def make(world, name, namespace="default", **labels):
    metadata = {"name": name, "labels": {"test": "yes", **labels}}
    return await world.server.create(MAPS.format(namespace), {"metadata": metadata, "data": {}})


def names(cache):
    return [obj["metadata"]["name"] for obj in cache]


def config_maps(world):
    return world.faults.verbs("configmaps")


async def test_what_happens_on_the_server_is_in_the_cache(world):
    await make(world, "a")
    _, maps = await world.informers(WHOLE)
    assert names(maps) == ["a"]
    await make(world, "b")
    await settle()
    assert names(maps) == ["a", "b"]
    await world.server.delete(MAPS.format("default") + "/a")
    await settle()
    assert names(maps) == ["b"]


async def test_one_watch_brings_what_there_is_and_what_happens(world):
    await make(world, "a")
    await world.informers(WHOLE)
    assert config_maps(world) == ["watch"]


async def test_a_server_without_watch_lists_is_listed_page_by_page(world):
    for name in "abc":
        await make(world, name)
    world.faults.refuse_watches = [NO_WATCH_LIST]
    _, maps = await world.informers(WHOLE)
    assert names(maps) == ["a", "b", "c"]
    await settle()
    assert config_maps(world) == ["watch", "list", "watch"]
    await make(world, "d")
    await settle()
    assert names(maps) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("every", "patience"),
    [
        pytest.param(10**6, Timing().silence, id="and falls silent"),
        pytest.param(7, Timing().beginning, id="and goes on with events"),
    ],
)
async def test_a_server_that_never_marks_the_end_of_the_beginning_is_listed(virtual_time, every, patience):
    item = {"metadata": {"name": "a", "resourceVersion": "1"}}
    added = msgspec.json.encode({"type": "ADDED", "object": item}) + b"\n"
    listed = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": [item]})

    async def call(request):
        return Reply(Answer(200), events()) if request.verb == "watch" else Reply(Answer(200, listed))

    async def events():
        while True:
            yield added
            await asyncio.sleep(every)

    entropy = SeededEntropy(1)
    informers = Informers(Client(LocalTransport(call), virtual_time, entropy), virtual_time, entropy)
    nodes = informers.add(NODES, whole(NODES)).cache
    async with asyncio.timeout(1000):
        await informers.start()
    assert names(nodes) == ["a"]
    assert virtual_time.monotonic() == pytest.approx(patience, abs=8)
    await informers.stop()


async def test_a_cut_watch_goes_on_where_it_was(world):
    _, maps = await world.informers(WHOLE)
    await make(world, "a")
    await settle()
    world.faults.cut_watches()
    await make(world, "b")
    await asyncio.sleep(1)
    assert names(maps) == ["a", "b"]
    assert config_maps(world) == ["watch", "watch"]
    resumed = dict(world.faults.sent[-1].query)
    assert int(resumed["resourceVersion"]) > 0
    assert "sendInitialEvents" not in resumed


async def test_a_watch_that_ends_in_good_order_is_opened_again_at_once(world):
    timing = Timing(shortest_watch=10, longest_watch=10)
    _, maps = await world.informers(WHOLE, timing=timing)
    await asyncio.sleep(95)
    assert config_maps(world) == ["watch"] * 10
    await make(world, "a")
    await settle()
    assert names(maps) == ["a"]


async def test_bookmarks_keep_a_quiet_watch_young(world):
    _, maps = await world.informers(WHOLE)
    for number in range(30):
        await world.server.create(MAPS.format("default"), {"metadata": {"name": f"noise-{number}"}})
    await asyncio.sleep(130)
    world.faults.cut_watches()
    await asyncio.sleep(1)
    assert int(dict(world.faults.sent[-1].query)["resourceVersion"]) == world.cluster.store.revision
    late_answer = {"name": "a", "namespace": "default", "uid": "u", "labels": {"test": ""}}
    maps.saw({"metadata": {**late_answer, "resourceVersion": str(world.cluster.store.revision)}})
    assert names(maps) == [], "the watch has told all up to here, and this object has ended by now"


async def test_a_version_that_is_too_old_means_asking_for_everything(world):
    await make(world, "a")
    _, maps = await world.informers(WHOLE)
    world.faults.refuse_watches = [status(errors.expired("too old resource version"))]
    world.faults.cut_watches()
    await world.server.delete(MAPS.format("default") + "/a")
    await make(world, "b")
    await asyncio.sleep(2)
    assert names(maps) == ["b"]


async def test_failures_are_met_with_growing_pauses_and_said(world):
    informers, maps = await world.informers(WHOLE)
    world.faults.refuse_watches = [AnswerLost("no route")] * 6
    world.faults.cut_watches()
    await settle()
    assert informers.problems == ["configmaps: cut off"]
    await asyncio.sleep(1)
    assert informers.problems == ["configmaps: no route"]
    assert 2 <= len(config_maps(world)) <= 5
    await make(world, "a")
    await asyncio.sleep(60)
    assert names(maps) == ["a"]
    assert informers.problems == []
    before = len(config_maps(world))
    world.faults.cut_watches()
    await asyncio.sleep(Timing().first_pause)
    assert len(config_maps(world)) == before + 1, "after a success, pauses are short again"


async def test_a_server_that_asks_for_a_pause_gets_it(world):
    await world.informers(WHOLE)
    world.faults.refuse_watches = [status(errors.too_many_requests("later", retry_after_seconds=20))]
    world.faults.cut_watches()
    await asyncio.sleep(19)
    assert config_maps(world) == ["watch"] * 2
    await asyncio.sleep(4)
    assert config_maps(world) == ["watch"] * 3


async def test_a_resource_that_is_not_served_yet_is_waited_for(world):
    informers = Informers(world.client, world.clock, world.entropy)
    world.started.append(informers)
    informers.add(RAY_CLUSTERS, whole(RAY_CLUSTERS))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await informers.start()
    assert not informers.is_synced
    assert "rayclusters.ray.io" in informers.problems[0]


async def test_a_watch_that_dies_silently_is_noticed_and_opened_again(world):
    _, maps = await world.informers(WHOLE)
    world.faults.hold_news()
    await make(world, "a")
    await asyncio.sleep(Timing().silence - 1)
    assert names(maps) == []
    assert config_maps(world) == ["watch"]
    world.faults.held = asyncio.Event()  # what was held back never arrives: that connection is dead
    world.faults.held.set()
    await asyncio.sleep(5)
    assert names(maps) == ["a"]
    assert config_maps(world) == ["watch", "watch"]


async def test_selectors_choose_on_the_server(world):
    await make(world, "a", app="ray")
    await make(world, "b", app="web")
    _, by_label, by_field = await world.informers(
        (CONFIG_MAPS, whole(CONFIG_MAPS), {"label_selector": "test,app=ray"}),
        (CONFIG_MAPS, whole(CONFIG_MAPS), {"field_selector": "metadata.name=b"}),
    )
    assert names(by_label) == ["a"]
    assert names(by_field) == ["b"]
    await world.server.patch(MAPS.format("default") + "/a", {"metadata": {"labels": {"app": "web"}}})
    await settle()
    assert names(by_label) == []


async def test_several_namespaces_are_watched_and_no_other(world):
    for namespace in ("one", "two", "three"):
        await world.server.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await make(world, f"in-{namespace}", namespace)
    _, maps = await world.informers(WHOLE, namespaces=("one", "two"))
    assert sorted(names(maps)) == ["in-one", "in-two"]
    await make(world, "late", "two")
    await make(world, "elsewhere", "three")
    await settle()
    assert sorted(names(maps)) == ["in-one", "in-two", "late"]


async def test_what_belongs_to_no_namespace_is_watched_whole(world):
    await world.server.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    _, nodes = await world.informers((NODES, whole(NODES), {}), namespaces=("one", "two"))
    assert names(nodes) == ["n"]


async def test_an_object_that_the_view_cannot_read_is_said_and_does_not_end_the_informer(world, caplog):
    class Wrong(msgspec.Struct):
        data: int

    await make(world, "a")
    informers = Informers(world.client, world.clock, world.entropy)
    world.started.append(informers)
    informers.add(CONFIG_MAPS, typed(Wrong), label_selector="test")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await informers.start()
    assert "data" in informers.problems[0]
    await world.server.delete(MAPS.format("default") + "/a")
    await asyncio.sleep(30)
    assert informers.is_synced


async def test_a_stopped_informer_lets_go_of_its_watch(world):
    informers, _ = await world.informers(WHOLE)
    assert world.faults.open == 1
    await informers.stop()
    assert world.faults.open == 0


def test_the_same_seed_leads_to_the_same_requests():
    async def life():
        world = World(cluster := SimulatedCluster(3))
        await cluster.start()
        informers, maps = await world.informers(WHOLE)
        for number in range(5):
            await make(world, f"m{number}")
            world.faults.cut_watches()
            await asyncio.sleep(number)
        made = await world.writer(informers).create(
            CONFIG_MAPS, {"metadata": {"name": "w", "namespace": "default", "labels": {"test": "w"}}}
        )
        await world.writer(informers).delete(CONFIG_MAPS, Ref.of(made))
        await asyncio.sleep(700)
        sent = [(request.verb, request.target) for request in world.faults.sent]
        found = names(maps)
        await informers.stop()
        await cluster.stop()
        return sent, found

    first = run(life())
    assert first == run(life())
    assert first[1] == [f"m{number}" for number in range(5)]


async def test_a_server_that_hangs_up_at_once_is_not_asked_all_the_time(virtual_time):
    listed = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": []})
    asked = []

    async def call(request):
        asked.append(request.verb)
        if "sendInitialEvents" in dict(request.query):
            return Reply(NO_WATCH_LIST)
        return Reply(Answer(200, listed if request.verb == "list" else b""))

    entropy = SeededEntropy(1)
    informers = Informers(Client(LocalTransport(call), virtual_time, entropy), virtual_time, entropy)
    informers.add(NODES, whole(NODES))
    await informers.start()
    await asyncio.sleep(60)
    assert asked[:2] == ["watch", "list"]
    assert 5 <= len(asked) <= 15
    await informers.stop()
