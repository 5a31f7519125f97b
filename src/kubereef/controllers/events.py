"""Events: what a controller tells users about an object."""

import logging
from collections import OrderedDict
from typing import NamedTuple, Protocol

from kubereef.controllers.resources import EVENTS, Resource
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import format_time

log = logging.getLogger(__name__)

# How many events are remembered, to count repetitions instead of telling them anew.
_REMEMBERED = 1024
_LONGEST_MESSAGE = 1024

# Of events that differ only in their message, this many are told one by one; those that follow within the time are
# told as one, with the latest message, so that a thousand Pods do not make a thousand events.
_MOST_SIMILAR = 10
_SIMILAR_SECONDS = 600.0
_COMBINED = "(combined from similar events): "


class Writer(Protocol):
    """The part of a client that writing events takes."""

    async def create(self, url: str, body: object) -> Object: ...

    async def patch(self, url: str, body: object, kind: str = "merge") -> Object: ...


class _Told(NamedTuple):
    url: str
    times: int


class _Similar:
    """The messages of similar events, and when the last one came."""

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}
        self.last = 0.0


class Recorder:
    """Writes events in the name of one component. An event that cannot be written is not worth failing for."""

    def __init__(self, client: Writer, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._told: OrderedDict[tuple[str, str, str, str], _Told] = OrderedDict()
        self._similar: OrderedDict[tuple[str, str, str], _Similar] = OrderedDict()
        self._last_stamp = 0

    async def normal(self, resource: Resource, about: Object, reason: str, message: str) -> None:
        """Tell of something that went as it should."""
        await self._record(resource, about, "Normal", reason, message)

    async def warning(self, resource: Resource, about: Object, reason: str, message: str) -> None:
        """Tell of something that a user may have to mend."""
        await self._record(resource, about, "Warning", reason, message)

    async def _record(self, resource: Resource, about: Object, kind: str, reason: str, message: str) -> None:
        uid = about["metadata"]["uid"]
        message = message[:_LONGEST_MESSAGE]
        is_combined = self._is_one_of_many(uid, kind, reason, message)
        key = (uid, kind, reason, "" if is_combined else message)
        if is_combined:
            message = f"{_COMBINED}{message}"[:_LONGEST_MESSAGE]
        told = self._told.pop(key, None)
        try:
            if told is None:
                told = await self._tell(resource, about, kind, reason, message)
            else:
                told = await self._repeat(told, message)
        except errors.ApiError as refusal:
            log.debug("event %s about %s: %s", reason, about["metadata"]["name"], refusal)
            return
        self._told[key] = told
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def _is_one_of_many(self, uid: str, kind: str, reason: str, message: str) -> bool:
        """Tell whether there were so many similar events lately that this one is not told by itself."""
        similar = self._similar.setdefault((uid, kind, reason), _Similar())
        self._similar.move_to_end((uid, kind, reason))
        if len(self._similar) > _REMEMBERED:
            self._similar.popitem(last=False)
        now = self._clock.monotonic()
        if now - similar.last > _SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last = now
        if len(similar.messages) < _MOST_SIMILAR:
            similar.messages[message] = None
        return message not in similar.messages

    async def _repeat(self, told: _Told, message: str) -> _Told:
        times = told.times + 1
        now = format_time(self._clock.now())
        await self._client.patch(told.url, {"count": times, "lastTimestamp": now, "message": message})
        return _Told(told.url, times)

    async def _tell(self, resource: Resource, about: Object, kind: str, reason: str, message: str) -> _Told:
        namespace = about["metadata"].get("namespace") or "default"
        name = f"{about['metadata']['name']}.{self._stamp():x}"
        now = format_time(self._clock.now())
        event = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": resource.involved(about),
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        await self._client.create(EVENTS.url(namespace), event)
        return _Told(EVENTS.url(namespace, name), 1)

    def _stamp(self) -> int:
        """Return the time in nanoseconds, made unique: events of one moment need names too."""
        now = int(self._clock.now().timestamp() * 1_000_000) * 1000
        self._last_stamp = max(now, self._last_stamp + 1)
        return self._last_stamp
