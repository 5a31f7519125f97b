"""Locks between processes: whoever dies, however, lets go."""

import fcntl
import os
from pathlib import Path


class Locks:
    """Named locks in a directory. Their files stay, so that two processes never lock different files of one name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def share(self, name: str) -> int | None:
        """Hold a lock together with others until the descriptor is closed; None while someone has it alone."""
        return self._take(name, fcntl.LOCK_SH)

    def alone(self, name: str) -> int | None:
        """Hold a lock alone until the descriptor is closed; None while anybody else has it."""
        return self._take(name, fcntl.LOCK_EX)

    def _take(self, name: str, how: int) -> int | None:
        descriptor = os.open(self._directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
