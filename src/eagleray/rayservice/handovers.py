"""What Serve on each cluster was handed: remembered once it was taken, and tried again if it was not."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from eagleray.dashboard.orders import Outcome, Owner
from eagleray.dashboard.poller import Poller
from eagleray.rayservice.look import Handover, Put
from eagleray.runtime.actions import Say
from eagleray.runtime.events import Recorder

_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 60.0
# 2 s doubled this often is past the longest pause; counting on would only make huge numbers.
_DOUBLINGS: Final = 8


class Failure(NamedTuple):
    """A configuration that a cluster did not take, why, how often by now, and when it is tried again."""

    order_id: str
    text: str
    why: str
    times: int
    due: datetime


class _Memory:
    """What is remembered of one cluster."""

    __slots__ = ("failure", "given", "is_unsure", "put")

    def __init__(self) -> None:
        self.put: Put | None = None
        self.failure: Failure | None = None
        self.is_unsure = False  # whether one that failed may have been taken all the same
        self.given: dict[
            str, Handover
        ] = {}  # by the ids of their orders, in the order in which they were given


class Handovers:
    """Hands configurations over through a poller, without waiting, for the clusters of many services.

    What was taken is remembered for as long as the service uses the cluster; an operator that is started again
    remembers nothing, and hands everything over once more, which changes nothing in Ray.
    """

    def __init__(self, poller: Poller, events: Recorder) -> None:
        self._poller = poller
        self._events = events
        self._services: dict[Owner, dict[str, _Memory]] = {}

    def collect(self, owner: Owner, obj: Mapping[str, Any], clusters: Collection[str]) -> None:
        """Note and tell what became of what was handed over, and forget all clusters but these."""
        memories = self._services.get(owner)
        if memories is None:
            return
        for name, memory in list(memories.items()):
            is_used = name in clusters
            if not is_used:
                self._withdraw(owner, memory)
            for order_id, handover in list(memory.given.items()):
                outcome = self._poller.take(owner, order_id)
                if outcome is not None:
                    del memory.given[order_id]
                    self._note(memory, handover, outcome)
                    if is_used:
                        self._tell(obj, handover, outcome)
            # What is under way is waited for, so that the poller need not keep its outcome.
            if not is_used and not memory.given:
                del memories[name]
        if not memories:
            del self._services[owner]

    def put(self, owner: Owner, cluster: str) -> Put | None:
        """Return what a cluster has taken last."""
        memory = self._services.get(owner, {}).get(cluster)
        return memory.put if memory is not None else None

    def failure(self, owner: Owner, cluster: str, text: str) -> str:
        """Say why a cluster did not take this text; empty if it did, or was not asked to."""
        memory = self._services.get(owner, {}).get(cluster)
        failure = memory.failure if memory is not None else None
        return failure.why if failure is not None and failure.text == text else ""

    def is_open(self, owner: Owner, cluster: str) -> bool:
        """Tell whether a cluster may or may not have taken something else than what it has taken last."""
        memory = self._services.get(owner, {}).get(cluster)
        return memory is not None and (memory.is_unsure or bool(memory.given))

    def give(self, owner: Owner, handover: Handover, now: datetime) -> float | None:
        """Hand a configuration over. If it was refused a short while ago, nothing is done but to return how many
        seconds to wait."""
        memory = self._services.setdefault(owner, {}).setdefault(handover.cluster, _Memory())
        failure = memory.failure
        if failure is not None and failure.order_id == handover.order.id and now < failure.due:
            return (failure.due - now).total_seconds()
        if handover.order.id not in memory.given:
            self._withdraw(owner, memory)  # whatever else was wanted before
            memory.given[handover.order.id] = handover
            self._poller.order(owner, handover.order, again=True)
        return None

    def forget(self, owner: Owner) -> None:
        """Drop all that is remembered of a service."""
        self._services.pop(owner, None)

    def _withdraw(self, owner: Owner, memory: _Memory) -> None:
        """Take back what has not been begun."""
        for order_id in list(memory.given):
            if self._poller.cancel(owner, order_id):
                del memory.given[order_id]

    @staticmethod
    def _note(memory: _Memory, handover: Handover, outcome: Outcome) -> None:
        if outcome.error is None:
            memory.put = Put(handover.text, handover.capacity, outcome.at)
            memory.failure = None
            memory.is_unsure = False
            return
        memory.is_unsure = memory.is_unsure or not outcome.error.certainly_not_done
        before = memory.failure
        is_same = before is not None and before.order_id == handover.order.id
        times = before.times + 1 if before is not None and is_same else 1
        pause = min(_FIRST_PAUSE * 2.0 ** min(times - 1, _DOUBLINGS), _LONGEST_PAUSE)
        due = outcome.at + timedelta(seconds=pause)
        memory.failure = Failure(handover.order.id, handover.text, str(outcome.error), times, due)

    def _tell(self, obj: Mapping[str, Any], handover: Handover, outcome: Outcome) -> None:
        if outcome.error is None:
            self._say(obj, handover.said.done, "")
        else:
            self._say(obj, handover.said.failed, f" {outcome.error}")

    def _say(self, obj: Mapping[str, Any], say: Say | None, error: str) -> None:
        if say is not None:
            tell = self._events.warning if say.kind == "Warning" else self._events.normal
            tell(obj, say.reason, say.action, f"{say.note}{error}")
