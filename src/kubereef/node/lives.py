"""What a Pod's containers go through, and the status that tells of it; nothing here waits or writes."""

from collections.abc import Callable
from datetime import datetime

from kubereef.kinds.behaviours.pod_resources import is_sidecar
from kubereef.kinds.resource import Object
from kubewire.times import format_time

FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 300.0
# A container that has run for so long starts its backoff anew.
_FORGIVEN_AFTER = 600.0


class Container:
    """One container of a Pod: waiting, running or terminated."""

    def __init__(self, spec: Object) -> None:
        self.name: str = spec["name"]
        self.image: str = spec.get("image", "")
        self.is_ready = False
        self.restarts = 0
        self.state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self.last_state: Object = {}
        self._started: datetime | None = None
        self._crashes = 0

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        """How the container has ended; None unless it has."""
        ended = self.state.get("terminated")
        return ended["exitCode"] if ended else None

    def wait(self, reason: str, message: str = "") -> None:
        self.is_ready = False
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def run(self, now: datetime) -> None:
        """Start, or start again."""
        if self._started is not None:
            self.restarts += 1
        self._started = now
        self.state = {"running": {"startedAt": format_time(now)}}

    def end(self, now: datetime, exit_code: int, reason: str = "") -> None:
        self.is_ready = False
        started = self._started or now
        if (now - started).total_seconds() >= _FORGIVEN_AFTER:
            self._crashes = 0
        ended = {
            "exitCode": exit_code,
            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
            "startedAt": format_time(started),
            "finishedAt": format_time(now),
        }
        self.state = {"terminated": ended}

    def crash(self) -> float:
        """Go from an end to waiting for the next start; return how long that takes."""
        self.last_state = self.state
        pause = min(FIRST_BACKOFF * 2.0 ** (self._crashes - 1), LONGEST_BACKOFF) if self._crashes else 0.0
        self._crashes += 1
        if pause:
            message = f"back-off {pause:g}s restarting failed container={self.name}"
            self.wait("CrashLoopBackOff", message)
        return pause

    def status(self) -> Object:
        """Return what the Pod's status tells of the container."""
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.is_ready,
            "started": self.is_running,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last_state,
        }


class PodLife:
    """A Pod on its node: its containers, addresses, and what its status says now."""

    def __init__(self, pod: Object, pod_ip: str, host_ip: str, now: Callable[[], datetime]) -> None:
        spec = pod["spec"]
        self.containers = [Container(one) for one in spec["containers"]]
        self.helpers = [(Container(one), is_sidecar(one)) for one in spec.get("initContainers") or ()]
        self.restart_policy: str = spec.get("restartPolicy", "Always")
        self.is_set_up = False
        self._ips = (host_ip if spec.get("hostNetwork") else pod_ip, host_ip)
        self._generation: int | None = pod["metadata"].get("generation")
        self._now = now
        self._start = now()
        self._verdict: tuple[str, str] | None = None
        self._conditions: dict[str, Object] = {}

    def named(self, name: str) -> list[Container]:
        """Return the container of a name, or all of them if none is given."""
        return [one for one in self.containers if not name or one.name == name]

    def set_up(self) -> None:
        """Have an address and the init containers done."""
        self.is_set_up = True
        for helper, stays in self.helpers:
            if helper.is_running or helper.exit_code is not None:
                continue
            helper.run(self._now())
            helper.is_ready = stays
            if not stays:
                helper.end(self._now(), 0)
                helper.is_ready = True

    def restarts(self, container: Container) -> bool:
        """Tell whether a container that has ended is started again."""
        if self._verdict is not None or self.restart_policy == "Never":
            return False
        return self.restart_policy == "Always" or container.exit_code != 0

    def condemn(self, reason: str, message: str) -> None:
        """Fail as a whole, whatever the containers do."""
        self._verdict = (reason, message)
        self.end_all(137)

    def end_all(self, exit_code: int) -> None:
        """End what runs; what has not run yet never will."""
        for container in [*self.containers, *(helper for helper, _stays in self.helpers)]:
            if container.is_running:
                container.end(self._now(), exit_code)

    def phase(self, *, is_ending: bool = False) -> str:
        """Return the phase; a Pod that is ending restarts nothing."""
        if self._verdict is not None:
            return "Failed"
        codes = [one.exit_code for one in self.containers]
        is_over = all(code is not None for code in codes)
        if is_over and (is_ending or not any(map(self.restarts, self.containers))):
            return "Failed" if any(codes) else "Succeeded"
        started = any(
            one.is_running or one.exit_code is not None or one.last_state for one in self.containers
        )
        return "Running" if started else "Pending"

    def status(self, *, is_ending: bool = False) -> Object:
        """Return the status as a patch of the Pod's."""
        phase = self.phase(is_ending=is_ending)
        is_over = phase in ("Succeeded", "Failed")
        are_ready = not is_over and all(one.is_ready for one in self.containers)
        unready = [one.name for one in self.containers if not one.is_ready]
        why = {}
        if phase == "Succeeded":
            why = {"reason": "PodCompleted"}
        elif phase == "Failed":
            why = {"reason": "PodFailed"}
        elif unready:
            message = f"containers with unready status: [{' '.join(unready)}]"
            why = {"reason": "ContainersNotReady", "message": message}
        pod_ip, host_ip = self._ips
        status: Object = {
            "phase": phase,
            "conditions": [
                self._condition("PodReadyToStartContainers", self.is_set_up and not is_over, {}),
                self._condition("Initialized", self.is_set_up, {}),
                self._condition("ContainersReady", are_ready, why),
                self._condition("Ready", are_ready, why),
            ],
            "startTime": format_time(self._start),
            "hostIP": host_ip,
            "hostIPs": [{"ip": host_ip}],
            "containerStatuses": [one.status() for one in self.containers],
        }
        if self.is_set_up:
            status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
        if self.helpers:
            status["initContainerStatuses"] = [helper.status() for helper, _stays in self.helpers]
        if self._verdict is not None:
            status["reason"], status["message"] = self._verdict
        if self._generation:
            status["observedGeneration"] = self._generation
        return status

    def _condition(self, kind: str, holds: bool, why: Object) -> Object:
        """Return a condition with the time since when it is as it is; what no longer has a reason says so with None."""
        state = "True" if holds else "False"
        old = self._conditions.get(kind)
        since = old["lastTransitionTime"] if old and old["status"] == state else format_time(self._now())
        reasons: Object = {"reason": None, "message": None}
        new = {"type": kind, "status": state, "lastTransitionTime": since, **reasons, **why}
        self._conditions[kind] = new
        return new
