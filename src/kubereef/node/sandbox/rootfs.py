"""A container's file tree, built by the process that is about to become the container.

`prepare_sources(spec)` opens everything of the node's that the container will see, `enter_root(spec, sources)` makes
the tree and moves into it, after which nothing else of the node is reachable, and `finish_root(spec)` makes the root
read-only where that is asked. The order keeps symlinks harmless: volumes are attached after the old root is gone, so
that a symlink in an image or in a volume leads to a place inside the container, and /proc comes last, so that none
leads through it.
`write_etc_files` makes the three files that every Pod brings of its own.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kubereef.node.sandbox.errors import StartFailed
from kubereef.node.sandbox.layers import assemble_layers
from kubereef.node.sandbox.specs import ContainerSpec, Mount, Root
from kubereef.node.sandbox.syscalls import (
    ATTR_NODEV,
    ATTR_NOEXEC,
    ATTR_NOSUID,
    ATTR_RDONLY,
    CLONE_NEWNS,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    attach_tree,
    clone_tree,
    detach,
    mount,
    open_beneath,
    pivot_root,
    restrict_mount,
    unshare,
)

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
# What container runtimes hide or protect: they tell of the whole machine, or change it.
_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
    "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap",
    "/sys/firmware",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_PLAIN = MS_NOSUID | MS_NODEV | MS_NOEXEC


class Sources(NamedTuple):
    """Detached copies of what the node gives to a container."""

    devices: dict[str, int]
    mounts: list[tuple[Mount, int | None]]
    cgroups: dict[str, int]
    layers: list[int]
    writable: int

    def descriptors(self) -> list[int]:
        """All of them."""
        bound = [tree for _, tree in self.mounts if tree is not None]
        return [*self.devices.values(), *bound, *self.cgroups.values(), *self.layers, self.writable]


@contextmanager
def step(name: str) -> Iterator[None]:
    """Turn the kernel's refusals inside into a `StartFailed` of this step."""
    try:
        yield
    except OSError as refusal:
        raise StartFailed(name, f"{name}: {refusal}", refusal.errno or 0) from refusal


def write_etc_files(directory: Path, hosts: str, resolv_conf: str, hostname: str) -> tuple[Mount, ...]:
    """Write a Pod's /etc/hosts, /etc/resolv.conf and /etc/hostname into `directory`; return their mounts."""
    mounts = []
    for name, text in (("hosts", hosts), ("resolv.conf", resolv_conf), ("hostname", hostname)):
        file = directory / name
        file.write_text(text)
        file.chmod(0o644)
        mounts.append(Mount(target=f"/etc/{name}", source=file))
    return tuple(mounts)


def prepare_sources(spec: ContainerSpec) -> Sources:
    """Enter a mount namespace of our own and open what the container will be given."""
    with step("mount namespace"):
        unshare(CLONE_NEWNS)
        mount("none", "/", "", MS_REC | MS_PRIVATE)
    with step("devices"):
        names = [f"/dev/{name}" for name in _DEVICES] + [str(path) for path in spec.devices]
        devices = {name: clone_tree(name) for name in names}
    mounts: list[tuple[Mount, int | None]] = []
    for each in spec.mounts:
        with step(f"volume at {each.target}"):
            mounts.append((each, _open_source(each) if each.kind == "bind" else None))
    with step("cgroup"):
        cgroups = {name: clone_tree(str(path)) for name, path in spec.cgroup.items()}
    with step("image"):
        layers = [clone_tree(str(path)) for path in spec.root.layers]
        writable = clone_tree(str(spec.root.writable))
    return Sources(devices, mounts, cgroups, layers, writable)


def enter_root(spec: ContainerSpec, sources: Sources) -> None:
    """Build the container's tree and make it this process's whole world."""
    with step("root file system"):
        _assemble(spec.root, sources)
        pivot_root(".", ".")
        detach(".")  # the old root lies on top of the new one; nothing of it stays reachable
        os.chdir("/")
        restrict_mount("/", ATTR_NODEV, recursive=False)
    with step("/dev"):
        _make_devices(sources.devices, spec.shm_size)
    with step("/sys"):
        _make_sys(sources.cgroups)
    for each, tree in sources.mounts:
        with step(f"volume at {each.target}"):
            _attach(each, tree)
    with step("/proc"):
        _make_proc(sources.devices["/dev/null"])
    with step("scratch directory"):
        if not Path("/tmp").exists():  # noqa: S108 - the container's own, made if its image has none
            _make_directory("/tmp", 0o1777)  # noqa: S108 - as above


def finish_root(spec: ContainerSpec) -> None:
    """Make the root read-only if it is to be; the volumes in it stay as they are."""
    if spec.root.read_only:
        with step("read-only root"):
            restrict_mount("/", ATTR_RDONLY, recursive=False)


def _open_source(wanted: Mount) -> int:
    if not wanted.sub_path:
        return clone_tree(str(wanted.source))
    source = os.open(wanted.source, os.O_PATH | os.O_CLOEXEC)
    parts = [part for part in wanted.sub_path.split("/") if part not in ("", ".")]
    here = source
    for count, part in enumerate(parts, start=1):
        path = "/".join(parts[:count])
        try:
            here = open_beneath(source, path)
        except OSError as refusal:
            if refusal.errno != errno.ENOENT:
                raise
            os.mkdir(part, 0o750, dir_fd=here)
            here = open_beneath(source, path)
    return clone_tree("", here)


