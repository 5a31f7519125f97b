"""Pods that cannot stay: driven away by the taints of their node, or left behind by a node that is gone."""

from datetime import datetime

from kubereef.controllers import pods
from kubereef.controllers.caches import Key
from kubereef.controllers.resources import NODES, PODS
from kubereef.controllers.runtime import Controller, World
from kubereef.controllers.scheduling.nodelifecycle import ON_NODE, on_node
from kubereef.controllers.scheduling.taints import leaves_at, taints
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.times import format_time

# How long a node has to be gone before its Pods are given up: it may only be about to be made anew.
QUARANTINE = 40.0


class TaintEvictionController(Controller):
    """Deletes Pods that do not tolerate a taint of their node, or not any longer."""

    name = "taint-eviction-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.nodes = world.caches.of(NODES)
        self.pods = self.watch(PODS)
        self.pods.index(ON_NODE, on_node)
        self.nodes.listen(self._node_changed)
        self._first_seen: dict[str, datetime] = {}

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        node = new if new is not None else old
        assert node is not None
        if (taints(old, "NoExecute") if old else []) != (taints(new, "NoExecute") if new else []):
            for pod in self.pods.by(ON_NODE, node["metadata"]["name"]):
                self.queue.add(Key.of(pod))

    async def sync(self, key: Key) -> float | None:
        pod = self.pods.get(key)
        node = self.nodes.get(("", (pod["spec"].get("nodeName") or ""))) if pod is not None else None
        if pod is None or node is None or not pods.is_active(pod) or not taints(node, "NoExecute"):
            self._first_seen.pop(str(key), None)
            return None
        now = self.clock.now()
        moment = leaves_at(pod, node, self._first_seen.setdefault(str(key), now))
        if moment is None:
            return None
        left = (moment - now).total_seconds()
        if left > 0:
            return left
        message = "Taint manager: deleting due to NoExecute taint"
        await self.events.normal(PODS, pod, "TaintManagerEviction", f"Marking for deletion Pod {key}")
        if await disrupt(self, pod, "DeletionByTaintManager", message):
            await self.hands.delete(PODS, pod)
        return None


class PodGarbageCollector(Controller):
    """Removes Pods whose node is gone: nobody else would ever say that they have ended."""

    name = "pod-garbage-collector"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.pods = self.watch(PODS, lambda pod: [Key("", name) for name in on_node(pod)])
        self.pods.index(ON_NODE, on_node)
        self.nodes = self.watch(NODES)
        self._missed_since: dict[str, float] = {}

    async def sync(self, key: Key) -> float | None:
        left_behind = [pod for pod in self.pods.by(ON_NODE, key.name) if not _is_given_up(pod)]
        if self.nodes.get(key) is not None or not left_behind:
            self._missed_since.pop(key.name, None)
            return None
        now = self.clock.monotonic()
        left = self._missed_since.setdefault(key.name, now) + QUARANTINE - now
        if left > 0:
            return left
        for pod in left_behind:
            failed = {} if pods.is_over(pod) else {"phase": "Failed"}
            if await disrupt(self, pod, "DeletionByPodGC", "PodGC: node no longer exists", failed):
                await self._remove(pod)
        return None

    async def _remove(self, pod: Object) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        try:
            await self.hands.client.delete(PODS.url_of(pod), options)
        except errors.NotFound:
            return  # somebody else was faster


def _is_given_up(pod: Object) -> bool:
    """Tell whether a Pod was removed already and only a finalizer keeps it."""
    return pods.is_deleting(pod) and not pod["metadata"].get("deletionGracePeriodSeconds")


async def disrupt(
    controller: Controller, pod: Object, reason: str, message: str, status: Object | None = None
) -> bool:
    """Write into a Pod why it is to go, with more of its status if given; return whether it is still there."""
    told = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(controller.clock.now()),
    }
    patch = {"status": {**(status or {}), "conditions": [told]}}
    try:
        await controller.hands.patch(PODS, pod, patch, "status", "strategic")
    except errors.NotFound:
        return False
    return True
