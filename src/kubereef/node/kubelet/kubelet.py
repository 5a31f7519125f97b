"""The kubelet: makes the Pods that the API server assigns to this node live, and tells what becomes of them.

    kubelet = Kubelet(tools, facts)                  # see `interfaces` for both
    await kubelet.start()
    follow(client, "/api/v1/pods?fieldSelector=spec.nodeName%3D…", kubelet)    # it is a Sink
    …
    await kubelet.stop(grace=10.0)                   # ends what runs; the Pods stay the API server's

It is also a `handles.Pods`, which is what the kubelet's own HTTPS API is given.
"""

import asyncio
import logging
from collections.abc import Sequence

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.interfaces import NodeFacts, Tools
from kubereef.node.kubelet.resources import GpuPool
from kubereef.node.kubelet.trees import remove_tree
from kubereef.node.kubelet.volumes import secret_place
from kubereef.node.kubelet.worker import PodWorker

log = logging.getLogger(__name__)


class Kubelet:
    """All Pods of one node. It is told of Pods as a `following.Sink`, by one event loop."""

    def __init__(self, tools: Tools, facts: NodeFacts) -> None:
        self._tools = tools
        self._facts = facts
        self._gpus = GpuPool(facts.gpus, facts.shared_devices)
        self._workers: dict[str, PodWorker] = {}  # by uid
        self._is_stopping = False

    async def start(self) -> None:
        """Make the directory ready; what Pods of an earlier time need is kept until the first list is known."""
        await self._tools.offload(self._make_directories)
        await self._tools.events.start()

    async def stop(self, grace: float = 10.0) -> None:
        """End every container as its Pod's grace period allows, at most within `grace` seconds; Pods stay assigned."""
        self._is_stopping = True
        workers = list(self._workers.values())
        await asyncio.gather(*(worker.stop(grace) for worker in workers))
        self._workers.clear()
        await self._tools.events.stop()
        await self._tools.tasks.close()

    # --- what the watch tells (see following.Sink)

    def replace(self, objects: list[Object], revision: int) -> None:  # noqa: ARG002 - every sink is told the revision
        """Take these for all Pods of this node."""
        present = {pod["metadata"]["uid"] for pod in objects}
        for uid in [uid for uid in self._workers if uid not in present]:
            self._forget(uid)
        for pod in objects:
            self._follow(pod)
        self._tools.spawn(self._sweep(present), "sweep of Pod directories")

    def apply(self, kind: str, obj: Object, revision: int) -> None:  # noqa: ARG002 - as above
        """Take over a change of one Pod: ADDED, MODIFIED or DELETED."""
        if kind == "DELETED":
            self._forget(obj["metadata"]["uid"])
        else:
            self._follow(obj)

    def reached(self, revision: int) -> None:
        """Nothing to do: Pods are looked at one by one."""

    # --- what the HTTPS API asks (see handles.Pods)

    def find(self, namespace: str, name: str, uid: str = "") -> PodWorker | None:
        """Return the Pod of that name, and of that uid if one is given; of several, the one that came last."""
        for worker in reversed(self._workers.values()):
            meta = worker.manifest["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, name) and uid in ("", meta["uid"]):
                return worker
        return None

    def all(self) -> Sequence[PodWorker]:
        """Return all Pods."""
        return list(self._workers.values())

    def _follow(self, pod: Object) -> None:
        if self._is_stopping or pod["spec"].get("nodeName") != self._facts.name:
            return
        uid = pod["metadata"]["uid"]
        worker = self._workers.get(uid)
        if worker is None:
            self._workers[uid] = PodWorker(pod, self._tools, self._facts, self._gpus)
        else:
            worker.update(pod)

    def _forget(self, uid: str) -> None:
        """End a Pod that the API server has no more: nobody waits for it, so it gets no grace."""
        worker = self._workers.pop(uid, None)
        if worker is not None:
            self._tools.spawn(worker.abandon(), f"end of Pod {uid}")

    def _make_directories(self) -> None:
        (self._facts.directory / "pods").mkdir(parents=True, exist_ok=True)
        memory = secret_place(self._facts.directory)
        memory.mkdir(mode=0o700, exist_ok=True)
        self._tools.runtime.mount_memory(memory, None)

    async def _sweep(self, present: set[str]) -> None:
        """Remove what Pods have left that went while this node was away."""
        place = self._facts.directory / "pods"

        def sweep() -> None:
            for left in place.iterdir():
                if left.name not in present and left.name not in self._workers:
                    remove_tree(left)

        await self._tools.offload(sweep)
