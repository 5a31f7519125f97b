"""What the kubelet is given to work with: the API server, a runtime, images, and the network of Pods.

Each is a small protocol, so that all of Pod life also runs with stand-ins under virtual time.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kubereef.kinds.resource import Object
from kubereef.node.images import Image, OnProgress, PullPolicy
from kubereef.node.network.resolv import Resolution
from kubereef.node.sandbox import Command, ContainerSpec, Exit, Limits, PodSpec, Stdio, Usage
from kubereef.node.sandbox.specs import RootStyle
from kubewire.sources import Clock, Entropy

if TYPE_CHECKING:
    from kubereef.node.kubelet.events import PodEvents
    from kubereef.node.kubelet.tasks import Tasks

T = TypeVar("T")


class Client(Protocol):
    """The part of a client of the API server that the kubelet needs; refusals are raised as `kubewire.errors`."""

    async def get(self, url: str) -> dict[str, Any]: ...

    async def create(self, url: str, body: object) -> dict[str, Any]: ...

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]: ...

    async def delete(self, url: str, body: object = None) -> dict[str, Any]: ...

    def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]: ...


class Sandbox(Protocol):
    """The namespaces that a Pod's containers share."""

    @property
    def network(self) -> int:
        """A descriptor of the network namespace."""
        ...

    async def ended(self) -> None:
        """Return when the namespaces have ended by themselves, with everything in them; most never do."""
        ...

    async def close(self) -> None:
        """Let the namespaces go, after all containers have ended."""
        ...


class Process(Protocol):
    """A process in a container."""

    terminal: int | None

    async def wait(self) -> Exit: ...

    def signal(self, number: int) -> bool: ...

    def resize(self, rows: int, columns: int) -> None: ...

    def close(self) -> None: ...


class StartedContainer(Process, Protocol):
    """A container that runs; its process is process 1 of it."""

    @property
    def is_running(self) -> bool: ...

    async def enter(self, command: Command, stdio: Stdio) -> Process:
        """Run a command inside."""
        ...


class Runtime(Protocol):
    """Makes sandboxes and runs containers in them. Refusals are `kubereef.node.sandbox` errors."""

    async def open_sandbox(self, uid: str, spec: PodSpec, limits: Limits) -> Sandbox:
        """Make the namespaces of a Pod, and a cgroup with these limits for all of it."""
        ...

    async def start(
        self, uid: str, name: str, sandbox: Sandbox, spec: ContainerSpec, limits: Limits, stdio: Stdio
    ) -> StartedContainer:
        """Start a container, in a cgroup of its own inside the Pod's; `spec.cgroup` is filled in here."""
        ...

    def resize(self, uid: str, name: str, limits: Limits) -> None:
        """Change what a running container may use; an empty name means the Pod as a whole."""
        ...

    def usage(self, uid: str, name: str = "") -> Usage:
        """What a container, or the Pod as a whole, uses now."""
        ...

    async def remove(self, uid: str) -> None:
        """End whatever of the Pod still runs and remove its cgroup."""
        ...

    def mount_memory(self, directory: Path, size: int | None) -> None:
        """Put a file system in memory at an existing directory of the node, for containers to share. Blocks."""
        ...

    def unmount(self, directory: Path) -> None:
        """Undo `mount_memory`; a directory that nothing is mounted at is left alone. Blocks."""
        ...


class ImageStore(Protocol):
    """Where images come from: `kubereef.node.images.Images`, or something that asks one in another process."""

    async def pull(
        self, name: str, policy: PullPolicy = "IfNotPresent", on_progress: OnProgress | None = None
    ) -> Image: ...

    def release(self, image: Image) -> None: ...


class PodNetwork(Protocol):
    """Connects Pods to the node's network."""

    async def attach(self, uid: str, namespace: int) -> tuple[str, ...]:
        """Give the namespace at this descriptor a link and addresses; return the addresses, the first one leads."""
        ...

    async def detach(self, uid: str) -> None:
        """Give the addresses back; the link ends with the namespace. A Pod that has none is fine."""
        ...


class Offload(Protocol):
    """Runs a function that blocks: `asyncio.to_thread`, or at once where a test owns the time."""

    def __call__(self, function: Callable[..., T], /, *arguments: Any) -> Awaitable[T]: ...


class Answer(NamedTuple):
    """How a probe or a hook went: it passed, or it did not, with what it said."""

    passed: bool
    output: str = ""
    is_error: bool = False  # the check itself could not be made


class Prober(Protocol):
    """Makes the calls of probes and hooks that go over the network; `kubelet.calls.NetworkCalls` is the real one."""

    async def http_get(self, address: str, port: int, action: Object, patience: float | None) -> Answer:
        """Send the request of an `httpGet` action."""
        ...

    async def tcp_connect(self, address: str, port: int, patience: float | None) -> Answer:
        """Connect and hang up."""
        ...


class NodeFacts(NamedTuple):
    """What Pods are told about, or get from, the node they run on."""

    name: str
    directory: Path  # where Pods' volumes, logs and writable layers are kept
    host_ips: tuple[str, ...]
    cluster_dns: tuple[str, ...] = ()
    domain: str = "cluster.local"
    resolution: Resolution = Resolution()  # how the node itself looks names up
    hosts: str = "127.0.0.1\tlocalhost\n"  # the node's own /etc/hosts
    allocatable: Mapping[str, str] = {}  # what resourceFieldRef tells where a container has no limit
    gpus: tuple[Path, ...] = ()  # device nodes, one for each nvidia.com/gpu of the capacity, in order
    shared_devices: tuple[Path, ...] = ()  # device nodes that every container with a GPU needs besides
    root_style: RootStyle = "overlay"


class Tools(NamedTuple):
    """What the kubelet works with."""

    client: Client
    clock: Clock
    entropy: Entropy
    runtime: Runtime
    images: ImageStore
    network: PodNetwork
    prober: Prober
    events: "PodEvents"
    offload: Offload
    tasks: "Tasks"

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run something beside everything else; what it raises is logged."""
        self.tasks.spawn(work, name)
