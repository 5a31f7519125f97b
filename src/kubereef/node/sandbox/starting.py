"""What the helper does that process 1 forks for one request: build the sandbox and become the program in it.

The helper joins what the Pod shares, then forks the process that is to be the container's process 1, since a pid
namespace is entered by children only. It tells the node program the child's pid before anything can go wrong with it,
whether the program came to run, and stays the child's parent until the node program has heard that: so no exit is
reported before somebody waits for it. Then it ends, and process 1 inherits the child.
"""

import errno as errnos
import fcntl
import os
import resource
import signal
import socket
import stat
import struct
import termios
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from kubereef.node.sandbox.errors import Refused, StartFailed
from kubereef.node.sandbox.messages import (
    Born,
    EnterContainer,
    Failed,
    HasTerminal,
    OpenPod,
    PodOpened,
    StartContainer,
    Started,
    receive_request,
    send_reply,
)
from kubereef.node.sandbox.privileges import take_identity
from kubereef.node.sandbox.rootfs import enter_root, finish_root, prepare_sources, step
from kubereef.node.sandbox.seccomp import default_profile
from kubereef.node.sandbox.specs import Command, ContainerSpec, PodSpec, TerminalSize
from kubereef.node.sandbox.syscalls import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    bring_up_loopback,
    close_all_but,
    close_on_exec_from,
    prctl,
    set_seccomp_filter,
    setns,
    unshare,
)

_STREAMS = ("stdin", "stdout", "stderr")
_TIOCSPTLCK, _TIOCGPTPEER = 0x40045431, 0x5441
_CONTAINER_KINDS = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POD_KINDS = {"net": CLONE_NEWNET, "uts": CLONE_NEWUTS, "ipc": CLONE_NEWIPC}
# As container runtimes set them in a Pod's own network: anybody may ping, and no port is reserved to root.
_NETWORK_DEFAULTS = {"net.ipv4.ip_unprivileged_port_start": "0", "net.ipv4.ping_group_range": "0 2147483647"}


def run_helper(line: socket.socket) -> NoReturn:
    """Serve the one request that comes on this line, in a process made for it, and end that process."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # A process of a container that sees ours must not be able to look into it: it holds the node's descriptors.
        prctl(PR_SET_DUMPABLE, 0)
        request, descriptors = receive_request(line)
        if isinstance(request, OpenPod):
            child = _open_pod(line, request.spec)
        else:
            roles = dict(zip(request.roles, descriptors, strict=True))
            if isinstance(request, StartContainer):
                child = _start_container(line, request.spec, roles)
            else:
                child = _enter_container(line, request, roles)
        is_noted = line.recv(1)
        if child and not is_noted:
            os.kill(child, signal.SIGKILL)
    except StartFailed as failure:
        _report(line, failure)
    except EOFError:
        pass  # the node program is gone, and with it whoever wanted an answer
    except Exception as surprise:  # noqa: BLE001 - whatever it is, the node program must hear of it
        _report(line, StartFailed("helper", f"{type(surprise).__name__}: {surprise}"))
    finally:
        os._exit(0)


def _report(line: socket.socket, failure: StartFailed) -> None:
    with suppress(BrokenPipeError):  # as above
        send_reply(line, Failed(failure.step, failure.message, failure.errno))


def _open_pod(line: socket.socket, spec: PodSpec) -> int | None:
    """Make a Pod's namespaces; return the process that keeps the shared pid namespace, if there is one."""
    keeper: int | None = None
    with step("namespaces"):
        unshare(CLONE_NEWUTS | CLONE_NEWIPC | (0 if spec.host_network else CLONE_NEWNET))
    with step("hostname"):
        socket.sethostname(spec.hostname)
    if not spec.host_network:
        with step("loopback"):
            bring_up_loopback()
        for name, value in _NETWORK_DEFAULTS.items():
            if _sysctl_file(name).exists():  # a kernel without IPv4 ping sockets lacks one
                _set_sysctl(name, value)
    for name, value in spec.sysctls.items():
        _set_sysctl(name, value)
    with step("namespaces"):
        spaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _POD_KINDS]
        if spec.share_process_namespace:
            unshare(CLONE_NEWPID)
            ours, theirs = socket.socketpair()
            keeper = os.fork()
            if keeper == 0:
                ours.close()
                _keep_pid_namespace(theirs)
            theirs.close()
            send_reply(line, Born(keeper), [os.pidfd_open(keeper)])
            ours.send(b".")
            ours.close()
            spaces.append(os.open(f"/proc/{keeper}/ns/pid", os.O_RDONLY | os.O_CLOEXEC))
    send_reply(line, PodOpened(), spaces)
    return keeper


def _sysctl_file(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))


def _set_sysctl(name: str, value: str) -> None:
    with step(f"sysctl {name}"):
        _sysctl_file(name).write_text(value)


def _keep_pid_namespace(line: socket.socket) -> NoReturn:
    """Be process 1 of a Pod whose containers share one: reap what they leave behind, until killed."""
    close_all_but([line.fileno()])
    if not line.recv(1):
        os._exit(1)  # our parent was killed before it told anybody of us: nobody would ever end this process
    line.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.sigwait({signal.SIGCHLD})


