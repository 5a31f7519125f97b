"""The command `eagleray-submitter`, for the container of a submitter that needs no Ray in its image.

It ends with 0 if the job succeeded or was stopped, with 1 if it failed or could not be submitted, and with 86 if it was
lost with its head. What the job prints goes to stdout; its end is told there, too, and what went wrong on stderr.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from eagleray.dashboard.client import Dashboard, Patience
from eagleray.dashboard.errors import DashboardError
from eagleray.dashboard.http import HttpCarrier
from eagleray.dashboard.words import FAILED, SUCCEEDED, JobInfo
from eagleray.manifests.submitter import OTHER_HEAD_EXIT_CODE
from eagleray.runtime.flags import HELP
from eagleray.submitter.order import USAGE, Order, Wrong, read_order
from eagleray.submitter.submitting import Lost, Submitting
from eagleray.submitter.tokens import GivenTokens
from kubewire.sources import SystemClock, SystemEntropy

_EXIT_FAILURE: Final = 1
# How a shell tells of a process that a signal has ended.
_SIGNALLED: Final = 128
_PATIENCE: Final = Patience(read=10.0, write=10.0)


def main(arguments: Sequence[str] | None = None, variables: Mapping[str, str] | None = None) -> int:
    """Submit a job, follow it to its end, and return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    variables = os.environ if variables is None else variables
    if arguments and arguments[0] in HELP:
        print(USAGE)
        return 0
    try:
        order = read_order(arguments, variables)
    except Wrong as wrong:
        return _failed(str(wrong))
    return asyncio.run(_follow(order, variables))


async def _follow(order: Order, variables: Mapping[str, str]) -> int:
    """Return the exit status of the job, or of the signal that came before its end."""
    job = asyncio.create_task(_run(order, variables))
    came: list[int] = []

    def end(number: int) -> None:
        came.append(number)
        job.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # As the first process of a container it would not be ended by a signal that it does not handle.
        loop.add_signal_handler(number, end, number)
    await asyncio.wait((job,))
    return _SIGNALLED + came[0] if job.cancelled() else job.result()


async def _run(order: Order, variables: Mapping[str, str]) -> int:
    carrier = HttpCarrier(tls=order.tls)
    dashboard = Dashboard(order.address, carrier, GivenTokens(variables), _PATIENCE)
    output = _Output()
    submitting = Submitting(
        dashboard, order, clock=SystemClock(), entropy=SystemEntropy(), printed=output.show
    )
    try:
        return _told(order.submission.submission_id, await submitting.run(), output)
    except Lost as lost:
        _failed(str(lost))
        return OTHER_HEAD_EXIT_CODE
    except DashboardError as failure:
        return _failed(str(failure))
    finally:
        await carrier.close()


class _Output:
    """What a job prints, as it comes, and whole lines about it."""

    def __init__(self) -> None:
        self._is_mid_line = False

    def show(self, text: str) -> None:
        self._is_mid_line = not text.endswith("\n")
        # Whatever stdout's own encoding is: a log is passed on and not judged.
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()

    def say(self, line: str) -> None:
        self.show(f"\n{line}\n" if self._is_mid_line else f"{line}\n")


def _told(job_id: str, info: JobInfo, output: _Output) -> int:
    """Tell how a job ended; returns the exit status for it. One that was stopped has done what was asked of it."""
    if info.status == FAILED:
        return _failed(f"Job '{job_id}' failed: {info.message or 'Ray gives no reason'}")
    if info.status == SUCCEEDED:
        output.say(f"SUCC -- Job '{job_id}' succeeded")
    else:
        output.say(f"STOP -- Job '{job_id}' was stopped")
    return 0


def _failed(what: str) -> int:
    print(f"ERROR -- {what}", file=sys.stderr, flush=True)
    return _EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main())
