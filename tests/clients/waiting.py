"""Waiting for what happens by itself."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 30.0
Found = TypeVar("Found")


def eventually(look: Callable[[], Found], patience: float = PATIENCE) -> Found:
    """Look again and again until there is something to see, and return it."""
    deadline = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < deadline, f"it did not happen within {patience:g} s"
        time.sleep(0.05)
    return found
