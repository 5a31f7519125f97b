"""Small RayClusters beside one that grows: how long they take to be ready, against alone."""

import asyncio
import statistics
import time
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure
from bench.kubernetes.load import PODS, Object, Sightings, delete, watched
from bench.kubernetes.rayclusters import KIND, cluster
from bench.kubernetes.site import Site, operated

SMALL = 5
# The first comes when the growing one is certainly being worked on, the others while it still is.
HEAD_START = 0.5
BETWEEN = 1.0
MOST_SECONDS = 2.0


class Small(NamedTuple):
    """Seconds that small clusters took until their first Pod was there, which is the operator's, and until ready."""

    begun: Sequence[float]
    ready: Sequence[float]


async def run(binaries: Path, workers: int) -> list[Figure]:
    """Return what a cluster that grows from nothing to so many workers does to others."""
    async with (
        operated(binaries) as site,
        watched(site.client, KIND.url, _reached) as seen,
        watched(site.client, PODS, _cluster_of) as begun,
    ):
        await site.client.create(KIND.url, cluster("big", workers=0))
        await seen.until([("big", "ready")])
        alone = await _small(site, seen, begun, "alone")
        began = time.perf_counter()
        path = "/spec/workerGroupSpecs/0/replicas"
        change = [{"op": "replace", "path": path, "value": workers}]
        await site.client.patch(f"{KIND.url}/big", change, "json")
        await asyncio.sleep(HEAD_START)
        beside = await _small(site, seen, begun, "beside")
        (grown,) = await seen.until([("big", workers)])
        await delete(site, KIND)
    return [figure(workers, alone, beside, grown - began)]


def _cluster_of(event: Object) -> Iterable[Hashable]:
    return [event["object"]["metadata"]["labels"]["ray.io/cluster"]]


def _reached(event: Object) -> Iterable[Hashable]:
    """Tell the state of a cluster, and how many workers it has available."""
    name, status = event["object"]["metadata"]["name"], event["object"].get("status") or {}
    return [(name, status.get("state")), (name, status.get("availableWorkerReplicas", 0))]


async def _small(site: Site, seen: Sightings, begun: Sightings, where: str) -> Small:
    """Return how long each of some small clusters takes, created one after the other."""
    created = {}
    for number in range(SMALL):
        created[name := f"small-{where}-{number}"] = time.perf_counter()
        await site.client.create(KIND.url, cluster(name, workers=1))
        await asyncio.sleep(BETWEEN)
    first = await begun.until(list(created))
    ready = await seen.until([(name, "ready") for name in created])
    since = created.values()
    return Small(*([to - at for to, at in zip(moments, since, strict=True)] for moments in (first, ready)))


def figure(workers: int, alone: Small, beside: Small, grown: float) -> Figure:
    """Return how long small clusters took beside one that took so long to grow."""
    shown = ", ".join(f"{seconds:.2f}" for seconds in beside.ready)
    pods = ", ".join(f"{seconds:.2f}" for seconds in beside.begun)
    return Figure(
        f"a small RayCluster beside one of {workers} workers",
        f"ready after {shown} s (its first Pod is there after {pods} s), alone {statistics.median(alone.ready):.2f} s;"
        f" the big one has grown after {grown:.1f} s",
        f"at most {MOST_SECONDS:g} s",
        max(beside.ready) <= MOST_SECONDS,
    )
