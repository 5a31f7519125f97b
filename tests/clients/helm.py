"""Helm, as a function."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

PATIENCE = 60.0


class Helm:
    """Runs Helm against one cluster and in one namespace; what it caches and configures is kept in a directory."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path, namespace: str) -> None:
        self._command = [str(program), "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self._environment = {
            **os.environ,
            **{f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")},
            "HOME": str(home),  # where discovery is cached
        }

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command and return what it prints; `code` is how it should exit."""
        run = subprocess.run(
            [*self._command, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self._environment,
        )
        assert run.returncode == code, f"helm {' '.join(arguments)}: {run.stderr or run.stdout}"
        return run.stdout if code == 0 else run.stdout + run.stderr

    def read(self, *arguments: str) -> Any:
        """Return what a command prints as JSON, decoded."""
        return json.loads(self(*arguments, "-o", "json"))
