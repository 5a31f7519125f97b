"""What a Pod needs next: a pure function of what is known of it and of the time.

    plan = pod_plan(record, now)

The plan is about now; whoever carries it out asks again when something has happened, or after `look_again` seconds.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.records import ContainerRecord, PodRecord, Waiting, Wish, seconds_until

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


class Stop(NamedTuple):
    """A container to end, and how to say so; `grace` differs from the Pod's where it is given."""

    name: str
    message: str
    grace: int | None = None


class Plan(NamedTuple):
    """What to do now."""

    open_sandbox: bool = False
    start: str = ""  # the one container to start; the next one is planned when it has started
    stop: tuple[Stop, ...] = ()
    waits: tuple[
        tuple[str, Waiting], ...
    ] = ()  # containers that wait for their next start, and what that is called
    verdict: Waiting | None = None  # the Pod is to fail as a whole, for this reason
    is_over: bool = False  # nothing runs, and nothing will
    look_again: float | None = None


def will_restart(spec: Object, record: ContainerRecord, exit_code: int) -> bool:
    """Tell whether a container that ended with this code is started again."""
    container = record.spec
    if record.is_sidecar:
        return True
    if record.kind == "ephemeral":
        return False
    policy = container.get("restartPolicy") or spec.get("restartPolicy") or "Always"
    if any(_applies(rule, exit_code) for rule in container.get("restartPolicyRules") or ()):
        return True
    if policy == "Always" and record.kind == "container":
        return True
    return bool(policy != "Never" and exit_code != 0)


def _applies(rule: Object, exit_code: int) -> bool:
    codes: Object = rule.get("exitCodes") or {}
    is_listed = exit_code in (codes.get("values") or ())
    return bool(
        is_listed if codes.get("operator") == "In" else codes.get("operator") == "NotIn" and not is_listed
    )


def has_failed_to_initialize(pod: PodRecord) -> bool:
    """Tell whether an init container failed and will not be tried again."""
    return any(
        record.ending is not None
        and record.ending.exit_code != 0
        and not will_restart(pod.spec, record, record.ending.exit_code)
        for record in pod.of_kind("init")
    )


def is_finished(pod: PodRecord) -> bool:
    """Tell whether the Pod's own containers have all ended for good, or never will start."""
    if has_failed_to_initialize(pod) and not pod.is_initialized:
        return True
    return all(
        record.ending is not None
        and not record.is_busy
        and not will_restart(pod.spec, record, record.ending.exit_code)
        for record in pod.of_kind("container")
    )


def pod_plan(pod: PodRecord, now: datetime) -> Plan:
    """Return what to do next for a Pod."""
    if pod.is_deleted or pod.verdict is not None or pod.is_ended:
        return _ending_plan(pod)
    deadline = pod.spec.get("activeDeadlineSeconds")
    left: float | None = None
    if deadline is not None:
        left = seconds_until(pod.start_time + timedelta(seconds=deadline), now)
        if not left and not is_finished(pod):
            return Plan(verdict=Waiting(DEADLINE_REASON, DEADLINE_MESSAGE))
    if is_finished(pod):
        return _ending_plan(pod)
    if not pod.has_sandbox:
        pause = seconds_until(pod.sandbox_retry_at, now) if pod.sandbox_retry_at else 0.0
        return Plan(open_sandbox=not pause, look_again=_soonest(left, pause or None))
    planner = _Planner(pod, now, left)
    planner.look_at_all()
    return planner.plan()


class _Planner:
    """Goes through the containers in the order of their start and collects what to do."""

    def __init__(self, pod: PodRecord, now: datetime, look_again: float | None) -> None:
        self._pod = pod
        self._now = now
        self._start = ""
        self._stops: list[Stop] = []
        self._waits: list[tuple[str, Waiting]] = []
        self._look_again = look_again

    def plan(self) -> Plan:
        # One container starts at a time, as with every kubelet: the hook of one may hold up those after it.
        is_starting = any(record.is_starting for record in self._pod.containers)
        start = "" if is_starting else self._start
        return Plan(
            start=start, stop=tuple(self._stops), waits=tuple(self._waits), look_again=self._look_again
        )

    def look_at_all(self) -> None:
        for record in self._pod.of_kind("ephemeral"):
            if not record.has_run:
                self._consider(record)
        if self._are_init_containers_done():
            for record in self._pod.of_kind("container"):
                self._look_at(record)

    def _are_init_containers_done(self) -> bool:
        is_initialized = self._pod.is_initialized
        for record in self._pod.of_kind("init"):
            if record.is_sidecar:
                self._look_at(record)
                if not is_initialized and not (record.is_running and record.is_started):
                    return False
            elif not is_initialized and not record.completed:
                self._look_at(record)
                return False
        return True

    def _look_at(self, record: ContainerRecord) -> None:
        if record.is_running:
            wish = record.wish or changed(record)
            if wish is not None and not record.is_stopping:
                self._stops.append(Stop(record.name, self._in_words(record, wish), wish.grace))
        elif record.ending is None or will_restart(self._pod.spec, record, record.ending.exit_code):
            self._consider(record)

    def _in_words(self, record: ContainerRecord, wish: Wish) -> str:
        restarts = will_restart(self._pod.spec, record, 137)
        return f"{wish.message}, will be restarted" if restarts else wish.message

    def _consider(self, record: ContainerRecord) -> None:
        """Start the container if its time has come, or say what it waits for."""
        if record.is_busy:
            return
        pause = record.pause_left(self._now)
        if pause:
            text = f"back-off {record.backoff_text()} restarting failed container={record.name} pod={self._pod.name}"
            self._waits.append((record.name, Waiting("CrashLoopBackOff", text)))
        elif record.retry_at is not None:
            pause = seconds_until(record.retry_at, self._now)
        if pause:
            self._look_again = _soonest(self._look_again, pause)
        elif not self._start:
            self._start = record.name


def changed(record: ContainerRecord) -> Wish | None:
    """Return the wish to restart a container whose image is no longer the one it runs."""
    if (
        record.run is not None
        and record.kind != "ephemeral"
        and record.run.image != record.spec.get("image", "")
    ):
        return Wish(f"Container {record.name} definition changed")
    return None


def _ending_plan(pod: PodRecord) -> Plan:
    """End what runs: sidecars after everybody else, the last one first."""
    others = [record for record in pod.containers if not record.is_sidecar and record.is_busy]
    sidecars = [record for record in pod.of_kind("init") if record.is_sidecar and record.is_busy]
    if not others and not sidecars:
        return Plan(is_over=True)
    chosen = others or sidecars[-1:]
    stops = [
        Stop(record.name, f"Stopping container {record.name}")
        for record in chosen
        if record.is_running and not record.is_stopping
    ]
    return Plan(stop=tuple(stops))


def _soonest(first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)
