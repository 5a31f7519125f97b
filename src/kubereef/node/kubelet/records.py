"""What is known of a Pod and its containers: who runs, who ended how, who waits for what.

Records change only through their methods; `plan` decides from them and `status` tells of them, and neither changes
anything.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from kubereef.kinds.behaviours.pod_resources import is_sidecar
from kubereef.kinds.resource import Object
from kubereef.node.kubelet.handles import ContainerKind
from kubewire.times import format_go_duration, parse_time

SECOND = 1_000_000_000

FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 300.0
# Who has run for so long since the last restart begins anew.
_FORGIVEN_AFTER = 2 * LONGEST_BACKOFF

LOST_EXIT_CODE = 137
LOST_REASON = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"


class Waiting(NamedTuple):
    """Why a container does not run yet, or not at the moment."""

    reason: str
    message: str = ""


class Run(NamedTuple):
    """One run of a container, and what it was started with."""

    container_id: str
    image: str
    image_id: str
    started: datetime
    resources: Object
    user: tuple[int, int, tuple[int, ...]] = (0, 0, ())


class Ending(NamedTuple):
    """How a run of a container ended."""

    exit_code: int
    reason: str
    finished: datetime
    started: datetime | None = None
    message: str = ""
    container_id: str = ""


class Wish(NamedTuple):
    """A reason to end a container that runs, so that it is started anew where its policy allows."""

    message: str
    grace: int | None = None


class ContainerRecord:
    """One container over all its runs."""

    def __init__(self, spec: Object, kind: ContainerKind) -> None:
        self.spec = spec
        self.kind = kind
        self.name: str = spec["name"]
        self.run: Run | None = None
        self.ending: Ending | None = None
        self.last: Ending | None = None
        self.waiting: Waiting | None = None
        self.restarts = 0
        self.is_starting = False
        self.is_stopping = False
        self.is_started = False
        self.is_ready = False
        self.wish: Wish | None = None
        self.retry_at: datetime | None = None
        self.pull_failures = 0
        self.container_id = ""  # of the present or last run
        self.image_id = ""
        self._backoff = 0.0
        self._backoff_counted: Ending | None = None  # of the run that the pause was last raised for
        self._backoff_raised: datetime | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that goes on beside the others."""
        return self.kind == "init" and is_sidecar(self.spec)

    @property
    def is_running(self) -> bool:
        return self.run is not None

    @property
    def is_busy(self) -> bool:
        """Whether something of it runs or is about to."""
        return self.run is not None or self.is_starting or self.is_stopping

    @property
    def has_run(self) -> bool:
        """Whether it was ever started."""
        return self.run is not None or self.ending is not None or self.last is not None

    @property
    def completed(self) -> bool:
        """Whether it ended as an init container should."""
        return self.ending is not None and self.ending.exit_code == 0

    @property
    def has_other_resources(self) -> bool:
        """Whether it runs with other resources than it is to have."""
        return self.run is not None and self.run.resources != (self.spec.get("resources") or {})

    def pause_left(self, now: datetime) -> float:
        """Return for how many seconds a container that has ended is not to be started again."""
        if self.ending is None or not self._backoff or self._is_forgiven(self.ending.finished):
            return 0.0
        if self._backoff_counted is self.ending:
            return 0.0  # this pause is behind it; something else keeps it from starting
        return max(0.0, self._backoff - (now - self.ending.finished).total_seconds())

    def backoff_text(self) -> str:
        """Return the present pause between runs as Kubernetes prints it."""
        return format_go_duration(int(self._backoff * SECOND))

    def wait(self, waiting: Waiting, retry_at: datetime | None = None) -> None:
        """Be in this state until something changes, at least until then."""
        self.waiting = waiting
        self.retry_at = retry_at

    def begin(self, now: datetime) -> None:
        """Be about to start; a run that ended counts towards the next pause."""
        self.is_starting = True
        self.retry_at = None
        # A pull that failed in between is no reason to raise the pause once more.
        if self.ending is not None and self._backoff_counted is not self.ending:
            is_first = not self._backoff or self._is_forgiven(self.ending.finished)
            self._backoff = FIRST_BACKOFF if is_first else min(2 * self._backoff, LONGEST_BACKOFF)
            self._backoff_counted = self.ending
            self._backoff_raised = now

    def start(self, run: Run) -> None:
        """Run; the run before this one becomes the last."""
        if self.has_run:
            self.restarts += 1
        if self.ending is not None:
            self.last = self.ending
        self.ending = None
        self.run = run
        self.container_id, self.image_id = run.container_id, run.image_id
        self.is_starting = False
        self.waiting = None
        self.wish = None
        self.is_started = self.is_ready = False
        self.pull_failures = 0

    def end(self, ending: Ending) -> None:
        """Have ended."""
        self.run = None
        self.ending = ending
        self.container_id = ending.container_id or self.container_id
        self.is_starting = self.is_stopping = False
        self.is_started = self.is_ready = False
        self.wish = None

    def fail_to_start(self, ending: Ending, waiting: Waiting) -> None:
        """Have ended before the command ran, which counts as a run."""
        if self.has_run:
            self.restarts += 1
        if self.ending is not None:
            self.last = self.ending
        self.end(ending)
        self.waiting = waiting
        self.retry_at = None

    def _is_forgiven(self, finished: datetime) -> bool:
        raised = self._backoff_raised
        return raised is not None and (finished - raised).total_seconds() > _FORGIVEN_AFTER

    def restore(self, status: Object, now: datetime) -> None:
        """Take over what the API server remembers of it from before this node was restarted.

        Its process is gone with the node: what ran has ended, without anybody having seen how.
        """
        self.restarts = status.get("restartCount") or 0
        self.container_id, self.image_id = status.get("containerID") or "", status.get("imageID") or ""
        self.last = _ending_of((status.get("lastState") or {}).get("terminated"))
        state: Object = status.get("state") or {}
        if running := state.get("running"):
            started = parse_time(running["startedAt"]) if running.get("startedAt") else None
            identity = status.get("containerID") or ""
            self.ending = Ending(LOST_EXIT_CODE, LOST_REASON, now, started, LOST_MESSAGE, identity)
        else:
            self.ending = _ending_of(state.get("terminated"))
        if self.ending is None and self.last is not None:  # it was between two runs
            self.ending, self.last = self.last, None


