"""The status of a RayCluster, computed from what is there."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import MODE_LABEL, SIDECAR
from eagleray.raycluster.counts import demand_of, worker_counts
from eagleray.raycluster.views import PodView
from kubewire.times import format_time

Object = dict[str, Any]

PROVISIONED = "RayClusterProvisioned"
HEAD_READY = "HeadPodReady"
REPLICA_FAILURE = "ReplicaFailure"
SUSPENDING = "RayClusterSuspending"
SUSPENDED = "RayClusterSuspended"
# Ours: there only while Pods cannot run, with the reason.
BLOCKED = "PodsBlocked"


class Failure(NamedTuple):
    """A step of the pass that failed; `pod_step` is the reason for ReplicaFailure if it was about Pods."""

    message: str
    pod_step: str = ""


class Blocked(NamedTuple):
    """Why Pods do not run: a word, and a sentence."""

    reason: str
    message: str


class Observed(NamedTuple):
    """What a status is computed from."""

    pods: Sequence[PodView]
    head_services: Sequence[Object]
    now: datetime
    failure: Failure | None = None
    conditions_gate: bool = True
    blocked: Blocked | None = None


def next_status(cluster: Cluster, observed: Observed) -> Object:
    """Return the status that a cluster should have; values that are empty are left out, as in the reference."""
    old: Object = cluster.obj.get("status") or {}
    counts = worker_counts(cluster)
    demand = demand_of(cluster)
    workers = [pod for pod in observed.pods if pod.is_worker]
    status: Object = {
        **_kept(old),
        "desiredCPU": str(demand.cpu),
        "desiredMemory": str(demand.memory),
        "desiredGPU": str(demand.gpu),
        "desiredTPU": str(demand.tpu),
        "readyWorkerReplicas": sum(_is_ready(pod) for pod in workers),
        "availableWorkerReplicas": sum(pod.is_running for pod in workers),
        "desiredWorkerReplicas": counts.desired,
        "minWorkerReplicas": counts.least,
        "maxWorkerReplicas": counts.most,
        "observedGeneration": cluster.metadata.get("generation", 0),
        "endpoints": {**(old.get("endpoints") or {}), **_endpoints(observed.head_services)},
        "head": _head(cluster, observed),
    }
    if observed.conditions_gate:
        status["conditions"] = _conditions(cluster, observed)
    _set_state(cluster, status, old, observed, counts.desired)
    return {key: value for key, value in status.items() if value or key in _ALWAYS}


def needs_write(old: Object | None, new: Object) -> bool:
    """Tell whether a status differs in more than the time of its last update."""
    return _without_time(old or {}) != _without_time(new)


def is_urgent(old: Object, new: Object) -> bool:
    """Tell whether somebody waits for this news: a first status, another state, a condition that turned.

    How many Pods run already, and whether the head is ready, is told a moment later with whatever else has changed.
    """
    if not old or any(old.get(field) != new.get(field) for field in ("state", "observedGeneration")):
        return True
    return _turned(old) != _turned(new)


def condition_of(status: Object, kind: str) -> Object | None:
    """Return a condition of a status, if it has it."""
    return next((entry for entry in status.get("conditions") or () if entry["type"] == kind), None)


def suspension_of(status: Object) -> tuple[bool, bool]:
    """Return whether a status says that a cluster is being suspended, and that it is."""
    suspending, suspended = (condition_of(status, kind) or {} for kind in (SUSPENDING, SUSPENDED))
    return suspending.get("status") == "True", suspended.get("status") == "True"


def stamped(new: Object, now: datetime) -> Object:
    """Return a status with the time at which it is written."""
    return {**new, "lastUpdateTime": format_time(now)}


def _turned(status: Object) -> dict[str, str]:
    conditions = status.get("conditions") or ()
    return {entry["type"]: entry["status"] for entry in conditions if entry["type"] != HEAD_READY}


# Written even when empty; what else is empty vanishes.
_ALWAYS = frozenset(("desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU", "head"))


def _kept(old: Object) -> Object:
    kept = ("state", "reason", "stateTransitionTimes", "lastUpdateTime", "conditions")
    return {field: old[field] for field in kept if old.get(field)}


def _without_time(status: Object) -> Object:
    return {field: value for field, value in status.items() if field != "lastUpdateTime"}


def _is_ready(pod: PodView) -> bool:
    return pod.is_running and pod.ready is not None and pod.ready.status == "True"


def all_running(pods: Sequence[PodView]) -> bool:
    """Tell whether there are Pods, all of them run, and none says that it is not ready."""
    return bool(pods) and all(pod.is_running_and_not_unready for pod in pods)


def _set_state(cluster: Cluster, status: Object, old: Object, observed: Observed, desired: int) -> None:
    pods = observed.pods
    state = old.get("state", "")
    if observed.failure is None and len(pods) == desired + 1 and all_running(pods):
        state = "ready"
        status["reason"] = ""
    if cluster.spec.get("suspend") is True and not pods:
        state = "suspended"
    status["state"] = state
    if state and state != old.get("state"):
        times = old.get("stateTransitionTimes") or {}
        status["stateTransitionTimes"] = {**times, state: format_time(observed.now)}


def _endpoints(services: Sequence[Object]) -> Object:
    if not services:
        return {}
    ports = (services[0].get("spec") or {}).get("ports") or []
    return {
        port.get("name", ""): str(port.get("nodePort") or port.get("targetPort") or port["port"])
        for port in ports
    }


def _head(cluster: Cluster, observed: Observed) -> Object:
    heads = [pod for pod in observed.pods if pod.is_head]
    head: Object = {}
    if len(heads) == 1:
        head |= {"podName": heads[0].name, "podIP": heads[0].status.pod_ip}
    elif not heads and cluster.labels.get(MODE_LABEL) == SIDECAR:
        # That there was one stays known: it may have submitted its job, and must not have a successor.
        head["podName"] = ((cluster.obj.get("status") or {}).get("head") or {}).get("podName", "")
    if len(observed.head_services) == 1:
        service = observed.head_services[0]
        address = (service.get("spec") or {}).get("clusterIP") or ""
        head["serviceName"] = service["metadata"]["name"]
        head["serviceIP"] = head.get("podIP", "") if address == "None" else address
    return {field: value for field, value in head.items() if value}


class _Conditions:
    """A list of conditions in the order of their first appearance."""

    def __init__(self, given: Sequence[Object], now: datetime) -> None:
        self.entries = [dict(entry) for entry in given]
        self._now = format_time(now)

    def get(self, kind: str) -> Object | None:
        return next((entry for entry in self.entries if entry["type"] == kind), None)

    def is_true(self, kind: str) -> bool:
        entry = self.get(kind)
        return entry is not None and entry["status"] == "True"

    def set(self, kind: str, status: str, reason: str, message: str = "") -> None:
        entry = self.get(kind)
        if entry is None:
            entry = {"type": kind}
            self.entries.append(entry)
        if entry.get("status") != status:
            entry["lastTransitionTime"] = self._now
        entry.update(status=status, reason=reason, message=message)

    def remove(self, kind: str) -> None:
        self.entries = [entry for entry in self.entries if entry["type"] != kind]


def _conditions(cluster: Cluster, observed: Observed) -> list[Object]:
    conditions = _Conditions((cluster.obj.get("status") or {}).get("conditions") or [], observed.now)
    failure = observed.failure
    if failure is None:
        conditions.remove(REPLICA_FAILURE)
    elif failure.pod_step:
        conditions.set(REPLICA_FAILURE, "True", failure.pod_step, f"{failure.pod_step}\n{failure.message}")
    conditions.set(HEAD_READY, *_head_ready([pod for pod in observed.pods if pod.is_head]))
    if not conditions.is_true(PROVISIONED) and not conditions.is_true(SUSPENDED):
        if all_running(observed.pods):
            message = "All Ray Pods are ready for the first time"
            conditions.set(PROVISIONED, "True", "AllPodRunningAndReadyFirstTime", message)
        else:
            message = "RayCluster Pods are being provisioned for first time"
            conditions.set(PROVISIONED, "False", "RayClusterPodsProvisioning", message)
    _set_suspension(cluster, conditions, observed)
    if observed.blocked is None:
        conditions.remove(BLOCKED)
    else:
        conditions.set(BLOCKED, "True", observed.blocked.reason, observed.blocked.message)
    return conditions.entries


def _set_suspension(cluster: Cluster, conditions: _Conditions, observed: Observed) -> None:
    wanted = cluster.spec.get("suspend") is True
    if conditions.is_true(SUSPENDING):
        if not observed.pods:
            conditions.set(
                PROVISIONED, "False", "RayClusterPodsProvisioning", "RayCluster has been suspended"
            )
            conditions.set(SUSPENDING, "False", SUSPENDING)
            conditions.set(SUSPENDED, "True", SUSPENDED)
    elif conditions.is_true(SUSPENDED):
        if not wanted:
            conditions.set(SUSPENDED, "False", SUSPENDED)
    else:
        conditions.set(SUSPENDED, "False", SUSPENDED)
        conditions.set(SUSPENDING, "True" if wanted else "False", SUSPENDING)


def _head_ready(heads: Sequence[PodView]) -> tuple[str, str, str]:
    """Return status, reason and message of the head's condition."""
    if not heads:
        return "False", "HeadPodNotFound", "Head Pod not found"
    if len(heads) > 1:
        names = ", ".join(head.name for head in heads)
        return "False", "MultipleHeadPods", f"more than one head Pod: {names}; delete all but one"
    head = heads[0]
    ready = head.ready
    if ready is None:
        return "False", "Unknown", ""
    reason, message = ready.reason, ready.message
    if reason == "ContainersNotReady":
        for container in head.status.container_statuses:
            happened = container.state.waiting or container.state.terminated
            if happened is not None:
                detail = f"{container.name}: {happened.message}"
                return ready.status, happened.reason or reason, f"{message}; {detail}" if message else detail
    return ready.status, reason or "HeadPodRunningAndReady", message