def _assemble(root: Root, sources: Sources) -> None:
    """Leave the current directory in the new root, which is a mount."""
    stage = str(root.writable / "stage")
    Path(stage).mkdir(exist_ok=True)
    mount("stage", stage, "tmpfs", _PLAIN, "mode=0755")
    os.chdir(stage)
    # Short names of our own: no path can hold a character that overlay's options give a meaning, nor can many layers
    # outgrow the page that the options must fit in.
    names = [str(index) for index in range(len(sources.layers))]
    for name, tree in zip(names, sources.layers, strict=True):
        Path(name).mkdir()
        attach_tree(tree, name)
    for name in ("writable", "root"):
        Path(name).mkdir()
    if root.style == "read-only layers":
        mount("root", "root", "tmpfs", 0, "mode=0755")
        assemble_layers([Path(name) for name in names], Path("root"))
    else:
        if root.style == "overlay":
            attach_tree(sources.writable, "writable")
        for name in ("writable/upper", "writable/work"):
            Path(name).mkdir(exist_ok=True)
        Path("writable/upper").chmod(0o755)  # the root directory itself gets its mode from here
        mount(
            "overlay", "root", "overlay", 0,
            f"lowerdir={':'.join(names)},upperdir=writable/upper,workdir=writable/work",
        )  # fmt: skip
    os.chdir("root")


def _make_devices(devices: dict[str, int], shm_size: int) -> None:
    """A small /dev. It is mounted without devices; the few there are come as mounts of their own, so that a device
    node which a container makes is of no use to it. Those are read-only, which leaves the device as it is but keeps a
    container from changing the mode of the machine's own /dev/null."""
    _make_directory("/dev")
    mount("dev", "/dev", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k")
    for path, tree in devices.items():
        _make_file(path)
        restrict_mount(tree, ATTR_RDONLY | ATTR_NOSUID | ATTR_NOEXEC, recursive=False)
        attach_tree(tree, path)
    for name, destination in _DEVICE_LINKS.items():
        Path("/dev", name).symlink_to(destination)
    for name in ("pts", "shm", "mqueue"):
        Path("/dev", name).mkdir()
    # A terminal belongs to the group tty, which has this number everywhere.
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
    mount("shm", "/dev/shm", "tmpfs", _PLAIN, f"mode=1777,size={shm_size}")  # noqa: S108 - the container's own
    mount("mqueue", "/dev/mqueue", "mqueue", _PLAIN)


def _make_sys(cgroups: dict[str, int]) -> None:
    _make_directory("/sys")
    mount("sysfs", "/sys", "sysfs", _PLAIN)
    restrict_mount(
        "/sys", ATTR_RDONLY, recursive=False
    )  # this mount alone: the file system may be the node's own
    has_one_tree = "" in cgroups
    if cgroups and not has_one_tree:
        mount("cgroup", "/sys/fs/cgroup", "tmpfs", _PLAIN, "mode=0755,size=64k")
    for name, tree in cgroups.items():
        target = Path("/sys/fs/cgroup", name)
        if name:
            target.mkdir()
        restrict_mount(tree, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, recursive=True)
        attach_tree(tree, str(target))
    if cgroups and not has_one_tree:
        restrict_mount("/sys/fs/cgroup", ATTR_RDONLY, recursive=False)


def _attach(wanted: Mount, tree: int | None) -> None:
    target = os.path.realpath(wanted.target)
    if target == "/" or target.startswith("/proc/"):
        raise OSError(f"{wanted.target} leads to {target}, where nothing can be mounted")
    attributes = ATTR_NODEV | (ATTR_RDONLY if wanted.read_only else 0)
    if tree is None:
        _make_directory(target)
        size = "" if wanted.size is None else f",size={wanted.size}"
        mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={wanted.mode:o}{size}")
        restrict_mount(target, attributes, recursive=False)
        return
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        _make_directory(target)
    else:
        _make_file(target)
    restrict_mount(tree, attributes, recursive=True)
    attach_tree(tree, target)


def _make_proc(null: int) -> None:
    _make_directory("/proc")
    mount("proc", "/proc", "proc", _PLAIN)
    for path in _MASKED:
        if Path(path).is_dir():
            mount("masked", path, "tmpfs", _PLAIN | MS_RDONLY, "size=4k,mode=0555")
        elif Path(path).exists():
            attach_tree(clone_tree("", null), path)
    for path in _READ_ONLY:
        if Path(path).exists():
            tree = clone_tree(path)
            restrict_mount(tree, ATTR_RDONLY, recursive=True)
            attach_tree(tree, path)


def _make_directory(path: str, mode: int = 0o755) -> None:
    """Make the directory at `path` if there is none. One of ours (/proc, /dev, …) must not be a symlink elsewhere."""
    if Path(path).is_symlink():
        Path(path).unlink()
    if not Path(path).is_dir():
        Path(path).mkdir(parents=True, exist_ok=True)
        Path(path).chmod(mode)


def _make_file(path: str) -> None:
    if not Path(path).exists():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch(0o644)