class PodRecord:
    """A Pod on this node: its containers, whether it has a sandbox, and whether it was sentenced to fail."""

    def __init__(self, pod: Object, start_time: datetime) -> None:
        self.pod = pod
        self.start_time = start_time
        self.addresses: tuple[str, ...] = ()
        self.has_sandbox = False
        self.is_initialized = False  # in this sandbox, its own containers were let start
        self.sandbox_retry_at: datetime | None = None
        self.resize_problem = ""  # why a container cannot be given the resources that it is to have now
        self.verdict: Waiting | None = None  # reason and message of a Pod that fails as a whole
        self.is_deleted = False
        self.is_ended = False  # nothing of it will ever run again
        self.containers: list[ContainerRecord] = []
        self.take_over(pod)

    @property
    def spec(self) -> Object:
        spec: Object = self.pod["spec"]
        return spec

    @property
    def name(self) -> str:
        """The Pod as kubelets name it in messages."""
        meta = self.pod["metadata"]
        return f"{meta['name']}_{meta['namespace']}({meta['uid']})"

    @property
    def was_initialized(self) -> bool:
        """Whether its init containers were behind it once: one of its own containers was started."""
        return any(one.has_run for one in self.of_kind("container"))

    def take_over(self, pod: Object) -> None:
        """Hear of a new version of the Pod."""
        self.pod = pod
        known = {record.name: record for record in self.containers}
        self.containers = []
        for kind, spec in _listed(pod["spec"]):
            record = known.get(spec["name"]) or ContainerRecord(spec, kind)
            record.spec = spec
            self.containers.append(record)
        if pod["metadata"].get("deletionTimestamp"):
            self.is_deleted = True

    def of_kind(self, kind: ContainerKind) -> list[ContainerRecord]:
        return [record for record in self.containers if record.kind == kind]

    def container(self, name: str) -> ContainerRecord:
        """Return the container of that name."""
        return next(record for record in self.containers if record.name == name)

    def restore(self, now: datetime) -> None:
        """Take over the containers' past from the Pod's status."""
        status: Object = self.pod.get("status") or {}
        past = {
            one["name"]: one
            for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
            for one in status.get(field) or ()
        }
        for record in self.containers:
            if record.name in past:
                record.restore(past[record.name], now)

    def begin_anew(self) -> None:
        """Have a new sandbox: init containers are to run again, before anybody else."""
        self.has_sandbox = True
        self.is_initialized = False
        for record in self.of_kind("init"):
            if record.ending is not None:
                record.last, record.ending = record.ending, None


def _listed(spec: Object) -> Iterator[tuple[ContainerKind, Object]]:
    kinds: tuple[tuple[ContainerKind, str], ...] = (
        ("init", "initContainers"),
        ("container", "containers"),
        ("ephemeral", "ephemeralContainers"),
    )
    for kind, field in kinds:
        for container in spec.get(field) or ():
            yield kind, container


def _ending_of(terminated: Object | None) -> Ending | None:
    if not terminated:
        return None
    started, finished = terminated.get("startedAt"), terminated.get("finishedAt")
    return Ending(
        terminated.get("exitCode", 0),
        terminated.get("reason") or "",
        parse_time(finished) if finished else parse_time("1970-01-01T00:00:00Z"),
        parse_time(started) if started else None,
        terminated.get("message") or "",
        terminated.get("containerID") or "",
    )


def seconds_until(moment: datetime, now: datetime) -> float:
    """Return the seconds from now to a moment, none if it has passed."""
    return max(0.0, (moment - now) / timedelta(seconds=1))
