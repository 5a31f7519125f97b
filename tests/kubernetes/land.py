"""What a control plane looks after: nodes whose Pods run at once, and Ray in them. It lives in a thread of its own.

    with Land(directory) as land, Plane(…, flags=land.flags) as plane, land.on(plane):
        …

Ray is as in tests/eagleray/ray.py. An operator reaches it through the API server's proxy, as
`--use-kubernetes-proxy` says.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, TypeVar

from eagleray.kube.transport import Answer
from kubereef.controllers.following import follow
from kubereef.node.machine.client import HttpsClient
from kubereef.node.scripted import NodeShape, Running, Script, ScriptedNodes, Succeeds
from kubewire.sources import SystemClock
from tests.eagleray.dashboard.scripted import ScriptedDashboards
from tests.eagleray.ray import PODS, RayOnPods, host_of
from tests.kubernetes.gateway import Gateway
from tests.kubernetes.plane import Plane

T = TypeVar("T")

PATIENCE = 60.0
JOB_LASTS = 3.0
# Large enough for everything that tests put there, with what some of it asks for.
NODES = (
    NodeShape(
        "large",
        capacity={
            "cpu": "1000",
            "memory": "4000Gi",
            "pods": "1000",
            "google.com/tpu": "100",
            "nvidia.com/gpu": "100",
        },
        labels={
            "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice",
            "cloud.google.com/gke-tpu-topology": "2x2x2",
        },
    ),
)
# What is not Ray and has an end.
SCRIPTS = (Script(when={"ray.io/node-type": "redis-cleanup"}, steps=[Running(), Succeeds(after=0.5)]),)


def client_of(plane: Plane) -> HttpsClient:
    """Return a client of a plane as its administrator; it belongs to the running event loop."""
    tls = ssl.create_default_context(cafile=str(plane.authority))
    tls.load_cert_chain(plane.directory / "admin.crt", plane.directory / "admin.key")
    return HttpsClient(plane.url, tls)


class Land:
    """Nodes and Ray for one plane. What is changed of them is changed by what `run` runs."""

    def __init__(self, directory: Path, nodes: Sequence[NodeShape] = NODES) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="land", daemon=True)
        self._gateway = Gateway(directory, self._answer)
        self._nodes = nodes
        self._hosts: dict[str, str] = {}  # of heads, by the address of their Pod
        self._stops: list[Callable[[], Coroutine[Any, Any, object]]] = []
        clock = SystemClock()
        self.dashboards = ScriptedDashboards(clock)
        self._world = SimpleNamespace(clock=clock, dashboards=self.dashboards, api=None)
        self.ray: Any = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._gateway.start())
        return self

    def __exit__(self, *_why: object) -> None:
        try:
            self.run(self._gateway.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()

    @property
    def flags(self) -> list[str]:
        """What the API server has to be told."""
        return self._gateway.flags

    def run(self, work: Coroutine[Any, Any, T], patience: float = PATIENCE) -> T:
        """Run something where the land lives, and return what it returns."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result(patience)
        finally:
            running.cancel()

    @contextmanager
    def on(self, plane: Plane) -> Iterator[None]:
        """Have the nodes join a plane, and Ray live in the Pods that they run; at the end they fall silent."""
        try:
            self.run(self._settle(plane))
            yield
        finally:
            while self._stops:
                self.run(self._stops.pop()())

    def join(self, *nodes: NodeShape) -> None:
        """Have more nodes join the plane."""
        self.run(self._join(nodes))

    async def _join(self, shapes: Sequence[NodeShape]) -> None:
        nodes = ScriptedNodes(self._world.api, self._world.clock, nodes=shapes, scripts=SCRIPTS)
        await nodes.start()
        self._stops.append(nodes.stop)

    async def _settle(self, plane: Plane) -> None:
        api = client_of(plane)
        self._stops.append(api.close)
        self._world.api = api
        await self._join(self._nodes)
        self.ray = RayOnPods(self._world, lasts=JOB_LASTS)
        await self.ray.__aenter__()
        self._stops.append(self.ray.__aexit__)
        following = asyncio.create_task(follow(api, PODS, self), name="addresses of heads")
        self._stops.append(lambda: _ended(following))

    # --- what the watch tells (see following.Sink)

    def replace(self, objects: list[dict[str, Any]], revision: int) -> None:
        for pod in objects:
            self.apply("ADDED", pod, revision)

    def apply(self, kind: str, obj: dict[str, Any], revision: int) -> None:
        metadata, address = obj["metadata"], (obj.get("status") or {}).get("podIP")
        labels = metadata.get("labels") or {}
        if kind != "DELETED" and address and labels.get("ray.io/node-type") == "head":
            self._hosts[address] = host_of(labels["ray.io/cluster"], metadata["namespace"])

    # --- what the API server is answered

    def _answer(
        self, target: str, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Answer | None:
        dashboards = self.dashboards
        host = self._hosts.get(target.rpartition(":")[0], "")
        found = dashboards.proxies.get(target) or dashboards.heads.get(host)
        dashboards.requests.append((host or target, method, path))
        answer: Answer | None = found.handle(method, path, headers, body) if found is not None else None
        return answer


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
