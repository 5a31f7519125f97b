"""Linux mechanics of the node: Pods' namespaces, containers, and the processes in them. Knows no manifests.

Outside, in Kubereef's process:

    machine = probe(directory)                        what this machine can do, in words (blocks; use a thread)
    node = NodeProcess("module:function", argument, descriptors)
    await node.start(); await node.wait()             everything ends with it, however it ends

Inside, in the function that `NodeProcess` names, which is given a `NodeStart`:

    control = Control(start.control)                  the line to process 1, made inside the event loop
    pod = await PodSandbox.open(control, PodSpec(…))  namespaces; `pod.network` is for the network to attach a link
    cgroup = tree.root.child(…)                       of `CgroupTree.open(name)`
    container = await start_container(control, pod, ContainerSpec(…), Stdio(…))
    process = await container.enter(Command(…), …)    exec; `process.terminal` where one was asked for
    exit = await container.wait()                     also `signal`, `resize`, `close`

What cannot be honoured raises `Refused` before anything starts; what fails to start raises `StartFailed`, with the
step, and the reason and exit code for a container's status. The names are imported where they are first used, since
process 1 imports this package too and stays small.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubereef.node.sandbox.capabilities import Ability, Machine, choose_root_style, probe
    from kubereef.node.sandbox.cgroups import Cgroup, CgroupBusy, CgroupTree, Limits, Usage
    from kubereef.node.sandbox.container import Container, start_container
    from kubereef.node.sandbox.control import Control, Exit, Process
    from kubereef.node.sandbox.errors import NodeEnded, Refused, SandboxError, StartFailed, SyscallFailed
    from kubereef.node.sandbox.init import NodeStart
    from kubereef.node.sandbox.node_process import NodeProcess
    from kubereef.node.sandbox.pod import PodSandbox
    from kubereef.node.sandbox.privileges import DEFAULT_CAPABILITIES, resolve_capabilities
    from kubereef.node.sandbox.rootfs import write_etc_files
    from kubereef.node.sandbox.specs import (
        Command,
        ContainerSpec,
        Mount,
        PodSpec,
        Root,
        Security,
        Stdio,
        TerminalSize,
    )

_HOMES = {
    "capabilities": ("Ability", "Machine", "choose_root_style", "probe"),
    "cgroups": ("Cgroup", "CgroupBusy", "CgroupTree", "Limits", "Usage"),
    "container": ("Container", "start_container"),
    "control": ("Control", "Exit", "Process"),
    "errors": ("NodeEnded", "Refused", "SandboxError", "StartFailed", "SyscallFailed"),
    "init": ("NodeStart",),
    "node_process": ("NodeProcess",),
    "pod": ("PodSandbox",),
    "privileges": ("DEFAULT_CAPABILITIES", "resolve_capabilities"),
    "rootfs": ("write_etc_files",),
    "specs": ("Command", "ContainerSpec", "Mount", "PodSpec", "Root", "Security", "Stdio", "TerminalSize"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DEFAULT_CAPABILITIES",
    "Ability",
    "Cgroup",
    "CgroupBusy",
    "CgroupTree",
    "Command",
    "Container",
    "ContainerSpec",
    "Control",
    "Exit",
    "Limits",
    "Machine",
    "Mount",
    "NodeEnded",
    "NodeProcess",
    "NodeStart",
    "PodSandbox",
    "PodSpec",
    "Process",
    "Refused",
    "Root",
    "SandboxError",
    "Security",
    "StartFailed",
    "Stdio",
    "SyscallFailed",
    "TerminalSize",
    "Usage",
    "choose_root_style",
    "probe",
    "resolve_capabilities",
    "start_container",
    "write_etc_files",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
