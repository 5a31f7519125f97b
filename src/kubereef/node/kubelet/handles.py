"""What the kubelet's HTTPS API needs of Pods: to find them, read their logs, and reach into their containers.

The API is given a `Pods` (the `Kubelet` is one) and knows nothing of how containers are run.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from kubereef.kinds.resource import Object
from kubereef.node.sandbox import Exit, Stdio, TerminalSize, Usage

ContainerKind = Literal["init", "container", "ephemeral"]


class RunningProcess(Protocol):
    """A process inside a container: `kubereef.node.sandbox.Process` is one."""

    terminal: int | None
    """The master side of its terminal, if it was started with one; it does not block the caller to close it."""

    async def wait(self) -> Exit:
        """Return how it ended, once it has."""
        ...

    def signal(self, number: int) -> bool:
        """Send it a signal; False if it has ended."""
        ...

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal another size."""
        ...

    def close(self) -> None:
        """Close the descriptors; a process that still runs goes on."""
        ...


class Output(NamedTuple):
    """A piece of what a container writes while somebody is attached."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class Attachment(Protocol):
    """Somebody attached to a container's own streams: sees its output from now on and may write its input."""

    @property
    def has_terminal(self) -> bool:
        """Whether the container has a terminal: then all of its output is `stdout`."""
        ...

    @property
    def takes_input(self) -> bool:
        """Whether the container was given a standard input (`stdin: true`)."""
        ...

    async def read(self) -> Output | None:
        """Return the next piece of output; None when the container has ended and all was read."""
        ...

    async def write(self, data: bytes) -> None:
        """Pass bytes to the container's input; those it does not take any more are dropped."""
        ...

    def end_input(self) -> None:
        """Tell that no more input comes; with `stdinOnce` the container sees the end of its input."""
        ...

    def resize(self, rows: int, columns: int) -> None:
        """Give the container's terminal another size; nothing happens where it has none."""
        ...

    def close(self) -> None:
        """Let go; the container goes on. The same as `end_input` for its input."""
        ...


class NotRunning(Exception):
    """The container does not run, so nobody can reach into it; the message says what it does instead."""


class ContainerHandle(Protocol):
    """One container of a Pod, over all its runs."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> ContainerKind: ...

    @property
    def is_running(self) -> bool: ...

    def log_file(self, *, previous: bool = False) -> Path | None:
        """Return where the log of the present or last run is, or of the one before it; None if there was no such run.

        Lines are in the CRI format (`<RFC 3339 time> stdout|stderr F|P <text>`). When a log grows too long its file is
        renamed to `<name>.<YYYYmmdd-HHMMSS…>` (older ones sort first) and a new one takes its place, so a follower
        that sees the inode change reads the old one to its end and goes on with the new.
        """
        ...

    async def ended(self) -> None:
        """Return when the present run has ended and its log is whole; at once if nothing runs."""
        ...

    async def enter(
        self, argv: Sequence[str], stdio: Stdio, terminal: TerminalSize | None = None
    ) -> RunningProcess:
        """Run a command in the container with the container's own environment and user.

        `NotRunning` if it does not run, `kubereef.node.sandbox.StartFailed` if the command cannot be run. With a
        `terminal` the streams are the returned process's `terminal` and not `stdio`.
        """
        ...

    def attach(self) -> Attachment:
        """Join the container's own streams; `NotRunning` if it does not run."""
        ...

    def usage(self) -> Usage:
        """What the container uses now; zeros where nobody counts it."""
        ...


class PodHandle(Protocol):
    """A Pod of this node."""

    @property
    def manifest(self) -> Object:
        """The Pod as last heard of from the API server, with the status that this node gives it."""
        ...

    @property
    def network(self) -> int | None:
        """A descriptor of the Pod's network namespace, which stays the Pod's; None while it has none of its own.

        A Pod with hostNetwork has that of the node.
        """
        ...

    def containers(self) -> Sequence[ContainerHandle]:
        """All containers: init, regular and ephemeral ones."""
        ...

    def container(self, name: str) -> ContainerHandle | None:
        """Return the container of that name."""
        ...


class Pods(Protocol):
    """All Pods of this node, the ones that are over included as long as the API server has them."""

    def find(self, namespace: str, name: str, uid: str = "") -> PodHandle | None:
        """Return the Pod of that name, and of that uid if one is given."""
        ...

    def all(self) -> Sequence[PodHandle]:
        """Return all Pods."""
        ...
