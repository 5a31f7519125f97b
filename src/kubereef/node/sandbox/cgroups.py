"""Limits and usage of Pods and containers, by cgroups of version 1 or 2.

    tree = CgroupTree.open("kubereef-node")          # as far as this machine lets us; tree.unenforced says what not
    pod = tree.root.child("pod-1234")
    container = pod.child("app")
    container.apply(Limits(memory=2**30, cpu_cores=0.5))
    spec = ContainerSpec(…, cgroup=container.directories)
    container.usage().oom_kills                      # more than before: somebody in it was OOM-killed
    await pod.remove(clock)                          # with everything in it

The tree is made inside the cgroup this process is in, so that limits on us hold for the node too; where version 2
does not allow that (a cgroup with processes of its own cannot hand controllers down), at the top of the hierarchy. The
kernel leaves cgroups of a killed node behind: `CgroupTree.open` ends and removes what it finds under its own name.
"""

import asyncio
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kubereef.node.sandbox.errors import SandboxError
from kubewire.sources import Clock

CONTROLLERS = ("memory", "cpu", "cpuacct", "pids")
CPU_PERIOD_MICROSECONDS = 100_000
_FEWEST_SHARES, _MOST_SHARES = 2, 262_144
_REMOVAL_PATIENCE = 10.0
_REMOVAL_PAUSE = 0.02


class Limits(NamedTuple):
    """What a cgroup may use at most; None leaves a value as it is.

    `cpu_shares` are relative, 1024 per CPU asked for. With `kill_together`, as the kubelet does it for containers, all
    of a cgroup ends when memory runs out; version 1 cannot do that.
    """

    memory: int | None = None
    cpu_cores: float | None = None
    cpu_shares: int | None = None
    pids: int | None = None
    kill_together: bool = False


class Usage(NamedTuple):
    """What a cgroup uses; zero where nobody counts it. `working_set` is memory that cannot be taken back at once."""

    memory: int = 0
    working_set: int = 0
    cpu_seconds: float = 0.0
    pids: int = 0
    oom_kills: int = 0


class CgroupBusy(SandboxError):
    """A cgroup could not be removed: processes in it do not end."""


