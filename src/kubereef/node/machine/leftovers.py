"""The one thing that the kernel leaves behind when a node is killed: its cgroups, empty.

They are named after the process that the node belongs to, so any later node can tell which have no owner any more.
"""

import os
import re
from pathlib import Path

from kubereef.node.sandbox import Cgroup
from kubereef.node.sandbox.cgroups import find_hierarchies

_NAME = re.compile(r"kubereef-(\d+)-(\d+)")
_PROC = Path("/proc")
_AFTER_NAME = 19  # of the fields of /proc/<pid>/stat that follow the program's name, when it was started


def cgroup_name() -> str:
    """Return the name for the cgroups of this process's node: a number alone may be used again."""
    return f"kubereef-{os.getpid()}-{_started(os.getpid())}"


def sweep_cgroups() -> None:
    """End and remove the cgroups of nodes whose process is gone, and those of this process. Blocks for a moment."""
    hierarchies = find_hierarchies(
        Path("/proc/self/mountinfo").read_text(encoding="utf-8"),
        Path("/proc/self/cgroup").read_text(encoding="utf-8"),
    )
    for controller, hierarchy in hierarchies.items():
        for place in {hierarchy.own, hierarchy.top}:
            for left in place.glob("kubereef-*"):
                if left.is_dir() and _is_nobodys(left.name):
                    Cgroup({controller: left}).try_remove()


def _is_nobodys(name: str) -> bool:
    found = _NAME.fullmatch(name)
    if found is None:
        return False
    pid, started = int(found[1]), found[2]
    return pid == os.getpid() or _started(pid) != started


def _started(pid: int) -> str:
    """Return when a process was started, in the kernel's own measure; nothing if there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.rpartition(")")[2].split()[_AFTER_NAME]
