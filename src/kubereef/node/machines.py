"""One scripted node: its registration, its heartbeat, and the Pods that live on it by their scripts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubereef.controllers.following import Reader
from kubereef.controllers.resources import LEASES, NODES, PODS
from kubereef.kinds.resource import Object
from kubereef.node.lives import Container, PodLife
from kubereef.node.scripts import Evicted, Fails, NotReady, Ready, Running, Script, Step, Succeeds, Waits
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import format_micro_time, format_time

log = logging.getLogger(__name__)

HEARTBEAT = 10.0
_LEASE_NAMESPACE = "kube-node-lease"
_CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "250"}
_RETRY = 1.0


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node to register."""

    name: str = "node-1"
    capacity: Mapping[str, str] = field(default_factory=lambda: _CAPACITY)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


class Client(Reader, Protocol):
    """The part of a client that nodes need."""

    async def create(self, url: str, body: object) -> dict[str, Any]: ...

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]: ...

    async def delete(self, url: str, body: object = None) -> dict[str, Any]: ...


class Machine:
    """One node: its registration, its heartbeat, and whether it is heard."""

    def __init__(self, shape: NodeShape, client: Client, clock: Clock, number: int) -> None:
        self.shape = shape
        self.client = client
        self.clock = clock
        self.ip = f"192.168.{number >> 8 & 255}.{number & 255}"
        self.is_connected = asyncio.Event()
        self.is_connected.set()

    async def register(self) -> None:
        """Create the node, or take over the one of that name."""
        name = self.shape.name
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node: Object = {"metadata": {"name": name, "labels": {**labels, **self.shape.labels}}}
        if self.shape.taints:
            node["spec"] = {"taints": [dict(one) for one in self.shape.taints]}
        lease = {"metadata": {"name": name}, "spec": self._renewal()}
        for url, obj in ((NODES.url(), node), (LEASES.url(_LEASE_NAMESPACE), lease)):
            try:
                await self.client.create(url, obj)
            except errors.AlreadyExists:
                log.debug("%s exists already", url)
        await self._post_status()

    async def beat(self) -> None:
        """Say again and again that the node is there, unless it is cut off."""
        while True:
            await self.clock.sleep(HEARTBEAT)
            was_connected = self.is_connected.is_set()
            await self.is_connected.wait()
            try:
                url = LEASES.url(_LEASE_NAMESPACE, self.shape.name)
                await self.client.patch(url, {"spec": self._renewal()})
                if not was_connected:
                    await self._post_status()
            except errors.ApiError as refusal:
                log.warning("heartbeat of %s: %s", self.shape.name, refusal)

    def _renewal(self) -> Object:
        return {
            "holderIdentity": self.shape.name,
            "leaseDurationSeconds": 40,
            "renewTime": format_micro_time(self.clock.now()),
        }

    async def _post_status(self) -> None:
        now = format_time(self.clock.now())
        calm = [
            ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ]
        told = [(kind, "False", reason, message) for kind, reason, message in calm]
        told.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
        conditions = [
            {
                "type": kind,
                "status": state,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, state, reason, message in told
        ]
        capacity = {**_CAPACITY, **self.shape.capacity}
        addresses = [
            {"type": "InternalIP", "address": self.ip},
            {"type": "Hostname", "address": self.shape.name},
        ]
        status = {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": addresses,
            "conditions": conditions,
        }
        await self.client.patch(NODES.url("", self.shape.name, "status"), {"status": status}, "strategic")


class ScriptedPod:
    """A Pod that lives by a script, and tells the server of it."""

    def __init__(self, pod: Object, node: Machine, script: Script, ip: str, *, is_over: bool) -> None:
        self.node = node
        self.tasks: list[asyncio.Task[None]] = []
        self._pod = pod
        self._script = script
        self._clock = node.clock
        self._state = PodLife(pod, ip, node.ip, node.clock.now)
        self._grace: int | None = None
        self._has_told = False
        self._is_ending = False
        if not is_over and not pod["metadata"].get("deletionTimestamp"):
            self._begin(self._live())

    def cancel(self) -> None:
        for task in self.tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks = [task for task in self.tasks if not task.done()]
        self.tasks.append(asyncio.create_task(work, name=f"life of {self._pod['metadata']['name']}"))

    def repeat_status(self) -> None:
        """Tell the server once more how the Pod is, in case somebody else has said something different."""
        if self._has_told:
            self._begin(self._tell())

    def terminate(self, grace: int) -> None:
        """End the Pod within a period; a shorter one than before counts."""
        if self._grace is not None and grace >= self._grace:
            return
        self.cancel()
        self._grace = grace
        self._begin(self._end(grace))

    # --- living

    async def _live(self) -> None:
        deadline = self._pod["spec"].get("activeDeadlineSeconds")
        try:
            async with asyncio.timeout(deadline):
                await self._play()
                if deadline is not None and self._state.phase() not in ("Succeeded", "Failed"):
                    await asyncio.Event().wait()  # until the deadline, or somebody deletes the Pod
        except TimeoutError:
            self._state.condemn(
                "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
            )
            await self._tell()

    async def _play(self) -> None:
        while True:
            for step in self._script.steps:
                await self._clock.sleep(step.after)
                await self._take(step)
                if self._state.phase() in ("Succeeded", "Failed"):
                    return
            if not self._script.repeat:
                return

    async def _take(self, step: Step) -> None:
        """Let one step of the script happen."""
        if isinstance(step, Evicted):
            self._state.condemn(step.reason, step.message)
            await self._tell()
            return
        chosen = self._state.named(step.container)
        match step:
            case Running():
                self._state.set_up()
                for one in chosen:
                    self._start(one, is_ready=step.ready)
            case Ready() | NotReady():
                for one in chosen:
                    one.is_ready = one.is_running and isinstance(step, Ready)
            case Waits():
                for one in chosen:
                    one.wait(step.reason, step.message)
            case Fails(exit_code=code, reason=reason):
                await self._end_containers(chosen, code, reason)
                return
            case Succeeds():
                await self._end_containers(chosen, 0, "")
                return
        await self._tell()

    def _start(self, container: Container, *, is_ready: bool) -> None:
        if not container.is_running:
            container.run(self._clock.now())
        container.is_ready = is_ready

    async def _end_containers(self, chosen: list[Container], code: int, reason: str) -> None:
        """End containers; those that the restart policy wants are started again after their backoff."""
        self._state.set_up()
        for one in chosen:
            if not one.is_running and one.exit_code is None:
                one.run(self._clock.now())
            one.end(self._clock.now(), code, reason)
        await self._tell()
        again = [one for one in chosen if self._state.restarts(one)]
        if not again:
            return
        pause = max(one.crash() for one in again)
        if pause:
            await self._tell()
            await self._clock.sleep(pause)
        for one in again:
            self._start(one, is_ready=True)
        await self._tell()

    async def _end(self, grace: int) -> None:
        """Let the containers end in the time they take, at most the given one, then let go of the Pod."""
        if self._has_told:
            await self._clock.sleep(min(self._script.stops_after, grace))
            is_killed = self._script.stops_after > grace
            self._state.end_all(137 if is_killed else self._script.stop_code)
            self._is_ending = True
            await self._tell()
        await self._send(self._remove)

    async def _remove(self) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._pod["metadata"]["uid"]}}
        await self.node.client.delete(PODS.url_of(self._pod), options)

    async def _tell(self) -> None:
        self._has_told = True
        await self._send(self._write)

    async def _write(self) -> None:
        patch = {
            "metadata": {"uid": self._pod["metadata"]["uid"]},
            "status": self._state.status(is_ending=self._is_ending),
        }
        await self.node.client.patch(PODS.url_of(self._pod, "status"), patch, "strategic")

    async def _send(self, request: Callable[[], Awaitable[None]]) -> None:
        """Send a request as soon as the node is heard; what the server cannot take now is sent again."""
        while True:
            await self.node.is_connected.wait()
            try:
                await request()
            except (errors.NotFound, errors.Conflict):
                return  # the Pod is gone, or another one has its name
            except errors.Invalid as refusal:
                log.warning("status of %s: %s", self._pod["metadata"]["name"], refusal)
                return
            except errors.ApiError as refusal:
                log.warning("%s: %s; trying again", self._pod["metadata"]["name"], refusal)
                await self._clock.sleep(_RETRY)
            else:
                return
