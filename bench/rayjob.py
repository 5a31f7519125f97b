"""What RayJobs cost, and how little one dashboard that hangs has to do with another job.

Everything runs in one process under virtual time: Kubereef, the operator, and the scripted heads of the tests. A
reaction is the time from a change in Ray to the RayJob's status. Most of it is the interval at which dashboards are
asked; virtual time leaves out how busy this machine is, and keeps what the operator waits for.
"""

# The scripted Ray and the world of the tests have no types.
# mypy: disable-error-code="no-untyped-call"

import asyncio
import gc
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from bench.figures import Figure
from bench.raycluster import CountedTransport, Meter, owned
from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer
from kubereef import simulation
from kubereef.node.scripted import NodeShape
from tests.eagleray.dashboard.scripted import HANGS
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.world import World, raycluster, rayjob

JOBS = 1_000
ONE_IN = 10  # hangs
ROUNDS = 5
# Changes come one after the other, so close that they last three intervals.
BETWEEN_CHANGES = 0.01
LIVES = 50
MODES = ("K8sJobMode", "HTTPMode", "SidecarMode")
MOST_PATCHES = 6
IDLE_SECONDS = 60


class TimedTransport(CountedTransport):
    """Notes when the status of each RayJob was written last."""

    def __init__(self, server: object) -> None:
        super().__init__(server)
        self.written: dict[str, float] = {}

    async def send(self, request: Request) -> Answer:
        answer = await super().send(request)
        if request.verb == "patch" and request.resource == "rayjobs.ray.io":
            self.written[request.path.split("/")[7]] = _now()
        return answer


@asynccontextmanager
async def _operator() -> AsyncIterator[tuple[World, TimedTransport]]:
    shape = NodeShape(capacity={"cpu": "4k", "memory": "16Ti", "pods": "5000"})
    world = World(kinds=("RayCluster", "RayJob"), nodes=(shape,), flags=("--qps=-1",))
    await world.start(operator=False)
    transport = TimedTransport(world.simulated.server)
    await owned("operator", world.start_operator(transport))
    try:
        yield world, transport
    finally:
        await world.stop()


class Life(NamedTuple):
    """What the whole life of a job costs in requests."""

    mode: str
    to_server: float
    patches: float
    to_dashboard: float


async def _life(mode: str) -> Life:
    """Return the requests of a job from its creation to its end, 20 s of work included."""
    async with _operator() as (world, transport), RayOnPods(world, lasts=20):
        transport.verbs.clear()
        for number in range(LIVES):
            await world.create(rayjob(f"j{number}", submissionMode=mode, cluster={"workers": []}))
        await world.until(lambda: _have(world, "Complete", LIVES), step=5)
        sent = {name: count for name, count in transport.verbs.items() if name[0] not in ("watch", "list")}
        patches = sent["patch", "rayjobs"]
        return Life(mode, sum(sent.values()) / LIVES, patches / LIVES, len(world.dashboards.requests) / LIVES)


async def _have(world: World, state: str, count: int) -> bool:
    states = [(job.get("status") or {}).get("jobDeploymentStatus") for job in await world.list("RayJob")]
    return states.count(state) >= count


class Many(NamedTuple):
    """What many jobs that run cost, and how late their news are."""

    calm: list[float]  # the 99th percentile of each round, in seconds
    hanging: list[float]
    idle_cpu_ms: float  # of a job in a minute
    idle_requests: int
    idle_questions: float  # of a job in a minute


async def _many() -> Many:
    async with _operator() as (world, transport):
        names = [f"c{number}" for number in range(JOBS)]
        await _run_all(world, names)
        calm, hanging = [], []
        for _ in range(ROUNDS):
            calm.append(await _slowest_reaction(world, transport, names, hangs=False))
            hanging.append(await _slowest_reaction(world, transport, names, hangs=True))
        transport.verbs.clear()
        world.dashboards.requests.clear()
        gc.collect()
        with Meter() as meter:
            await world.pass_time(IDLE_SECONDS)
        requests = sum(count for (verb, _), count in transport.verbs.items() if verb != "watch")
        minutes = JOBS * IDLE_SECONDS / 60
        return Many(
            calm,
            hanging,
            meter.seconds["operator"] * 1000 / minutes,
            requests,
            len(world.dashboards.requests) / minutes,
        )


async def _run_all(world: World, names: list[str]) -> None:
    """Have a job run on each of many clusters, which somebody else keeps."""
    for name in names:
        await world.create(raycluster(name, workers=[], managedBy="kueue.x-k8s.io/multikueue"))
        await world.patch("RayCluster", name, {"status": {"state": "ready"}}, part="/status")
        world.dashboards.start(host_of(name))
        chosen = {"clusterSelector": {"ray.io/cluster": name}, "submissionMode": "HTTPMode", "jobId": name}
        await world.create(rayjob(name, cluster=False, **chosen))
    await world.pass_time(30)
    assert len(world.dashboards.ledger.started) == JOBS


async def _slowest_reaction(
    world: World, transport: TimedTransport, names: list[str], *, hangs: bool
) -> float:
    """Return the 99th percentile of the reactions to a change in each dashboard that answers."""
    hanging, others = names[::ONE_IN], [name for at, name in enumerate(names) if at % ONE_IN]
    for name in hanging if hangs else ():
        world.dashboards.fault(host_of(name), HANGS)
    changed: dict[str, float] = {}
    for name in others:
        head = world.dashboards.heads[host_of(name)]
        is_running = head.jobs[name]["status"] == "RUNNING"
        head.set_status(name, "PENDING" if is_running else "RUNNING")
        changed[name] = _now()
        await asyncio.sleep(BETWEEN_CHANGES)
    await world.pass_time(30)
    for name in hanging:
        world.dashboards.heal(host_of(name))
    reactions = [transport.written[name] - since for name, since in changed.items()]
    assert min(reactions) > 0, "a change was not noticed"
    await world.pass_time(60)  # those that hung are asked as usual again
    return statistics.quantiles(reactions, n=100)[98]


def _now() -> float:
    return asyncio.get_running_loop().time()


def measure() -> list[Figure]:
    """Return what RayJobs cost."""
    lives = [simulation.run(_life(mode)) for mode in MODES]
    many = simulation.run(_many())
    ratios = [hanging / calm for calm, hanging in zip(many.calm, many.hanging, strict=True)]
    ratio = statistics.median(ratios)
    figures = [
        Figure(
            f"requests of a job in {life.mode}",
            f"{life.to_server:.1f} to the API server, {life.patches:.1f} of them patches of the RayJob,"
            f" and {life.to_dashboard:.1f} to the dashboard",
            f"at most {MOST_PATCHES} patches of status and one of the finalizers",
            life.patches <= MOST_PATCHES + 1,
        )
        for life in lives
    ]
    return [
        *figures,
        Figure(
            f"p99 reaction of {JOBS} jobs beside {JOBS // ONE_IN} that hang",
            f"{statistics.median(many.hanging):.2f} s, without them {statistics.median(many.calm):.2f} s:"
            f" {ratio:.2f}-fold ({min(ratios):.2f} to {max(ratios):.2f})",
            "at most 1.2-fold",
            ratio <= 1.2,
        ),
        Figure(
            f"a minute of each of {JOBS} jobs that run",
            f"{many.idle_cpu_ms:.1f} ms of CPU, {many.idle_questions:.1f} questions,"
            f" {many.idle_requests} requests of all to the API server",
            "no request",
            many.idle_requests == 0,
        ),
    ]
