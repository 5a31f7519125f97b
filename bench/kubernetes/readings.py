"""What is read of a run: processor time and memory of processes, requests from the audit log, percentiles."""

import ctypes
import json
import math
import os
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

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


class AuditLog:
    """The requests that one user has made of the API server. Watches are left out: they last."""

    def __init__(self, directory: Path, user: str) -> None:
        self._policy = directory / "audit.yaml"
        self._log = directory / "audit.log"
        self._user = user

    @property
    def flags(self) -> list[str]:
        """What the API server is told; writes the policy that it then reads."""
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [{"level": "Metadata", "users": [self._user]}, {"level": "None"}],
        }
        self._policy.write_text(json.dumps(policy))
        return [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"]

    def mark(self) -> int:
        """Return the place that the log has reached, to count from there on."""
        return self._log.stat().st_size if self._log.exists() else 0

    def since(self, mark: int) -> Counter[str]:
        """Return how often the user has asked for what since then, such as `create pods`."""
        if not self._log.exists():
            return Counter()
        with self._log.open("rb") as log:
            log.seek(mark)
            return Counter(what for line in log if (what := _request(line)))


def _request(line: bytes) -> str:
    """Return the request that a whole line of the log tells of, if it is one that ends."""
    if not line.endswith(b"\n"):
        return ""
    entry = json.loads(line)
    if entry["verb"] == "watch":
        return ""
    reference = entry.get("objectRef") or {}
    whole = reference.get("resource") or entry["requestURI"].partition("?")[0]
    parts = [whole, reference.get("subresource", "")]
    return f"{entry['verb']} {'/'.join(filter(None, parts))}"


def percentile(values: Collection[float], share: float) -> float:
    """Return the smallest value that this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
