"""Situations that the cases of a RayCluster start from, and the questions that they ask."""

from contextlib import asynccontextmanager
from typing import Any

from tests.eagleray.world import raycluster, world_of

SCALED = {"enableInTreeAutoscaling": True}
RANDOM = {"ENABLE_RANDOM_POD_DELETE": "true"}
FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"
# Pods come and go within this time in a world where nothing is slow.
MOMENT = 5


@asynccontextmanager
async def running(*, cluster=None, workers=({"replicas": 3},), flags=(), variables=None, scripts=(), **spec):
    """Give a world in which a cluster is ready."""
    async with world_of(flags=flags, variables=variables, scripts=scripts) as world:
        await world.create(cluster or raycluster(workers=workers, **spec))
        await world.ready()
        yield world


def names(objects):
    return [obj["metadata"]["name"] for obj in objects]


def uids(objects):
    return {obj["metadata"]["uid"] for obj in objects}


def label(obj, name):
    return obj["metadata"]["labels"].get(f"ray.io/{name}")


def worker_to_delete(*pods):
    return {"workersToDelete": list(pods)}


def count(world, verb, resource):
    """Return how many requests of a verb the operator has sent for a resource."""
    return world.writes().count((verb, resource))


async def told(world, reason):
    """Return the first event of a reason as (type, action, note)."""
    event, *_ = await world.events(reason)
    return event["type"], event["action"], event["note"]


async def replicas(world):
    """Return the Pods of a group of several hosts by the name of their replica."""
    found: dict[str, list[Any]] = {}
    for pod in await world.workers():
        found.setdefault(label(pod, "worker-group-replica-name"), []).append(pod)
    return found
