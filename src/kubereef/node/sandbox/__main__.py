"""The processes between Kubereef and the node program; started by `node_process`, not by hand.

`boot` lives outside the node's namespaces, as the child of one thread of Kubereef's: it makes the namespaces, starts
process 1 in them and ends with it. It dies with that thread, and process 1 dies with it, however either of them ends.
"""

import os
import select
import signal
import sys
from typing import Any, NoReturn

import msgspec

from kubereef.node.sandbox.init import run_init
from kubereef.node.sandbox.syscalls import (
    ATTR_RDONLY,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    PR_SET_PDEATHSIG,
    bring_up_loopback,
    clone_tree,
    mount,
    prctl,
    restrict_mount,
    unshare,
)

_FLAGS = ("-P", "-m", "kubereef.node.sandbox")


class Plan(msgspec.Struct, frozen=True):
    """What to run, and for whom: the pid of the process whose thread started us."""

    parent: int
    entry: str
    descriptors: dict[str, int]
    argument: Any


def boot(plan: Plan, plan_file: int) -> NoReturn:
    """Make the node's namespaces and process 1 in them, and wait for its end."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != plan.parent:
        os._exit(1)  # it ended before the signal was arranged
    unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET)
    watched, held = os.pipe2(os.O_CLOEXEC)
    init = os.fork()
    if init == 0:
        os.close(held)
        _enter_node(watched, plan_file)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(init, number))
    for fd in plan.descriptors.values():
        os.close(fd)
    _, status = os.waitpid(init, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _enter_node(parent: int, plan_file: int) -> NoReturn:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)  # the parent ended before the signal was arranged
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    bring_up_loopback()
    # The interpreter of process 1 and its helpers comes from a read-only mount: a container that gets hold of the file
    # a helper runs, through /proc/self/exe, cannot write to it.
    interpreter = clone_tree(os.path.realpath(sys.executable), recursive=False)
    restrict_mount(interpreter, ATTR_RDONLY, recursive=False)
    os.execve(interpreter, [sys.executable, *_FLAGS, "init", str(plan_file)], os.environ)  # noqa: S606 - no shell is the point


def main() -> NoReturn:
    """Run the stage that the arguments name, by the plan in the file behind the descriptor that they name."""
    stage, number = sys.argv[1:]
    plan_file = int(number)
    plan = msgspec.json.decode(os.pread(plan_file, os.fstat(plan_file).st_size, 0), type=Plan)
    if stage == "boot":
        boot(plan, plan_file)
    os.close(plan_file)
    run_init(plan.entry, plan.descriptors, plan.argument)


if __name__ == "__main__":
    main()
