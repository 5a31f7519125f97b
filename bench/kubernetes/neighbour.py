"""Small RayClusters beside one that grows: how long they take to be ready, against alone.

On a busy machine most of it is the wait for the scheduler and the nodes, which have the big one's Pods before them.
"""

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
MOST_SECONDS = 1.0


class Small(NamedTuple):
    """When a small cluster was created, had its first Pod, had all Pods ready, and was ready itself."""

    created: float
    begun: float
    running: float
    ready: float

    @property
    def seconds(self) -> float:
        return self.ready - self.created

    @property
    def own(self) -> float:
        """The seconds that are the operator's: the others are the scheduler's and the nodes'."""
        return self.begun - self.created + max(0.0, self.ready - self.running)


async def run(binaries: Path, workers: int) -> list[Figure]:
    """Return what a cluster that grows from nothing to so many workers does to others."""
    async with (
        operated(binaries) as site,
        watched(site.client, KIND.url, _reached) as seen,
        watched(site.client, PODS, _pod_of) as pods,
    ):
        await site.client.create(KIND.url, cluster("big", workers=0))
        await seen.until([("big", "ready")])
        alone = await _small(site, seen, pods, "alone")
        began = time.perf_counter()
        path = "/spec/workerGroupSpecs/0/replicas"
        change = [{"op": "replace", "path": path, "value": workers}]
        await site.client.patch(f"{KIND.url}/big", change, "json")
        await asyncio.sleep(HEAD_START)
        beside = await _small(site, seen, pods, "beside")
        (grown,) = await seen.until([("big", workers)])
        await delete(site, KIND)
    return [figure(workers, alone, beside, grown - began)]


def _pod_of(event: Object) -> Iterable[Hashable]:
    """Tell of which cluster there is a Pod, and whether that is ready."""
    labels, status = event["object"]["metadata"]["labels"], event["object"].get("status") or {}
    yield labels["ray.io/cluster"]
    if any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ()):
        yield labels["ray.io/cluster"], labels["ray.io/node-type"]


def _reached(event: Object) -> Iterable[Hashable]:
    """Tell the state of a cluster, and how many workers it has available."""
    name, status = event["object"]["metadata"]["name"], event["object"].get("status") or {}
    return [(name, status.get("state")), (name, status.get("availableWorkerReplicas", 0))]


async def _small(site: Site, seen: Sightings, pods: Sightings, where: str) -> list[Small]:
    """Return how some small clusters came up, created one after the other."""
    created = {}
    for number in range(SMALL):
        created[name := f"small-{where}-{number}"] = time.perf_counter()
        await site.client.create(KIND.url, cluster(name, workers=1))
        await asyncio.sleep(BETWEEN)
    found = []
    for name, moment in created.items():
        (ready,) = await seen.until([(name, "ready")])
        begun, *running = await pods.until([name, (name, "head"), (name, "worker")])
        found.append(Small(moment, begun, max(running), ready))
    return found


def figure(workers: int, alone: Sequence[Small], beside: Sequence[Small], grown: float) -> Figure:
    """Return how long small clusters took beside one that took so long to grow."""
    ready = ", ".join(f"{small.seconds:.2f}" for small in beside)
    own = ", ".join(f"{small.own:.2f}" for small in beside)
    calm = statistics.median(small.seconds for small in alone)
    return Figure(
        f"a small RayCluster beside one of {workers} workers",
        f"ready after {ready} s, of which the operator took {own} s; alone {calm:.2f} s;"
        f" the big one has grown after {grown:.1f} s",
        f"at most {MOST_SECONDS:g} s, or an eighth of that, for most",
        statistics.median(small.seconds for small in beside) <= max(MOST_SECONDS, grown / 8),
    )