class Cgroup:
    """One cgroup: a directory per controller in version 1, one directory under the name "" in version 2."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self.directories = dict(directories)

    def child(self, name: str) -> "Cgroup":
        """Return the cgroup of that name inside this one, made if it is missing."""
        if not name or "/" in name or name in (".", ".."):
            raise ValueError(f"a cgroup cannot be called {name!r}")
        if "" in self.directories:
            _hand_down(self.directories[""])
        below = {controller: directory / name for controller, directory in self.directories.items()}
        for directory in below.values():
            directory.mkdir(exist_ok=True)
        return Cgroup(below)

    def apply(self, limits: Limits) -> tuple[str, ...]:
        """Set the limits; return the names of those that are not enforced here. May be called again to change them."""
        missing = []
        for name, value, controller in (
            ("memory", limits.memory, "memory"),
            ("cpu_cores", limits.cpu_cores, "cpu"),
            ("cpu_shares", limits.cpu_shares, "cpu"),
            ("pids", limits.pids, "pids"),
        ):
            if value is None:
                continue
            if self._has(controller):
                self._set(name, value)
            else:
                missing.append(name)
        if limits.kill_together and "" in self.directories and self._has("memory"):
            (self.directories[""] / "memory.oom.group").write_text("1")
        return tuple(missing)

    def usage(self) -> Usage:
        """Return what it uses now, with everything below it."""
        return Usage(
            memory=self._number("memory", "memory.usage_in_bytes", "memory.current"),
            working_set=self._working_set(),
            cpu_seconds=self._cpu_seconds(),
            pids=self._number("pids", "pids.current", "pids.current"),
            oom_kills=_fields(self._file("memory", "memory.oom_control", "memory.events")).get("oom_kill", 0),
        )

    def processes(self) -> set[int]:
        """The processes in it and below it, by the numbers they have for the caller."""
        return {
            int(line)
            for directory in self.directories.values()
            for place in _tree(directory)
            for line in _text(place / "cgroup.procs").split()
        } - {0}  # the kernel's way to show a process of another pid namespace

    async def remove(self, clock: Clock) -> None:
        """End every process in it and remove it with all below; `CgroupBusy` if some do not end in time."""
        deadline = clock.monotonic() + _REMOVAL_PATIENCE
        while not await asyncio.to_thread(self.try_remove):
            if clock.monotonic() > deadline:
                raise CgroupBusy(
                    f"processes {sorted(self.processes())} do not end; see {self._any_directory()}"
                )
            await clock.sleep(_REMOVAL_PAUSE)

    def try_remove(self) -> bool:
        """Kill what is in it and remove what is empty; True when nothing of it is left. Blocks, but not for long."""
        is_gone = True
        for directory in self.directories.values():
            _kill_all(directory)
            for place in _tree(directory, deepest_first=True):
                try:
                    place.rmdir()
                except FileNotFoundError:
                    pass  # the same directory under another controller's name
                except OSError:
                    is_gone = False
        return is_gone

    def _any_directory(self) -> Path:
        return next(iter(self.directories.values()))

    def _has(self, controller: str) -> bool:
        if "" in self.directories:
            return controller in _text(self.directories[""] / "cgroup.controllers").split()
        return controller in self.directories

    def _set(self, name: str, value: float) -> None:
        files: dict[str, tuple[str, str]]
        if "" in self.directories:
            files = {
                "memory": ("memory.max", f"{value:.0f}"),
                "cpu_cores": ("cpu.max", f"{_quota(value)} {CPU_PERIOD_MICROSECONDS}"),
                "cpu_shares": ("cpu.weight", str(cpu_weight(int(value)))),
                "pids": ("pids.max", f"{value:.0f}"),
            }
            directory = self.directories[""]
        else:
            files = {
                "memory": ("memory.limit_in_bytes", f"{value:.0f}"),
                "cpu_cores": ("cpu.cfs_quota_us", str(_quota(value))),
                "cpu_shares": ("cpu.shares", str(_clamp_shares(int(value)))),
                "pids": ("pids.max", f"{value:.0f}"),
            }
            directory = self.directories[name.partition("_")[0]]
            if name == "cpu_cores":
                (directory / "cpu.cfs_period_us").write_text(str(CPU_PERIOD_MICROSECONDS))
        file, text = files[name]
        (directory / file).write_text(text)

    def _file(self, controller: str, first: str, second: str) -> str:
        if "" in self.directories:
            return _text(self.directories[""] / second)
        return _text(self.directories[controller] / first) if controller in self.directories else ""

    def _number(self, controller: str, first: str, second: str) -> int:
        text = self._file(controller, first, second).strip()
        return int(text) if text.isdigit() else 0

    def _working_set(self) -> int:
        used = self._number("memory", "memory.usage_in_bytes", "memory.current")
        counts = _fields(self._file("memory", "memory.stat", "memory.stat"))
        return max(0, used - counts.get("total_inactive_file", counts.get("inactive_file", 0)))

    def _cpu_seconds(self) -> float:
        if "" in self.directories:
            return _fields(_text(self.directories[""] / "cpu.stat")).get("usage_usec", 0) / 1e6
        return self._number("cpuacct", "cpuacct.usage", "") / 1e9


class CgroupTree(NamedTuple):
    """The node's own part of the hierarchy, and in words what of it this machine does not give us."""

    root: Cgroup
    version: int  # 0: none at all
    unenforced: dict[str, str]

    @classmethod
    def open(cls, name: str) -> "CgroupTree":
        """Make the tree, empty, in the best place there is; what a killed node of that name left is ended first."""
        hierarchies = find_hierarchies(
            Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
        )
        own = {key: place for key, place in hierarchies.items() if key}
        if "memory" in own or "" not in hierarchies:
            tree = _open_version_1(own, name)
        else:
            tree = _open_version_2(hierarchies[""], name)
        return tree


class Hierarchy(NamedTuple):
    """Where a cgroup hierarchy is mounted, and where in it this process is."""

    top: Path
    own: Path


