"""What the controllers of a real plane are known to owe, by what is heard of Pods and Jobs; a world waits for it."""

from collections import defaultdict
from typing import Any

from tests.kubernetes.patience import ECHO, patient_loop

_COUNTED_BY_JOB = "batch.kubernetes.io/job-tracking"
# A debt that is older was none.
_PAYS_WITHIN = 3.0
# How long the controller of Jobs waits after a first failure; then twice as long after each.
_FIRST_BACKOFF = 10.0


class Debts:
    """Knows, for one world, what the plane owes to whom."""

    def __init__(self) -> None:
        self._loop = patient_loop()
        self._owned: defaultdict[str, set[str]] = defaultdict(set)  # by the uid of the owner

    def heard(self, change: str, obj: dict[str, Any]) -> None:
        """Listen for what follows from news, and wait for what is owed."""
        if change in ("BOOKMARK", "ERROR"):
            return
        self._loop.listen(ECHO)
        if change == "DELETED" or not obj.get("apiVersion", "").startswith("ray.io/"):
            self._loop.stir()
        uid = obj["metadata"]["uid"]
        is_there = change != "DELETED"
        if obj.get("kind") == "Pod":
            self._settle(f"node of {uid}", is_there and _waits_for_node(obj))
            self._settle(f"count of {uid}", is_there and _waits_for_count(obj))
        elif obj.get("kind") == "Job":
            self._promise_pod(obj, is_there=is_there)
        self._collect(obj, is_there=is_there)

    def _settle(self, debt: str, is_owed: bool) -> None:
        if is_owed:
            self._loop.owe(debt, _PAYS_WITHIN)
        else:
            self._loop.pay(debt)

    def _promise_pod(self, job: dict[str, Any], *, is_there: bool) -> None:
        """Wait for the Pod that follows on one that failed; the controller of Jobs lets some time pass first."""
        failures = job["status"].get("failed", 0)
        promises = [f"Pod {count} of {job['metadata']['uid']}" for count in range(failures + 1)]
        if failures and is_there and _waits_for_pod(job):
            self._loop.promise(promises.pop(), _FIRST_BACKOFF * 2 ** (failures - 1) + _PAYS_WITHIN)
        for promise in promises:
            self._loop.pay(promise)

    def _collect(self, obj: dict[str, Any], *, is_there: bool) -> None:
        """Wait for the end of what is owned by somebody who has gone."""
        uid = obj["metadata"]["uid"]
        if not is_there or "deletionTimestamp" in obj["metadata"]:
            self._loop.pay(f"end of {uid}")
        else:
            for owner in obj["metadata"].get("ownerReferences") or ():
                self._owned[owner["uid"]].add(uid)
        if not is_there:
            for owned in self._owned:
                self._owned[owned].discard(uid)
            for left in self._owned.pop(uid, ()):
                self._loop.owe(f"end of {left}", _PAYS_WITHIN)


def _waits_for_node(pod: dict[str, Any]) -> bool:
    """Return whether the scheduler has not looked at a Pod yet."""
    spec = pod["spec"]
    if spec.get("nodeName") or spec.get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
        return False
    return not any(one["type"] == "PodScheduled" for one in pod["status"].get("conditions") or ())


def _waits_for_count(pod: dict[str, Any]) -> bool:
    """Return whether a Pod has ended, and the controller of Jobs, which looks once a second, has not counted it."""
    metadata = pod["metadata"]
    is_over = "deletionTimestamp" in metadata or pod["status"].get("phase") in ("Succeeded", "Failed")
    return is_over and _COUNTED_BY_JOB in (metadata.get("finalizers") or ())


def _waits_for_pod(job: dict[str, Any]) -> bool:
    """Return whether a Job that goes on has no Pod."""
    status = job["status"]
    if status.get("active") or job["spec"].get("suspend") or "deletionTimestamp" in job["metadata"]:
        return False
    return not status.get("conditions")
