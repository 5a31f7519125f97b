"""`python -m kubereef` as a process of its own, for tests that speak to it over HTTPS."""

import os
import re
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Self

import yaml

PATIENCE = 30.0


class Kubereef:
    """A running Kubereef; it is ready once this is made. As a context it is stopped at the end.

    `wrapper` is a command that runs it, such as one that gives it a file system of its own.
    """

    def __init__(self, directory: Path, *options: str, port: int = 0, wrapper: tuple[str, ...] = ()) -> None:
        self._process = subprocess.Popen(
            [
                *wrapper,
                *(sys.executable, "-m", "kubereef"),
                *("--data-dir", str(directory), "--listen", f"127.0.0.1:{port}", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_like_a_user(),
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"ready at (https://127\.0\.0\.1:(\d+)) \(kubeconfig: (.*)\)", line)
        if found is None:
            _, complaints = self._process.communicate(timeout=PATIENCE)
            raise AssertionError(f"Kubereef did not become ready: {line}{complaints}")
        self.url = found[1]
        self.port = int(found[2])
        # As the process sees its files, which may be in a file system that only it has.
        self.root = Path(f"/proc/{self.pid}/root") if wrapper else Path("/")
        self.kubeconfig = self.root / found[3].removeprefix("/")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def token(self) -> str:
        """The administrator's token."""
        user = yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]
        return str(user["token"])

    @property
    def trust(self) -> ssl.SSLContext:
        """What a client needs to believe that it speaks to this server."""
        return ssl.create_default_context(cafile=self.kubeconfig.parent / "ca.crt")

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)

    def wait(self) -> str:
        """Wait until it ends by itself and return what it had to complain about."""
        _, complaints = self._process.communicate(timeout=PATIENCE)
        return complaints

    def stop(self) -> str:
        """End it in good order and return what it had to complain about."""
        self._process.send_signal(signal.SIGTERM)
        _, complaints = self._process.communicate(timeout=PATIENCE)
        return complaints

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        if self._process.poll() is None:
            self.kill()


def _like_a_user() -> dict[str, str]:
    """Return an environment in which modules are compiled once and not at every start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