def find_hierarchies(mountinfo: str, membership: str) -> dict[str, Hierarchy]:
    """Return the hierarchies by controller, and version 2's under the name "", from the two files of /proc/self."""
    paths: dict[str, str] = {}
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        mounted_root, mount_point = left.split(" ")[3:5]
        names = [""] if kind == "cgroup2" else [key for key in options.split(",") if key in CONTROLLERS]
        for name in names:
            own = os.path.relpath(paths.get(name, "/"), mounted_root)
            top = Path(mount_point)
            found[name] = Hierarchy(top, top if own.startswith("..") else top / own)
    return found


def cpu_weight(shares: int) -> int:
    """Return version 2's weight (1 to 10000) for version 1's shares (2 to 262144), as the kubelet maps them."""
    shares = _clamp_shares(shares)
    return 1 + (shares - _FEWEST_SHARES) * 9999 // (_MOST_SHARES - _FEWEST_SHARES)


def _open_version_1(hierarchies: Mapping[str, Hierarchy], name: str) -> CgroupTree:
    made: dict[str, Path] = {}
    unenforced = {}
    for controller in CONTROLLERS:
        if controller not in hierarchies:
            unenforced[controller] = f"no cgroup hierarchy has the controller {controller}"
            continue
        directory = hierarchies[controller].own / name
        try:
            _make_empty(directory)
        except OSError as refusal:
            unenforced[controller] = f"{directory}: {refusal.strerror}"
        else:
            made[controller] = directory
    return CgroupTree(Cgroup(made), 1 if made else 0, unenforced)


def _open_version_2(hierarchy: Hierarchy, name: str) -> CgroupTree:
    wanted = [controller for controller in CONTROLLERS if controller != "cpuacct"]
    reasons: list[str] = []
    best: CgroupTree | None = None
    for place in dict.fromkeys((hierarchy.own, hierarchy.top)):
        directory = place / name
        try:
            _make_empty(directory)
        except OSError as refusal:
            reasons.append(f"{directory}: {refusal.strerror}")
            continue
        _hand_down(place)
        given = _text(directory / "cgroup.controllers").split()
        missing = {
            each: f"{directory}: its parent does not hand down {each}" for each in wanted if each not in given
        }
        tree = CgroupTree(Cgroup({"": directory}), 2, missing)
        if best is None or len(missing) < len(best.unenforced):
            if best is not None:
                best.root.try_remove()
            best = tree
        else:
            tree.root.try_remove()
        if not missing:
            break
    return best or CgroupTree(Cgroup({}), 0, dict.fromkeys(wanted, "; ".join(reasons)))


def _hand_down(directory: Path) -> None:
    """Give the controllers to the children of a version 2 cgroup, as many as it lets us."""
    present = _text(directory / "cgroup.controllers").split()
    for controller in CONTROLLERS:
        if controller in present:
            # EBUSY: it has processes of its own. What the children then lack is seen in their own list.
            with suppress(OSError):
                (directory / "cgroup.subtree_control").write_text(f"+{controller}")


def _make_empty(directory: Path) -> None:
    if directory.is_dir():
        Cgroup({"": directory}).try_remove()
    directory.mkdir(exist_ok=True)


def _kill_all(directory: Path) -> None:
    switch = directory / "cgroup.kill"
    if switch.exists():
        switch.write_text("1")
        return
    ourselves = os.getpid()
    for pid in Cgroup({"": directory}).processes() - {ourselves}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _tree(directory: Path, *, deepest_first: bool = False) -> Iterable[Path]:
    places = [Path(place) for place, _, _ in os.walk(directory)]
    return reversed(places) if deepest_first else places


def _text(file: Path) -> str:
    """The file's text; nothing if the kernel does not have the file, or the cgroup is gone."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _fields(text: str) -> dict[str, int]:
    def pairs() -> Iterator[tuple[str, int]]:
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            if value.isdigit():
                yield name, int(value)

    return dict(pairs())


def _quota(cores: float) -> int:
    return max(1000, round(cores * CPU_PERIOD_MICROSECONDS))  # the kernel takes no less


def _clamp_shares(shares: int) -> int:
    return min(max(shares, _FEWEST_SHARES), _MOST_SHARES)
