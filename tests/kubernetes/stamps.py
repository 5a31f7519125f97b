"""The times that a real plane stamps, told in the time of the world that lives on it.

A world begins at its own moment, and hours pass there in seconds, while servers stamp what they make with the time on
the wall. Whatever a world reads therefore shows such a stamp as the world's time at which it was seen first, which is
right after it was made, and that of a deletion as so much later as the object has for its end. In the other direction
heartbeats and the ends of containers are told in the plane's time: its controllers measure from them.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kubereef.simulation import VirtualClock
from kubewire.times import format_micro_time, format_time, parse_time

# What is farther from the time on the wall was not stamped by the plane.
_NEAR = timedelta(days=1)
# What nodes say, and controllers measure from.
_FORMATS = {"finishedAt": format_time, "lastHeartbeatTime": format_time, "renewTime": format_micro_time}
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Stamps:
    """Remembers what the stamps of one world's objects mean."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._meanings: dict[tuple[str, ...], str] = {}

    def text(self, text: bytes) -> bytes:
        """Return an answer in the world's time; what is no object is left alone."""
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
        return msgspec.json.encode(self.told(value))

    def told(self, value: Any) -> Any:
        """Change an object, a list or an event into the world's time; returns it."""
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("object"), dict):
            self.told(value["object"])
            return value
        for item in value.get("items") or ():
            self.told(item)
        uid = (value.get("metadata") or {}).get("uid")
        if uid:
            self._tell(value, uid)
        return value

    def _tell(self, obj: dict[str, Any], uid: str) -> None:
        grace = obj["metadata"].get("deletionGracePeriodSeconds") or 0
        for holder, name, path in _stamps(obj, ()):
            stamp = holder[name]
            if abs(parse_time(stamp) - datetime.now(UTC)) > _NEAR:
                continue
            key = (uid, *path, stamp)
            if key not in self._meanings:
                later = timedelta(seconds=grace if name == "deletionTimestamp" else 0)
                self._meanings[key] = format_time(self._clock.now() + later)
            holder[name] = self._meanings[key]


def on_the_wall(said: Any) -> Any:
    """Return what a node says with the times that controllers of the plane measure from in the plane's own."""
    if isinstance(said, dict):
        return {
            name: _FORMATS[name](datetime.now(UTC)) if name in _FORMATS else on_the_wall(inner)
            for name, inner in said.items()
        }
    if isinstance(said, list):
        return [on_the_wall(inner) for inner in said]
    return said


def _stamps(value: Any, path: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], str, tuple[str, ...]]]:
    """Yield the stamps in a value, each as where it is held, its name, and the path to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str):
                if _STAMP.fullmatch(inner):
                    yield value, name, (*path, name)
            elif name != "managedFields":
                yield from _stamps(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _stamps(inner, (*path, str(index)))
