"""Which runs there are, and where each is made."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import Figure
from bench.kubernetes import neighbour, rayclusters, rayjobs, rayservices
from bench.kubernetes.load import SETTLED
from bench.kubernetes.place import in_private_place
from bench.kubernetes.site import POD_NETWORK
from tests.kubernetes.plane import NotHere, programs

Run = Callable[..., Coroutine[Any, Any, list[Figure]]]
"""Given the directory of the programs and what to measure, returns the figures."""

SOON, LATE = 15.0, SETTLED
"""When idle objects are looked at, unless somebody says otherwise."""


class Watching(NamedTuple):
    """When idle objects are looked at, in seconds from the moment that all were up, and for how long."""

    settle: Sequence[float]
    seconds: float = 30.0


def measure() -> list[Figure]:
    """Return what every run of the benchmarks tells; RayServices and larger loads are on demand."""
    return [*clusters(100, Watching([SOON])), *jobs(30, 0.1, Watching([])), *beside(100)]


def clusters(size: int, watching: Watching) -> list[Figure]:
    return _measured("RayClusters", _here, rayclusters.run, size, *watching)


def beside(workers: int) -> list[Figure]:
    return _measured("a small RayCluster beside a large one", _here, neighbour.run, workers)


def jobs(size: int, hang: float, watching: Watching) -> list[Figure]:
    return _measured("RayJobs", _in_private, rayjobs.run, size, hang, *watching)


def services(size: int, watching: Watching) -> list[Figure]:
    return _measured("RayServices", _in_private, rayservices.run, size, *watching)


def _measured(what: str, where: Callable[..., list[Figure]], run: Run, *arguments: object) -> list[Figure]:
    try:
        return where(run, programs("kwok"), *arguments)
    except NotHere as missing:
        shown = f"not measured: {missing}"
        return [Figure(f"{what} on Kubernetes", shown, "where it can be", within=True)]


def _here(run: Run, binaries: Path, *arguments: object) -> list[Figure]:
    return asyncio.run(run(binaries, *arguments))


def _in_private(run: Run, binaries: Path, *arguments: object) -> list[Figure]:
    return in_private_place(POD_NETWORK, _here, run, binaries, *arguments)
