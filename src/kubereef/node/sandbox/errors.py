"""What can go wrong in the sandbox, each with a name.

`SyscallFailed` is the kernel's refusal, `Refused` is ours (the request asks for what cannot be honoured, so nothing was
started), `StartFailed` is a container or command that could not be started, and `NodeEnded` is the answer to whoever
waits for something when the node's process 1 is gone.
"""

import errno as errnos
import os

# What runtimes report for a command that is not there, one that cannot be run, and a sandbox that could not be built.
NOT_FOUND = 127
CANNOT_RUN = 126
NOT_STARTED = 128


class SandboxError(Exception):
    """Anything the sandbox reports by itself."""


class SyscallFailed(SandboxError, OSError):
    """The kernel refused a call; `call` names it with its arguments, `errno` says why."""

    def __init__(self, call: str, errno: int) -> None:
        OSError.__init__(self, errno, os.strerror(errno), call)
        self.call = call

    def __str__(self) -> str:
        return f"{self.call}: {errnos.errorcode.get(self.errno or 0, self.errno)} ({self.strerror})"


class Refused(SandboxError):
    """The request cannot be honoured here; running it weaker is not an answer, so nothing was started."""


class NodeEnded(SandboxError):
    """The node's process 1 is gone, and with it everything it ran."""


class StartFailed(SandboxError):
    """A container or command did not start.

    `step` is what was being done, `errno` the kernel's reason (0 if it was not the kernel), `reason` and `exit_code`
    are what a container status shows: ContainerCannotRun with 127 or 126 when the command is at fault, StartError with
    128 when the sandbox is.
    """

    def __init__(self, step: str, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.step = step
        self.message = message
        self.errno = errno

    @property
    def exit_code(self) -> int:
        if self.step not in ("command", "directory"):
            return NOT_STARTED
        return NOT_FOUND if self.errno in (errnos.ENOENT, errnos.ENOTDIR) else CANNOT_RUN

    @property
    def reason(self) -> str:
        return "StartError" if self.exit_code == NOT_STARTED else "ContainerCannotRun"
