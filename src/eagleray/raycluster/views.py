"""The parts of Pods, Jobs, Nodes and other children that the controller reads."""

from typing import Any

import msgspec

from eagleray.kube.resources import Ref
from eagleray.manifests import naming


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class Happened(msgspec.Struct, frozen=True, rename="camel"):
    """Why a container waits or how it ended."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0
    finished_at: str | None = None


class Began(msgspec.Struct, frozen=True, rename="camel"):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerState(msgspec.Struct, frozen=True, rename="camel"):
    running: Began | None = None
    waiting: Happened | None = None
    terminated: Happened | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: ContainerState = ContainerState()
    restart_count: int = 0
    last_state: ContainerState = ContainerState()


class Owner(msgspec.Struct, frozen=True):
    uid: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] = ()

    @property
    def controller(self) -> str:
        """The uid of the object that this one was made for; empty if nobody controls it."""
        return next((owner.uid for owner in self.owner_references if owner.controller), "")

    @property
    def ref(self) -> Ref:
        return Ref(self.namespace, self.name, self.uid)


class Child(msgspec.Struct, frozen=True):
    """A child of which only the existence counts; of a Secret in particular nothing else is kept."""

    metadata: Metadata


class Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    restart_policy: str = ""
    node_name: str = ""
    containers: tuple[Container, ...] = ()


class Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodView(msgspec.Struct, frozen=True, rename="camel"):
    """A Pod of a Ray cluster."""

    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_head(self) -> bool:
        return self.metadata.labels.get(naming.NODE_TYPE_LABEL) == "head"

    @property
    def is_worker(self) -> bool:
        return self.metadata.labels.get(naming.NODE_TYPE_LABEL) == "worker"

    @property
    def group(self) -> str:
        return self.metadata.labels.get(naming.GROUP_LABEL, "")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_running(self) -> bool:
        return self.status.phase == "Running"

    def condition(self, kind: str) -> Condition | None:
        return next((found for found in self.status.conditions if found.type == kind), None)

    @property
    def ready(self) -> Condition | None:
        return self.condition("Ready")

    @property
    def is_running_and_not_unready(self) -> bool:
        """Whether it runs and nothing says that it is not ready."""
        return self.is_running and (self.ready is None or self.ready.status == "True")

    @property
    def ray_end(self) -> Happened | None:
        """How the container that runs Ray has ended; None if it has not."""
        if not self.spec.containers:
            return None
        ray = self.spec.containers[0].name
        return next((one.state.terminated for one in self.status.container_statuses if one.name == ray), None)

    @property
    def must_go(self) -> bool:
        """Whether it will never be a node of the cluster again."""
        if self.status.phase in ("Failed", "Succeeded"):
            return True
        return self.is_running and self.ray_end is not None and self.spec.restart_policy == "Never"


def pod_view(obj: dict[str, Any]) -> PodView:
    """Return the view of a decoded Pod."""
    return msgspec.convert(obj, PodView)


class JobStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()


class JobView(msgspec.Struct, frozen=True):
    """A Job of ours."""

    metadata: Metadata
    status: JobStatus = JobStatus()

    @property
    def ending(self) -> Condition | None:
        """How it ended; a Job that is certain to fail has ended already. None while it goes on."""
        kinds = ("Complete", "Failed", "FailureTarget")
        conditions = self.status.conditions
        return next((found for found in conditions if found.type in kinds and found.status == "True"), None)
