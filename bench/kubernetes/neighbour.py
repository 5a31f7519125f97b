"""Small RayClusters beside one that grows: how long they take to be ready, against alone."""

import asyncio
import statistics
import time
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure
from bench.kubernetes.load import Object, Sightings, delete, watched
from bench.kubernetes.rayclusters import KIND, cluster
from bench.kubernetes.site import Site, operated

SMALL = 5
# The first comes when the growing one is certainly being worked on, the others while it still is.
HEAD_START = 0.5
BETWEEN = 1.0
MOST_SECONDS = 2.0


class Report(NamedTuple):
    """Seconds to ready of small clusters, and until the big one has all its workers."""

    workers: int
    alone: Sequence[float]
    beside: Sequence[float]
    grown: float


async def run(binaries: Path, workers: int) -> list[Figure]:
    """Return what a cluster that grows from nothing to so many workers does to others."""
    async with operated(binaries) as site, watched(site.client, KIND.url, _reached) as seen:
        await site.client.create(KIND.url, cluster("big", workers=0))
        await seen.until([("big", "ready")])
        alone = await _small(site, seen, "alone")
        began = time.perf_counter()
        path = "/spec/workerGroupSpecs/0/replicas"
        change = [{"op": "replace", "path": path, "value": workers}]
        await site.client.patch(f"{KIND.url}/big", change, "json")
        await asyncio.sleep(HEAD_START)
        beside = await _small(site, seen, "beside")
        (grown,) = await seen.until([("big", workers)])
        await delete(site, KIND)
    return _figures(Report(workers, alone, beside, grown - began))


def _reached(event: Object) -> Iterable[Hashable]:
    """Tell the state of a cluster, and how many workers it has available."""
    name, status = event["object"]["metadata"]["name"], event["object"].get("status") or {}
    return [(name, status.get("state")), (name, status.get("availableWorkerReplicas", 0))]


async def _small(site: Site, seen: Sightings, where: str) -> list[float]:
    """Return how long each of some small clusters takes, created one after the other."""
    created = {}
    for number in range(SMALL):
        created[name := f"small-{where}-{number}"] = time.perf_counter()
        await site.client.create(KIND.url, cluster(name, workers=1))
        await asyncio.sleep(BETWEEN)
    moments = await seen.until([(name, "ready") for name in created])
    return [moment - since for moment, since in zip(moments, created.values(), strict=True)]


def _figures(report: Report) -> list[Figure]:
    beside = ", ".join(f"{seconds:.2f}" for seconds in report.beside)
    return [
        Figure(
            f"a small RayCluster beside one of {report.workers} workers",
            f"ready after {beside} s, alone {statistics.median(report.alone):.2f} s;"
            f" the big one has grown after {report.grown:.1f} s",
            f"at most {MOST_SECONDS:g} s",
            max(report.beside) <= MOST_SECONDS,
        )
    ]
