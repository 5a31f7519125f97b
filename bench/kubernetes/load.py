"""Many objects of one kind: created, watched until they are up, left alone, and deleted."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from bench.figures import Figure
from bench.kubernetes.ray import Heads
from bench.kubernetes.readings import percentile
from bench.kubernetes.site import API_SERVER, OPERATOR, PATIENCE, Site, until

Object = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
MOST_MEBIBYTES = 400
MANY, SETTLED = 100, 630.0
"""Dashboards are asked ever more seldom, and once a minute after ten minutes without news."""

_AT_ONCE = 8
_BEFORE_ANOTHER_WATCH = 0.05


class Kind(NamedTuple):
    """What is loaded: where it lives, how one is written, and whether one is up."""

    plural: str
    make: Callable[[str], Object]
    is_up: Callable[[Object], bool]

    @property
    def url(self) -> str:
        return f"/apis/ray.io/v1/namespaces/default/{self.plural}"


class Sightings:
    """The moments at which things were first seen in a watch."""

    def __init__(self) -> None:
        self.first: dict[Hashable, float] = {}
        self._news = asyncio.Condition()

    async def note(self, things: Iterable[Hashable]) -> None:
        now = time.perf_counter()
        for thing in things:
            self.first.setdefault(thing, now)
        async with self._news:
            self._news.notify_all()

    async def until(self, things: Collection[Hashable]) -> list[float]:
        """Wait until all of these have been seen; returns when each was."""
        wanted = set(things)
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: wanted <= self.first.keys())
        return [self.first[thing] for thing in things]


class Watches(Protocol):
    """What a watch needs of a client."""

    async def get(self, url: str) -> Object: ...

    def watch(self, url: str) -> AsyncIterator[Object]: ...


@asynccontextmanager
async def watched(
    client: Watches, url: str, shown: Callable[[Object], Iterable[Hashable]]
) -> AsyncIterator[Sightings]:
    """Give what is seen from now on; `shown` says what an event of the watch shows."""
    sightings = Sightings()
    version = (await client.get(f"{url}?limit=1"))["metadata"]["resourceVersion"]

    async def watch(version: str) -> None:
        while True:
            async for event in client.watch(f"{url}?resourceVersion={version}"):
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the watch of {url} has failed: {event['object'].get('message')}")
                version = event["object"]["metadata"]["resourceVersion"]
                await sightings.note(shown(event))
            # The server ends watches when it likes, as when a definition has changed or a watcher falls behind.
            await asyncio.sleep(_BEFORE_ANOTHER_WATCH)

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch(version))
        yield sightings
        watching.cancel()


class Start(NamedTuple):
    """What it took until all were up. `cpu` is in seconds by process."""

    size: int
    seconds: float
    median: float
    cpu: dict[str, float]
    requests: Counter[str]

    @property
    def share(self) -> float:
        """The operator's CPU as a part of kube-apiserver's."""
        return self.cpu[OPERATOR] / self.cpu[API_SERVER]

    @property
    def wait(self) -> float:
        """The time it took, by what kube-apiserver worked in it: so machines can be compared."""
        return self.seconds / self.cpu[API_SERVER]

    @property
    def requests_each(self) -> float:
        return self.requests.total() / self.size


async def start(site: Site, kind: Kind, names: Sequence[str], waited_for: Sequence[str]) -> Start:
    """Create objects as fast as the API takes them, and wait until those that can be are up."""
    before, mark = site.cpu(), site.audit.mark()
    began = time.perf_counter()

    def up_now(event: Object) -> Iterable[str]:
        obj = event["object"]
        return [obj["metadata"]["name"]] if kind.is_up(obj) else []

    async with watched(site.client, kind.url, up_now) as up:
        await _each(names, lambda name: site.client.create(kind.url, kind.make(name)))
        moments = [moment - began for moment in await up.until(waited_for)]
    cpu = {name: seconds - before[name] for name, seconds in site.cpu().items()}
    await asyncio.sleep(1)  # the log is written behind
    return Start(len(names), max(moments), percentile(moments, 0.5), cpu, site.requests(mark))


class Idle(NamedTuple):
    """What a minute costs in which nothing happens, `after` so many seconds of it.

    `cpu` and `requests`, to the API server, are the operator's; `questions` are those to Ray, some of them over new
    `connections`.
    """

    after: float
    cpu: float
    requests: float
    questions: float = 0.0
    connections: float = 0.0

    def text(self) -> str:
        shown = f"after {self.after:.0f} s {self.cpu:.2f} CPU seconds a minute, {self.requests:.0f} requests"
        if not self.questions:
            return shown
        return f"{shown}, {self.questions:.0f} questions over {self.connections:.0f} new connections"


async def idle(site: Site, settle: Sequence[float], seconds: float, heads: Heads | None = None) -> list[Idle]:
    """Look on for `seconds` each time that the load has settled for so long; `heads` are those that Ray is asked at."""

    def counts() -> tuple[float, ...]:
        asked = (heads.questions, heads.connections) if heads is not None else ()
        return (site.operator_cpu(), site.requests(mark).total(), *asked)

    began, mark = time.perf_counter(), site.audit.mark()
    found = []
    for after in sorted(settle):
        await asyncio.sleep(max(0.0, began + after - time.perf_counter()))
        since, before = time.perf_counter(), counts()
        await asyncio.sleep(seconds)
        minutes = (time.perf_counter() - since) / 60
        grown = [(now - then) / minutes for now, then in zip(counts(), before, strict=True)]
        found.append(Idle(after, *grown))
    return found


async def delete(site: Site, kind: Kind) -> float:
    """Return after how long all objects of a kind and their Pods are gone once somebody has deleted them."""
    names = [obj["metadata"]["name"] for obj in (await site.client.get(kind.url))["items"]]
    began = time.perf_counter()
    await _each(names, lambda name: site.client.delete(f"{kind.url}/{name}"))

    async def are_gone() -> bool:
        pods, objects = f"{PODS}?limit=1", f"{kind.url}?limit=1"
        return not any([(await site.client.get(url))["items"] for url in (pods, objects)])

    await until(are_gone)
    return time.perf_counter() - began


async def _each(names: Iterable[str], act: Callable[[str], Any]) -> None:
    left = iter(names)

    async def some() -> None:
        for name in left:
            await act(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(some())


# --- what all kinds tell


def start_figures(
    title: str, start: Start, *, most_share: float, most_requests: float, most_wait: float = math.inf
) -> list[Figure]:
    """Return what it took until all were up; `most_wait` is in seconds for each CPU second of kube-apiserver."""
    often = ", ".join(f"{count / start.size:.1f} {what}" for what, count in start.requests.most_common(8))
    return [
        Figure(
            f"{title}, all up",
            f"{start.seconds:.1f} s, {start.size / start.seconds:.1f} a second, half after {start.median:.1f} s;"
            f" {start.wait:.2f} s for each CPU second of kube-apiserver",
            "as fast as the machine" if most_wait == math.inf else f"at most {most_wait:g} s",
            start.wait <= most_wait,
        ),
        Figure(
            f"{title}, CPU",
            f"{start.cpu[OPERATOR]:.1f} s, {start.share:.2f} of kube-apiserver's",
            f"at most {most_share:g} of it",
            start.share <= most_share,
        ),
        Figure(
            f"{title}, requests",
            f"{start.requests_each:.1f} each ({often})",
            f"at most {most_requests:g}",
            start.requests_each <= most_requests + 0.05,
        ),
    ]


def end_figures(title: str, peak: float, gone: float) -> list[Figure]:
    """Return the most memory that the operator had, and how long the end took."""
    return [
        Figure(
            f"{title}, memory",
            f"{peak:.0f} MiB at most",
            f"at most {MOST_MEBIBYTES} MiB",
            peak <= MOST_MEBIBYTES,
        ),
        Figure(f"{title}, deleted", f"all gone after {gone:.1f} s", "as fast as the machine", within=True),
    ]


class Polling(NamedTuple):
    """How an operator asks that never slows down: so often a minute, and so many CPU seconds for a question."""

    each_minute: float
    cost: float


def polling_figure(title: str, size: int, found: Sequence[Idle], fixed: Polling) -> Figure:
    """Return what idle objects cost beside the reference, which asks Ray about each of them so often, for ever.

    Few objects cost less than an operator that has none, so that the bound is for many, and for when they have settled.
    """
    last = found[-1]
    theirs = size * fixed.each_minute * fixed.cost
    shown = "; ".join(one.text() for one in found)
    return Figure(
        f"{title}, idle",
        f"{shown}; {last.cpu / theirs:.3f} of asking each {fixed.each_minute:g} times a minute ({theirs:.1f} s)",
        f"at most 0.05 of it, for {MANY} or more after {SETTLED:g} s",
        size < MANY or last.after < SETTLED or last.cpu <= theirs / 20,
    )
