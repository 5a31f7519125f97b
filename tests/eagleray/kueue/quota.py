"""Kueue in the test world: what its webhook and its controller write, and nothing else of it.

    kueue = Kueue(world)
    await kueue.create(rayjob())                  # its webhook suspends what has a queue
    await kueue.admit("RayJob", "j", flavor="a")  # there is room, on nodes of a flavor
    await kueue.evict("RayJob", "j")              # there is none any more

With admission node selectors and tolerations come into the Pod templates, and with eviction they go; both in the same
write as the change of `suspend`.
"""

import copy
from contextlib import asynccontextmanager

from kubereef.node.scripted import NodeShape
from tests.eagleray.ray import RayOnPods
from tests.eagleray.world import NAMESPACE, PATHS, world_of

QUEUE = "kueue.x-k8s.io/queue-name"
FLAVORS = ("a", "b")
# Nobody gets onto a node of a flavor by chance: it takes the toleration, and the selector to get onto no other.
NODES = (
    NodeShape("plain"),
    *(
        NodeShape(
            f"node-{flavor}",
            labels={"flavor": flavor},
            taints=[{"key": "flavor", "value": flavor, "effect": "NoSchedule"}],
        )
        for flavor in FLAVORS
    ),
)
# Where the description of a cluster is in the spec of each kind.
_CLUSTERS = {"RayCluster": (), "RayJob": ("rayClusterSpec",), "RayService": ("rayClusterConfig",)}


class Kueue:
    """Plays the part of Kueue for the objects of a world."""

    def __init__(self, world):
        self.world = world
        self._described = {}

    async def create(self, obj, queue="q"):
        """Create an object as a user with a queue does: the webhook suspends it."""
        obj = copy.deepcopy(obj)
        obj["metadata"].setdefault("labels", {})[QUEUE] = queue
        obj["spec"]["suspend"] = True
        return await self.world.create(obj)

    async def admit(self, kind, name, flavor="a"):
        obj = await self.world.get(kind, name)
        self._described[kind, name] = copy.deepcopy(_cluster(obj))
        for spec in _pod_specs(_cluster(obj)):
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), "flavor": flavor}
            toleration = {"key": "flavor", "value": flavor, "effect": "NoSchedule"}
            spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]
        obj["spec"]["suspend"] = False
        return await self._write(obj)

    async def evict(self, kind, name):
        obj = await self.world.get(kind, name)
        cluster = _cluster(obj)
        cluster.clear()
        cluster.update(self._described.pop((kind, name)))
        obj["spec"]["suspend"] = True
        return await self._write(obj)

    async def _write(self, obj):
        path = PATHS[obj["kind"]].format(NAMESPACE)
        return await self.world.api.replace(f"{path}/{obj['metadata']['name']}", obj)


def _cluster(obj):
    found = obj["spec"]
    for step in _CLUSTERS[obj["kind"]]:
        found = found[step]
    return found


def _pod_specs(cluster):
    return [
        group["template"]["spec"]
        for group in (cluster["headGroupSpec"], *(cluster.get("workerGroupSpecs") or ()))
    ]


@asynccontextmanager
async def kueue_world(*, kinds=("RayCluster", "RayJob"), lasts=20.0, ends="SUCCEEDED", **options):
    """Give a world with nodes of two flavors, the Kueue in it, and the Ray."""
    async with (
        world_of(kinds=kinds, nodes=NODES, **options) as world,
        RayOnPods(world, lasts=lasts, ends=ends) as ray,
    ):
        yield world, Kueue(world), ray


async def nodes_of(world, cluster):
    """Return on which nodes the Pods of a cluster are."""
    return {pod["spec"].get("nodeName") for pod in await world.pods(cluster)}
