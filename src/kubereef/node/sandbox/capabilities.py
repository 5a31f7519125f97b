"""What this machine lets a node do, found out by trying, with the reason in words where it does not.

    machine = probe(Path("/var/lib/kubereef"))     # blocks for a fraction of a second: call it off the event loop
    if (why := machine.obstacle()) is not None: …  # no Pod can run here, because of this
    style = choose_root_style(machine)             # how roots are made in that directory
    machine.missing()                              # what else is lacking, for a node condition

Everything is tried in processes made for it, and leaves nothing behind.
"""

import errno
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from kubereef.node.sandbox.cgroups import CgroupTree
from kubereef.node.sandbox.errors import Refused, SandboxError
from kubereef.node.sandbox.privileges import held_capabilities
from kubereef.node.sandbox.seccomp import default_profile
from kubereef.node.sandbox.specs import RootStyle
from kubereef.node.sandbox.syscalls import (
    ATTR_RDONLY,
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    MS_PRIVATE,
    MS_REC,
    PR_SET_NO_NEW_PRIVS,
    bring_up_loopback,
    clone_tree,
    close_on_exec_from,
    detach,
    mount,
    open_beneath,
    prctl,
    restrict_mount,
    set_seccomp_filter,
    setns,
    unshare,
)

_NAMESPACES = {
    "mount": CLONE_NEWNS,
    "pid": CLONE_NEWPID,
    "network": CLONE_NEWNET,
    "uts": CLONE_NEWUTS,
    "ipc": CLONE_NEWIPC,
    "cgroup": CLONE_NEWCGROUP,
}
_PATIENCE = 30.0


class Ability(msgspec.Struct, frozen=True):
    """One thing tried; `reason` says why it is not there."""

    present: bool
    reason: str = ""


class Machine(msgspec.Struct, frozen=True):
    """All that was tried. Without the `needed` ones no Pod runs; the others are done without, visibly."""

    needed: dict[str, Ability]
    optional: dict[str, Ability]

    def has(self, name: str) -> bool:
        return (self.needed | self.optional)[name].present

    def missing(self) -> dict[str, str]:
        """What is not there, with the reason."""
        both = self.needed | self.optional
        return {name: ability.reason for name, ability in both.items() if not ability.present}

    def obstacle(self) -> str | None:
        """Why no Pod can run here, or None if Pods can."""
        for name, ability in self.needed.items():
            if not ability.present:
                return f"{name}: {ability.reason}"
        return None


def probe(directory: Path) -> Machine:
    """Try everything; `directory` is where the writable layers of containers are going to be."""
    ran = subprocess.run(  # noqa: S603 - our own module, run by our own interpreter
        [sys.executable, "-P", "-m", "kubereef.node.sandbox.capabilities", str(directory)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    if ran.returncode != 0:
        raise SandboxError(f"this machine could not be probed: {ran.stderr.decode(errors='replace').strip()}")
    return msgspec.json.decode(ran.stdout, type=Machine)


def choose_root_style(machine: Machine) -> RootStyle:
    """Return the best way this machine has to make a container's root."""
    if machine.has("overlay"):
        return "overlay"
    return "overlay in memory" if machine.has("overlay in memory") else "read-only layers"


def _probe_here(directory: Path) -> Machine:
    needed = {"root": _root()}
    needed |= {f"{name} namespace": _try(partial(unshare, kind)) for name, kind in _NAMESPACES.items()}
    needed["loopback"] = _try(_loopback)
    needed["mount calls"] = _try(_mount_calls)
    needed["process descriptors"] = _try(_process_descriptors)
    optional = {
        "overlay": _try(partial(_overlay, directory)),
        "overlay in memory": _try(partial(_overlay, None)),
        "no_new_privs": _try(_no_new_privileges),
        "seccomp": _try(_seccomp),
        "higher limits": _held("SYS_RESOURCE", "resource limits cannot be raised, nor an OOM score lowered"),
        **_cgroups(),
    }
    return Machine(needed, optional)


def _root() -> Ability:
    if os.geteuid() != 0:
        return Ability(False, f"Pods need root; this is user {os.geteuid()}: run it with sudo")
    return _held("SYS_ADMIN", "namespaces and mounts cannot be made, even as root")


def _held(capability: str, consequence: str) -> Ability:
    if capability in held_capabilities():
        return Ability(True)
    return Ability(False, f"the capability {capability} is not held: {consequence}")


def _try(attempt: Callable[[], None]) -> Ability:
    """Run the attempt in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        reason = ""
        try:
            attempt()
        except (OSError, Refused) as refusal:
            reason = _in_words(refusal)
        except BaseException as surprise:  # noqa: BLE001 - the end of this process; told to the one that asks
            reason = f"{type(surprise).__name__}: {surprise}"
        os.write(writing, reason.encode()[:4096])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        reason = answer.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if status:
        reason = f"the attempt was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return Ability(not reason, reason)


def _in_words(refusal: Exception) -> str:
    number = getattr(refusal, "errno", None)
    meaning = {
        errno.EPERM: "the kernel does not permit it; a container around us, or its seccomp profile, may forbid it",
        errno.ENOSYS: f"this kernel ({platform.release()}) does not know the call; Linux 5.12 or newer is needed",
        errno.ENODEV: "this kernel does not have the file system",
        errno.ENOSPC: "the limit of namespaces is reached (sysctl user.max_*_namespaces)",
    }.get(number or 0)
    return f"{refusal}: {meaning}" if meaning else str(refusal)


def _loopback() -> None:
    unshare(CLONE_NEWNET)
    bring_up_loopback()


def _private_mounts() -> None:
    unshare(CLONE_NEWNS)
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def _mount_calls() -> None:
    _private_mounts()
    restrict_mount(clone_tree("/"), ATTR_RDONLY, recursive=True)
    open_beneath(os.open("/", os.O_PATH), ".")
    close_on_exec_from(3)


def _process_descriptors() -> None:
    own = os.pidfd_open(os.getpid())
    signal.pidfd_send_signal(own, 0)
    setns(own, CLONE_NEWUTS)


def _overlay(directory: Path | None) -> None:
    """Mount an overlay whose writable layer is in that directory, or in memory if it is None."""
    _private_mounts()
    with tempfile.TemporaryDirectory(prefix="probe-", dir=directory, ignore_cleanup_errors=True) as name:
        if directory is None:
            mount("probe", name, "tmpfs")
        os.chdir(name)
        for each in ("lower", "upper", "work", "root"):
            Path(each).mkdir()
        mount("overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work")
        Path("root/written").touch()
        os.chdir("/")
        for target in (f"{name}/root", *([name] if directory is None else [])):
            detach(target)


def _no_new_privileges() -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _seccomp() -> None:
    set_seccomp_filter(default_profile(()))


def _cgroups() -> dict[str, Ability]:
    tree = CgroupTree.open(f"kubereef-probe-{os.getpid()}")
    tree.root.try_remove()
    return {
        f"{controller} limits": Ability(
            controller not in tree.unenforced, tree.unenforced.get(controller, "")
        )
        for controller in ("memory", "cpu", "pids")
    }


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_probe_here(Path(sys.argv[1]))))
