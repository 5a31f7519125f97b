"""What RayServices cost while nothing happens to them, and how soon a new cluster takes over once it serves.

Everything runs in one process under virtual time: Kubereef, the operator, and the scripted heads of the tests. Virtual
time leaves out how busy this machine is, and keeps what the operator waits for. The reference looks at each service
every 2 s for as long as it lives.
"""

# The scripted Ray and the world of the tests have no types.
# mypy: disable-error-code="no-untyped-call"

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from bench.figures import Figure
from bench.raycluster import CountedTransport, Meter, owned
from kubereef import simulation
from kubereef.node.scripted import NodeShape
from kubereef.node.scripts import Running, Script
from tests.eagleray.gateways import GATEWAY_KINDS, ScriptedGateways
from tests.eagleray.ray import RayOnPods
from tests.eagleray.rayservice.situations import active, incremental, is_ready, new_pending, set_image
from tests.eagleray.world import World, rayservice

SERVICES = 500
IDLE_SECONDS = 60
# The reference looks again after so long, whether anything has happened or not.
REFERENCE_INTERVAL = 2
# What a new cluster takes by itself: its head starts, and then its applications do.
HEAD_SECONDS, APPLICATION_SECONDS = 20.0, 10.0
MOST_RATIO = 1.2
# Traffic in one step, so that what is measured is the operator and not what its user asked for.
AT_ONCE = {"step": 100, "surge": 100, "interval": 1}

_PASSES = re.compile(r'controller_runtime_reconcile_total\{controller="rayservice".*\} (\d+)')


@asynccontextmanager
async def _operator(
    scripts: tuple[Script, ...] = (), deploys: float = 1.0
) -> AsyncIterator[tuple[World, CountedTransport]]:
    shape = NodeShape(capacity={"cpu": "4k", "memory": "16Ti", "pods": "5000"})
    kinds = ("RayCluster", "RayService", *GATEWAY_KINDS)
    world = World(kinds=kinds, nodes=(shape,), flags=("--qps=-1",), scripts=scripts)
    await world.start(operator=False)
    transport = CountedTransport(world.simulated.server)
    await owned("operator", world.start_operator(transport))
    try:
        async with RayOnPods(world, deploys=deploys), ScriptedGateways(world):
            yield world, transport
    finally:
        await world.stop()


class Idle(NamedTuple):
    """What a minute costs in which nothing happens to any of many services."""

    requests: int
    passes: int
    cpu_seconds: float
    questions: float  # to the dashboard and the proxy of each


async def _idle() -> Idle:
    async with _operator() as (world, transport):
        for number in range(SERVICES):
            await world.create(rayservice(f"s{number}", cluster={"workers": []}))
        await world.until(lambda: _are_ready(world), step=10)
        await world.pass_time(60)
        transport.verbs.clear()
        world.dashboards.requests.clear()
        before = _passes(world)
        gc.collect()
        with Meter() as meter:
            await world.pass_time(IDLE_SECONDS)
        requests = sum(count for (verb, _), count in transport.verbs.items() if verb != "watch")
        return Idle(
            requests,
            _passes(world) - before,
            meter.seconds["operator"],
            len(world.dashboards.requests) / SERVICES,
        )


async def _are_ready(world: World) -> bool:
    found = await world.list("RayService")
    return all((one.get("status") or {}).get("serviceStatus") == "Running" for one in found)


def _passes(world: World) -> int:
    assert world.operator is not None
    return sum(int(count) for count in _PASSES.findall(world.operator.registry.render()))


async def _upgrade(service: dict[str, object]) -> float:
    """Return the time from a change of the spec to the promotion, as a multiple of what the new cluster took."""
    head = Script({"ray.io/node-type": "head"}, steps=(Running(after=HEAD_SECONDS),), stops_after=1)
    async with _operator((head,), APPLICATION_SECONDS) as (world, _):
        await world.create(service)
        await is_ready(world)
        await world.pass_time(10)
        began = asyncio.get_running_loop().time()
        await set_image(world, "2.53.0")
        new = await new_pending(world)

        async def is_promoted() -> bool:
            return bool(await active(world) == new)

        await world.until(is_promoted, step=0.1)
        taken = asyncio.get_running_loop().time() - began
        return taken / (HEAD_SECONDS + APPLICATION_SECONDS)


def measure() -> list[Figure]:
    """Return what RayServices cost."""
    idle = simulation.run(_idle())
    reference = SERVICES * IDLE_SECONDS // REFERENCE_INTERVAL
    small: dict[str, Any] = {"cluster": {"workers": []}}
    ratios = {
        "NewCluster": simulation.run(_upgrade(rayservice(**small))),
        "incremental, in one step": simulation.run(_upgrade(incremental(**AT_ONCE, **small))),
    }
    return [
        Figure(
            f"a minute of {SERVICES} RayServices at rest",
            f"{idle.passes} passes (reference: {reference}), {idle.requests} requests to the API server,"
            f" {idle.questions:.1f} questions to each head, {idle.cpu_seconds:.2f} s of CPU",
            "no pass, no request",
            idle.passes == 0 and idle.requests == 0,
        ),
        *(
            Figure(
                f"spec change to promotion, {name}",
                f"{ratio:.2f} x what the new cluster took by itself",
                f"at most {MOST_RATIO} x",
                ratio <= MOST_RATIO,
            )
            for name, ratio in ratios.items()
        ),
    ]
