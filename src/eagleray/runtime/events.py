"""Events: what the operator tells users about an object, in `events.k8s.io/v1`.

Telling never waits: a pass leaves a note here, and a task of the recorder writes it. Repetitions are counted in the
event's series instead of being written anew, similar events are folded, and one object gets only so many.

What went well repeats itself whenever the same thing is told of the same object, as Kubernetes' own recorder has it:
of a hundred workers one event says that they were created, with the first one's name and their number. A warning
repeats itself only in the same words, because its words say what to mend.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from eagleray.runtime.redaction import redacted
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import format_micro_time

log = logging.getLogger(__name__)

Object = Mapping[str, Any]
EventType = Literal["Normal", "Warning"]
K = TypeVar("K")
V = TypeVar("V")

# The API server's own bounds.
LONGEST_NOTE = 1024
LONGEST_WORD = 128
_LONGEST_NAME = 253

# What went well often comes together, as the Pods of one group do: so long it is counted before it is written.
GATHERING_SECONDS = 1.0
# A series that goes on is written at most this often; what came in between is in its count.
SERIES_SECONDS = 60.0
# An event that was silent for so long begins anew, as in Kubernetes' own recorder.
SERIES_ENDS_AFTER = 360.0
# Of events that differ only in their note, this many are told one by one; the others become one series.
MOST_SIMILAR = 10
COMBINED = "(combined from similar events): "
# What one object may cost: so many writes at once, then one per so many seconds.
BURST = 50
REFILL_SECONDS = 10.0

MOST_REMEMBERED = 4096
MOST_WAITING = 10_000
WRITE_TIMEOUT = 10.0
_WRITERS = 4


class EventWriter(Protocol):
    """The part of a client that events take; refusals are `kubewire.errors`."""

    async def create(self, namespace: str, event: dict[str, Any]) -> object:
        """Create an `events.k8s.io/v1` Event."""
        ...

    async def patch(self, namespace: str, name: str, patch: dict[str, Any]) -> object:
        """Change an Event by a merge patch."""
        ...


class _Identity(NamedTuple):
    """What makes two events the same."""

    uid: str
    type: EventType
    reason: str
    action: str
    note: str
    related: str


class _Told:
    """An event that is known: as it is written, how often it happened, and what of that is written."""

    __slots__ = ("count", "event", "last", "last_write", "late", "waiting", "writing", "written")

    def __init__(self, event: dict[str, Any], now: float) -> None:
        self.event = event
        self.count = 1
        self.last = now
        self.last_write = now
        self.written = 0  # of the count; 0 is an event that nobody has seen yet
        self.waiting = False
        self.late: asyncio.TimerHandle | None = None  # writes the count if nothing else does
        self.writing = asyncio.Lock()  # a repetition must not overtake the creation


class _Similar:
    """The notes of similar events, and when the last one came."""

    __slots__ = ("last", "notes")

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self.last = 0.0


class _Budget:
    """How much more may be written about one object."""

    __slots__ = ("at", "left")

    def __init__(self, now: float) -> None:
        self.left = float(BURST)
        self.at = now

    def spend(self, now: float) -> bool:
        self.left = min(BURST, self.left + (now - self.at) / REFILL_SECONDS)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Recorder:
    """Tells of objects in the name of one controller. What cannot be written is dropped: no pass fails for it."""

    def __init__(self, writer: EventWriter, clock: Clock, controller: str, instance: str = "") -> None:
        self._writer = writer
        self._clock = clock
        self._controller = controller
        self._instance = (instance or controller)[:LONGEST_WORD]
        self._told: OrderedDict[_Identity, _Told] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._budgets: OrderedDict[str, _Budget] = OrderedDict()
        self._waiting: asyncio.Queue[_Told] = asyncio.Queue(MOST_WAITING)
        self._writers: list[asyncio.Task[None]] = []
        self._last_stamp = 0
        self.dropped = 0

    def normal(
        self, regarding: Object, reason: str, action: str, note: str, *, related: Object | None = None
    ) -> None:
        """Tell of something that went as it should."""
        self._tell(regarding, "Normal", reason, action, note, related)

    def warning(
        self, regarding: Object, reason: str, action: str, note: str, *, related: Object | None = None
    ) -> None:
        """Tell of something that a user may have to mend."""
        self._tell(regarding, "Warning", reason, action, note, related)

    def start(self) -> None:
        """Begin to write; what was told before is written now."""
        self._writers = [
            asyncio.create_task(self._write(), name=f"events {number}") for number in range(_WRITERS)
        ]

    async def stop(self, patience: float = 5.0) -> None:
        """Write what is waiting, for a moment at most, and end."""
        for identity, told in self._told.items():
            if told.late is not None:
                self._write_count(told, identity.uid)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._waiting.join()
        for writer in self._writers:
            writer.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)
        self._writers = []

    def _tell(
        self, regarding: Object, kind: EventType, reason: str, action: str, note: str, related: Object | None
    ) -> None:
        now = self._clock.monotonic()
        note = clipped(redacted(note), LONGEST_NOTE)
        reference = reference_to(regarding)
        uid = reference.get("uid") or f"{reference.get('kind')} {reference.get('name')}"
        related_uid = str((related or {}).get("metadata", {}).get("uid", ""))
        if kind == "Warning" and self._is_one_of_many((uid, kind, reason, action), note, now):
            identity = _Identity(uid, kind, reason, action, COMBINED, "")
            note = clipped(f"{COMBINED}{note}", LONGEST_NOTE)
        else:
            words = note if kind == "Warning" else ""
            identity = _Identity(uid, kind, reason, action, words, related_uid)
        told = self._told.get(identity)
        if told is not None and now - told.last <= SERIES_ENDS_AFTER:
            self._told.move_to_end(identity)
            self._repeat(told, uid, now)
            return
        told = _Told(self._event(reference, kind, reason, action, note, related), now)
        _remember(self._told, identity, told)
        if kind == "Normal" and self._writers:
            self._write_late(told, uid, GATHERING_SECONDS)
        else:
            self._write_count(told, uid)

    def _repeat(self, told: _Told, uid: str, now: float) -> None:
        """Count a repetition; a warning's second is written at once, all others from time to time."""
        told.count += 1
        told.last = now
        told.event["series"] = {"count": told.count, "lastObservedTime": format_micro_time(self._clock.now())}
        is_second_warning = told.count == 2 and told.event["type"] == "Warning"
        if is_second_warning or now - told.last_write >= SERIES_SECONDS:
            self._write_count(told, uid)
        elif told.late is None and self._writers:
            self._write_late(told, uid, told.last_write + SERIES_SECONDS - now)

    def _write_late(self, told: _Told, uid: str, wait: float) -> None:
        told.late = asyncio.get_running_loop().call_later(wait, self._write_count, told, uid)

    def _write_count(self, told: _Told, uid: str) -> None:
        """Have an event written as often as it has happened by now, unless that is done or waits to be done."""
        if told.late is not None:
            told.late.cancel()
            told.late = None
        now = self._clock.monotonic()
        if told.written < told.count and not told.waiting and self._may_write(uid, now):
            told.last_write = now
            self._enqueue(told)

    def _may_write(self, uid: str, now: float) -> bool:
        budget = self._budgets.get(uid) or _Budget(now)
        _remember(self._budgets, uid, budget)
        may = budget.spend(now)
        self.dropped += not may
        return may

    def _is_one_of_many(self, kind: tuple[str, ...], note: str, now: float) -> bool:
        """Tell whether there were so many similar events lately that this one is not told by itself."""
        similar = self._similar.get(kind) or _Similar()
        _remember(self._similar, kind, similar)
        if now - similar.last > SERIES_ENDS_AFTER:
            similar.notes.clear()
        similar.last = now
        if len(similar.notes) < MOST_SIMILAR:
            similar.notes.add(note)
        return note not in similar.notes

    def _enqueue(self, told: _Told) -> None:
        try:
            self._waiting.put_nowait(told)
        except asyncio.QueueFull:
            self.dropped += 1  # the API server is away for long: the log has the same news
        else:
            told.waiting = True

    async def _write(self) -> None:
        while True:
            told = await self._waiting.get()
            told.waiting = False
            try:
                async with asyncio.timeout(WRITE_TIMEOUT), told.writing:
                    await self._write_one(told)
            except (errors.ApiError, OSError) as refusal:
                self.dropped += 1
                log.debug("an event could not be written: %s", refusal)
            except Exception:
                self.dropped += 1
                log.exception("an event could not be written")
            finally:
                self._waiting.task_done()

    async def _write_one(self, told: _Told) -> None:
        meta, count = told.event["metadata"], told.count
        if told.written:
            try:
                await self._writer.patch(meta["namespace"], meta["name"], {"series": told.event["series"]})
            except errors.NotFound:  # events live for an hour; what still goes on is told anew
                self._rename(told.event)
            else:
                told.written = count
                return
        try:
            await self._writer.create(meta["namespace"], dict(told.event))
        except errors.AlreadyExists:  # another controller has told of the object in the same moment
            self._rename(told.event)
            await self._writer.create(meta["namespace"], dict(told.event))
        told.written = count

    def _event(
        self,
        reference: dict[str, str],
        kind: EventType,
        reason: str,
        action: str,
        note: str,
        related: Object | None,
    ) -> dict[str, Any]:
        event: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": self._name(reference.get("name", "")),
                "namespace": reference.get("namespace") or "default",
            },
            "eventTime": format_micro_time(self._clock.now()),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action[:LONGEST_WORD],
            "reason": reason[:LONGEST_WORD],
            "regarding": reference,
            "note": note,
            "type": kind,
        }
        if related is not None:
            event["related"] = reference_to(related)
        return event

    def _rename(self, event: dict[str, Any]) -> None:
        event["metadata"] = {**event["metadata"], "name": self._name(event["regarding"]["name"])}

    def _name(self, regarding: str) -> str:
        """Return a name that no other event of this process has; the time keeps it apart from other processes'."""
        now = int(self._clock.now().timestamp() * 1_000_000) * 1000
        self._last_stamp = max(now, self._last_stamp + 1)
        stamp = f".{self._last_stamp:x}"
        return f"{regarding[: _LONGEST_NAME - len(stamp)]}{stamp}"


def reference_to(obj: Object) -> dict[str, str]:
    """Return the reference by which an event names an object."""
    meta = obj.get("metadata") or {}
    reference = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    reference |= {name: meta.get(name) for name in ("namespace", "name", "uid", "resourceVersion")}
    return {name: str(value) for name, value in reference.items() if value}


def clipped(text: str, size: int) -> str:
    """Return the text, cut to so many bytes at most; the API server counts bytes."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= size:
        return raw.decode()
    return raw[: size - 3].decode("utf-8", "ignore") + "…"


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > MOST_REMEMBERED:
        known.popitem(last=False)
