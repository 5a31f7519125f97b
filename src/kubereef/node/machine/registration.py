"""The node's place in the cluster: its Node object, the Lease that says it is alive, and what its status tells."""

import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kubereef.controllers.resources import LEASES, NODES
from kubereef.kinds.resource import Object
from kubereef.node.images import Present
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import format_micro_time, format_time

log = logging.getLogger(__name__)

HEARTBEAT = 10.0
STATUS_SECONDS = 300.0
"""How long a status without news stands before it is told again."""

LEASE_SECONDS = 40
LEAST_DISK = 512 * 1024 * 1024
"""With less room than this on its disk a node is under pressure."""

MOST_IMAGES = 50
"""Of more images a node's status tells only the largest."""

_LEASE_NAMESPACE = "kube-node-lease"


class Writer(Protocol):
    """The part of a client that telling takes."""

    async def create(self, url: str, body: object) -> dict[str, Any]: ...

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]: ...


class NodeDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to tell of a node, and does not change while it runs."""

    name: str
    address: str
    port: int
    pod_cidr: str
    capacity: dict[str, str]
    info: dict[str, str]
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []  # those that it has when it is first registered
    has_resolvable_name: bool = True  # whether the API server reaches it by its name as well
    unenforced: str = ""  # which limits of Pods are not enforced here, and why; empty if all are


class Registration:
    """Tells the API server of the node, and goes on telling."""

    def __init__(
        self,
        node: NodeDescription,
        client: Writer,
        clock: Clock,
        directory: Path,
        images: Callable[[], Awaitable[list[Present]]],
    ) -> None:
        self._node = node
        self._images = images
        self._client = client
        self._clock = clock
        self._directory = directory
        self._told: dict[str, tuple[str, str]] = {}  # status and last transition, by condition
        self._told_images: list[Object] = []
        self._told_at = 0.0

    async def register(self) -> None:
        """Create the Node, or take over the one of that name, and its Lease; then tell its status."""
        node = self._node
        labels = {
            "kubernetes.io/hostname": node.name,
            "kubernetes.io/os": node.info["operatingSystem"],
            "kubernetes.io/arch": node.info["architecture"],
            **node.labels,
        }
        spec: Object = {"podCIDR": node.pod_cidr, "podCIDRs": [node.pod_cidr]}
        if node.taints:
            spec["taints"] = node.taints
        made: Object = {"metadata": {"name": node.name, "labels": labels}, "spec": spec}
        try:
            await self._client.create(NODES.url(), made)
        except errors.AlreadyExists:
            await self._client.patch(NODES.url("", node.name), {"metadata": {"labels": labels}})
        await self._renew()
        await self.tell_status()

    async def beat(self) -> None:
        """Say again and again that the node is there; failures are logged and made up for."""
        while True:
            await self._clock.sleep(HEARTBEAT)
            try:
                await self._renew()
                await self._refresh()
            except errors.NotFound:
                await self._register_again()
            except errors.ApiError as refusal:
                log.warning("the heartbeat of the node did not get through: %s", refusal)

    async def tell_status(self, *, is_ready: bool = True) -> None:
        """Write the status of the node."""
        node = self._node
        images = await self._present_images()
        addresses = [{"type": "InternalIP", "address": node.address}]
        if node.has_resolvable_name:
            # Many API servers try this one first, and give up if it leads nowhere.
            addresses.append({"type": "Hostname", "address": node.name})
        status = {
            "capacity": node.capacity,
            "allocatable": node.capacity,
            "addresses": addresses,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": node.port}},
            "nodeInfo": node.info,
            "images": images,
            "conditions": self._timed(self._conditions(is_ready=is_ready)),
        }
        await self._client.patch(NODES.url("", node.name, "status"), {"status": status}, "strategic")
        self._told_images = images
        self._told_at = self._clock.monotonic()

    async def _refresh(self) -> None:
        current = {one["type"]: one["status"] for one in self._conditions(is_ready=True)}
        has_news = any(self._told.get(kind, ("", ""))[0] != status for kind, status in current.items())
        has_news = has_news or await self._present_images() != self._told_images
        if has_news or self._clock.monotonic() - self._told_at >= STATUS_SECONDS:
            await self.tell_status()

    async def _present_images(self) -> list[Object]:
        present = await self._images()
        return [{"names": list(one.names), "sizeBytes": one.size} for one in present[:MOST_IMAGES]]

    async def _register_again(self) -> None:
        """Put the node back that somebody removed while it runs."""
        try:
            await self.register()
        except errors.ApiError as refusal:
            log.warning("the node could not be registered again: %s", refusal)

    async def _renew(self) -> None:
        spec = {
            "holderIdentity": self._node.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(self._clock.now()),
        }
        try:
            await self._client.patch(LEASES.url(_LEASE_NAMESPACE, self._node.name), {"spec": spec})
        except errors.NotFound:
            lease = {"metadata": {"name": self._node.name}, "spec": spec}
            await self._client.create(LEASES.url(_LEASE_NAMESPACE), lease)

    def _conditions(self, *, is_ready: bool) -> list[dict[str, str]]:
        full = shutil.disk_usage(self._directory).free < LEAST_DISK
        unenforced = self._node.unenforced
        return [
            _condition(
                "MemoryPressure",
                False,
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            _condition("DiskPressure", True, "KubeletHasDiskPressure", "kubelet has disk pressure")
            if full
            else _condition(
                "DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"
            ),
            _condition(
                "PIDPressure", False, "KubeletHasSufficientPID", "kubelet has sufficient PID available"
            ),
            _condition("LimitsEnforced", False, "CgroupsNotWritable", unenforced)
            if unenforced
            else _condition("LimitsEnforced", True, "CgroupsWritable", "limits of Pods are enforced"),
            _condition("Ready", True, "KubeletReady", "kubelet is posting ready status")
            if is_ready
            else _condition("Ready", False, "KubeletNotReady", "node is shutting down"),
        ]

    def _timed(self, conditions: list[dict[str, str]]) -> list[dict[str, Any]]:
        now = format_time(self._clock.now())
        timed = []
        for one in conditions:
            status, since = self._told.get(one["type"], ("", now))
            if status != one["status"]:
                since = now
            self._told[one["type"]] = (one["status"], since)
            timed.append({**one, "lastHeartbeatTime": now, "lastTransitionTime": since})
        return timed


def _condition(kind: str, holds: bool, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def limits_message(unenforced: Mapping[str, str]) -> str:
    """Return in words which limits are not enforced, and why; nothing if all are."""
    if not unenforced:
        return ""
    reasons = "; ".join(f"{name}: {why}" for name, why in unenforced.items())
    return f"limits of Pods are not enforced here ({reasons})"
