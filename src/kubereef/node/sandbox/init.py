"""Process 1 of the node: starts the node program, forks helpers for its requests, and reaps whatever ends.

It is the one authority that reaps orphans, and it runs nothing else: the node program is a child with children of its
own, so neither takes an exit code from the other. It has one thread and few modules, which makes forking it safe and
cheap. It ends when the node program does, and the kernel then ends everything in the node's pid namespace.
"""

import array
import gc
import importlib
import os
import select
import signal
import socket
import struct
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from kubereef.node.sandbox.starting import run_helper

EXIT_REPORT = struct.Struct("=ii")  # pid and wait status, from process 1 to the node program
_MOST_REPORTS_HELD = 4096


class NodeStart(msgspec.Struct, frozen=True):
    """What the node program is started with: its line to process 1, the descriptors given by name, and its argument."""

    control: int
    descriptors: dict[str, int]
    argument: Any


def run_init(entry: str, descriptors: dict[str, int], argument: object) -> NoReturn:
    """Be process 1: run `entry` ("module:function", given a `NodeStart`) in a child, and end as it ends."""
    for fd in descriptors.values():
        os.set_inheritable(fd, False)  # they came through two programs; they are for the node program alone
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    gc.disable()
    gc.freeze()  # forked helpers then share the memory of what exists now
    program = os.fork()
    if program == 0:
        ours.close()
        _run_program(entry, NodeStart(theirs.detach(), descriptors, argument))
    theirs.close()
    for fd in descriptors.values():
        os.close(fd)
    os._exit(_Init(ours, program).run())


def _run_program(entry: str, start: NodeStart) -> NoReturn:
    gc.unfreeze()
    gc.enable()
    code = 1
    try:
        module, _, name = entry.partition(":")
        function: Callable[[NodeStart], int | None] = getattr(importlib.import_module(module), name)
        code = function(start) or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - the top of a process: printed, and told by the exit code
        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


class _Init:
    def __init__(self, control: socket.socket, program: int) -> None:
        self._control = control
        self._control.setblocking(False)
        self._program = program
        self._program_status: int | None = None
        self._helpers: set[int] = set()
        self._reports: list[bytes] = []
        self._is_connected = True

    def run(self) -> int:
        """Serve until the node program ends; return the exit code that tells how."""
        wakeup, alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to be woken
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._pass_on)
        poll = select.poll()
        poll.register(wakeup, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while self._program_status is None:
            if self._is_connected:
                poll.modify(self._control, select.POLLIN | (select.POLLOUT if self._reports else 0))
            for fd, events in poll.poll():
                if fd == wakeup:
                    os.read(wakeup, 4096)
                elif events & select.POLLHUP:  # the program is ending; its exit code is still to come
                    self._is_connected = False
                    poll.unregister(self._control)
                elif events & select.POLLOUT:
                    self._send_reports()
                else:
                    self._take_request()
            self._reap()
        code = os.waitstatus_to_exitcode(self._program_status)
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, _frame: object) -> None:
        os.kill(self._program, number)

    def _reap(self) -> None:
        # When the program does not take the reports, the dead wait: no exit is forgotten.
        while not self._is_connected or len(self._reports) < _MOST_REPORTS_HELD:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._program:
                self._program_status = status
            elif pid in self._helpers:
                self._helpers.discard(pid)
            elif self._is_connected:
                self._reports.append(EXIT_REPORT.pack(pid, status))

    def _send_reports(self) -> None:
        try:
            while self._reports:
                self._control.send(self._reports[0])
                self._reports.pop(0)
        except (BlockingIOError, ConnectionError):
            return  # sent when there is room, or never, when the program is ending

    def _take_request(self) -> None:
        try:
            data, ancillary, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, ConnectionError):
            return  # the program took its word back, or is ending with reports unread
        lines = array.array("i")
        for _, _, payload in ancillary:
            lines.frombytes(payload)
        if not data or not lines:
            return
        with socket.socket(fileno=lines[0]) as line:
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                self._control.close()
                run_helper(line)
            self._helpers.add(pid)
