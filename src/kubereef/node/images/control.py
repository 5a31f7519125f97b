"""What a build may use of the outside: a way to tell how far it is, a deadline, and programs to run."""

import errno
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kubereef.node.images.errors import BuildCancelled, BuildFailed, BuildTimedOut, DiskFull
from kubewire.sources import Clock

_LOOK_EVERY = 0.1  # seconds between looks at cancellation while a program is silent
_KEPT_LINES = 30
_MAX_LINE = 4096
_NO_SPACE = os.strerror(errno.ENOSPC)
_PR_SET_PDEATHSIG = 1

# A program dies with the thread that waits for it, so a killed node leaves no installer behind. The signal is
# asked for by the program itself: doing it between fork and exec of a threaded process can hang.
_TETHERED = f"""\
import ctypes, os, sys
ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGKILL)})
if os.getppid() != int(sys.argv[1]):
    sys.exit("the build that started this is gone")
os.umask(0o022)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Progress(NamedTuple):
    """How far a pull is, for events and for a terminal."""

    stage: str  # one word or two: "copying Python", "downloading", "installing", …
    detail: str = ""  # what of it, such as a file's name
    done: int = 0  # bytes of the file named in detail
    total: int = 0  # 0: not known

    @property
    def percent(self) -> int | None:
        """Whole percent of the present file, if its size is known."""
        return min(100, self.done * 100 // self.total) if self.total else None


OnProgress = Callable[[Progress], None]


class Control:
    """Says how far a build is and ends it when it is cancelled or late. Used in the build's own thread."""

    def __init__(self, clock: Clock, cancelled: threading.Event, timeout: float, report: OnProgress) -> None:
        self._clock = clock
        self._cancelled = cancelled
        self._timeout = timeout
        self._deadline = clock.monotonic() + timeout
        self._report = report
        self._last = Progress("")

    def tell(self, stage: str, detail: str = "", done: int = 0, total: int = 0) -> None:
        """Report progress, unless a reader could not tell it from the last report."""
        self.check()
        now = Progress(stage, detail[:200], done, total)
        last, self._last = self._last, now
        if (now.stage, now.detail, now.percent) != (last.stage, last.detail, last.percent):
            self._report(now)

    def check(self) -> None:
        """Raise if this build is to end: nobody waits for it, or it takes too long."""
        if self._cancelled.is_set():
            raise BuildCancelled("the pull was cancelled")
        if self._clock.monotonic() >= self._deadline:
            raise BuildTimedOut(
                f"the image was not made within {self._timeout:g} s (at: {self._last.stage or 'start'}); "
                "a slow package index may need a longer limit for pulls"
            )

    def wait(self) -> None:
        """Let a moment pass while somebody else holds a lock; returns at once when cancelled."""
        self._cancelled.wait(_LOOK_EVERY)
        self.check()

    def run(
        self,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
        allow_failure: bool = False,
    ) -> str:
        """Run a program to its end and return its last lines; a failure quotes them."""
        command = [str(part) for part in argv]
        tethered = [sys.executable, "-I", "-S", "-c", _TETHERED, str(os.getpid()), *command]
        self.check()
        with subprocess.Popen(  # noqa: S603 - programs of this machine, arguments as a list
            tethered,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            start_new_session=True,
        ) as process:
            try:
                tail = self._follow(process, on_line)
                self._await_end(process)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        output = "\n".join(tail)
        if process.returncode and _NO_SPACE in output:
            raise DiskFull(f"no room left on the disk while running {Path(command[0]).name}")
        if process.returncode and not allow_failure:
            raise BuildFailed(f"{_shown(command)} ended with code {process.returncode}: {_essence(tail)}")
        return output

    def _follow(self, process: subprocess.Popen[bytes], on_line: Callable[[str], None] | None) -> deque[str]:
        tail: deque[str] = deque(maxlen=_KEPT_LINES)
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        partial = b""
        with selectors.DefaultSelector() as readable:
            readable.register(descriptor, selectors.EVENT_READ)
            while True:
                self.check()
                if not readable.select(_LOOK_EVERY):
                    continue
                chunk = os.read(descriptor, 65536)
                *lines, partial = (partial + chunk).split(b"\n")
                if not chunk and partial:
                    lines, partial = [partial], b""
                partial = partial[:_MAX_LINE]  # the rest of an endless line is of no interest
                for raw in lines:
                    line = raw[:_MAX_LINE].decode(errors="replace").rstrip()
                    tail.append(line)
                    if on_line is not None:
                        on_line(line)
                if not chunk:
                    return tail

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        # A program may close its output long before it ends.
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_EVERY)
                return
            self.check()


def _shown(command: Sequence[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:4]]) + (" …" if len(command) > 4 else "")


def _essence(tail: Sequence[str]) -> str:
    """The lines that say what was wrong, or else the last ones."""
    errors = [line for line in tail if "error" in line.lower()]
    return "\n".join(errors[-5:] or list(tail)[-5:]) or "it printed nothing"
