"""A RayJob made from the flags of `eagleray job submit`. Pure.

Without a directory the operator submits the job itself (HTTPMode): that needs no Pod beside the cluster's own, so it
starts sooner, and the command may end at once. With one, the files must reach the cluster before the job does: the
command hands over both, and the RayJob is in InteractiveMode. Its submission id stands in it from the beginning, so
that the same job is never run twice.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from eagleray.manifests.rayjob import HTTP, INTERACTIVE, SELECTOR_KEY

Object = dict[str, Any]

RAY_VERSION = "2.52.0"


class Shape(NamedTuple):
    """The cluster that a job makes for itself. GPUs are those of each worker, or of the head if there are none."""

    image: str
    ray_version: str = RAY_VERSION
    workers: int = 1
    head_cpus: str = "1"
    head_memory: str = "3Gi"
    worker_cpus: str = "1"
    worker_memory: str = "2Gi"
    gpus: int = 0
    env: Mapping[str, str] = {}


class Wish(NamedTuple):
    """What a job shall be; its cluster is made in a shape, or chosen by name.

    A `job_id` is given if whoever makes the RayJob submits it, too.
    """

    name: str
    namespace: str
    entrypoint: str
    shape: Shape | None = None
    cluster: str = ""
    job_id: str = ""
    runtime_env: str = ""
    ttl: int | None = None
    keep_cluster: bool = False


def job_manifest(wish: Wish) -> Object:
    """Return the RayJob that a wish asks for."""
    spec: Object = {
        "entrypoint": wish.entrypoint,
        "submissionMode": INTERACTIVE if wish.job_id else HTTP,
    }
    if wish.job_id:
        spec["jobId"] = wish.job_id
    if wish.runtime_env:
        spec["runtimeEnvYAML"] = wish.runtime_env
    if wish.cluster:
        spec["clusterSelector"] = {SELECTOR_KEY: wish.cluster}
    elif not wish.keep_cluster:
        spec["shutdownAfterJobFinishes"] = True
        spec["ttlSecondsAfterFinished"] = wish.ttl or 0
    if wish.shape is not None:
        spec["rayClusterSpec"] = _cluster(wish.shape)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": wish.name, **({"namespace": wish.namespace} if wish.namespace else {})},
        "spec": spec,
    }


def _cluster(shape: Shape) -> Object:
    head_gpus = 0 if shape.workers else shape.gpus
    spec: Object = {
        "rayVersion": shape.ray_version,
        "headGroupSpec": {
            "rayStartParams": {},
            "template": _template(shape, "ray-head", shape.head_cpus, shape.head_memory, head_gpus),
        },
    }
    if shape.workers:
        spec["workerGroupSpecs"] = [
            {
                "groupName": "workers",
                "replicas": shape.workers,
                "minReplicas": shape.workers,
                "maxReplicas": shape.workers,
                "rayStartParams": {},
                "template": _template(
                    shape, "ray-worker", shape.worker_cpus, shape.worker_memory, shape.gpus
                ),
            }
        ]
    return spec


def _template(shape: Shape, name: str, cpus: str, memory: str, gpus: int) -> Object:
    limits: Object = {"cpu": cpus, "memory": memory}
    if gpus:
        limits["nvidia.com/gpu"] = str(gpus)
    container: Object = {
        "name": name,
        "image": shape.image,
        "resources": {"limits": limits, "requests": dict(limits)},
    }
    if shape.env:
        container["env"] = [{"name": name, "value": value} for name, value in shape.env.items()]
    return {"spec": {"containers": [container]}}
