"""The part of a Pod that the controller reads."""

from typing import Any

import msgspec

from eagleray.manifests import naming


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class Happened(msgspec.Struct, frozen=True, rename="camel"):
    """Why a container waits or how it ended."""

    reason: str = ""
    message: str = ""


class ContainerState(msgspec.Struct, frozen=True, rename="camel"):
    waiting: Happened | None = None
    terminated: Happened | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: ContainerState = ContainerState()


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    restart_policy: str = ""
    node_name: str = ""
    containers: tuple[Container, ...] = ()


class Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
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

    @property
    def ready(self) -> Condition | None:
        return next((found for found in self.status.conditions if found.type == "Ready"), None)

    @property
    def is_running_and_not_unready(self) -> bool:
        """Whether it runs and nothing says that it is not ready."""
        return self.is_running and (self.ready is None or self.ready.status == "True")

    @property
    def ray_ended(self) -> bool:
        """Whether the container that runs Ray has ended while the Pod goes on."""
        if not self.spec.containers:
            return False
        ray = self.spec.containers[0].name
        return any(s.name == ray and s.state.terminated is not None for s in self.status.container_statuses)

    @property
    def must_go(self) -> bool:
        """Whether it will never be a node of the cluster again."""
        if self.status.phase in ("Failed", "Succeeded"):
            return True
        return self.is_running and self.ray_ended and self.spec.restart_policy == "Never"


def pod_view(obj: dict[str, Any]) -> PodView:
    """Return the view of a decoded Pod."""
    return msgspec.convert(obj, PodView)