def _start_container(line: socket.socket, spec: ContainerSpec, roles: Mapping[str, int]) -> int | None:
    _join_cgroup(spec.cgroup.values())
    if spec.oom_score_adj is not None:
        with step("oom_score_adj"):
            Path("/proc/self/oom_score_adj").write_text(str(spec.oom_score_adj))
    with step("namespaces"):
        for role, kind in _POD_KINDS.items():
            setns(roles[role], kind)
        if spec.cgroup:
            unshare(CLONE_NEWCGROUP)
        if "pid" in roles:
            setns(roles["pid"], CLONE_NEWPID)
        else:
            unshare(CLONE_NEWPID)

    def build(kept: list[int]) -> None:
        sources = prepare_sources(spec)
        close_all_but([*kept, *sources.descriptors()])
        enter_root(spec, sources)
        with step("directory"):
            Path(spec.command.cwd).mkdir(parents=True, exist_ok=True)
        finish_root(spec)

    return _fork_program(line, spec.command, roles, build)


def _enter_container(line: socket.socket, request: EnterContainer, roles: Mapping[str, int]) -> int | None:
    _join_cgroup(request.cgroup.values())
    with step("namespaces"):
        setns(roles["container"], _CONTAINER_KINDS)
    return _fork_program(line, request.command, roles, close_all_but)


def _join_cgroup(directories: Iterable[Path]) -> None:
    for directory in directories:
        with step("cgroup"):
            Path(directory, "cgroup.procs").write_text("0")


def _fork_program(
    line: socket.socket, command: Command, roles: Mapping[str, int], build: Callable[[list[int]], None]
) -> int | None:
    """Fork the process that runs `build` with the descriptors it must keep and becomes the command; tell its fate.

    Returns its pid if it runs, None if it failed, which it has reported itself.
    """
    ours, theirs = socket.socketpair()
    streams = {role: roles[role] for role in _STREAMS if role in roles}
    if (pid := os.fork()) == 0:
        ours.close()
        if not theirs.recv(1):  # our parent speaks first on the line
            os._exit(1)
        try:
            build([line.fileno(), theirs.fileno(), *streams.values()])
            _become(line, command, streams)
        except (StartFailed, Refused) as failure:
            _report(
                line, failure if isinstance(failure, StartFailed) else StartFailed("request", str(failure))
            )
        except BaseException as surprise:  # noqa: BLE001 - this process ends here, and somebody must hear of it
            _report(line, StartFailed("helper", f"{type(surprise).__name__}: {surprise}"))
        theirs.send(b"!")
        os._exit(1)
    theirs.close()
    try:
        send_reply(line, Born(pid), [os.pidfd_open(pid)])
        ours.send(b".")
        if ours.recv(1):
            os.waitpid(pid, 0)
            return None
        send_reply(line, Started())  # the kernel closed the other end when the program took over
    except BrokenPipeError:
        os.kill(pid, signal.SIGKILL)  # the node program is gone or has changed its mind
    return pid


def _become(line: socket.socket, command: Command, streams: Mapping[str, int]) -> NoReturn:
    security = command.security
    with step("rlimits"):
        for name, (soft, hard) in command.rlimits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (soft, hard))
    os.setsid()
    with step("standard streams"):
        if command.terminal:
            _open_terminal(line, command.terminal, security.uid)
        else:
            _connect(streams, security.uid, security.gid)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # What is ignored would stay ignored in the program, be it by us or by whoever started Kubereef.
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    with step("directory"):
        os.chdir(command.cwd)
        Path.cwd()  # fails for a directory that is not below our root
    with step("seccomp"):
        if security.seccomp == "RuntimeDefault":
            if security.no_new_privileges:
                prctl(PR_SET_NO_NEW_PRIVS, 1)
            # While we may still do this without giving up set-uid programs; what follows is not filtered.
            set_seccomp_filter(default_profile(security.capabilities))
    with step("identity"):
        take_identity(
            security.uid,
            security.gid,
            security.groups,
            security.capabilities,
            no_new_privileges=security.no_new_privileges,
        )
    close_on_exec_from(3)
    _execute(command)


def _open_terminal(line: socket.socket, size: TerminalSize, uid: int) -> None:
    """Open a terminal of the container's own, so that its name means something inside; hand over the master side."""
    master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
    slave = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    os.fchown(slave, uid, -1)
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(slave, number)
    send_reply(line, HasTerminal(), [master])


def _connect(streams: Mapping[str, int], uid: int, gid: int) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for number, role in enumerate(_STREAMS):
        fd = streams.get(role, null)
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.fchown(fd, uid, gid)  # else the program could not reopen it by the name /dev/stdout
        os.dup2(fd, number)


def _execute(command: Command) -> NoReturn:
    name = command.argv[0]
    if "/" in name:
        places = [name]
    else:
        path = command.env.get("PATH", _USUAL_PATH)
        places = [f"{directory or '.'}/{name}" for directory in path.split(":")]
    failure: OSError | None = None
    for place in places:
        try:
            os.execve(place, command.argv, command.env)  # noqa: S606 - no shell is the point
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as refusal:
            failure = failure or refusal
    if failure is None:
        why = os.strerror(errnos.ENOENT).lower() if "/" in name else "executable file not found in $PATH"
        raise StartFailed("command", f'exec: "{name}": {why}', errnos.ENOENT)
    number = failure.errno or 0
    raise StartFailed("command", f'exec: "{name}": {os.strerror(number).lower()}', number)
