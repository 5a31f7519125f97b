"""How a kept cluster is, as data: its process, its node, its Pods and Ray objects, and its images.

What the asker may not see is left out, and `unknown` says what and why.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from eagleray.kube.client import Client
from eagleray.kube.resources import NODES, PODS, RAY_CLUSTERS, RAY_CRON_JOBS, RAY_JOBS, RAY_SERVICES
from eagleray.local.imagecache import images
from eagleray.local.kept import State, disk_size
from eagleray.manifests.sizes import amounts
from kubereef.controllers.scheduling.loads import demand
from kubewire import errors
from kubewire.quantity import ZERO, Quantity

Object = dict[str, Any]

_RAY: Final = (RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES, RAY_CRON_JOBS)
_ENDED: Final = ("Succeeded", "Failed")


class Condition(msgspec.Struct, frozen=True):
    """A condition of the node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class NodeView(msgspec.Struct, frozen=True, rename="camel"):
    """The node: what it declares, and what of it Pods have asked for."""

    name: str
    capacity: dict[str, str]
    allocated: dict[str, str]
    cpu_factor: float
    conditions: tuple[Condition, ...]


class ObjectView(msgspec.Struct, frozen=True, rename="camel"):
    """A Pod or a Ray object, and its state in a word."""

    kind: str
    namespace: str
    name: str
    state: str
    created: str


class ImageView(msgspec.Struct, frozen=True, rename="camel"):
    """An image that this machine has made."""

    reference: str
    bytes: int


class Overview(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Everything that `eagleray status` tells."""

    name: str
    state: str
    directory: str
    log: str
    directory_bytes: int | None = None
    since: str = ""
    version: str = ""
    pid: int | None = None
    url: str = ""
    context: str = ""
    context_file: str = ""
    kubeconfig: str = ""
    node: NodeView | None = None
    pods: tuple[ObjectView, ...] | None = None
    ray_objects: tuple[ObjectView, ...] | None = None
    images: tuple[ImageView, ...] | None = None
    unknown: tuple[str, ...] = ()


def of_state(state: State) -> Overview:
    """Return what can be told without asking the cluster."""
    place, record = state.place, state.record
    word = (
        "running"
        if state.is_running
        else "starting"
        if state.is_starting
        else "crashed"
        if state.has_crashed
        else "stopped"
    )
    found = Overview(name=place.name, state=word, directory=str(place.directory), log=str(place.log))
    if record is not None:
        found.since, found.version, found.url = record.since, record.version, record.url
        found.pid = record.pid if state.is_alive else None
        found.kubeconfig = record.kubeconfig
        found.context_file = record.context_file
        found.context = place.name if record.context_file else ""
    _measure(found, state)
    return found


def _measure(found: Overview, state: State) -> None:
    """Look at the disk, as far as that is allowed."""
    if state.place.directory.exists():
        try:
            found.directory_bytes = disk_size(state.place.directory)
        except PermissionError:
            found.unknown += (f"the size of {found.directory}: it takes root to look into it",)
    cache = Path(state.record.images) if state.record is not None and state.record.images else None
    try:
        stored = images(cache)
    except OSError as refused:
        if not state.is_running:  # else the node is asked
            found.unknown += (f"the images: {refused.filename or cache} cannot be looked into",)
    else:
        found.images = tuple(ImageView(one.names[-1], one.size) for one in stored)


async def ask(found: Overview, client: Client, cpu_factor: float) -> None:
    """Add what only the cluster itself can tell; silence is told as well."""
    try:
        nodes = await client.list(NODES)
        pods = await client.list(PODS)
        ray = [(one.kind, await client.list(one)) for one in _RAY]
    except (errors.ApiError, OSError) as silent:
        found.unknown += (f"what runs in it: {silent}",)
        return
    if nodes:
        found.node = node_view(nodes[0], pods, cpu_factor)
        if found.images is None:
            told = (nodes[0].get("status") or {}).get("images") or ()
            found.images = tuple(ImageView(one["names"][-1], one["sizeBytes"]) for one in told)
    found.pods = tuple(_view("Pod", pod, pod_state(pod)) for pod in pods)
    found.ray_objects = tuple(_view(kind, obj, ray_state(kind, obj)) for kind, many in ray for obj in many)


def node_view(node: Object, pods: Sequence[Object], cpu_factor: float) -> NodeView:
    """Return a node with what the Pods on it have asked for, counted as the scheduler counts."""
    status = node.get("status") or {}
    taken: dict[str, int] = {}
    count = 0
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in _ENDED or not pod["spec"].get("nodeName"):
            continue
        count += 1
        for name, amount in demand(pod).requests.items():
            taken[name] = taken.get(name, 0) + amount
    capacity = amounts(status.get("capacity") or {})
    allocated = {
        name: str(Quantity(taken.get(name, 0), quantity.family)) for name, quantity in capacity.items()
    }
    if "pods" in allocated:
        allocated["pods"] = str(count)
    conditions = (
        Condition(one["type"], one["status"], one.get("reason", ""), one.get("message", ""))
        for one in status.get("conditions") or ()
    )
    return NodeView(
        node["metadata"]["name"],
        {name: str(quantity) for name, quantity in capacity.items() if quantity != ZERO},
        allocated,
        cpu_factor,
        tuple(conditions),
    )


def pod_state(pod: Object) -> str:
    """Return how a Pod is in a word: what holds a container back, else its phase."""
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if status.get("reason"):
        return str(status["reason"])
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    for one in containers:
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return str(waiting["reason"])
    return str(status.get("phase") or "Pending")


def ray_state(kind: str, obj: Object) -> str:
    """Return how a Ray object is in a word or two."""
    status = obj.get("status") or {}
    if obj["metadata"].get("deletionTimestamp"):
        return "being deleted"
    if kind == "RayCluster":
        return str(status.get("state") or "new")
    if kind == "RayJob":
        words = (status.get("jobDeploymentStatus"), status.get("jobStatus"))
        return " ".join(str(word) for word in words if word) or "New"
    if kind == "RayService":
        return str(status.get("serviceStatus") or "new")
    return "suspended" if (obj.get("spec") or {}).get("suspend") else "scheduled"


def _view(kind: str, obj: Object, state: str) -> ObjectView:
    metadata = obj["metadata"]
    return ObjectView(
        kind, metadata.get("namespace", ""), metadata["name"], state, metadata["creationTimestamp"]
    )
