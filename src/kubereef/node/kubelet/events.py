"""Events about Pods as a kubelet writes them, beside the Pod's life: nobody waits for the API server here."""

import asyncio
import logging
from collections import OrderedDict
from typing import Literal, NamedTuple

from kubereef.controllers.resources import EVENTS, PODS
from kubereef.kinds.resource import Object
from kubereef.node.kubelet.handles import ContainerKind
from kubereef.node.kubelet.interfaces import Client
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import format_time

log = logging.getLogger(__name__)

_LONGEST_MESSAGE = 1024
_MOST_WAITING = 2000  # of events not written yet; what comes on top is dropped, since events are no record
_REMEMBERED = 2000  # events that are counted up when they repeat
_PLACES: dict[ContainerKind, str] = {
    "init": "initContainers",
    "container": "containers",
    "ephemeral": "ephemeralContainers",
}


class _Event(NamedTuple):
    pod: Object
    place: str
    kind: str
    reason: str
    message: str
    time: str


class PodEvents:
    """Tells of Pods in the name of one node's kubelet."""

    def __init__(self, client: Client, clock: Clock, node: str) -> None:
        self._client = client
        self._clock = clock
        self._node = node
        self._queue: asyncio.Queue[_Event] = asyncio.Queue(_MOST_WAITING)
        self._told: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()
        self._last_stamp = 0
        self._writer: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to write."""
        self._writer = asyncio.create_task(self._write_all(), name="events of Pods")

    async def stop(self) -> None:
        """Stop; events that nobody heard of yet are lost."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
            self._writer = None

    def normal(self, pod: Object, reason: str, message: str, container: "Named | None" = None) -> None:
        """Tell of something that went as it should."""
        self._add(pod, "Normal", reason, message, container)

    def warning(self, pod: Object, reason: str, message: str, container: "Named | None" = None) -> None:
        """Tell of something that a user may have to mend."""
        self._add(pod, "Warning", reason, message, container)

    def _add(
        self,
        pod: Object,
        kind: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        container: "Named | None",
    ) -> None:
        place = "" if container is None else f"spec.{_PLACES[container.kind]}{{{container.name}}}"
        event = _Event(pod, place, kind, reason, message[:_LONGEST_MESSAGE], format_time(self._clock.now()))
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            log.debug("event dropped: %s %s", reason, message)

    async def _write_all(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._write(event)
            except errors.ApiError as refusal:
                log.debug("event %s about %s: %s", event.reason, event.pod["metadata"]["name"], refusal)
            except OSError as trouble:
                log.debug("event %s about %s: %s", event.reason, event.pod["metadata"]["name"], trouble)

    async def _write(self, event: _Event) -> None:
        key = (event.pod["metadata"]["uid"], event.place, event.kind, event.reason, event.message)
        url, times = self._told.pop(key, ("", 0))
        if url:
            try:
                await self._client.patch(url, {"count": times + 1, "lastTimestamp": event.time})
            except errors.NotFound:
                url = ""  # forgotten by the server, as events are after an hour
                times = 0
        if not url:
            url = await self._create(event)
        self._told[key] = (url, times + 1)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    async def _create(self, event: _Event) -> str:
        meta = event.pod["metadata"]
        name = f"{meta['name']}.{self._stamp():x}"
        involved = PODS.involved(event.pod)
        if event.place:
            involved["fieldPath"] = event.place
        body = {
            "metadata": {"name": name, "namespace": meta["namespace"]},
            "involvedObject": involved,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": "kubelet", "host": self._node},
            "firstTimestamp": event.time,
            "lastTimestamp": event.time,
            "count": 1,
            "type": event.kind,
            "eventTime": None,
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
        }
        await self._client.create(EVENTS.url(meta["namespace"]), body)
        return EVENTS.url(meta["namespace"], name)

    def _stamp(self) -> int:
        """Return the time in nanoseconds, made unique: events of one moment need names too."""
        now = int(self._clock.now().timestamp() * 1_000_000) * 1000
        self._last_stamp = max(now, self._last_stamp + 1)
        return self._last_stamp


class Named(NamedTuple):
    """Which container an event is about."""

    name: str
    kind: ContainerKind = "container"
