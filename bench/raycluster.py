"""What RayClusters cost: requests, CPU and reaction times, for a hundred clusters and for a thousand.

Everything runs in one process: Kubereef, its scripted node and the operator. CPU time is counted by who spends it: each
callback of the event loop belongs to the operator or to the cluster, and the operator's requests are carried out in
the cluster's name. One thread serves all of them, so times of reaction hold for a machine that is busy throughout.

On the reference operator (data of its own run, on two cores): 11 requests from creation to ready, and 18 ms of CPU per
cluster at 100 clusters, growing to 45 ms at 1,000.
"""

import asyncio
import contextvars
import gc
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self, TypeVar

from bench.figures import Figure
from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, Stream
from eagleray.local.inprocess import transport_to
from eagleray.operator.assembly import Operator
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from eagleray.runtime.options import read_options
from kubereef import simulation
from kubereef.controllers.standard import CONTROLLERS
from kubereef.node.scripted import NodeShape, ScriptedNodes
from kubewire.sources import SeededEntropy

CLUSTERS = "/apis/ray.io/v1/namespaces/default/rayclusters"
SIZES = (100, 300, 1_000)
WORKERS = 3
BIG = 500
NEIGHBOURS = 50
RESYNC = 300

FLAGS = ("--metrics-addr=0", "--health-probe-bind-address=0", "--enable-leader-election=false", "--qps=-1")

Result = TypeVar("Result")

_owner: contextvars.ContextVar[str] = contextvars.ContextVar("owner", default="cluster")


class Meter:
    """CPU seconds of this thread by whom they were spent for."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._run = asyncio.Handle._run  # noqa: SLF001 - the one place where all callbacks of a loop pass

    def __enter__(self) -> Self:
        run, seconds = self._run, self.seconds

        def metered(handle: Any) -> None:
            started = time.thread_time()
            run(handle)
            seconds[handle._context.get(_owner, "cluster")] += time.thread_time() - started  # noqa: SLF001 - as above

        asyncio.Handle._run = metered  # type: ignore[method-assign,assignment]  # noqa: SLF001 - put back below
        return self

    def __exit__(self, *_why: object) -> None:
        asyncio.Handle._run = self._run  # type: ignore[method-assign]  # noqa: SLF001 - as it was


class CountedTransport:
    """Carries requests in the cluster's name, and counts them."""

    def __init__(self, server: Any) -> None:
        self._inner = transport_to(server)
        self._cluster = contextvars.copy_context()
        self.verbs: Counter[tuple[str, str]] = Counter()
        self.first_write: dict[str, float] = {}

    @property
    def host(self) -> str:
        return self._inner.host

    async def send(self, request: Request) -> Answer:
        self.verbs[request.verb, request.resource.partition(".")[0]] += 1
        if request.verb == "create" and request.resource == "services":
            self.first_write.setdefault(_cluster_of(request), time.perf_counter())
        return await asyncio.get_running_loop().create_task(self._inner.send(request), context=self._cluster)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self.verbs[request.verb, request.resource.partition(".")[0]] += 1
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()


def _cluster_of(request: Request) -> str:
    """Return the cluster whose head Service a request makes."""
    text = request.body.decode()
    start = text.index('"ray.io/cluster":"') + len('"ray.io/cluster":"')
    return text[start : text.index('"', start)]


class Bench:
    """Kubereef with the operator in one process."""

    def __init__(self, nodes: int) -> None:
        self.simulated = simulation.SimulatedCluster()
        self.api = self.simulated.client
        shapes = [
            NodeShape(name=f"node-{n}", capacity={"cpu": "4k", "memory": "16Ti", "pods": "5000"})
            for n in range(nodes)
        ]
        self.nodes = ScriptedNodes(self.api, self.simulated.clock, nodes=shapes)
        self.transport = CountedTransport(self.simulated.server)
        self.operator = Operator(
            read_options(FLAGS, {}),
            self.transport,
            clock=self.simulated.clock,
            entropy=SeededEntropy(2),
        )
        self._stop = asyncio.Event()
        self._running: asyncio.Task[int] | None = None
        self.made: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        await self.simulated.start()
        await self.simulated.run(*CONTROLLERS)
        await self.nodes.start()
        (kind,) = (kind for kind in KINDS if kind.name == "RayCluster")
        await self.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind))
        await asyncio.sleep(1)
        self._running = owned("operator", self.operator.run(self._stop))
        await asyncio.sleep(1)
        return self

    async def __aexit__(self, *_why: object) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running
        await self.nodes.stop()
        await self.simulated.stop()

    async def create(self, name: str, workers: int) -> None:
        self.made[name] = time.perf_counter()
        await self.api.create(CLUSTERS, _cluster(name, workers))

    async def all_ready(self, count: int) -> None:
        """Return once so many clusters are ready."""
        while True:
            listed = await self.api.get(CLUSTERS)
            ready = sum((one.get("status") or {}).get("state") == "ready" for one in listed["items"])
            if ready >= count:
                return
            await asyncio.sleep(0.2)

    def slowest_reaction(self, names: list[str]) -> float:
        """Return the longest time from the creation of a cluster to its first child."""
        return max(self.transport.first_write[name] - self.made[name] for name in names)


