"""What is read of a run: processor time and memory of processes, counts of requests, percentiles."""

import ctypes
import math
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from tests.kubernetes.audit import Asked

_libc = ctypes.CDLL(None)


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far.

    Its clock tells it to the nanosecond, while /proc has hundredths of a second: an idle minute may be one of those.
    """
    clock = ctypes.c_int()
    if code := _libc.clock_getcpuclockid(ctypes.c_int(pid), ctypes.byref(clock)):
        raise ProcessLookupError(code, f"process {pid}: {os.strerror(code)}")
    return time.clock_gettime(clock.value)


def peak_mebibytes(pid: int) -> float:
    """Return the most memory that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} does not tell its memory")


def counted(requests: Iterable[Asked]) -> Counter[str]:
    """Return how often was asked for what, such as `create pods`. Watches are left out: they last."""
    return Counter(f"{asked.verb} {asked.what}" for asked in requests if asked.verb != "watch")


def percentile(values: Collection[float], share: float) -> float:
    """Return the smallest value that this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
