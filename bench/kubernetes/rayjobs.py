"""RayJobs in HTTPMode: how they start, how soon their end is noticed, also beside dashboards that hang, and idle ones.

A reaction is the time from a job's end in Ray to `.status.jobStatus`. It is mostly the interval at which dashboards are
asked, 3 s for jobs as young as these are then; for jobs that have run quietly for long it is as in
docs/differences.md.
"""

# What builds the manifests of the tests has no types.
# mypy: disable-error-code="no-untyped-call"

import asyncio
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure
from bench.kubernetes.load import (
    Idle,
    Kind,
    Object,
    Polling,
    Start,
    delete,
    end_figures,
    idle,
    polling_figure,
    start,
    start_figures,
    watched,
)
from bench.kubernetes.place import named_services
from bench.kubernetes.ray import Heads, answering
from bench.kubernetes.readings import percentile
from bench.kubernetes.site import Site, operated
from tests.eagleray.world import rayjob

# The reference asks every 3 s; a question takes it 1.0 ms of CPU time with 100 jobs, and 1.5 ms with 300.
FIXED = Polling(20, 0.0015)
HANGING = "hang-"
CALM = 5.0
# The ends of jobs are spread over four intervals, so that they meet every phase of one.
ENDS_LAST = 12.0


def _job(name: str) -> Object:
    made: Object = rayjob(name, submissionMode="HTTPMode", cluster={"workers": [{"replicas": 1}]})
    return made


def _is_running(obj: Object) -> bool:
    return (obj.get("status") or {}).get("jobStatus") == "RUNNING"


KIND = Kind("rayjobs", _job, _is_running)


class Round(NamedTuple):
    """What one load of jobs has shown. `reactions` are those of the jobs whose dashboards answer."""

    start: Start
    idle: Sequence[Idle]
    reactions: Sequence[float]
    gone: float

    @property
    def p50(self) -> float:
        return percentile(self.reactions, 0.5)

    @property
    def p99(self) -> float:
        return percentile(self.reactions, 0.99)


async def run(
    binaries: Path, size: int, hang: float, settle: Sequence[float], seconds: float
) -> list[Figure]:
    """Return what so many RayJobs cost. Those that hang, and those that are left alone, are rounds of their own."""
    title = f"{size} RayJobs on Kubernetes"
    heads = Heads(lambda host: host.startswith(HANGING))
    async with named_services(), answering(heads), operated(binaries) as site:
        calm = await _round(site, heads, size)
        figures = [
            *start_figures(title, calm.start, most_share=1.2, most_requests=20),
            Figure(f"{title}, an end noticed", _reaction(calm), "p99 at most 5 s", calm.p99 <= 5),
        ]
        if hang:
            figures.append(beside_figure(title, calm, await _round(site, heads, size, hang=hang)))
        if settle:
            quiet = await _round(site, heads, size, settle=settle, seconds=seconds)
            figures.append(polling_figure(title, size, quiet.idle, FIXED))
            late = f"{_reaction(quiet)}, after {quiet.idle[-1].after + seconds:.0f} s"
            figures.append(Figure(f"{title}, an end noticed late", late, "p99 at most 65 s", quiet.p99 <= 65))
        return figures + end_figures(title, site.peak(), calm.gone)


async def _round(
    site: Site,
    heads: Heads,
    size: int,
    *,
    hang: float = 0.0,
    settle: Sequence[float] = (),
    seconds: float = 0.0,
) -> Round:
    hanging = round(size * hang)
    others = [f"bench-{number:04}" for number in range(size - hanging)]
    names = others + [f"{HANGING}{number:04}" for number in range(hanging)]
    random.Random(1).shuffle(names)
    started = await start(site, KIND, names, others)
    quiet = await idle(site, settle, seconds, heads)
    await asyncio.sleep(CALM)
    reactions = await _reactions(site, heads, others)
    return Round(started, quiet, reactions, await delete(site, KIND))


async def _reactions(site: Site, heads: Heads, names: Sequence[str]) -> list[float]:
    """Return how long the end of each job takes to be known, one job after the other in any order."""
    found = {obj["metadata"]["name"]: obj["status"] for obj in (await site.client.get(KIND.url))["items"]}
    chance = random.Random(1)
    order = chance.sample(list(names), len(names))
    ended: dict[str, float] = {}

    def succeeded(event: Object) -> Iterable[str]:
        obj = event["object"]
        is_known = (obj.get("status") or {}).get("jobStatus") == "SUCCEEDED"
        return [obj["metadata"]["name"]] if is_known else []

    async with watched(site.client, KIND.url, succeeded) as known:
        for name in order:
            heads.finish(found[name]["dashboardURL"], found[name]["jobId"])
            ended[name] = time.perf_counter()
            await asyncio.sleep(chance.uniform(0, 2 * ENDS_LAST / len(order)))
        moments = await known.until(order)
    return [moment - ended[name] for moment, name in zip(moments, order, strict=True)]


def _reaction(found: Round) -> str:
    return f"p50 {found.p50:.1f} s, p99 {found.p99:.1f} s"


def beside_figure(title: str, calm: Round, hanging: Round) -> Figure:
    """Return how much later the ends of jobs are noticed beside dashboards that hang."""
    pairs = [(calm.p50, hanging.p50), (calm.p99, hanging.p99)]
    count = hanging.start.size - len(hanging.reactions)
    return Figure(
        f"{title}, {count} of them hanging",
        f"the others run after {hanging.start.seconds:.1f} s, without them {calm.start.seconds:.1f} s;"
        f" an end noticed {_reaction(hanging)}, without them {_reaction(calm)}",
        "1.5-fold or 1 s more at most",
        all(with_them <= max(1.5 * without, without + 1) for without, with_them in pairs),
    )
