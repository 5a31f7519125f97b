"""RayClusters for tests, as an API server would store them."""

import copy
from typing import Any

from eagleray.manifests.cluster import Cluster
from eagleray.rayapi.schemas import schema_for
from kubewire.schema import apply_defaults, prune


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its defaults and without what its kind does not know."""
    obj = copy.deepcopy(obj)
    schema = schema_for(obj["apiVersion"], obj["kind"])
    prune(schema, obj)
    apply_defaults(schema, obj)
    return obj


def cluster(
    *, metadata: dict[str, Any] | None = None, head: Any = None, workers: Any = None, **spec: Any
) -> Cluster:
    """Return a small cluster; `head` and each of `workers` are laid over a group with one container."""
    groups = [_group({"groupName": "small", "replicas": 1, **(worker or {})}) for worker in (workers or [])]
    return Cluster(
        stored(
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayCluster",
                "metadata": {"name": "c", "namespace": "ns", "uid": "u-1", **(metadata or {})},
                "spec": {"headGroupSpec": _group(head or {}), "workerGroupSpecs": groups, **spec},
            }
        )
    )


def _group(given: dict[str, Any]) -> dict[str, Any]:
    given = copy.deepcopy(given)
    container = {"name": "ray", "image": "ray:1", **given.pop("container", {})}
    pod = {"containers": [container], **given.pop("pod", {})}
    template = {
        "spec": pod,
        **({"metadata": given.pop("template_metadata")} if "template_metadata" in given else {}),
    }
    return {"template": template, **given}
