"""What a Pod's sandbox, a container and a command inside one are made from; values only.

Whatever here names a path means a path as the node program sees it (`Mount.target`, `cwd` and `argv` excepted, which
are paths inside the container).
"""

from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from kubereef.node.sandbox.errors import Refused
from kubereef.node.sandbox.privileges import DEFAULT_CAPABILITIES

MEGABYTE = 1024 * 1024

RootStyle = Literal["overlay", "overlay in memory", "read-only layers"]


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """Something mounted into a container: the directory or file at `source`, or a new tmpfs.

    A missing target is made. `sub_path` names a part of the source, which is made as a directory if it is missing and
    must not lead out of the source; `size` (bytes) and `mode` are a tmpfs's.
    """

    target: str
    source: Path = Path()
    kind: Literal["bind", "tmpfs"] = "bind"
    read_only: bool = False
    sub_path: str = ""
    size: int | None = None
    mode: int = 0o1777


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """A container's root: the layers, of which the first wins, under a writable layer.

    `writable` is an existing directory for this one container; its upper layer is kept in it, and the caller removes
    it after the container's end. `style` comes from `capabilities.choose_root_style`.
    """

    layers: tuple[Path, ...]
    writable: Path
    style: RootStyle = "overlay"
    read_only: bool = False


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """Who a process runs as and what it may do; `capabilities` come from `privileges.resolve_capabilities`."""

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    capabilities: frozenset[str] = DEFAULT_CAPABILITIES
    no_new_privileges: bool = False
    seccomp: Literal["Unconfined", "RuntimeDefault"] = "Unconfined"


class TerminalSize(msgspec.Struct, frozen=True):
    """A terminal's size in characters."""

    rows: int = 24
    columns: int = 80


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run: `argv[0]` without a slash is looked up in the PATH of `env`.

    `env` is the whole environment; nothing of the node's is added. With a `terminal` the program gets one as its
    standard streams and as its controlling terminal.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    cwd: str = "/"
    security: Security = Security()
    terminal: TerminalSize | None = None
    rlimits: dict[str, tuple[int, int]] = {}


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A container to start. `cgroup` are the directories to join, by controller ("" for version 2's one tree)."""

    command: Command
    root: Root
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Path, ...] = ()
    cgroup: dict[str, Path] = {}
    shm_size: int = 64 * MEGABYTE
    oom_score_adj: int | None = None


class PodSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces that the containers of a Pod share."""

    hostname: str
    host_network: bool = False
    share_process_namespace: bool = False
    sysctls: dict[str, str] = {}


class Stdio(NamedTuple):
    """Descriptors for a program's standard streams, which stay the caller's to close; None is /dev/null."""

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None


def check_container(spec: ContainerSpec) -> None:
    """Raise `Refused` for what no container can have, before anything is started."""
    check_command(spec.command)
    if not spec.root.layers:
        raise Refused("the image has no layers: there is nothing to run")
    for mount in spec.mounts:
        parts = [part for part in mount.target.split("/") if part not in ("", ".")]
        if not mount.target.startswith("/") or ".." in parts or not parts or "\0" in mount.target:
            raise Refused(f"mountPath {mount.target!r}: must be an absolute path below / without '..'")
        if parts[0] == "proc":
            raise Refused(f"mountPath {mount.target!r}: nothing can be mounted in /proc")
        if mount.kind == "bind" and not mount.source.is_absolute():
            raise Refused(
                f"mountPath {mount.target!r}: the source {str(mount.source)!r} is not an absolute path"
            )
        if ".." in mount.sub_path.split("/") or mount.sub_path.startswith("/"):
            raise Refused(f"subPath {mount.sub_path!r}: must be a relative path without '..'")


def check_command(command: Command) -> None:
    """Raise `Refused` for a command that cannot be one, before anything is started."""
    if not command.argv or not command.argv[0]:
        raise Refused("no command specified")
    if not command.cwd.startswith("/"):
        raise Refused(f"workingDir {command.cwd!r}: must be an absolute path")
    if any("\0" in text for text in (*command.argv, command.cwd, *command.env, *command.env.values())):
        raise Refused("a command, its directory and its environment cannot hold a NUL character")
    if any(not name or "=" in name for name in command.env):
        raise Refused("the name of an environment variable is not empty and holds no '='")
