"""The runtime of real nodes: the sandbox, and cgroups of Pods and containers."""

from pathlib import Path

import msgspec

from kubereef.node.kubelet.interfaces import Sandbox
from kubereef.node.sandbox import (
    Cgroup,
    CgroupTree,
    Container,
    ContainerSpec,
    Control,
    Limits,
    PodSandbox,
    PodSpec,
    Stdio,
    Usage,
    start_container,
)
from kubereef.node.sandbox.syscalls import MS_NODEV, MS_NOSUID, detach, mount
from kubewire.sources import Clock


class SandboxRuntime:
    """Runs containers as processes of this node; made inside the node program. See `interfaces.Runtime`."""

    def __init__(self, control: Control, cgroups: CgroupTree, clock: Clock) -> None:
        self._control = control
        self._root = cgroups.root
        self._clock = clock
        self._pods: dict[str, Cgroup] = {}
        self._containers: dict[tuple[str, str], Cgroup] = {}
        self._in_memory: set[Path] = set()

    async def open_sandbox(self, uid: str, spec: PodSpec, limits: Limits) -> PodSandbox:
        cgroup = self._root.child(f"pod-{uid}")
        cgroup.apply(limits)
        self._pods[uid] = cgroup
        return await PodSandbox.open(self._control, spec)

    async def start(
        self, uid: str, name: str, sandbox: Sandbox, spec: ContainerSpec, limits: Limits, stdio: Stdio
    ) -> Container:
        assert isinstance(sandbox, PodSandbox), "sandboxes come from open_sandbox"
        cgroup = self._pods[uid].child(name)
        cgroup.apply(limits)
        self._containers[uid, name] = cgroup
        whole = msgspec.structs.replace(spec, cgroup=cgroup.directories)
        return await start_container(self._control, sandbox, whole, stdio)

    def resize(self, uid: str, name: str, limits: Limits) -> None:
        cgroup = self._containers.get((uid, name)) if name else self._pods.get(uid)
        if cgroup is not None:
            cgroup.apply(limits)

    def usage(self, uid: str, name: str = "") -> Usage:
        cgroup = self._containers.get((uid, name)) if name else self._pods.get(uid)
        return Usage() if cgroup is None else cgroup.usage()

    async def remove(self, uid: str) -> None:
        for key in [key for key in self._containers if key[0] == uid]:
            del self._containers[key]
        cgroup = self._pods.pop(uid, None)
        if cgroup is not None:
            await cgroup.remove(self._clock)

    def mount_memory(self, directory: Path, size: int | None) -> None:
        if directory in self._in_memory:
            return
        bound = "" if size is None else f",size={size}"
        mount("memory", str(directory), "tmpfs", MS_NOSUID | MS_NODEV, f"mode=0755{bound}")
        self._in_memory.add(directory)

    def unmount(self, directory: Path) -> None:
        if directory in self._in_memory:
            self._in_memory.discard(directory)
            detach(str(directory))