def owned(owner: str, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Begin work whose CPU time is somebody's."""
    context = contextvars.copy_context()
    context.run(_owner.set, owner)
    return asyncio.get_running_loop().create_task(work, context=context)


def _cluster(name: str, workers: int) -> dict[str, Any]:
    container = {
        "name": "ray",
        "image": "rayproject/ray:2.52.0",
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
    }
    template = {"spec": {"containers": [container]}}
    group = {"groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": workers}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": template}],
        },
    }


class Run(NamedTuple):
    """What a number of clusters cost."""

    clusters: int
    cpu_ms: float
    requests: Counter[tuple[str, str]]
    slowest: float


async def _many(count: int) -> Run:
    async with Bench(nodes=4) as bench:
        bench.transport.verbs.clear()
        gc.collect()
        with Meter() as meter:
            for number in range(count):
                await bench.create(f"c{number}", WORKERS)
            await bench.all_ready(count)
        requests = Counter(bench.transport.verbs)
        return Run(
            count,
            meter.seconds["operator"] / count * 1000,
            requests,
            bench.slowest_reaction(list(bench.made)),
        )


async def _beside_a_big_one() -> float:
    """Return the longest reaction to small clusters that are made while a big one grows."""
    async with Bench(nodes=4) as bench:
        await bench.create("big", BIG)
        for number in range(NEIGHBOURS):
            await bench.create(f"small{number}", 1)
            await asyncio.sleep(0.02)
        await bench.all_ready(NEIGHBOURS + 1)
        return bench.slowest_reaction([name for name in bench.made if name != "big"])


async def _idle() -> tuple[int, int]:
    """Return the requests of a hundred idle clusters between two resyncs, and in the time of one."""
    async with Bench(nodes=4) as bench:
        for number in range(100):
            await bench.create(f"c{number}", WORKERS)
        await bench.all_ready(100)
        await asyncio.sleep(90)  # the last counts of events are written after a minute
        bench.transport.verbs.clear()
        await asyncio.sleep(RESYNC / 2)
        quiet = _without_watches(bench.transport.verbs)
        await asyncio.sleep(RESYNC)
        return quiet, _without_watches(bench.transport.verbs)


def _without_watches(verbs: Counter[tuple[str, str]]) -> int:
    return sum(count for (verb, _), count in verbs.items() if verb != "watch")


def measure() -> list[Figure]:
    """Return what RayClusters cost on this machine."""
    runs = [asyncio.run(_many(count)) for count in SIZES]
    beside = asyncio.run(_beside_a_big_one())
    quiet, resync = simulation.run(_idle())
    figures = []
    for run in runs:
        made = {f"{verb} {what}": count / run.clusters for (verb, what), count in run.requests.items()}
        total = sum(count for name, count in made.items() if not name.startswith("watch"))
        shown = ", ".join(f"{name} {count:.2f}" for name, count in sorted(made.items()))
        figures.append(
            Figure(
                f"{run.clusters} clusters: requests each until ready",
                f"{total:.2f}: {shown}",
                "at most 10, the reference 11",
                total <= 10,
            )
        )
    growth = runs[-1].cpu_ms / runs[0].cpu_ms
    shown = ", ".join(f"{run.cpu_ms:.1f} ms at {run.clusters}" for run in runs)
    figures += [
        Figure(
            "CPU per cluster",
            f"{shown}: {growth:.2f}-fold",
            "at most 1.5-fold, the reference 2.5-fold",
            growth <= 1.5,
        ),
        Figure(
            "longest reaction",
            ", ".join(f"{run.slowest:.2f} s at {run.clusters}" for run in runs),
            "told",
            True,
        ),
        Figure(f"longest reaction beside {BIG} workers", f"{beside:.2f} s", "at most 1 s", beside <= 1),
        Figure(
            "requests of 100 idle clusters",
            f"{quiet}, and {resync} with a resync",
            "none",
            quiet == resync == 0,
        ),
    ]
    return figures
