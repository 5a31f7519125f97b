"""What an operator outlives on a real control plane, without a restart, a lost object or one too many."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.eagleray.world import PATHS, raycluster
from tests.kubernetes.etcd import Etcd
from tests.kubernetes.namespaces import PATIENCE
from tests.kubernetes.operators import Operator

WORKERS = 12
MOST_WORKERS = 60
# So slow that there is a moment at which some Pods are made and others are not.
SLOWLY = ("--qps=4", "--burst=1")
# Sooner than a file is read again by itself, which would hide that nobody looked.
SOON = 30.0
# A candidate asks every 2 s and up to 1.2 times that later; a Lease that was just renewed holds for 15 s. The rest is
# for a machine that is busy with other things.
TAKEOVER = 15.0 + 2 * 2.0 * 2.2 + 10.0


def cluster(name, workers=WORKERS):
    return raycluster(name, namespace=None, workers=[{"replicas": workers, "maxReplicas": MOST_WORKERS}])


async def create(namespace, obj):
    obj["metadata"]["namespace"] = namespace.name
    # A server that has just come back is ready before all kinds are served.
    await namespace.until(lambda: namespace.create(obj))


async def until_pods(namespace, name, least):
    """Wait until so many Pods of a cluster are there, and others are still to come."""

    async def are_there():
        found = len(await namespace.pods(name))
        return found if found >= least else 0

    assert await namespace.until(are_there) < WORKERS


async def is_whole(namespace, name, workers=WORKERS, seconds=PATIENCE):
    """Wait until a cluster is ready; it has all its Pods then, and not one more."""

    async def has_all():
        status = await namespace.status("RayCluster", name)
        return status.get("state") == "ready" and status.get("readyWorkerReplicas") == workers

    await namespace.until(has_all, seconds, about=lambda: namespace.status("RayCluster", name))
    heads, others = await namespace.pods(name, "head"), await namespace.pods(name, "worker")
    assert (len(heads), len(others)) == (1, workers)


def pods_deleted(audit, mark, namespace):
    written = audit.writes(mark, namespace.name)
    return [str(one) for one in written if one.what == "pods" and one.verb.startswith("delete")]


@pytest.fixture
def watched(namespace):
    return f"--watch-namespace={namespace.name}"


async def test_a_second_operator_takes_over_from_one_that_was_killed_and_makes_nothing_twice(
    namespace, start, audit
):
    mark = audit.mark()
    first = await start(*SLOWLY, leads=True)
    await namespace.until(lambda: asyncio.to_thread(lambda: first.is_leading))
    second = await start(leads=True)
    assert not second.is_leading
    await create(namespace, cluster("begun"))
    await until_pods(namespace, "begun", 3)
    first.kill()
    assert len(await namespace.pods("begun")) <= WORKERS
    await create(namespace, cluster("new", 1))
    await namespace.until(lambda: asyncio.to_thread(lambda: second.is_leading), TAKEOVER)
    await is_whole(namespace, "begun")
    await is_whole(namespace, "new", 1)
    assert pods_deleted(audit, mark, namespace) == []
    made = [
        one.name for one in audit.writes(mark, namespace.name) if (one.verb, one.what) == ("create", "pods")
    ]
    assert len(made) == WORKERS + 1 + 2
    assert second.terminate() == 0


@pytest.mark.parametrize("part", ["kube-apiserver", "etcd"])
async def test_an_operator_goes_on_when_this_is_killed_and_comes_back(
    part, plane, namespace, start, audit, watched
):
    operator = await start(watched, *SLOWLY)
    mark = audit.mark()
    await create(namespace, cluster("before"))
    await until_pods(namespace, "before", 3)
    plane.kill(part)
    await asyncio.sleep(2)
    plane.start(part)
    await is_whole(namespace, "before")
    await create(namespace, cluster("after", 1))
    await is_whole(namespace, "after", 1)
    assert operator.is_alive
    assert pods_deleted(audit, mark, namespace) == []


async def test_what_happened_while_a_watch_was_cut_off_and_forgotten_is_found_by_asking_for_everything(
    plane, namespace, start, watched
):
    operator = await start(watched)
    await create(namespace, cluster("old", 2))
    await is_whole(namespace, "old", 2)
    operator.pause()
    # What a server has sent already would be read later; so its connections end before anything happens.
    plane.kill("kube-apiserver")
    plane.start("kube-apiserver")
    (lost, _) = await namespace.pods("old", "worker")
    await namespace.delete("Pod", lost["metadata"]["name"])
    await create(namespace, cluster("new", 1))
    await namespace.until(lambda: _is_gone(namespace, lost))
    Etcd(plane).forget_history()
    operator.resume()
    await is_whole(namespace, "new", 1)
    await is_whole(namespace, "old", 2)
    assert operator.said("asking for everything")
    assert operator.is_alive


async def _is_gone(namespace, pod):
    return await namespace.get("Pod", pod["metadata"]["name"]) is None


async def test_an_operator_whose_token_is_taken_away_goes_on_with_the_next_one(
    namespace, account, tmp_path, watched
):
    secret = await account.secret(namespace.api, f"holds-{namespace.name}")
    token = tmp_path / "renewed"
    token.write_text(await account.token(namespace.api, secret))
    flags = ("--enable-leader-election=false", watched)
    async with _running(Operator(account.kubeconfig(token), tmp_path / "operator.log", *flags)) as operator:
        await create(namespace, cluster("before", 1))
        await is_whole(namespace, "before", 1)
        await account.revoke(namespace.api, secret)
        await _refused_while_busy(namespace, operator, "before")
        await create(namespace, cluster("after", 1))
        # No watch has ended, so that the operator knows of it.
        refused = operator.refusals(401)
        await namespace.until(lambda: asyncio.to_thread(lambda: operator.refusals(401) > refused + 1))
        assert await namespace.pods("after") == []
        renewed = tmp_path / "next"
        renewed.write_text(await account.token(namespace.api))
        renewed.rename(token)
        await is_whole(namespace, "after", 1, SOON)
        assert operator.terminate() == 0


async def _refused_while_busy(namespace, operator, name):
    """Give an operator something to do until it is refused: a server believes a token for ten seconds after its end."""
    place = f"{PATHS['RayCluster'].format(namespace.name)}/{name}"
    for workers in range(2, MOST_WORKERS + 1):
        scaled = {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": workers}
        await namespace.api.patch(place, [scaled], "json")
        await asyncio.sleep(1)
        if operator.refusals(401):
            return
    raise AssertionError("a token that was taken away is still believed")


@asynccontextmanager
async def _running(operator):
    try:
        await asyncio.to_thread(operator.until_ready)
        yield operator
    finally:
        operator.kill()
