"""Pods on lost nodes: they are to end, and nobody is left who could say that they did."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from eagleray.kube.client import Client
from eagleray.kube.resources import NODES
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.views import PodView
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import parse_time

# A kubelet that lives reports the end of a Pod well within this time after the Pod's grace period.
PATIENCE = 30.0
# How long an answer about a node is taken for true.
_ANSWER_SECONDS = 30.0


class _Answer(NamedTuple):
    is_lost: bool
    is_gone: bool
    until: float


class LostNodes:
    """Finds out which terminating Pods are on lost nodes. Nodes are asked for only when a Pod is overdue."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    async def among(self, snapshot: Snapshot) -> Sequence[PodView]:
        """Return the Pods that may be replaced though they are still listed.

        A head is among them only if no second one could do harm: its node is gone for good, it shares no storage with
        its successor, or it has none because the cluster is being deleted.
        """
        lost = []
        cluster = snapshot.cluster
        must_be_alone = cluster.is_fault_tolerant and not cluster.metadata.get("deletionTimestamp")
        for pod in snapshot.pods:
            left = _time_left(pod, self._clock.now())
            if left is None or left > 0:
                continue
            answer = await self._ask(pod.spec.node_name)
            if answer.is_lost and (pod.is_worker or answer.is_gone or not must_be_alone):
                lost.append(pod)
        return lost

    def next_look(self, snapshot: Snapshot) -> list[float]:
        """Return after how many seconds terminating Pods become overdue, or are asked about again."""
        now = self._clock.now()
        left = (_time_left(pod, now) for pod in snapshot.pods)
        return [
            max(seconds, _ANSWER_SECONDS if seconds <= 0 else seconds)
            for seconds in left
            if seconds is not None
        ]

    async def _ask(self, node: str) -> _Answer:
        now = self._clock.monotonic()
        known = self._answers.get(node)
        if known is not None and known.until > now:
            return known
        self._answers = {name: answer for name, answer in self._answers.items() if answer.until > now}
        answer = self._answers[node] = await self._look_up(node, now + _ANSWER_SECONDS)
        return answer

    async def _look_up(self, node: str, until: float) -> _Answer:
        try:
            found = await self._client.get(NODES, "", node)
        except errors.NotFound:
            return _Answer(is_lost=True, is_gone=True, until=until)
        except errors.Forbidden:
            # An operator for single namespaces may not look at nodes: it waits, as the reference does.
            return _Answer(is_lost=False, is_gone=False, until=until)
        conditions = (found.get("status") or {}).get("conditions") or []
        ready = next((one.get("status") for one in conditions if one.get("type") == "Ready"), "Unknown")
        return _Answer(is_lost=ready == "Unknown", is_gone=False, until=until)


def _time_left(pod: PodView, now: datetime) -> float | None:
    """Return after how many seconds a terminating Pod is overdue; None if it is not to end or on no node."""
    ends = pod.metadata.deletion_timestamp
    if ends is None or not pod.spec.node_name:
        return None
    return PATIENCE - (now - parse_time(ends)).total_seconds()
