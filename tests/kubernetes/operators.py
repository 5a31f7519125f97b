"""`eagleray operator` as a process against a real control plane."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.kubernetes.plane import die_with_parent

PATIENCE = 60.0
COMMAND = (sys.executable, "-m", "eagleray.cli.main", "operator")


class Operator:
    """A running operator; its log is in a file."""

    def __init__(self, kubeconfig: Path, log: Path, *flags: str) -> None:
        self._probes, self._metrics = _free_port(), _free_port()
        self._log = log
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [
                    *COMMAND,
                    f"--kubeconfig={kubeconfig}",
                    f"--metrics-addr=127.0.0.1:{self._metrics}",
                    f"--health-probe-bind-address=127.0.0.1:{self._probes}",
                    *flags,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=_environment(),
                preexec_fn=die_with_parent,
            )

    # --- life

    def until_ready(self) -> None:
        """Wait until its caches are filled."""
        end = time.monotonic() + PATIENCE
        while self._page(self._probes, "/readyz") is None:
            assert self.is_alive, f"the operator has ended: {self.last_words()}"
            assert time.monotonic() < end, f"the operator is not ready: {self.last_words()}"
            time.sleep(0.1)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> int:
        """End it in good order; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def pause(self) -> None:
        """Have it stand still."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    # --- what it says

    def lines(self) -> list[dict[str, Any]]:
        """The lines of its log, those that are complete."""
        text = self._log.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def last_words(self) -> str:
        """Return the end of its log."""
        return "\n".join(self._log.read_text().splitlines()[-40:])

    def said(self, words: str) -> bool:
        return any(words in line["msg"] for line in self.lines())

    def metric(self, series: str) -> float:
        """Return the sum of all series that begin like this."""
        page = self._page(self._metrics, "/metrics") or ""
        return sum(
            float(value) for value in re.findall(rf"^{re.escape(series)}\S* (\S+)$", page, re.MULTILINE)
        )

    @property
    def is_leading(self) -> bool:
        return self.metric('leader_election_master_status{name="ray-operator-leader"}') == 1

    def refusals(self, code: int) -> float:
        """Return how many requests the API server has answered with a code."""
        page = self._page(self._metrics, "/metrics") or ""
        found = re.findall(rf'^rest_client_requests_total{{.*code="{code}".*}} (\S+)$', page, re.MULTILINE)
        return sum(map(float, found))

    def _page(self, port: int, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return str(answer.read(), "utf-8")
        except (urllib.error.HTTPError, OSError):
            return None


def _environment() -> dict[str, str]:
    """Return an environment in which modules are compiled once and not at every start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
