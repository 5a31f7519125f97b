"""Passes over keys, and starting and stopping them."""

import asyncio

import pytest

from kubereef.controllers.caches import Key
from kubereef.controllers.resources import CONFIG_MAPS, PODS
from kubereef.controllers.runtime import Controller
from kubereef.simulation import settle
from kubewire import errors

CM = "/api/v1/namespaces/default/configmaps"


class Probe(Controller):
    """Remembers its passes; `outcomes` says what each of them does: raise, or return."""

    name = "probe"

    def __init__(self, world, outcomes=()):
        super().__init__(world)
        self.outcomes = list(outcomes)
        self.passes = []
        self.cache = self.watch(CONFIG_MAPS)

    async def sync(self, key):
        self.passes.append((key.name, asyncio.get_running_loop().time()))
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def probe_with(cluster, *outcomes):
    made = []

    def factory(world):
        made.append(Probe(world, outcomes))
        return made[-1]

    await cluster.run(factory)
    return made[-1]


async def test_every_object_gets_a_pass_at_the_start_and_after_each_change(simulated_cluster):
    client = simulated_cluster.client
    await client.create(CM, {"metadata": {"name": "a"}})
    probe = await probe_with(simulated_cluster)
    assert [name for name, _ in probe.passes] == ["a"]
    await client.patch(f"{CM}/a", {"data": {"k": "v"}})
    await client.create(CM, {"metadata": {"name": "b"}})
    await settle()
    await client.delete(f"{CM}/b")
    await settle()
    assert [name for name, _ in probe.passes] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("failure", "logged"),
    [
        pytest.param(RuntimeError("a mistake"), "Traceback", id="a crash"),
        pytest.param(errors.internal_error("hiccup"), "hiccup", id="a refusal"),
        pytest.param(errors.modified("configmaps", "a"), "", id="a conflict, which is nothing to talk about"),
    ],
)
async def test_a_pass_that_fails_is_logged_and_made_again(simulated_cluster, caplog, failure, logged):
    await simulated_cluster.client.create(CM, {"metadata": {"name": "a"}})
    probe = await probe_with(simulated_cluster, failure, failure)
    await asyncio.sleep(10)
    times = [time for _, time in probe.passes]
    assert len(times) == 3
    assert times[2] - times[1] > times[1] - times[0] > 0
    if logged:
        assert logged in caplog.text
    else:
        assert caplog.text == ""


async def test_a_pass_can_ask_for_another_one_later(simulated_cluster):
    await simulated_cluster.client.create(CM, {"metadata": {"name": "a"}})
    probe = await probe_with(simulated_cluster, 3600.0)
    await asyncio.sleep(2 * 3600)
    (_, first), (_, second) = probe.passes
    assert second - first == pytest.approx(3600)


async def test_two_keys_are_worked_on_at_once_but_one_key_never_twice(simulated_cluster):
    under_way, most, twice = set(), 0, False

    class Slow(Probe):
        async def sync(self, key):
            nonlocal most, twice
            twice = twice or key in under_way
            under_way.add(key)
            most = max(most, len(under_way))
            self.queue.add(key) if len(self.passes) < 4 else None
            self.passes.append(key)
            await asyncio.sleep(1)
            under_way.discard(key)

    for name in ("a", "b"):
        await simulated_cluster.client.create(CM, {"metadata": {"name": name}})
    await simulated_cluster.run(Slow)
    await asyncio.sleep(60)
    assert most == 2
    assert not twice


async def test_stopping_waits_for_the_pass_under_way(simulated_cluster):
    finished = []

    class Slow(Probe):
        async def sync(self, key):
            await asyncio.sleep(5)
            finished.append(key.name)

    await simulated_cluster.client.create(CM, {"metadata": {"name": "a"}})
    await simulated_cluster.run(Slow)
    await simulated_cluster.stop_controllers()
    assert finished == ["a"]
    await simulated_cluster.client.create(CM, {"metadata": {"name": "b"}})
    await asyncio.sleep(60)
    assert finished == ["a"]


async def test_a_controller_that_is_started_again_begins_with_what_there_is(simulated_cluster):
    probe = await probe_with(simulated_cluster)
    await simulated_cluster.stop_controllers()
    await simulated_cluster.client.create(CM, {"metadata": {"name": "meanwhile"}})
    await asyncio.sleep(1)
    assert probe.passes == []
    later = await probe_with(simulated_cluster)
    assert [name for name, _ in later.passes] == ["meanwhile"]


async def test_what_a_controller_writes_it_sees_at_once(simulated_cluster):
    probe = await probe_with(simulated_cluster)
    made = await probe.hands.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    assert probe.cache.get(("default", "a")) == made
    changed = await probe.hands.patch(CONFIG_MAPS, made, {"data": {"k": "v"}})
    assert probe.cache.get(("default", "a")) == changed
    await probe.hands.delete(CONFIG_MAPS, changed)
    assert probe.cache.get(("default", "a")) is None


async def test_a_deletion_that_only_begins_is_seen_as_such(simulated_cluster):
    probe = await probe_with(simulated_cluster)
    held = {"metadata": {"name": "a", "namespace": "default", "finalizers": ["example.com/hold"]}}
    made = await probe.hands.create(CONFIG_MAPS, held)
    await probe.hands.delete(CONFIG_MAPS, made)
    assert probe.cache.get(("default", "a"))["metadata"]["deletionTimestamp"]


async def test_a_deletion_is_of_this_object_and_not_of_its_successor(simulated_cluster):
    probe = await probe_with(simulated_cluster)
    first = await probe.hands.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    await probe.hands.delete(CONFIG_MAPS, first)
    await probe.hands.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    with pytest.raises(errors.Conflict):
        await probe.hands.delete(CONFIG_MAPS, first)
    assert (await simulated_cluster.client.get(f"{CM}/a"))["metadata"]["name"] == "a"


async def test_deleting_what_is_gone_is_no_failure(simulated_cluster):
    probe = await probe_with(simulated_cluster)
    made = await probe.hands.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    await simulated_cluster.client.delete(f"{CM}/a")
    await probe.hands.delete(CONFIG_MAPS, made)
    assert probe.cache.get(("default", "a")) is None


async def test_a_controller_asks_under_its_own_name(simulated_cluster):
    users = []
    gate = simulated_cluster.server.gatekeeper
    authorize = gate.authorize

    def noting(user, target):
        users.append((user.name, target.verb))
        authorize(user, target)

    gate.authorize = noting
    probe = await probe_with(simulated_cluster)
    await probe.hands.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    assert ("system:serviceaccount:kube-system:probe", "create") in users
    assert ("system:serviceaccount:kube-system:kube-controller-manager", "watch") in users


@pytest.mark.parametrize(
    ("resource", "where", "url"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("ns",), "/api/v1/namespaces/ns/pods"),
        (PODS, ("ns", "p"), "/api/v1/namespaces/ns/pods/p"),
        (PODS, ("ns", "p", "status"), "/api/v1/namespaces/ns/pods/p/status"),
    ],
)
def test_resources_know_their_addresses(resource, where, url):
    assert resource.url(*where) == url


def test_a_key_reads_like_a_name():
    assert str(Key("ns", "p")) == "ns/p"
    assert str(Key("", "n")) == "n"
