"""Pods end when their kubelet has ended them, or at once if there is none."""

from datetime import timedelta

import pytest

from kubereef.store.records import Key
from kubewire import errors
from kubewire.times import format_time
from tests.kubereef.kinds.pods.manifests import PODS, pod


async def test_a_pod_on_a_node_gets_its_time(client, clock):
    await client.create(PODS, pod(nodeName="n", terminationGracePeriodSeconds=7))
    gone = await client.delete(f"{PODS}/p")
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 7
    assert gone["metadata"]["deletionTimestamp"] == format_time(clock.now() + timedelta(seconds=7))
    assert gone["metadata"]["generation"] == 2
    assert (await client.get(f"{PODS}/p"))["metadata"] == gone["metadata"]


async def test_a_period_is_shortened_from_when_it_began(client, clock):
    await client.create(PODS, pod(nodeName="n"))
    await client.delete(f"{PODS}/p")
    began = clock.now()
    clock.advance(4)
    shorter = await client.delete(f"{PODS}/p?gracePeriodSeconds=10")
    assert shorter["metadata"]["deletionTimestamp"] == format_time(began + timedelta(seconds=10))
    assert shorter["metadata"]["generation"] == 2


@pytest.mark.parametrize("query", ["", "?gracePeriodSeconds=60", "?propagationPolicy=Foreground"])
async def test_a_deletion_that_has_begun_is_not_begun_again(client, query):
    await client.create(PODS, pod(nodeName="n"))
    first = await client.delete(f"{PODS}/p")
    assert await client.delete(f"{PODS}/p{query}") == first


async def test_a_pod_that_finished_while_it_was_ending_waits_for_its_kubelet(client):
    await client.create(PODS, pod(nodeName="n"))
    await client.delete(f"{PODS}/p")
    await client.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    await client.delete(f"{PODS}/p")
    assert (await client.get(f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 30


@pytest.mark.parametrize(
    ("spec", "status", "query"),
    [
        pytest.param({}, {}, "", id="without a node"),
        pytest.param({"nodeName": "n"}, {"phase": "Failed"}, "", id="finished"),
        pytest.param({"nodeName": "n"}, {}, "?gracePeriodSeconds=0", id="by force"),
        pytest.param(
            {"nodeName": "n", "terminationGracePeriodSeconds": 0}, {}, "", id="without a period of its own"
        ),
    ],
)
async def test_a_pod_is_gone_at_once(client, server, spec, status, query):
    await client.create(PODS, pod(**spec))
    if status:
        await client.patch(f"{PODS}/p/status", {"status": status})
    since = server.around.store.revision
    gone = await client.delete(f"{PODS}/p{query}")
    assert gone["kind"] == "Pod"
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    with pytest.raises(errors.NotFound):
        await client.get(f"{PODS}/p")
    heard = [
        change.type for change in server.around.store.history.since(since) if change.key.resource == "pods"
    ]
    assert heard == ["MODIFIED", "DELETED"], "watchers see that it is ending before it has ended"


async def test_a_dry_run_ends_nothing(client, server):
    await client.create(PODS, pod())
    before = server.around.store.get(Key("pods", "default", "p"))
    gone = await client.delete(f"{PODS}/p?dryRun=All")
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    assert server.around.store.get(Key("pods", "default", "p")) is before


async def test_a_finalizer_holds_a_pod_whose_time_is_over(client):
    await client.create(PODS, {**pod(nodeName="n"), "metadata": {"name": "p", "finalizers": ["a.b/c"]}})
    await client.delete(f"{PODS}/p?gracePeriodSeconds=0")
    assert (await client.get(f"{PODS}/p"))["metadata"]["finalizers"] == ["a.b/c"]
    await client.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        await client.get(f"{PODS}/p")
