"""Pods as `kubectl get` shows them: what their containers are doing, in one word."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kubereef.kinds.behaviours.pod_resources import is_sidecar
from kubereef.kinds.columns import AGE, NAME, NONE, since
from kubereef.kinds.resource import Column, Object, TableMoment

_OVER = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}


class Summary(NamedTuple):
    """What a row says of a Pod's containers."""

    ready: int
    total: int
    status: str
    restarts: int
    last_restart: str  # when a container last ended and was started again; empty if none was


def summary(pod: Object) -> Summary:
    """Return what the containers of a Pod are doing together."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {one.get("name") for one in spec.get("initContainers") or () if is_sidecar(one)}
    total = len(spec.get("containers") or ()) + len(sidecars)
    word = status.get("reason") or status.get("phase", "")
    if any(
        _condition(one, "PodScheduled") and one.get("reason") == "SchedulingGated"
        for one in _conditions(status)
    ):
        word = "SchedulingGated"
    tally = _Tally()
    initializing = _initial_word(spec, status, sidecars, tally)
    if initializing and not _is_true(status, "Initialized"):
        word, restarts, last = initializing, tally.restarts, tally.last
    else:
        word = _running_word(initializing or word, status, tally)
        restarts, last = tally.lasting_restarts, tally.lasting_last
    return Summary(tally.ready, total, _ending_word(word, pod), restarts, last)


class _Tally:
    """Counts of restarts; those of containers that run once do not last beyond the beginning of the Pod."""

    def __init__(self) -> None:
        self.ready = 0
        self.restarts = self.lasting_restarts = 0
        self.last = self.lasting_last = ""

    def add(self, status: Object, *, lasts: bool) -> None:
        count = status.get("restartCount", 0)
        ended = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.restarts += count
        self.last = max(self.last, ended)
        if lasts:
            self.lasting_restarts += count
            self.lasting_last = max(self.lasting_last, ended)


def _initial_word(spec: Object, status: Object, sidecars: set[Any], tally: _Tally) -> str:
    """Return what a Pod is waiting for before its containers start, or nothing if it is not."""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        stays = container.get("name") in sidecars
        tally.add(container, lasts=stays)
        if ended is not None and not ended.get("exitCode"):
            continue
        if stays and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        if ended is not None:
            return f"Init:{_ended_word(ended)}"
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(spec.get('initContainers') or ())}"
    return ""


def _running_word(word: str, status: Object, tally: _Tally) -> str:
    """Return what the containers are doing: the first one that has something to say is heard."""
    is_running = False
    failure = ""
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        ended = state.get("terminated")
        tally.add(container, lasts=True)
        if (state.get("waiting") or {}).get("reason"):
            word = state["waiting"]["reason"]
        elif ended is not None:
            word = _ended_word(ended)
            if ended.get("exitCode"):
                failure = word
        elif container.get("ready") and state.get("running") is not None:
            is_running = True
            tally.ready += 1
    if word != "Completed":
        return word
    if is_running and _is_true(status, "Ready"):
        return "Running"
    return failure or ("NotReady" if is_running else word)


def _ending_word(word: str, pod: Object) -> str:
    status = pod.get("status") or {}
    if not pod["metadata"].get("deletionTimestamp"):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in _OVER else "Terminating"


def _ended_word(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _conditions(status: Object) -> list[Object]:
    return status.get("conditions") or []


def _condition(condition: Object, kind: str) -> bool:
    return bool(condition.get("type") == kind)


def _is_true(status: Object, kind: str) -> bool:
    return any(one.get("status") == "True" for one in _conditions(status) if _condition(one, kind))


def row_conditions(pod: Object) -> list[Object]:
    """Return that a Pod is over, for the tools that leave such Pods out."""
    over = _OVER.get((pod.get("status") or {}).get("phase", ""))
    return [{"type": "Completed", "status": "True", **over}] if over else []


def _ready(pod: Object, _moment: TableMoment) -> str:
    found = summary(pod)
    return f"{found.ready}/{found.total}"


def _restarts(pod: Object, moment: TableMoment) -> str:
    found = summary(pod)
    if not found.restarts or not found.last_restart:
        return str(found.restarts)
    return f"{found.restarts} ({since(found.last_restart, moment)} ago)"


def _address(pod: Object, _moment: TableMoment) -> str:
    listed = (pod.get("status") or {}).get("podIPs") or [{}]
    return listed[0].get("ip") or NONE


def _gates(pod: Object, _moment: TableMoment) -> str:
    gates = (pod.get("spec") or {}).get("readinessGates") or []
    if not gates:
        return NONE
    first = {one.get("type"): one.get("status") for one in reversed(_conditions(pod.get("status") or {}))}
    met = sum(first.get(gate.get("conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


def _field(part: str, name: str) -> Callable[[Object, TableMoment], object]:
    return lambda pod, _moment: (pod.get(part) or {}).get(name) or NONE


COLUMNS = (
    NAME,
    Column("Ready", _ready, description="How many of the containers are ready."),
    Column("Status", lambda pod, _moment: summary(pod).status, description="What the containers are doing."),
    Column("Restarts", _restarts, description="How often containers were started again, and when last."),
    AGE,
    Column("IP", _address, priority=1, description="The address of the Pod."),
    Column("Node", _field("spec", "nodeName"), priority=1, description="The node that the Pod runs on."),
    Column(
        "Nominated Node",
        _field("status", "nominatedNodeName"),
        priority=1,
        description="The node that is being cleared for the Pod.",
    ),
    Column(
        "Readiness Gates",
        _gates,
        priority=1,
        description="How many of the conditions that others have to set are met.",
    ),
)
