"""What becomes of nodes: those that say nothing any more are not ready, and taints tell Pods what conditions mean."""

from datetime import datetime
from typing import NamedTuple

from kubereef.controllers import pods
from kubereef.controllers.batches import for_each
from kubereef.controllers.caches import Key
from kubereef.controllers.conditions import condition, with_condition
from kubereef.controllers.resources import LEASES, NODES, PODS
from kubereef.controllers.runtime import Controller, World
from kubereef.controllers.scheduling.taints import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.times import format_time

LEASE_NAMESPACE = "kube-node-lease"
ON_NODE = "node"

# How long a node may be silent, and how long a new one has for its first words.
GRACE = 50.0
START_GRACE = 60.0

# Which taint a condition of a node means, by its status.
_MEANINGS = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_MEANT = frozenset(
    (UNSCHEDULABLE, *(taint for by_status in _MEANINGS.values() for taint in by_status.values()))
)
_REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def on_node(pod: Object) -> list[str]:
    """Index Pods by their node."""
    node = (pod.get("spec") or {}).get("nodeName")
    return [node] if node else []


class _Sign(NamedTuple):
    """The last sign of life of a node, and when it was seen."""

    text: str
    seen: float


class NodeLifecycleController(Controller):
    """Watches over nodes. Only what happens while it looks counts: clocks of nodes are not trusted."""

    name = "node-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.nodes = self.watch(NODES)
        self.leases = self.watch(LEASES, _node_of)
        self.pods = world.caches.of(PODS)
        self.pods.index(ON_NODE, on_node)
        self._signs: dict[str, _Sign] = {}

    async def sync(self, key: Key) -> float | None:
        node = self.nodes.get(key)
        if node is None:
            self._signs.pop(key.name, None)
            return None
        left = self._patience(node)
        now = self.clock.now()
        if left <= 0 and not _is_unknown(node):
            status = {**(node.get("status") or {}), "conditions": lost_conditions(node, now)}
            node = await self.hands.replace_status(NODES, node, status)
            message = f"Node {key.name} status is now: NodeNotReady"
            await self.events.normal(NODES, node, "NodeNotReady", message)
        wanted = wanted_taints(node, now)
        if wanted != ((node.get("spec") or {}).get("taints") or []):
            version = node["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted or None}}
            node = await self.hands.patch(NODES, node, patch)
        ready = _ready(node)
        if ready is not None and ready.get("status") != "True":
            doubtful = [pod for pod in self.pods.by(ON_NODE, key.name) if pods.is_ready(pod)]
            await for_each(doubtful, self._mark_unready)
        return left if left > 0 else None

    def _patience(self, node: Object) -> float:
        """Return how long the node may still be silent."""
        name = node["metadata"]["name"]
        lease = self.leases.get((LEASE_NAMESPACE, name))
        text = f"{_ready(node)} {((lease or {}).get('spec') or {}).get('renewTime')}"
        sign = self._signs.get(name)
        now = self.clock.monotonic()
        if sign is None or (sign.text != text and not _is_unknown(node)):
            sign = self._signs[name] = _Sign(text, now)
        elif sign.text != text:
            # Its own doing: the node was declared lost. A lease renewed since would have been told by the node too.
            sign = self._signs[name] = _Sign(text, sign.seen)
        grace = GRACE if _ready(node) is not None else START_GRACE
        return sign.seen + grace - now

    async def _mark_unready(self, pod: Object) -> None:
        """Say that a Pod is not ready: whether it is, nobody knows."""
        now = format_time(self.clock.now())
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        try:
            await self.hands.patch(PODS, pod, {"status": {"conditions": [unready]}}, "status", "strategic")
        except errors.NotFound:
            return
        await self.events.warning(PODS, pod, "NodeNotReady", "Node is not ready")


def lost_conditions(node: Object, now: datetime) -> list[Object]:
    """Return the conditions of a node from which nothing is heard."""
    conditions = (node.get("status") or {}).get("conditions") or []
    for kind in _REPORTED:
        if condition(conditions, kind) is None:
            told = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
        else:
            told = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        conditions = with_condition(conditions, now, kind, *told)
    return [{"lastHeartbeatTime": format_time(now), **one} for one in conditions]


def wanted_taints(node: Object, now: datetime) -> list[Object]:
    """Return the taints of a node: those that others gave it, and those that its conditions mean."""
    spec = node.get("spec") or {}
    conditions = (node.get("status") or {}).get("conditions") or []
    meant: list[Object] = []
    for one in conditions:
        key = _MEANINGS.get(one.get("type", ""), {}).get(one.get("status", ""))
        if key:
            meant.append({"key": key, "effect": "NoSchedule"})
        if key in (NOT_READY, UNREACHABLE):
            meant.append({"key": key, "effect": "NoExecute", "timeAdded": format_time(now)})
    if spec.get("unschedulable"):
        meant.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    wanted = {_identity(one): one for one in meant}
    present = spec.get("taints") or []
    kept = [one for one in present if not _is_meant(one) or _identity(one) in wanted]
    known = {_identity(one) for one in kept}
    return [*kept, *(one for identity, one in wanted.items() if identity not in known)]


def _is_meant(taint: Object) -> bool:
    """Tell whether a taint is one of those that conditions mean."""
    if taint.get("effect") == "NoExecute":
        return taint.get("key") in (NOT_READY, UNREACHABLE)
    return taint.get("effect") == "NoSchedule" and taint.get("key") in _MEANT


def _identity(taint: Object) -> tuple[object, object]:
    return taint.get("key"), taint.get("effect")


def _ready(node: Object) -> Object | None:
    return condition((node.get("status") or {}).get("conditions") or [], "Ready")


def _is_unknown(node: Object) -> bool:
    return (_ready(node) or {}).get("status") == "Unknown"


def _node_of(lease: Object) -> list[Key]:
    meta = lease["metadata"]
    return [Key("", meta["name"])] if meta.get("namespace") == LEASE_NAMESPACE else []
