"""kubectl, as a function."""

import json
import subprocess
from pathlib import Path
from typing import Any

PATIENCE = 30.0


class Kubectl:
    """Runs kubectl against one server and, unless told otherwise, in one namespace."""

    def __init__(self, kubeconfig: Path, cache: Path, namespace: str) -> None:
        self.namespace = namespace
        self._command = [
            "kubectl",
            "--kubeconfig",
            str(kubeconfig),
            "--cache-dir",
            str(cache),
            "-n",
            namespace,
        ]

    def __call__(self, *arguments: str, given: object = None, code: int = 0) -> str:
        """Run a command and return its output. What is `given` comes in as JSON; `code` is how it should exit."""
        run = subprocess.run(
            [*self._command, *arguments],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert run.returncode == code, f"kubectl {' '.join(arguments)}: {run.stderr or run.stdout}"
        return run.stdout if code == 0 else run.stdout + run.stderr

    def read(self, *arguments: str) -> Any:
        """Return what `get` shows, decoded."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command that goes on until it is ended."""
        return subprocess.Popen(
            [*self._command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
