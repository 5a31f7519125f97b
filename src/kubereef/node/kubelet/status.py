"""What a Pod's status tells: pure functions of what is known of it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.handles import ContainerKind
from kubereef.node.kubelet.plan import has_failed_to_initialize, is_finished, will_restart
from kubereef.node.kubelet.records import ContainerRecord, Ending, PodRecord
from kubewire.times import format_time

OVER = ("Succeeded", "Failed")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_RESIZING = "PodResizeInProgress"
_OWN_CONDITIONS = (
    "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", _RESIZING
)  # fmt: skip
_FIELDS: dict[ContainerKind, str] = {
    "init": "initContainerStatuses",
    "container": "containerStatuses",
    "ephemeral": "ephemeralContainerStatuses",
}


def pod_status(pod: PodRecord, host_ips: Sequence[str], now: datetime) -> Object:
    """Return the whole status, with the conditions of others as they were."""
    before: Object = pod.pod.get("status") or {}
    phase = pod_phase(pod)
    status: Object = {
        "phase": phase,
        "conditions": _conditions(pod, phase, before.get("conditions") or (), now),
        "startTime": format_time(pod.start_time),
        "hostIP": host_ips[0],
        "hostIPs": [{"ip": one} for one in host_ips],
    }
    if pod.addresses:
        status |= {"podIP": pod.addresses[0], "podIPs": [{"ip": one} for one in pod.addresses]}
    for kind, field in _FIELDS.items():
        if containers := [container_status(pod, one) for one in pod.of_kind(kind)]:
            status[field] = containers
    if pod.verdict is not None and phase == "Failed":
        status |= {"reason": pod.verdict.reason, "message": pod.verdict.message}
    for field in ("qosClass", "resourceClaimStatuses", "nominatedNodeName"):
        if before.get(field):
            status[field] = before[field]
    if generation := pod.pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    return status


def pod_phase(pod: PodRecord) -> str:
    """Return Pending, Running, Succeeded or Failed."""
    told = (pod.pod.get("status") or {}).get("phase")
    if told in OVER:
        return str(told)  # a Pod that is over stays so
    is_idle = not any(record.is_busy for record in pod.containers)
    if pod.verdict is not None and is_idle:
        return "Failed"
    own = pod.of_kind("container")
    if has_failed_to_initialize(pod) and not pod.is_initialized:
        return "Failed" if is_idle else "Pending"
    if not pod.was_initialized or not all(record.has_run for record in own):
        return "Pending"
    if any(record.is_busy for record in own) or not is_idle:
        return "Running"
    if is_finished(pod) or pod.is_deleted:
        return "Failed" if any(record.ending and record.ending.exit_code for record in own) else "Succeeded"
    return "Running"


def container_status(pod: PodRecord, record: ContainerRecord) -> Object:
    """Return what is told of one container."""
    state, last = _states(pod, record)
    run = record.run
    is_ready = record.completed if record.kind == "init" and not record.is_sidecar else record.is_ready
    status: Object = {
        "name": record.name,
        "image": run.image if run else record.spec.get("image", ""),
        "imageID": run.image_id if run else record.image_id,
        "ready": is_ready,
        "started": record.is_started,
        "restartCount": record.restarts,
        "state": state,
        "lastState": last,
    }
    if identity := record.container_id:
        status["containerID"] = identity
    if run is not None:
        uid, gid, groups = run.user
        status["user"] = {"linux": {"uid": uid, "gid": gid, "supplementalGroups": list(groups)}}
        if run.resources:
            status["resources"] = run.resources
            if run.resources.get("requests"):
                status["allocatedResources"] = run.resources["requests"]
    return status


def _states(pod: PodRecord, record: ContainerRecord) -> tuple[Object, Object]:
    last = _terminated(record.last)
    if _is_done_again(pod, record):
        return last, {}
    if record.run is not None:
        return {"running": {"startedAt": format_time(record.run.started)}}, last
    if record.ending is not None:
        may_wait = not (pod.is_deleted or pod.is_ended or pod.verdict) and will_restart(
            pod.spec, record, record.ending.exit_code
        )
        if record.waiting is not None and may_wait:
            return _waiting(record.waiting.reason, record.waiting.message), _terminated(record.ending)
        return _terminated(record.ending), last
    if record.waiting is not None:
        return _waiting(record.waiting.reason, record.waiting.message), last
    return _waiting("PodInitializing" if pod.of_kind("init") else "ContainerCreating"), last


def _is_done_again(pod: PodRecord, record: ContainerRecord) -> bool:
    """Tell whether an init container that was done runs once more, in a new sandbox.

    API servers do not take back that a container has ended which its policy would not restart.
    """
    was_done = record.last is not None and record.last.exit_code == 0
    policy = pod.spec.get("restartPolicy")
    is_done = was_done and record.ending is None and policy == "OnFailure"
    return is_done and record.kind == "init" and not record.is_sidecar


def _waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def _terminated(ending: Ending | None) -> Object:
    if ending is None:
        return {}
    told: Object = {
        "exitCode": ending.exit_code,
        "reason": ending.reason,
        "startedAt": format_time(ending.started or _NEVER),
        "finishedAt": format_time(ending.finished),
    }
    if ending.message:
        told["message"] = ending.message
    if ending.container_id:
        told["containerID"] = ending.container_id
    return {"terminated": told}


def _conditions(pod: PodRecord, phase: str, before: Iterable[Object], now: datetime) -> list[Object]:
    known = {condition.get("type"): condition for condition in before}
    containers = _containers_ready(pod, phase)
    ready = _ready(pod, containers, known)
    own = [
        {"type": "PodReadyToStartContainers", "status": _truth(pod.has_sandbox)},
        _initialized(pod, phase),
        {"type": "Ready", **ready},
        {"type": "ContainersReady", **containers},
        {"type": "PodScheduled", "status": "True"},
    ]
    if pod.resize_problem:
        own.append({"type": _RESIZING, "status": "True", "reason": "Error", "message": pod.resize_problem})
    generation = pod.pod["metadata"].get("generation")
    for condition in own:
        old = known.get(condition["type"])
        is_same = old is not None and old.get("status") == condition["status"]
        condition["lastTransitionTime"] = old["lastTransitionTime"] if old and is_same else format_time(now)
        if generation:
            condition["observedGeneration"] = generation
    return [*own, *(old for kind, old in known.items() if kind not in _OWN_CONDITIONS)]


def _initialized(pod: PodRecord, phase: str) -> Object:
    missing = [
        record.name
        for record in pod.of_kind("init")
        if not (record.is_started if record.is_sidecar else record.completed)
    ]
    if phase == "Succeeded":
        return {"type": "Initialized", "status": "True", "reason": "PodCompleted"}
    if not missing or pod.was_initialized:
        return {"type": "Initialized", "status": "True"}
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return {
        "type": "Initialized",
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": message,
    }


def _containers_ready(pod: PodRecord, phase: str) -> Object:
    if phase == "Succeeded":
        return {"status": "False", "reason": "PodCompleted"}
    if phase == "Failed":
        return {"status": "False", "reason": "PodFailed"}
    unready = [
        record.name
        for record in pod.containers
        if (record.is_sidecar or record.kind == "container") and not record.is_ready
    ]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _ready(pod: PodRecord, containers: Object, known: dict[object, Object]) -> Object:
    """Return whether the Pod is ready: its containers are, and so says whoever its readiness gates name."""
    if containers["status"] != "True":
        return containers.copy()
    closed = []
    for gate in pod.spec.get("readinessGates") or ():
        kind = gate["conditionType"]
        condition = known.get(kind)
        if condition is None:
            closed.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif condition.get("status") != "True":
            state = condition.get("status")
            closed.append(f'the status of pod readiness gate "{kind}" is not "True", but {state}')
    if closed:
        return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(closed)}
    return {"status": "True"}


def _truth(holds: bool) -> str:
    return "True" if holds else "False"
